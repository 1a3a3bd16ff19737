//! What one profiled pipeline did: schema `contend.pipe/1`.
//!
//! Times are seconds of `CLOCK_MONOTONIC` unless said; CPU times are the scheduler's.
//! A stage's lifetime (`wall_seconds`) is the sum of its on-CPU, run-queue, starved,
//! blocked, other-wait and unexplained seconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{CalibrationRecord, Candidate, Prediction, Trial, WhatIf};
use crate::stats::Estimate;
use crate::{Host, Warning, Writer};

/// The schema's name and version.
pub const SCHEMA: &str = "contend.pipe/1";

/// A profiled pipeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeRecord {
    /// `contend.pipe/1`.
    pub schema: String,
    /// The contend that wrote it; null in records of versions that did not tell.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// The pipeline's text as given.
    pub command: String,
    /// The shell that ran it.
    pub shell: String,
    /// When it started: UTC, RFC 3339.
    pub started_at: String,
    /// The pipeline's exit status, as the shell would return it.
    pub exit_code: i32,
    /// From the start of the stages to the end of the last one.
    pub wall_seconds: f64,
    /// The stages, first to last.
    pub stages: Vec<Stage>,
    /// The pipes between them.
    pub boundaries: Vec<Boundary>,
    /// All stages together.
    pub total: Total,
    /// What sets the pace.
    pub bottleneck: Bottleneck,
    /// Other things worth knowing.
    pub findings: Vec<Finding>,
    /// The machine.
    pub host: Host,
    /// What makes these figures worth less.
    pub warnings: Vec<Warning>,
    /// How the stages were watched, and what that cost.
    pub observation: Observation,
    /// Medians over several runs (`--runs`); the other fields are then those of the run
    /// with the median wall time.
    pub runs: Option<Runs>,
    /// Changes worth a thought, best prediction first.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// How they were tried (`--try`).
    #[serde(default)]
    pub trial: Option<Trial>,
    /// Answers to `--what-if`.
    #[serde(default)]
    pub what_if: Vec<WhatIf>,
    /// What predictions and answers rest on beside the profile.
    #[serde(default)]
    pub calibration: Option<CalibrationRecord>,
    /// What the same model predicts for the pipeline as it is: what predictions and answers
    /// are to be compared with. Null where nothing was predicted.
    #[serde(default)]
    pub predicted_unchanged: Option<Prediction>,
}

/// One stage: a command, its children and its threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Its place, from 1.
    pub index: usize,
    /// Its text.
    pub command: String,
    /// Its exit status; 128 + the signal's number if it was killed.
    pub exit_code: i32,
    /// How it ended.
    pub outcome: Outcome,
    /// From the start of the stages to its end.
    pub wall_seconds: f64,
    /// CPU time in user mode, as the kernel splits it.
    pub user_seconds: f64,
    /// CPU time in the kernel.
    pub system_seconds: f64,
    /// User and system time in percent of its lifetime.
    pub cpu_percent: f64,
    /// Time that it was on a CPU; the same time in several tasks counts once.
    pub on_cpu_seconds: f64,
    /// Time that it was ready and waited for a CPU.
    pub run_queue_seconds: f64,
    /// Time that it waited to read its input.
    pub starved_seconds: f64,
    /// Time that it waited to write its output.
    pub blocked_seconds: f64,
    /// Time of all other waits.
    pub other_wait_seconds: f64,
    /// Time in which the stage itself was at work: [`Stage::service_seconds`]. The verdict rests
    /// on it.
    #[serde(default)]
    pub service_seconds: f64,
    /// The other waits by kind.
    pub other_waits: OtherWaits,
    /// The rest of its lifetime, whose cause could not be seen.
    pub unexplained_seconds: f64,
    /// Bytes that it read, without its libraries and temporary files as far as they can be
    /// told from its input; null when this user may not know.
    pub bytes_in: Option<u64>,
    /// Bytes that it wrote, without temporary files as far as they can be told from its
    /// output; null when this user may not know.
    pub bytes_out: Option<u64>,
    /// Read-like calls.
    pub reads: Option<u64>,
    /// Write-like calls.
    pub writes: Option<u64>,
    /// Mean size of a read-like call, in bytes, wherever it read from.
    pub mean_read_bytes: Option<f64>,
    /// Mean size of a write-like call, in bytes.
    pub mean_write_bytes: Option<f64>,
    /// Switches because it waited.
    pub voluntary_switches: u64,
    /// Switches because the kernel gave the CPU to another.
    pub involuntary_switches: u64,
    /// Largest resident set of any one of its processes, without its spawner's.
    pub max_rss_bytes: u64,
    /// From the start of the stages to its first output; null if there was none.
    pub first_output_seconds: Option<f64>,
    /// It wrote nothing until its input had ended, though it had input before.
    pub holds_output: bool,
    /// CPU time of children that it waited for, as far as they are told from itself.
    pub children_cpu_seconds: f64,
    /// Different child processes that were seen; short ones may have gone unseen.
    #[serde(default)]
    pub children_seen: u64,
    /// How its waits could be told apart.
    pub samples: u64,
    /// Figures that rest on the last sample or on a neighbour's count.
    pub approximate: Vec<Figure>,
}

/// A figure of a stage that may be approximate, named as its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// [`Stage::bytes_in`].
    BytesIn,
    /// [`Stage::bytes_out`].
    BytesOut,
    /// [`Stage::reads`].
    Reads,
    /// [`Stage::writes`].
    Writes,
    /// [`Stage::max_rss_bytes`].
    MaxRssBytes,
}

impl Stage {
    /// Whether this figure is approximate.
    pub fn is_approximate(&self, figure: Figure) -> bool {
        self.approximate.contains(&figure)
    }

    /// Marks this figure as approximate.
    pub fn mark_approximate(&mut self, figure: Figure) {
        if !self.is_approximate(figure) {
            self.approximate.push(figure);
        }
    }

    /// Time in which the stage itself was at work: on a CPU, or in a wait that is neither
    /// for its input, nor for its output, nor for a CPU, nor for job control to let it go on.
    pub fn service_seconds(&self) -> f64 {
        (self.on_cpu_seconds + self.other_wait_seconds - self.other_waits.stopped).max(0.0)
    }

    /// User and system time.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "signal")]
pub enum Outcome {
    /// It returned its status.
    #[default]
    Exited,
    /// This signal killed it.
    Killed(i32),
    /// The shell found no such command (status 127).
    NotFound,
    /// The command could not be executed (status 126).
    NotExecutable,
    /// It was still running when contend was told to end, and was ended by this signal.
    Interrupted(i32),
    /// It has ended, but another process has waited for it: nobody can say how (status 127).
    Unknown,
}

/// Waits that are for neither input, nor output, nor a CPU, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherWaits {
    /// For time to pass.
    pub sleep: f64,
    /// For a lock or another thread.
    pub lock: f64,
    /// For a disk or a page.
    pub disk: f64,
    /// For a child that was itself not seen at work.
    pub child: f64,
    /// For one of several descriptors.
    pub poll: f64,
    /// For a socket.
    pub network: f64,
    /// For a pipe that is not one of its boundaries.
    pub pipe: f64,
    /// For a terminal.
    pub terminal: f64,
    /// Stopped by job control.
    pub stopped: f64,
    /// For something else, such as a signal.
    pub other: f64,
}

impl OtherWaits {
    /// The kinds with their names, for showing.
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
    /// The stage that writes.
    pub from: usize,
    /// The stage that reads.
    pub to: usize,
    /// Bytes that went through; null when neither side could be read.
    pub bytes: Option<u64>,
    /// Whether `bytes`, and the rate computed from it, is not proved to be exact.
    #[serde(default)]
    pub bytes_approximate: bool,
    /// Bytes by the pipeline's wall time.
    pub bytes_per_second: Option<f64>,
    /// Bytes inside, on average over the samples; null when it could not be looked into.
    pub mean_fill_bytes: Option<f64>,
    /// Most bytes inside at any look.
    pub most_fill_bytes: Option<u64>,
    /// Bytes that fit.
    pub capacity_bytes: Option<u64>,
    /// Time that the writer was blocked on it.
    pub writer_blocked_seconds: f64,
    /// Time that the reader was starved by it.
    pub reader_starved_seconds: f64,
    /// Which side waited for the other.
    pub waiting_side: WaitingSide,
}

/// The side of a boundary that waits for the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingSide {
    /// The writer was blocked: the reader is the slower one.
    Writer,
    /// The reader was starved: the writer is the slower one.
    Reader,
    /// Neither waited much, or both did alike.
    #[default]
    Neither,
}

/// All stages together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Total {
    /// CPU time in user mode.
    pub user_seconds: f64,
    /// CPU time in the kernel.
    pub system_seconds: f64,
    /// User and system time in percent of the pipeline's wall time.
    pub cpu_percent: f64,
    /// The most bytes that went into or out of any one stage.
    pub bytes: Option<u64>,
    /// Whether `bytes`, and the CPU time computed from it, is not proved to be exact.
    #[serde(default)]
    pub bytes_approximate: bool,
    /// User and system time by 10^9 of these bytes.
    pub cpu_seconds_per_gigabyte: Option<f64>,
    /// The stages' run-queue seconds, added up.
    pub run_queue_seconds: f64,
    /// Stages that were on a CPU or ready for one, on average.
    pub runnable_mean: f64,
    /// Voluntary and involuntary switches.
    pub switches: u64,
}

/// What sets the pace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// What kind of thing it is.
    pub kind: BottleneckKind,
    /// The stage, from 1: the bottleneck itself, or for `machine` its largest consumer.
    pub stage: Option<usize>,
    /// Whether it works or waits most of its time; null for `none`.
    pub limit: Option<Limit>,
    /// One or two sentences with the figures.
    pub evidence: String,
}

/// What kind of thing sets the pace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// One stage.
    Stage,
    /// The CPUs: there is more work than they can do at once.
    Machine,
    /// Whoever feeds the first stage.
    Input,
    /// Whoever reads from the last stage.
    Output,
    /// Nothing that stands out, or too little evidence.
    #[default]
    None,
}

/// What a bottleneck spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// On a CPU.
    Cpu,
    /// Waiting.
    Wait,
}

/// Which rule a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingId {
    /// A stage's command was not found.
    StageNotFound,
    /// A stage's command could not be executed.
    StageNotExecutable,
    /// A stage was killed by a signal.
    StageKilled,
    /// A stage was still running when contend was told to end.
    StageUnfinished,
    /// A stage returned a status other than 0.
    StageFailed,
    /// A stage lived on after its reader had ended.
    OutlivedReader,
    /// A stage wrote nothing until its input had ended.
    HoldsOutput,
    /// Starting programs costs more than what they do.
    StartupCost,
    /// More stages want to run than there are CPUs.
    MoreRunnableThanCpus,
    /// A stage reads in small pieces.
    TinyReads,
    /// A stage writes in small pieces.
    TinyWrites,
    /// Stages so quick that changing them cannot matter.
    CannotMatter,
    /// Bytes that moved without read or write calls, so they were not counted.
    BytesUnseen,
    /// Stages could work on parts of the input at the same time.
    DataParallel,
}

/// Something worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which rule found it.
    pub id: FindingId,
    /// The stages concerned, from 1.
    pub stages: Vec<usize>,
    /// One or two sentences with the figures.
    pub message: String,
}

/// How the stages were watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// The sources that were used, best first.
    pub method: String,
    /// How often the stages were looked at.
    pub ticks: u64,
    /// Mean time between two looks.
    pub mean_interval_seconds: f64,
    /// CPU time of contend itself while the pipeline ran.
    pub own_cpu_seconds: f64,
    /// Largest resident set of contend itself so far.
    pub own_max_rss_bytes: u64,
    /// Part of the machine's CPU time that other processes used meanwhile, from 0 to 1; null
    /// where the run was too short to tell.
    #[serde(default)]
    pub others_cpu_share: Option<f64>,
    /// Part of the machine's CPU time that the hypervisor took away meanwhile; null as above.
    #[serde(default)]
    pub steal_share: Option<f64>,
}

/// Several runs of the same pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// How many.
    pub count: usize,
    /// Wall time.
    pub wall_seconds: Estimate,
    /// User and system time of all stages.
    pub cpu_seconds: Estimate,
    /// In how many of them the same bottleneck was named.
    pub same_bottleneck: usize,
    /// Each stage's figures.
    pub stages: Vec<StageRuns>,
}

/// One stage over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRuns {
    /// The stage, from 1.
    pub index: usize,
    /// Its lifetime.
    pub wall_seconds: Estimate,
    /// User and system time.
    pub cpu_seconds: Estimate,
    /// Time at work: [`Stage::service_seconds`].
    pub service_seconds: Estimate,
    /// Time waiting for a CPU.
    pub run_queue_seconds: Estimate,
    /// Time waiting to read its input.
    pub starved_seconds: Estimate,
    /// Time waiting to write its output.
    pub blocked_seconds: Estimate,
}
