//! What made a measurement worth less.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which circumstance a warning speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningId {
    /// Other processes used the CPUs meanwhile.
    OtherLoad,
    /// The host of this virtual machine took CPU time away.
    Steal,
    /// The cgroup's CPU quota stopped the processes for a while.
    Throttled,
    /// What a stage waited for could not be read.
    Unreadable,
    /// Figures rest on the last sample before a stage ended.
    Approximate,
    /// Too few samples for the waits to be told apart.
    FewSamples,
    /// A run differed from the others in how it ended.
    RunsDiffer,
    /// The clock and the loops could not be calibrated.
    Uncalibrated,
    /// A subject failed after some samples.
    SubjectFailed,
    /// The processor changes its frequency, or had to slow down.
    Frequency,
    /// The cgroup may use fewer CPUs than there are.
    Quota,
    /// A subject that never waits lost its CPU to others.
    InvoluntarySwitches,
    /// Changes could not be looked for or tried.
    NoAdvice,
    /// A stage had failed in what was profiled and tried.
    FailedStage,
    /// The pipeline would change something each time that it is run, so nothing can be tried.
    NotRepeatable,
    /// Only the beginning of standard input was read.
    PartOfInput,
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Which circumstance.
    pub id: WarningId,
    /// One sentence with the figures.
    pub message: String,
}

impl Warning {
    /// A warning with its sentence.
    pub fn new(id: WarningId, message: impl Into<String>) -> Self {
        Self { id, message: message.into() }
    }
}
