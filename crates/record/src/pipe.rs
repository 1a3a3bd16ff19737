//! A profile of one pipeline: schema `contend.pipe/1`.
//!
//! Wall times are seconds of `CLOCK_MONOTONIC`, from the moment at which all stages start. CPU
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
    /// Exit status of the pipeline, as the shell would return it.
    pub exit_code: i32,
    /// Wall time from the start of the stages to the end of the last one, in seconds of
    /// `CLOCK_MONOTONIC`.
    pub wall_seconds: f64,
    /// The stages, first to last.
    pub stages: Vec<Stage>,
    /// The pipes between the stages.
    pub boundaries: Vec<Boundary>,
    /// Totals over all stages.
    pub total: Total,
    /// The stage or resource that limits the pipeline's throughput.
    pub bottleneck: Bottleneck,
    /// Further facts about the run that rules have found.
    pub findings: Vec<Finding>,
    /// The machine.
    pub host: Host,
    /// Circumstances that make these figures less reliable.
    pub warnings: Vec<Warning>,
    /// How the stages were observed, and what that cost.
    pub observation: Observation,
    /// Medians over several runs (`--runs`); all other fields are then those of the run with the
    /// median wall time. Null for a single run.
    pub runs: Option<Runs>,
    /// Changes to the pipeline that are worth considering, best prediction first.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// How the candidates were tried (`--try`); null if they were not.
    #[serde(default)]
    pub trial: Option<Trial>,
    /// Answers to `--what-if`.
    #[serde(default)]
    pub what_if: Vec<WhatIf>,
    /// Costs of pipes and of starting programs on this machine, which predictions and answers use
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
    /// Exit status of the stage; 128 + the signal's number if a signal killed it.
    pub exit_code: i32,
    /// How the stage ended.
    pub outcome: Outcome,
    /// Lifetime: wall time from the start of all stages to the end of this one, in seconds of
    /// `CLOCK_MONOTONIC`.
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
    /// Wall time of all other waits, in seconds.
    pub other_wait_seconds: f64,
    /// Service time, in seconds: wall time on a CPU or in other waits, without time stopped by job
    /// control. The verdict compares stages by it.
    #[serde(default)]
    pub service_seconds: f64,
    /// The other waits, by kind.
    pub other_waits: OtherWaits,
    /// Remainder of the lifetime, in seconds, that no sample explains.
    pub unexplained_seconds: f64,
    /// Bytes that the stage read, as far as possible without its libraries and temporary files;
    /// null if this user may not see the count.
    pub bytes_in: Option<u64>,
    /// Bytes that the stage wrote, as far as possible without its temporary files; null if this
    /// user may not see the count.
    pub bytes_out: Option<u64>,
    /// Number of read-like system calls; null if this user may not see the count.
    pub reads: Option<u64>,
    /// Number of write-like system calls; null if this user may not see the count.
    pub writes: Option<u64>,
    /// Mean size of a read-like call, in bytes, from any file or pipe.
    pub mean_read_bytes: Option<f64>,
    /// Mean size of a write-like call, in bytes.
    pub mean_write_bytes: Option<f64>,
    /// Voluntary context switches: the stage waited for something.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the kernel preempted the stage.
    pub involuntary_switches: u64,
    /// Largest resident set size of any one process of the stage, in bytes, without that of the
    /// shell that spawned it.
    pub max_rss_bytes: u64,
    /// Wall time from the start of the stages to the first output of this one, in seconds; null if
    /// it wrote nothing.
    pub first_output_seconds: Option<f64>,
    /// Whether the stage was a barrier: it wrote nothing until its input had ended, although it had
    /// input before.
    pub holds_output: bool,
    /// CPU time of children that the stage waited for, in seconds, as far as it can be separated
    /// from the stage's own.
    pub children_cpu_seconds: f64,
    /// Number of different child processes that samples found; short-lived ones may be missing.
    #[serde(default)]
    pub children_seen: u64,
    /// Number of samples of the stage, by which its waits are classified.
    pub samples: u64,
    /// Figures that are from the last sample before the stage ended, or from a neighbour's count,
    /// and so may be inexact.
    pub approximate: Vec<Figure>,
}

/// A figure of a stage that may be approximate. Its value is the name of the stage's field.
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

    /// Marks `figure` as approximate.
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

    /// Returns whether the stage failed. A writer ended by SIGPIPE has not failed: its reader
    /// needed no more data.
    pub fn has_failed(&self) -> bool {
        const SIGPIPE: i32 = 13;
        match self.outcome {
            Outcome::Killed(SIGPIPE) => false,
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
    /// The stage exited normally, with an exit status.
    #[default]
    Exited,
    /// The signal with this number killed the stage.
    Killed(i32),
    /// The shell did not find the command (status 127).
    NotFound,
    /// The command could not be executed (status 126).
    NotExecutable,
    /// The stage was still running when contend was asked to end, and the signal with this number
    /// ended it.
    Interrupted(i32),
    /// The stage has ended, but another process has collected its exit status. The status is
    /// unknown, and reported as 127.
    Unknown,
}

/// Wall time of waits that are neither for input, nor for output, nor for a CPU, in seconds by
/// kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherWaits {
    /// Sleeping for a time, in seconds.
    pub sleep: f64,
    /// Waiting for a lock or for another thread, in seconds.
    pub lock: f64,
    /// Waiting for a disk or for a page of memory, in seconds.
    pub disk: f64,
    /// Waiting for a child process that was not itself seen running, in seconds.
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

impl OtherWaits {
    /// Returns the time of each kind of wait in seconds, with the kind's name, for display.
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

/// The pipe between two stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boundary {
    /// The stage that writes, from 1.
    pub from: usize,
    /// The stage that reads, from 1.
    pub to: usize,
    /// Bytes that passed through the pipe; null if neither side's count could be read.
    pub bytes: Option<u64>,
    /// Whether `bytes`, and the rate computed from it, may be inexact.
    #[serde(default)]
    pub bytes_approximate: bool,
    /// `bytes` divided by the pipeline's wall time in seconds.
    pub bytes_per_second: Option<f64>,
    /// Mean number of bytes in the pipe, over the samples; null if the pipe could not be inspected.
    pub mean_fill_bytes: Option<f64>,
    /// Largest number of bytes in the pipe at any sample; null if the pipe could not be inspected.
    pub most_fill_bytes: Option<u64>,
    /// Capacity of the pipe, in bytes.
    pub capacity_bytes: Option<u64>,
    /// Wall time that the writer was blocked on the pipe, in seconds.
    pub writer_blocked_seconds: f64,
    /// Wall time that the reader was starved by the pipe, in seconds.
    pub reader_starved_seconds: f64,
    /// The side that waited for the other.
    pub waiting_side: WaitingSide,
}

/// The side of a pipe that waits for the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingSide {
    /// The writer was blocked: the reader is slower.
    Writer,
    /// The reader was starved: the writer is slower.
    Reader,
    /// Neither side waited much, or both waited about equally.
    #[default]
    Neither,
}

/// Totals over all stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Total {
    /// CPU time in user mode, in seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, in seconds.
    pub system_seconds: f64,
    /// User and system time, in percent of the pipeline's wall time.
    pub cpu_percent: f64,
    /// Largest number of bytes that any one stage read or wrote; null if no count could be read.
    pub bytes: Option<u64>,
    /// Whether `bytes`, and the CPU time computed from it, may be inexact.
    #[serde(default)]
    pub bytes_approximate: bool,
    /// User and system time in seconds for each 10^9 of `bytes`.
    pub cpu_seconds_per_gigabyte: Option<f64>,
    /// Sum of the stages' run-queue seconds.
    pub run_queue_seconds: f64,
    /// Mean number of stages that were running or queued, over the samples.
    pub runnable_mean: f64,
    /// Voluntary and involuntary context switches.
    pub switches: u64,
}

/// The stage or resource that limits the pipeline's throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// The kind of bottleneck.
    pub kind: BottleneckKind,
    /// Stage, from 1: the bottleneck itself, or for `machine` the stage that uses most CPU time.
    /// Null for the other kinds.
    pub stage: Option<usize>,
    /// Whether the bottleneck mostly uses CPU time or mostly waits; null for `none`.
    pub limit: Option<Limit>,
    /// One or two sentences with the figures.
    pub evidence: String,
}

/// A kind of bottleneck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// One stage.
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

/// Whether a bottleneck spends most of its time running or waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// CPU time.
    Cpu,
    /// Waits.
    Wait,
}

/// The rule that a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingId {
    /// A stage's command was not found.
    StageNotFound,
    /// A stage's command could not be executed.
    StageNotExecutable,
    /// A stage was killed by a signal.
    StageKilled,
    /// A stage was still running when contend was asked to end.
    StageUnfinished,
    /// A stage returned a status other than 0.
    StageFailed,
    /// A stage continued to run after its reader had ended.
    OutlivedReader,
    /// A stage wrote nothing until its input had ended (a barrier).
    HoldsOutput,
    /// Starting programs takes longer than their work.
    StartupCost,
    /// More stages are runnable than there are CPUs.
    MoreRunnableThanCpus,
    /// A stage reads in small pieces, with many system calls.
    TinyReads,
    /// A stage writes in small pieces, with many system calls.
    TinyWrites,
    /// Stages take so little time that changing them has no effect on the total.
    CannotMatter,
    /// Bytes moved without read or write calls, so they were not counted.
    BytesUnseen,
    /// Stages could run over chunks of the input in parallel.
    DataParallel,
}

/// A fact about the run that a rule has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule that produced the finding.
    pub id: FindingId,
    /// Stages concerned, from 1.
    pub stages: Vec<usize>,
    /// One or two sentences with the figures.
    pub message: String,
}

/// How the stages were observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Sources of the figures, best first.
    pub method: String,
    /// Number of times that the stages were sampled.
    pub ticks: u64,
    /// Mean time between two samples, in seconds.
    pub mean_interval_seconds: f64,
    /// CPU time of contend itself while the pipeline ran, in seconds.
    pub own_cpu_seconds: f64,
    /// Largest resident set size of contend itself so far, in bytes.
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

/// Several runs of the same pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Number of runs.
    pub count: usize,
    /// Wall time of the pipeline, in seconds.
    pub wall_seconds: Estimate,
    /// User and system time of all stages, in seconds.
    pub cpu_seconds: Estimate,
    /// Number of runs that named the most frequent bottleneck.
    pub same_bottleneck: usize,
    /// Figures of each stage.
    pub stages: Vec<StageRuns>,
}

/// One stage over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRuns {
    /// Position of the stage in the pipeline, from 1.
    pub index: usize,
    /// Lifetime, in seconds.
    pub wall_seconds: Estimate,
    /// User and system time, in seconds.
    pub cpu_seconds: Estimate,
    /// Service time, in seconds: wall time on a CPU or in other waits, without time stopped by job
    /// control.
    pub service_seconds: Estimate,
    /// Time queued for a CPU, in seconds.
    pub run_queue_seconds: Estimate,
    /// Time waiting for input, in seconds.
    pub starved_seconds: Estimate,
    /// Time blocked on output, in seconds.
    pub blocked_seconds: Estimate,
}
