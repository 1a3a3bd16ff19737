//! Circumstances that make a measurement less reliable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The circumstance that a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningId {
    /// Other processes used the CPUs during the measurement.
    OtherLoad,
    /// The hypervisor took CPU time away from this virtual machine (steal).
    Steal,
    /// The cgroup's CPU quota stopped the processes for some time (throttling).
    Throttled,
    /// The cause of a stage's waits could not be read.
    Unreadable,
    /// Figures are from the last sample before a stage ended.
    Approximate,
    /// Too few samples to attribute waiting time to its causes.
    FewSamples,
    /// A run ended differently from the others.
    RunsDiffer,
    /// The cost of the clock and of empty loops could not be measured.
    Uncalibrated,
    /// An experiment failed after some samples.
    SubjectFailed,
    /// The processor varies its frequency, or was throttled.
    Frequency,
    /// The cgroup's quota allows fewer CPUs than the machine has.
    Quota,
    /// A measured task that never waits was preempted by others.
    InvoluntarySwitches,
    /// Changes could not be searched for, or could not be tried.
    NoAdvice,
    /// A stage failed in the pipeline that was profiled and tried.
    FailedStage,
    /// The pipeline has side effects each time it runs, so nothing can be tried.
    NotRepeatable,
    /// Only the beginning of standard input was read.
    PartOfInput,
}

/// A circumstance that makes a measurement less reliable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The circumstance.
    pub id: WarningId,
    /// One sentence with the figures.
    pub message: String,
}

impl Warning {
    /// Creates a warning with the given sentence as its message.
    pub fn new(id: WarningId, message: impl Into<String>) -> Self {
        Self { id, message: message.into() }
    }
}
