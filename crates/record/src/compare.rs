//! The same cases in several runs of the lab beside each other: schema `contend.compare/1`.
//!
//! Every list of something for each run has the order of [`CompareRecord::runs`]. Ratios are to
//! the first run, the baseline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::{Ending, Stopped, Unit, View, distinct};
use crate::parameters::Parameters;
use crate::stats::Ratio;
use crate::{Host, Warning, Writer};

/// The schema's name and version.
pub const SCHEMA: &str = "contend.compare/1";

/// Several runs of the lab beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRecord {
    /// `contend.compare/1`.
    pub schema: String,
    /// The contend that wrote it; null in records of versions that did not tell.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// The seed of the intervals: that of the first run.
    pub seed: u64,
    /// What is compared; the first run is the baseline of the ratios.
    pub runs: Vec<Run>,
    /// Every case of any run, in the order in which they appear.
    pub cases: Vec<Case>,
}

/// A run that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// What it is called: A, B, … Z, AA, AB, …
    pub name: String,
    /// Where its record was read.
    pub origin: Origin,
    /// The contend that measured it; null where its record does not tell.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// The suite that was run; null where experiments were chosen by name.
    pub suite: Option<String>,
    /// The experiments that it has cases of.
    pub experiments: Vec<String>,
    /// When it started: UTC, RFC 3339.
    pub started_at: String,
    /// From its start to the end of the last sample, in seconds.
    pub wall_seconds: f64,
    /// The smaller form was asked for.
    pub quick: bool,
    /// How it came to its end.
    pub ending: Ending,
    /// The machine.
    pub host: Host,
    /// What makes the figures of this run worth less.
    pub warnings: Vec<Warning>,
}

/// Where a record was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Origin {
    /// A file.
    File {
        /// Its path, as it was given.
        path: String,
    },
    /// Standard input.
    StandardInput,
    /// The store.
    Kept {
        /// The run's number.
        number: i64,
    },
}

/// One experiment with one set of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The experiment, such as `units/create`.
    pub experiment: String,
    /// How a report presents it; absent for the generic table.
    #[serde(default, skip_serializing_if = "View::is_table")]
    pub view: View,
    /// What it was done with.
    pub parameters: Parameters,
    /// What each run has of it.
    pub sides: Vec<Side>,
    /// The case's own figure; null where no run has measured it.
    pub value: Option<Figure>,
    /// What else was measured, by name: what two runs at least have.
    pub metrics: BTreeMap<String, Figure>,
}

/// What a run has of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Side {
    /// It was measured.
    Measured {
        /// How many samples there are.
        samples: usize,
        /// How many of them were taken while others used the CPUs.
        disturbed: usize,
        /// What makes its figures worth less.
        warnings: Vec<Warning>,
    },
    /// It was measured in another unit than in the first run that has measured it, and is left
    /// out of the figures.
    OtherUnit {
        /// Its unit.
        unit: Unit,
    },
    /// It was not measured.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It has no samples, and was not skipped.
    NoSamples {
        /// Why no more were taken, if the run knows.
        stopped: Option<Stopped>,
    },
    /// It is none of the run's cases.
    Absent,
}

/// A figure in several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The unit of the medians.
    pub unit: Unit,
    /// The median of each run; null where it has none.
    pub medians: Vec<Option<f64>>,
    /// The ratio of each run to the first one, whose own is null. Null where one of the two has
    /// no samples, and where the first one's median may be 0 or less.
    pub ratios: Vec<Option<Ratio>>,
}

impl CompareRecord {
    /// The experiments that it has cases of, in the order in which they appear.
    pub fn experiments(&self) -> Vec<&str> {
        distinct(self.cases.iter().map(|case| case.experiment.as_str()))
    }
}

impl Side {
    /// Whether there are figures.
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Measured { .. })
    }
}

impl Case {
    /// How many runs have figures of it.
    pub fn measured(&self) -> usize {
        self.sides.iter().filter(|side| side.is_measured()).count()
    }
}

impl AsRef<Parameters> for Case {
    fn as_ref(&self) -> &Parameters {
        &self.parameters
    }
}
