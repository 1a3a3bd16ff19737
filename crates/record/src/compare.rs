//! A comparison of the same cases in several runs of the lab: schema `contend.compare/1`.
//!
//! Lists with one element for each run are in the order of [`CompareRecord::runs`]. Ratios are to
//! the first run, the baseline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::{Ending, Stopped, Unit, View, distinct};
use crate::parameters::Parameters;
use crate::stats::Ratio;
use crate::{Host, Warning, Writer};

/// Name and version of the schema.
pub const SCHEMA: &str = "contend.compare/1";

/// A comparison of several runs of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRecord {
    /// Name and version of this schema: `contend.compare/1`.
    pub schema: String,
    /// The version of contend that wrote the record; null in records of older versions, which did
    /// not write it.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// Seed of the intervals: the seed of the first run.
    pub seed: u64,
    /// The runs that are compared; the first one is the baseline of the ratios.
    pub runs: Vec<Run>,
    /// Every case of any run, in order of first appearance.
    pub cases: Vec<Case>,
}

/// A run of the lab that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Name of the run in the comparison: A, B, … Z, AA, AB, …
    pub name: String,
    /// Where the record of the run was read from.
    pub origin: Origin,
    /// The version of contend that measured the run; null if its record does not contain it.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// Suite that was run; null if experiments were chosen by name.
    pub suite: Option<String>,
    /// Names of the experiments of the run's cases.
    pub experiments: Vec<String>,
    /// Start of the run: UTC, RFC 3339.
    pub started_at: String,
    /// Wall time from the start of the run to the end of its last sample, in seconds
    /// (`CLOCK_MONOTONIC`).
    pub wall_seconds: f64,
    /// Whether the run measured a smaller form of its cases (`--quick`).
    pub quick: bool,
    /// How the run ended.
    pub ending: Ending,
    /// The machine on which the run was measured.
    pub host: Host,
    /// Circumstances that make the figures of the run less reliable.
    pub warnings: Vec<Warning>,
}

/// Where a record was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Origin {
    /// From a file.
    File {
        /// Path of the file, as given.
        path: String,
    },
    /// From standard input.
    StandardInput,
    /// From the store of earlier runs.
    Kept {
        /// Number of the run in the store.
        number: i64,
        /// Label of the run; absent if it has none, and in records of older versions.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        label: String,
    },
}

/// One experiment with one set of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Name of the experiment, such as `units/create`.
    pub experiment: String,
    /// How a report presents the experiment; absent for the generic table, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "View::is_table")]
    pub view: View,
    /// Parameters of the case. `turns`, the number of turns from which figures were scaled, is left
    /// out if the runs differ in it.
    pub parameters: Parameters,
    /// The result of each run for the case, in the order of `runs`.
    pub sides: Vec<Side>,
    /// The case's main figure; null if no run has samples of it.
    pub value: Option<Figure>,
    /// Further figures by name, each present in at least two runs.
    pub metrics: BTreeMap<String, Figure>,
}

/// The result of a run for a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Side {
    /// The run measured the case, in the unit of the figures.
    Measured {
        /// Number of samples of the case in the run.
        samples: usize,
        /// Number of samples that were disturbed: other processes used the CPUs, or the hypervisor
        /// moved a virtual CPU.
        disturbed: usize,
        /// Circumstances that make the figures less reliable.
        warnings: Vec<Warning>,
    },
    /// The run measured the case in a different unit than the first run that measured it, so it is
    /// left out of the figures.
    OtherUnit {
        /// The unit in which the run measured the case.
        unit: Unit,
    },
    /// The run could not measure the case.
    Skipped {
        /// Why the run could not measure the case, in words.
        reason: String,
    },
    /// The run has no samples of the case, and did not skip it.
    NoSamples {
        /// Why no samples were taken; null if the record of the run does not contain the reason.
        stopped: Option<Stopped>,
    },
    /// The run does not include the case.
    Absent,
}

/// One figure of a case in several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Unit of the medians. Ratios have no unit.
    pub unit: Unit,
    /// Median of each run, in the order of `runs`; null for a run without the figure, or with the
    /// figure in another unit.
    pub medians: Vec<Option<f64>>,
    /// Ratio of each run to the first, in the order of `runs`; null for the first run itself, if
    /// either run has no samples, if the run's median is below 0, and if the first run's median may
    /// be 0 or less.
    pub ratios: Vec<Option<Ratio>>,
}

impl CompareRecord {
    /// Returns the names of the cases' experiments, each once, in order of first appearance.
    pub fn experiments(&self) -> Vec<&str> {
        distinct(self.cases.iter().map(|case| case.experiment.as_str()))
    }
}

impl Side {
    /// Returns whether the run measured the case, in the unit of the figures.
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Measured { .. })
    }
}

impl Case {
    /// Returns the number of runs that measured this case, in the unit of the figures.
    pub fn measured(&self) -> usize {
        self.sides.iter().filter(|side| side.is_measured()).count()
    }
}

impl AsRef<Parameters> for Case {
    fn as_ref(&self) -> &Parameters {
        &self.parameters
    }
}
