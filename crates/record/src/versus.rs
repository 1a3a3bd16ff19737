//! A comparison of pipelines: schema `contend.versus/1`.
//!
//! If the pipelines ran in turn, every round ran each of them once, in random order. Ratios are then
//! those of two runs of the same round, to the first pipeline, so that a disturbance that lasts
//! longer than a round affects both sides. Saved runs are compared, too; these ran at different
//! times.

mod condition;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pipe::PipeRecord;
use crate::stats::Estimate;
use crate::{Host, Warning, Writer};

pub use condition::{Condition, ConditionError};

/// Name and version of the schema.
pub const SCHEMA: &str = "contend.versus/1";

/// A comparison of pipelines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersusRecord {
    /// Name and version of this schema: `contend.versus/1`.
    pub schema: String,
    /// The version of contend that wrote the record.
    pub contend: Option<Writer>,
    /// The shell that ran the pipelines.
    pub shell: String,
    /// Start of the first run: UTC, RFC 3339.
    pub started_at: String,
    /// Whether the pipelines ran in turn; otherwise, saved runs are compared.
    pub in_turn: bool,
    /// Number of rounds that were measured, or the smallest number of runs of a saved run.
    pub rounds: usize,
    /// Number of rounds before them, which were not measured.
    pub warmup_rounds: usize,
    /// Shell text that ran before each run of a pipeline; null if there was none.
    pub prepare: Option<String>,
    /// Seed of the order of the runs and of the intervals.
    pub seed: u64,
    /// Whether a signal ended the comparison early.
    pub interrupted: bool,
    /// The pipelines; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Conditions of `--fail-if`.
    pub conditions: Vec<Tested>,
    /// The machine on which the pipelines ran.
    pub host: Host,
    /// Circumstances that make the figures less reliable.
    pub warnings: Vec<Warning>,
}

/// One of the pipelines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Name in the comparison: A, B, … Z, AA, AB, …
    pub name: String,
    /// Text of the pipeline, with the values of parameters.
    pub command: String,
    /// Where a saved run comes from, in words; null if the pipelines ran in turn.
    pub origin: Option<String>,
    /// Values of the parameters of `--scan`, by name.
    pub parameters: BTreeMap<String, String>,
    /// Exit status: that of the last run that failed, or 0.
    pub exit_code: i32,
    /// Wall time in seconds of `CLOCK_MONOTONIC`, over the rounds.
    pub wall_seconds: Estimate,
    /// User and system time of all stages in seconds, over the rounds.
    pub cpu_seconds: Estimate,
    /// Largest resident set size of any one process, in bytes, over the rounds.
    pub max_rss_bytes: Estimate,
    /// Ratios to the baseline; null for the baseline itself.
    pub ratios: Option<Ratios>,
    /// Whether the output and the exit status of every run were those of the baseline's first run;
    /// for the baseline, whether those of all of its runs were the same. Null for saved runs, whose
    /// outputs are unknown.
    pub output_equal: Option<bool>,
    /// How the output or the exit status differed first; null if they did not.
    pub difference: Option<String>,
    /// The profile of the run with the median wall time.
    pub profile: PipeRecord,
}

/// Ratios of a pipeline's figures to those of the baseline: in the same round or, for saved runs, to
/// the baseline's median.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios {
    /// Ratio of the wall times.
    pub wall: Estimate,
    /// Ratio of the CPU times.
    pub cpu: Estimate,
    /// Ratio of the largest resident set sizes.
    pub memory: Estimate,
}

/// A condition with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    /// The condition as given, such as `wall > 1.05x`.
    pub condition: String,
    /// Names of the pipelines for which the condition certainly holds: the whole interval is on
    /// that side of the limit.
    pub holds_for: Vec<String>,
    /// Names of the pipelines for which it holds for the median, but not for the whole interval.
    pub may_hold_for: Vec<String>,
}
