//! The record of a parallel run: the decision, and the outcome.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlanRecord, Stage, WorkSpan};
use crate::{Host, Writer};

/// Name and version of the schema.
pub const SCHEMA: &str = "contend.run/1";

/// A pipeline that `contend run` ran, or explained without a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Name and version of this schema: `contend.run/1`.
    pub schema: String,
    /// The version of contend that wrote the record; null in records of older versions, which did
    /// not write it.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// Text of the pipeline, as given, or name and arguments of the script.
    pub command: String,
    /// Start of the run: UTC, RFC 3339.
    pub started_at: String,
    /// The plan of the pipeline; null if only a shell can run the text.
    pub plan: Option<PlanRecord>,
    /// Stages that the shell passes to contend; absent if there are none, which is always the case
    /// if contend runs the text without a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenOver>,
    /// Stages that stay with the shell, and why, without those that `left_others` counts. Present
    /// only if contend takes over other stages of the text, and an explanation was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// Number of further commands that stay with the shell, each alone in its pipeline: builtins,
    /// functions, and commands that contend does not know. Absent unless contend takes over stages
    /// of the text, and an explanation was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_others: Option<usize>,
    /// Whether the plan runs in parallel, and why.
    pub decision: Decision,
    /// How the input is divided into parts for an engine; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
    /// Maximum number of chunks that are processed at the same time.
    pub jobs: usize,
    /// Memory that contend and its commands may use for data, in bytes.
    pub memory_bytes: u64,
    /// The outcome of the run; null if the pipeline was not run.
    pub outcome: Option<Outcome>,
    /// Pipelines in the text that the shell passed to contend, in the order in which they ended;
    /// absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipelines: Vec<RunRecord>,
    /// The machine on which contend ran.
    pub host: Host,
}

/// Neighbouring stages of a shell script that the shell passes to contend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenOver {
    /// Line in which the stages begin, from 1.
    pub line: usize,
    /// Text of the stages.
    pub text: String,
    /// The stages and how each was classified. Absent unless an explanation was requested and the
    /// words of the stages are known before they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
}

/// A stage of a shell script that stays with the shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// Line in which the stage's pipeline begins, from 1.
    pub line: usize,
    /// Text of the stage.
    pub text: String,
    /// Why contend does not take the stage over, in a sentence.
    pub why: String,
}

/// Whether a plan runs in parallel, or the pipeline runs unchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Whether chunks of the input are processed at the same time; if a shell runs the text,
    /// whether it passes any stages to contend.
    pub parallel: bool,
    /// The reason for the decision, in a sentence.
    pub why: String,
    /// Size of the input in bytes; null if it is not known before the run, if the decision was made
    /// without it, and if a shell runs the text.
    pub input_bytes: Option<u64>,
    /// CPU time that the stages are expected to need, in seconds, from typical rates of their
    /// commands; null if the decision does not depend on it.
    pub expected_cpu_seconds: Option<f64>,
}

/// How the files of the first group of stages are divided into parts, which an engine runs, perhaps on several machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Division {
    /// Name of the engine: local, spark or slurm.
    pub engine: String,
    /// Number of parts.
    pub parts: u64,
    /// Number of combinations: tasks on workers that combine outputs of parts, or of other combinations.
    #[serde(default)]
    pub combinations: u64,
    /// Size of the input in bytes.
    pub input_bytes: u64,
    /// Size of the largest part in bytes.
    pub part_bytes: u64,
    /// The parts, in order; absent unless `--dry-run` lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Part>,
}

/// A part of a divided input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Position of its first byte in the concatenated files, from 1. The part has the records that begin in it.
    pub first: u64,
    /// Position of its last byte.
    pub last: u64,
    /// Names of the files in which its bytes are.
    pub files: Vec<String>,
}

/// What became of the parts of a divided input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DividedOutcome {
    /// Number of attempts at parts and combinations: those that were accepted, failed or were lost.
    pub attempts: u64,
    /// Why attempts failed or were lost, with a sentence for each of the first 20.
    pub failures: Vec<String>,
    /// The machines, by name.
    pub hosts: Vec<HostParts>,
    /// Time from the request to the engine until the first attempt at a part began, in seconds, measured with `CLOCK_MONOTONIC` of the
    /// machine that combines the outputs; absent if no part is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_seconds: Option<f64>,
    /// Time from then until the last part was complete, in seconds; absent if no part is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_seconds: Option<f64>,
    /// Greatest number of attempts at parts at the same time.
    #[serde(default)]
    pub at_once: u64,
}

/// What a machine did for a divided input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostParts {
    /// Name of the machine.
    pub name: String,
    /// Number of parts whose output came from this machine.
    pub parts: u64,
    /// Number of combinations whose output came from this machine.
    #[serde(default)]
    pub combinations: u64,
    /// Sum of the wall times of these tasks in seconds, measured with `CLOCK_MONOTONIC`.
    pub wall_seconds: f64,
    /// CPU time of the commands in seconds.
    pub cpu_seconds: f64,
    /// Size of the outputs in bytes.
    pub output_bytes: u64,
}

/// The outcome of a run: its exit status and costs, how its input was divided, the results of its
/// stages, and any comparison with the original.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Exit status of the pipeline, as the shell would return it.
    pub exit_code: i32,
    /// Wall time of the run's execution, in seconds, measured with `CLOCK_MONOTONIC`. With `--check`,
    /// it includes the time until all output has been passed on.
    pub wall_seconds: f64,
    /// CPU time of contend itself, in seconds, including the work of stages for which it started no
    /// commands.
    pub own_cpu_seconds: f64,
    /// Peak memory of contend itself (resident set size), in bytes.
    pub own_max_rss_bytes: u64,
    /// Largest peak memory (resident set size) of any one command, in bytes. The kernel counts the
    /// memory of contend as the command's until the command starts its program.
    pub command_max_rss_bytes: u64,
    /// Peak memory of contend and its commands together, in bytes, sampled every 200 ms. A page
    /// that several processes share counts once (proportional set size). Null if the run ended
    /// before the first sample, or if the kernel does not report the memory.
    pub peak_memory_bytes: Option<u64>,
    /// Number of bytes of the input that were handed out to the first group of stages that runs
    /// over chunks; 0 without such a group.
    pub input_bytes: u64,
    /// Number of chunks that were handed out to the first group of stages that runs over chunks; 0
    /// without such a group.
    pub parts: u64,
    /// Why groups of stages fell back to one run over their whole input, with a sentence for each;
    /// empty if none did.
    pub in_one_piece: Vec<String>,
    /// What became of the parts; absent if the input was not divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divided: Option<DividedOutcome>,
    /// The stages, first to last.
    pub stages: Vec<StageOutcome>,
    /// What each worker did, by worker and time; absent if nothing was recorded, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<WorkSpan>,
    /// Comparison of the output with that of the original (`--check`); null without a comparison.
    pub check: Option<Check>,
}

/// The exit status and the costs of one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageOutcome {
    /// Position of the stage in the pipeline, from 1.
    pub index: usize,
    /// Exit status of the stage. If several commands ran over chunks, the last status other than 0
    /// counts; a command such as `grep` has status 0 if any chunk has a match and none failed.
    pub exit_code: i32,
    /// CPU time of the stage's commands, in seconds; if `starts` is 0, the CPU time that contend
    /// used to do the stage's work.
    pub cpu_seconds: f64,
    /// Number of commands that were started for the stage; 0 if contend did the stage's work
    /// itself.
    pub starts: u64,
}

/// Comparison of an output with that of the original pipeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Whether every byte of standard output and the exit status are those of the original.
    pub same: bool,
    /// Offset in bytes, from 0, of the first block of 65,536 bytes that differs; null if the
    /// outputs are the same.
    pub first_difference: Option<u64>,
    /// Bytes that the run wrote to standard output.
    pub bytes: u64,
    /// Bytes that the original wrote to standard output.
    pub original_bytes: u64,
    /// Exit status of the original.
    pub exit_code: i32,
    /// Wall time of the original, in seconds (`CLOCK_MONOTONIC`).
    pub wall_seconds: f64,
}
