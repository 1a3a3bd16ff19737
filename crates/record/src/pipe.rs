//! A profile of one pipeline: schema `contend.pipe/1`.
//!
//! Wall times are in seconds (`CLOCK_MONOTONIC`), from the moment at which all stages start. CPU
//! times are seconds that the kernel charges. The lifetime of a stage divides without overlap:
//!
//! ```text
//! wall_seconds ─┬─ on_cpu_seconds        measured by the kernel
//!               ├─ run_queue_seconds     measured by the kernel
//!               ├─ starved_seconds       ┐ sampled, and scaled up to
//!               ├─ blocked_seconds       │ the rest of the lifetime
//!               ├─ other_wait_seconds    ┘ (by kind: other_waits)
//!               └─ unexplained_seconds   what samples leave unexplained
//! ```

mod time_series;

pub use time_series::{PipeSeries, StageSeries, TimeSeries};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{CalibrationRecord, Candidate, Prediction, Trial, WhatIf};
use crate::stats::Estimate;
use crate::{Host, Warning, Writer};

/// Name and version of the schema.
pub const SCHEMA: &str = "contend.pipe/1";

/// A profiled pipeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeRecord {
    /// Name and version of this schema: `contend.pipe/1`.
    pub schema: String,
    /// The version of contend that wrote the record; null in records of older versions, which did
    /// not write it.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// Text of the pipeline, as given.
    pub command: String,
    /// The shell that ran the pipeline.
    pub shell: String,
    /// Start of the pipeline: UTC, RFC 3339.
    pub started_at: String,
    /// Exit status of the pipeline, as the shell would return it; with `--runs`, that of the last
    /// run that failed, or 0 if none did.
    pub exit_code: i32,
    /// Wall time from the start of the stages to the end of the last one, in seconds
    /// (`CLOCK_MONOTONIC`).
    pub wall_seconds: f64,
    /// The stages, first to last.
    pub stages: Vec<Stage>,
    /// The pipes between the stages, in the order of the stages.
    pub boundaries: Vec<Boundary>,
    /// Totals over all stages.
    pub total: Total,
    /// The stage or resource that limits the pipeline's throughput.
    pub bottleneck: Bottleneck,
    /// The parts into which barriers divide the run, in order; a single one without barriers.
    /// Neighbouring parts with the same bottleneck are one phase. Empty if the run was too short to
    /// analyse, and in records of older versions.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// What the stages did over time, and the fill of the pipes; null if the run was too short, and in
    /// records of older versions.
    #[serde(default)]
    pub time_series: Option<TimeSeries>,
    /// Sum of the phases' `bound_seconds`, divided by the wall time, from 0 to 1; null in records of
    /// older versions and of runs that are too short to analyse.
    #[serde(default)]
    pub explained_share: Option<f64>,
    /// The improvement that would shorten the run most; null in records of older versions, and if
    /// no bottleneck was found.
    #[serde(default)]
    pub overall: Option<Overall>,
    /// The processes to which contend was attached; null if contend started the pipeline.
    #[serde(default)]
    pub attached: Option<Attached>,
    /// Further facts about the run that rules have found.
    pub findings: Vec<Finding>,
    /// The machine on which the pipeline ran.
    pub host: Host,
    /// Circumstances that make the figures less reliable.
    pub warnings: Vec<Warning>,
    /// How the stages were observed, and what that cost.
    pub observation: Observation,
    /// Medians over several runs (`--runs`); all other fields are then those of the run with the
    /// median wall time, or of the faster of the two middle runs, except for `exit_code` and a
    /// warning if the runs differ. Null for a single run.
    pub runs: Option<Runs>,
    /// Candidates that are worth considering, best prediction first. After a trial, the winner
    /// comes first, then other recommended candidates, those without a gain, those with a wrong
    /// output, and those without measurements, each in ascending order of their ratios of wall
    /// time.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// How the candidates were tried (`--try`); null if no trial was requested or possible, or if
    /// it was interrupted early.
    #[serde(default)]
    pub trial: Option<Trial>,
    /// Answers to the questions of `--what-if`, in their order.
    #[serde(default)]
    pub what_if: Vec<WhatIf>,
    /// Costs of pipes and of starting programs on the machine, which predictions and answers use
    /// besides the profile; null if nothing was predicted.
    #[serde(default)]
    pub calibration: Option<CalibrationRecord>,
    /// What the model predicts for the unchanged pipeline, to which predictions and answers are
    /// compared; null if nothing was predicted.
    #[serde(default)]
    pub predicted_unchanged: Option<Prediction>,
}

/// One stage: a command with its child processes and threads. A stage's `wall_seconds` is the sum
/// of its on-CPU, run-queue, starved, blocked, other-wait and unexplained seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Position of the stage in the pipeline, from 1.
    pub index: usize,
    /// Text of the stage.
    pub command: String,
    /// Exit status of the stage; 128 + the signal's number if a signal killed it, and 127 if the
    /// status is unknown.
    pub exit_code: i32,
    /// How the stage ended.
    pub outcome: Outcome,
    /// Lifetime: wall time from the start of all stages to the end of the stage, in seconds
    /// (`CLOCK_MONOTONIC`).
    pub wall_seconds: f64,
    /// CPU time in user mode, in seconds. The kernel splits user and system time approximately;
    /// their sum is exact.
    pub user_seconds: f64,
    /// CPU time in the kernel, in seconds.
    pub system_seconds: f64,
    /// User and system time, in percent of the stage's lifetime.
    pub cpu_percent: f64,
    /// Wall time with at least one task of the stage on a CPU, in seconds.
    pub on_cpu_seconds: f64,
    /// Wall time runnable but queued for a CPU, in seconds.
    pub run_queue_seconds: f64,
    /// Wall time waiting for input, in seconds.
    pub starved_seconds: f64,
    /// Wall time blocked on output, in seconds.
    pub blocked_seconds: f64,
    /// Wall time of all waits except those for a CPU, for input and on output, in seconds.
    pub other_wait_seconds: f64,
    /// Service time, in seconds: wall time on a CPU or in other waits, without time stopped by job
    /// control. The verdict compares stages by their service times. 0 in records of older versions.
    #[serde(default)]
    pub service_seconds: f64,
    /// The waits of `other_wait_seconds`, by kind.
    pub other_waits: OtherWaits,
    /// Remainder of the lifetime, in seconds, that no sample explains.
    pub unexplained_seconds: f64,
    /// Bytes that the stage read, as far as possible without its libraries and temporary files;
    /// null if contend may not read the count.
    pub bytes_in: Option<u64>,
    /// Bytes that the stage wrote, as far as possible without its temporary files; null if contend
    /// may not read the count.
    pub bytes_out: Option<u64>,
    /// Number of read-like system calls; null if contend may not read the count.
    pub reads: Option<u64>,
    /// Number of write-like system calls; null if contend may not read the count.
    pub writes: Option<u64>,
    /// Mean number of bytes per read-like system call, from any file or pipe; null if there were no
    /// such calls, or if contend is not permitted to read the counts.
    pub mean_read_bytes: Option<f64>,
    /// Mean number of bytes per write-like system call, as far as possible without writes to
    /// temporary files; null if there were no such calls, or if contend is not permitted to read the
    /// counts.
    pub mean_write_bytes: Option<f64>,
    /// Number of voluntary context switches: a task of the stage began to wait for something.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches: the kernel preempted a task of the stage.
    pub involuntary_switches: u64,
    /// Largest resident set size of any one process of the stage, in bytes, without that of the
    /// shell that started the process.
    pub max_rss_bytes: u64,
    /// Wall time from the start of all stages to the first output of the stage, in seconds; null if
    /// no output was seen.
    pub first_output_seconds: Option<f64>,
    /// Whether the stage was a barrier: it wrote nothing until its input had ended, although it had
    /// had input for a while.
    pub holds_output: bool,
    /// CPU time of children that the stage waited for, in seconds, as far as it can be separated
    /// from the stage's own.
    pub children_cpu_seconds: f64,
    /// Number of different child processes that samples found; short-lived ones may be missing.
    #[serde(default)]
    pub children_seen: u64,
    /// Number of samples of the stage, by which its waits are classified.
    pub samples: u64,
    /// Figures that may be inexact, for example because they are from the last sample before the
    /// stage ended, or from a neighbour's count.
    pub approximate: Vec<Figure>,
}

/// A figure of a stage that may be approximate, by the name of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Bytes read.
    BytesIn,
    /// Bytes written.
    BytesOut,
    /// Number of read-like calls.
    Reads,
    /// Number of write-like calls.
    Writes,
    /// Largest resident set size.
    MaxRssBytes,
}

impl Stage {
    /// Returns whether `figure` is approximate for this stage.
    pub fn is_approximate(&self, figure: Figure) -> bool {
        self.approximate.contains(&figure)
    }

    /// Marks `figure` as approximate for this stage.
    pub fn mark_approximate(&mut self, figure: Figure) {
        if !self.is_approximate(figure) {
            self.approximate.push(figure);
        }
    }

    /// Returns the service time in seconds: wall time on a CPU or in other waits, without time
    /// stopped by job control.
    pub fn service_seconds(&self) -> f64 {
        (self.on_cpu_seconds + self.other_wait_seconds - self.other_waits.stopped).max(0.0)
    }

    /// Returns whether the stage failed. A stage that was interrupted, or whose exit status is
    /// unknown, counts as failed. A stage that SIGPIPE killed, or that exited with status 141
    /// because SIGPIPE killed its command, does not: its reader needed no more data.
    pub fn has_failed(&self) -> bool {
        const SIGPIPE: i32 = 13;
        match self.outcome {
            Outcome::Killed(SIGPIPE) | Outcome::Unobserved | Outcome::Running => false,
            Outcome::Exited => self.exit_code != 0 && self.exit_code != 128 + SIGPIPE,
            _ => true,
        }
    }

    /// Returns user time plus system time, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "signal")]
pub enum Outcome {
    /// The stage exited normally, with an exit status other than 126 and 127.
    #[default]
    Exited,
    /// The signal with this number killed the stage.
    Killed(i32),
    /// The stage exited with status 127, by which a shell reports that it did not find the command.
    NotFound,
    /// The stage exited with status 126, by which a shell reports that the command could not be
    /// executed.
    NotExecutable,
    /// The stage was still running when contend was asked to end, and the signal with this number
    /// ended it.
    Interrupted(i32),
    /// The stage has ended, but another process has collected its exit status. The status is
    /// unknown, and reported as 127.
    Unknown,
    /// contend was attached to the running stage, so its exit status is unknown, and reported as 0.
    Unobserved,
    /// The stage was still running when contend stopped observing it. Its exit code is 0.
    Running,
}

/// Wall time of waits that are neither for input, nor for output, nor for a CPU, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherWaits {
    /// Sleeping for a time, in seconds.
    pub sleep: f64,
    /// Waiting for a lock or for another thread, in seconds.
    pub lock: f64,
    /// Waiting for a disk or for a page of memory, in seconds.
    pub disk: f64,
    /// Waiting for a child process whose own state was not sampled, in seconds. Otherwise, the time
    /// counts by the state of the child.
    pub child: f64,
    /// Waiting for any of several file descriptors (`poll`, `select`, `epoll`), in seconds.
    pub poll: f64,
    /// Waiting for a socket, in seconds.
    pub network: f64,
    /// Waiting for a pipe other than the stage's input and output, in seconds.
    pub pipe: f64,
    /// Waiting for a terminal, in seconds.
    pub terminal: f64,
    /// Stopped by job control, in seconds.
    pub stopped: f64,
    /// Waiting for anything else, such as a signal, in seconds.
    pub other: f64,
}

impl std::ops::Add for OtherWaits {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sleep: self.sleep + other.sleep,
            lock: self.lock + other.lock,
            disk: self.disk + other.disk,
            child: self.child + other.child,
            poll: self.poll + other.poll,
            network: self.network + other.network,
            pipe: self.pipe + other.pipe,
            terminal: self.terminal + other.terminal,
            stopped: self.stopped + other.stopped,
            other: self.other + other.other,
        }
    }
}

impl OtherWaits {
    /// Returns the name of each kind of wait, for display, and its time in seconds.
    pub fn named(&self) -> [(&'static str, f64); 10] {
        [
            ("sleep", self.sleep),
            ("lock", self.lock),
            ("disk", self.disk),
            ("child", self.child),
            ("poll", self.poll),
            ("network", self.network),
            ("pipe", self.pipe),
            ("terminal", self.terminal),
            ("stopped", self.stopped),
            ("other", self.other),
        ]
    }
}

/// The pipe between two neighbouring stages, and the waits of both for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boundary {
    /// Position of the stage that writes, from 1.
    pub from: usize,
    /// Position of the stage that reads, from 1.
    pub to: usize,
    /// Number of bytes that passed through the pipe; null if neither side's count could be read.
    pub bytes: Option<u64>,
    /// Whether `bytes` and `bytes_per_second` may be inexact.
    #[serde(default)]
    pub bytes_approximate: bool,
    /// `bytes` divided by the pipeline's wall time in seconds; null if `bytes` is null or the wall
    /// time is 0.
    pub bytes_per_second: Option<f64>,
    /// Mean number of bytes found in the pipe; null if the pipe could not be inspected.
    pub mean_fill_bytes: Option<f64>,
    /// Largest number of bytes found in the pipe; null if the pipe could not be inspected.
    pub most_fill_bytes: Option<u64>,
    /// Capacity of the pipe, in bytes; null if the pipe could not be inspected.
    pub capacity_bytes: Option<u64>,
    /// Wall time that the writer was blocked on its output, in seconds.
    pub writer_blocked_seconds: f64,
    /// Wall time that the reader waited for its input, in seconds.
    pub reader_starved_seconds: f64,
    /// The side of the pipe that waited for the other, if either did.
    pub waiting_side: WaitingSide,
}

/// The side of a pipe that waited for the other: more than 1.5 times as long as the other, and for
/// more than a twentieth of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingSide {
    /// The writer was blocked: the reader is slower.
    Writer,
    /// The reader was starved: the writer is slower.
    Reader,
    /// Neither side waited for long, or both waited for about the same time.
    #[default]
    Neither,
}

/// Totals over all stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Total {
    /// CPU time of all stages in user mode, in seconds.
    pub user_seconds: f64,
    /// CPU time of all stages in the kernel, in seconds.
    pub system_seconds: f64,
    /// User and system time of all stages, in percent of the pipeline's wall time; 200 is two fully
    /// used CPUs.
    pub cpu_percent: f64,
    /// Largest number of bytes that any one stage read or wrote, by the exact counts if there are
    /// any above 0; null if no count is above 0.
    pub bytes: Option<u64>,
    /// Whether `bytes` and `cpu_seconds_per_gigabyte` may be inexact.
    #[serde(default)]
    pub bytes_approximate: bool,
    /// User and system time of all stages, in seconds, for each 10^9 of `bytes`; null if `bytes` is
    /// null or 0.
    pub cpu_seconds_per_gigabyte: Option<f64>,
    /// Sum of the stages' run-queue seconds.
    pub run_queue_seconds: f64,
    /// Mean number of stages that were running or queued, over the samples.
    pub runnable_mean: f64,
    /// Number of context switches of all stages, voluntary and involuntary.
    pub switches: u64,
}

/// The stage or resource that limits the pipeline's throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// What limits the throughput: a stage, the CPUs, a program or device at either end of the
    /// pipeline, or nothing that stands out.
    pub kind: BottleneckKind,
    /// Position of a stage, from 1: the bottleneck itself, or for `machine` the stage that uses the
    /// most CPU time. Null for the other kinds.
    pub stage: Option<usize>,
    /// Whether the bottleneck mostly uses CPU time or mostly waits; null if `kind` is `none`.
    pub limit: Option<Limit>,
    /// One or two sentences with the figures.
    pub evidence: String,
}

/// What limits a pipeline's throughput.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// One stage: usually the one that is busy for longest.
    Stage,
    /// The CPUs: the stages need more than there are, or other programs use them.
    Machine,
    /// The program or device that feeds the first stage.
    Input,
    /// The program or device that reads from the last stage.
    Output,
    /// No stage or resource stands out, or there is too little evidence.
    #[default]
    None,
}

/// A part of the run with one bottleneck. Phases end where the input of a barrier ends, and where
/// its output begins. A barrier is a stage that writes nothing until its input has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Start of the phase, in seconds since the start of all stages.
    pub begin_seconds: f64,
    /// End of the phase, in seconds since the start of all stages.
    pub end_seconds: f64,
    /// The stage or resource that limits the throughput in this phase.
    pub bottleneck: Bottleneck,
    /// Position, from 1, of the stage with which the bottleneck alternates: one of the two waits
    /// while the other works, because the pipes between them hold too little. Null if there is no
    /// such stage, or if the bottleneck is not a stage.
    pub alternates_with: Option<usize>,
    /// Time that the bottleneck explains, in seconds; at most the length of the phase. For a stage,
    /// its service time, its time queued behind other stages, and its waits on the side of the
    /// stage with which it alternates. For the pipeline's input or output, the time for which the
    /// first or last stage worked, was queued behind other stages, or waited for it. For the CPUs,
    /// and without a bottleneck, the longer of two times: the CPU time of all stages divided by the
    /// number of CPUs, and the time for which the busiest stage worked, was queued behind other
    /// stages, or waited for a queued one.
    pub bound_seconds: f64,
    /// `bound_seconds` divided by the length of the phase, from 0 to 1.
    pub explained_share: f64,
    /// The rest of the phase, by cause.
    pub rest: Rest,
    /// The time of each stage in this phase, first to last.
    pub stages: Vec<PhaseStage>,
}

impl Phase {
    /// Returns the length of the phase in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_seconds - self.begin_seconds
    }
}

/// Time of a phase that its bottleneck does not explain, by cause. The figures are those of one
/// stage: the bottleneck; the first or last stage if the input or output is the bottleneck; or else
/// the busiest stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rest {
    /// Time before the stage's first input and after its end, in seconds.
    pub start_up_seconds: f64,
    /// Time for which the stage waited for others that are faster on average but work in bursts, in
    /// seconds.
    pub bursts_seconds: f64,
    /// Time that other programs and the hypervisor took, in seconds.
    pub others_seconds: f64,
    /// Time for which the stage waited for the pipeline's input, in seconds.
    pub input_seconds: f64,
    /// Time for which the stage waited for the reader of the pipeline's output, in seconds.
    pub output_seconds: f64,
    /// Time without a known cause, in seconds.
    pub unknown_seconds: f64,
}

impl Rest {
    /// Returns a phrase for each cause, for display, and its time in seconds.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("starting and ending", self.start_up_seconds),
            ("bursts", self.bursts_seconds),
            ("other programs", self.others_seconds),
            ("waiting for the input", self.input_seconds),
            ("waiting for the reader of the output", self.output_seconds),
            ("an unknown cause", self.unknown_seconds),
        ]
    }
}

/// The time of a stage in a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseStage {
    /// Position of the stage in the pipeline, from 1.
    pub index: usize,
    /// User and system time, in seconds.
    pub cpu_seconds: f64,
    /// Service time, in seconds: wall time spent running or waiting, except waits for a CPU, for
    /// input, or for room in the output pipe. Excludes time stopped by job control.
    pub service_seconds: f64,
    /// Wall time runnable but queued for a CPU, in seconds.
    pub run_queue_seconds: f64,
    /// Wall time waiting for input, in seconds.
    pub starved_seconds: f64,
    /// Wall time blocked on output, in seconds.
    pub blocked_seconds: f64,
}

/// A pipeline that was already running when contend began to observe it. All times and counts are
/// then those of the observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attached {
    /// IDs of the stages' own processes, first to last.
    pub pids: Vec<i32>,
    /// Whether all stages had ended when the observation did.
    pub has_ended: bool,
}

/// The improvement that would shorten the run most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// What to improve: a stage, the CPUs, or the program or device at either end.
    pub kind: BottleneckKind,
    /// Position of the stage, from 1; null unless `kind` is `stage`.
    pub stage: Option<usize>,
    /// Estimated wall time in seconds that the run would be shorter if the stage, input or output
    /// were twice as fast, or if there were twice as many CPUs. Null if other programs or the
    /// hypervisor took much of the CPU time.
    pub saving_seconds: Option<f64>,
}

/// Whether a bottleneck spends most of its time running or waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Mostly on a CPU.
    Cpu,
    /// Mostly waiting.
    Wait,
}

/// The rule that a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingId {
    /// A stage's command was not found: it exited with status 127.
    StageNotFound,
    /// A stage's command could not be executed: it exited with status 126.
    StageNotExecutable,
    /// A stage was killed by a signal other than SIGPIPE.
    StageKilled,
    /// A stage was still running when contend was asked to end.
    StageUnfinished,
    /// A stage exited with a status other than 0, 126, 127 and 141 (SIGPIPE).
    StageFailed,
    /// A stage continued to run after its reader had ended.
    OutlivedReader,
    /// A stage wrote nothing until its input had ended (a barrier).
    HoldsOutput,
    /// Starting and ending programs, rather than their work, takes much of the time.
    StartupCost,
    /// On average, more stages are runnable than there are CPUs.
    MoreRunnableThanCpus,
    /// A stage reads in small pieces, with many system calls.
    TinyReads,
    /// A stage writes in small pieces, with many system calls.
    TinyWrites,
    /// Stages are busy for so short a time, compared with the bottleneck, that they are not worth
    /// optimising.
    CannotMatter,
    /// The bottleneck stage needs a CPU of its own while others are idle, so it would be faster as
    /// two stages, if its work can be divided.
    CouldBeSplit,
    /// A stage spends most of its CPU time on moving data, so it is hardly worth a process.
    MostlyCopies,
    /// Bytes moved between two stages without read or write calls, so they were not counted.
    BytesUnseen,
    /// Stages could run over chunks of the input in parallel (`contend run`), and are expected to
    /// be faster.
    DataParallel,
}

/// A fact about the run that a rule has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule that the finding comes from.
    pub id: FindingId,
    /// Positions of the stages that the finding is about, from 1.
    pub stages: Vec<usize>,
    /// One or two sentences with the figures.
    pub message: String,
}

/// How the stages were observed, and what that cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Sources of the figures, and the number of stages whose counters could be read exactly, in
    /// words.
    pub method: String,
    /// Number of times that the stages were sampled.
    pub ticks: u64,
    /// Mean time between two samples, in seconds.
    pub mean_interval_seconds: f64,
    /// CPU time of contend itself while the pipeline ran, in seconds.
    pub own_cpu_seconds: f64,
    /// Largest resident set size of contend itself, from its start to the end of the pipeline, in
    /// bytes.
    pub own_max_rss_bytes: u64,
    /// Share of the machine's CPU time that other processes used while the pipeline ran, from 0 to
    /// 1; null if the run was too short to measure it.
    #[serde(default)]
    pub others_cpu_share: Option<f64>,
    /// Share of the machine's CPU time that the hypervisor took while the pipeline ran (steal),
    /// from 0 to 1; null if the run was too short to measure it.
    #[serde(default)]
    pub steal_share: Option<f64>,
}

/// Share of the machine's CPU time that other programs used, from 0 to 1, above which wall times
/// say little about the pipeline.
const MAX_OTHERS_SHARE: f64 = 0.2;
/// Share of the machine's CPU time that the hypervisor took (steal), from 0 to 1, above which wall
/// times say little about the pipeline.
const MAX_STEAL_SHARE: f64 = 0.05;

/// Returns whether other programs or the hypervisor used so much CPU time that wall times say little
/// about the pipeline. Both are shares of the machine's CPU time, from 0 to 1.
pub fn is_disturbing(others_share: f64, steal_share: f64) -> bool {
    others_share > MAX_OTHERS_SHARE || steal_share > MAX_STEAL_SHARE
}

/// Medians over several runs of the same pipeline, with intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Number of runs that were profiled.
    pub count: usize,
    /// Wall time of the pipeline, in seconds.
    pub wall_seconds: Estimate,
    /// User and system time of all stages, in seconds.
    pub cpu_seconds: Estimate,
    /// Number of runs with the most frequent bottleneck.
    pub same_bottleneck: usize,
    /// Figures of each stage, first to last.
    pub stages: Vec<StageRuns>,
}

/// Medians of one stage over several runs, with intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRuns {
    /// Position of the stage in the pipeline, from 1.
    pub index: usize,
    /// Lifetime: wall time from the start of all stages to the end of the stage, in seconds.
    pub wall_seconds: Estimate,
    /// User and system time, in seconds.
    pub cpu_seconds: Estimate,
    /// Service time, in seconds: wall time on a CPU or in other waits, without time stopped by job
    /// control.
    pub service_seconds: Estimate,
    /// Wall time runnable but queued for a CPU, in seconds.
    pub run_queue_seconds: Estimate,
    /// Wall time waiting for input, in seconds.
    pub starved_seconds: Estimate,
    /// Wall time blocked on output, in seconds.
    pub blocked_seconds: Estimate,
}
