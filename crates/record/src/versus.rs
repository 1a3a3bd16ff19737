//! A comparison of pipelines: schema `contend.versus/1`.
//!
//! If the pipelines ran in turn, every round ran each of them once, in random order; the first
//! round began with the first pipeline. Ratios to the first pipeline are then those of two runs of
//! the same round, so that a disturbance that lasts longer than a round affects both sides. Saved
//! runs, which ran at different times, can be compared, too.

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
    /// The shell that ran the pipelines; for saved runs, that of the first pipeline.
    pub shell: String,
    /// Start of the first run: UTC, RFC 3339.
    pub started_at: String,
    /// Whether the pipelines ran in turn; otherwise, saved runs are compared.
    pub in_turn: bool,
    /// Number of rounds that were measured; for saved runs, the smallest number of runs of any
    /// pipeline.
    pub rounds: usize,
    /// Number of rounds before them, which were not measured.
    pub warmup_rounds: usize,
    /// Shell text that ran before each run of a pipeline, with the first pipeline's values of the
    /// parameters of `--scan`; null if there was none.
    pub prepare: Option<String>,
    /// Seed of the order of the runs and of the intervals.
    pub seed: u64,
    /// Whether a signal ended the comparison early.
    pub interrupted: bool,
    /// The pipelines; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Conditions of `--fail-if`.
    pub conditions: Vec<Tested>,
    /// The machine on which the pipelines ran; for saved runs, that of the first pipeline.
    pub host: Host,
    /// Circumstances that make the figures less reliable.
    pub warnings: Vec<Warning>,
}

/// One of the compared pipelines, with the figures of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Name in the comparison: A, B, … Z, AA, AB, …
    pub name: String,
    /// Text of the pipeline, with the values of its parameters filled in.
    pub command: String,
    /// Where a saved run comes from, in words; null if the pipelines ran in turn.
    pub origin: Option<String>,
    /// Values of the parameters of `--scan`, by name.
    pub parameters: BTreeMap<String, String>,
    /// Exit status of the last measured run that failed, or 0 if none did.
    pub exit_code: i32,
    /// Wall time of the measured runs, in seconds (`CLOCK_MONOTONIC`).
    pub wall_seconds: Estimate,
    /// User and system time of all stages in the measured runs, in seconds; for a saved parallel
    /// run, with that of contend itself.
    pub cpu_seconds: Estimate,
    /// Largest resident set size of any one process in the measured runs, in bytes. A saved run has
    /// one sample; for a parallel run, it is the peak memory of contend and its commands together,
    /// if that is known.
    pub max_rss_bytes: Estimate,
    /// Ratios to the baseline; null for the baseline itself.
    pub ratios: Option<Ratios>,
    /// Whether the output and the exit status of every run were those of the baseline's first run;
    /// for the baseline, whether those of all of its runs were the same. Null for saved runs, whose
    /// outputs are unknown.
    pub output_equal: Option<bool>,
    /// How the output or the exit status first differed; null if they did not, and for saved runs.
    pub difference: Option<String>,
    /// The profile of the run with the median wall time, or of the faster of the two middle runs.
    pub profile: PipeRecord,
}

/// Ratios of a pipeline's figures to those of the baseline in the same round. For saved runs, the
/// samples are the ratios of every run to every run of the baseline, and the median is the ratio of
/// the two medians where that is bounded.
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
    /// Names of the pipelines for which the condition holds. A figure must be beyond the limit with
    /// its whole interval or, with fewer than six samples, with its median.
    pub holds_for: Vec<String>,
    /// Names of the pipelines for which the condition holds for the median, but not for the whole
    /// interval.
    pub may_hold_for: Vec<String>,
}
