//! What was decided for a run, and what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlanRecord, Stage};
use crate::{Host, Writer};

/// The schema's name and version.
pub const SCHEMA: &str = "contend.run/1";

/// A pipeline that was run, or would be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// `contend.run/1`.
    pub schema: String,
    /// The contend that wrote it; null in records of versions that did not tell.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// The pipeline's text as given.
    pub command: String,
    /// When it started: UTC, RFC 3339.
    pub started_at: String,
    /// The plan; null where only a shell can run the text.
    pub plan: Option<PlanRecord>,
    /// Where a shell runs the text: stages in it that are given to contend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenOver>,
    /// Where a shell runs the text and only an explanation is wanted: what else could be thought to work on parts,
    /// and why it is left to the shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// How many commands are left to the shell besides these: builtins, functions, and commands that contend does not
    /// know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_others: Option<usize>,
    /// Whether the plan is carried out.
    pub decision: Decision,
    /// How many parts are worked on at the same time.
    pub jobs: usize,
    /// Memory that may be used for data, in bytes.
    pub memory_bytes: u64,
    /// What came of it; null if it was not run.
    pub outcome: Option<Outcome>,
    /// Where a shell runs the text: the pipelines in it that it handed on to contend, in the order
    /// in which they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipelines: Vec<RunRecord>,
    /// The machine.
    pub host: Host,
}

/// Neighbouring stages of a text that a shell runs, which it gives to contend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenOver {
    /// The line in which they begin, from 1.
    pub line: usize,
    /// What they are.
    pub text: String,
    /// What is found of each, if only an explanation is wanted and their words are known before they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
}

/// A stage of a text that a shell runs, which stays the shell's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// The line in which its pipeline begins, from 1.
    pub line: usize,
    /// What it is.
    pub text: String,
    /// Why contend does not take it over, in a sentence for people.
    pub why: String,
}

/// Whether a plan is carried out, or the pipeline runs plain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Parts are worked on at the same time.
    pub parallel: bool,
    /// Why, in a sentence for people.
    pub why: String,
    /// The size of the input, where it is known before.
    pub input_bytes: Option<u64>,
    /// CPU time that the stages are expected to need, from typical rates of their commands.
    pub expected_cpu_seconds: Option<f64>,
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The pipeline's exit status, as the shell would return it.
    pub exit_code: i32,
    /// From the start to the end of the last command.
    pub wall_seconds: f64,
    /// CPU time of contend itself, with the stages that it carried out without a process.
    pub own_cpu_seconds: f64,
    /// The most memory that contend itself used at one time, in bytes.
    pub own_max_rss_bytes: u64,
    /// The most memory that one command used at one time, in bytes.
    pub command_max_rss_bytes: u64,
    /// The most memory that contend and the commands it had started used together at one time, in
    /// bytes: a page that several share counts once (proportional set size), looked at every
    /// 200 ms. Null if all was over before the first look, or the kernel does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// Bytes that the first group of stages that runs over parts has read of its input.
    pub input_bytes: u64,
    /// How many parts of that input were handed out.
    pub parts: u64,
    /// Why groups had to be run in one piece after all, if any had.
    pub in_one_piece: Vec<String>,
    /// The stages, first to last.
    pub stages: Vec<StageOutcome>,
    /// How the output compares with that of the original (`--check`).
    pub check: Option<Check>,
}

/// What came of one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageOutcome {
    /// Its place, from 1.
    pub index: usize,
    /// Its exit status; of several parts together.
    pub exit_code: i32,
    /// CPU time of its commands; where `starts` is 0, what contend used to do their work.
    pub cpu_seconds: f64,
    /// How often commands were started for it; 0 where contend did their work.
    pub starts: u64,
}

/// How an output compares with the original's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Every byte and the exit status are the same.
    pub same: bool,
    /// Where the first block of 65,536 bytes begins that differs, in bytes from 0; null if none
    /// does.
    pub first_difference: Option<u64>,
    /// Bytes that the run wrote to standard output.
    pub bytes: u64,
    /// Bytes that the original wrote.
    pub original_bytes: u64,
    /// The original's exit status.
    pub exit_code: i32,
    /// How long the original took.
    pub wall_seconds: f64,
}
