//! Circumstances that make a measurement less reliable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A circumstance that makes a measurement less reliable, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningId {
    /// Other processes used the CPUs during the measurement or, for a case of the lab, the
    /// hypervisor moved a virtual CPU to another core.
    OtherLoad,
    /// The hypervisor took CPU time away from this virtual machine (steal).
    Steal,
    /// The cgroup's CPU quota stopped the processes for some time (throttling).
    Throttled,
    /// contend has no permission to read what a stage waits for.
    Unreadable,
    /// Bytes and calls of a stage are from the last sample before it ended and from its neighbours'
    /// counts.
    Approximate,
    /// Processes that read from or write to the pipeline were not observed, or may exist.
    Unobserved,
    /// A case of the lab has too few samples for an interval.
    FewSamples,
    /// The runs of a pipeline (`--runs`) did not all end with the same exit status; or a command did
    /// not do the same work in the runs of `contend doctor --try` as in its first one.
    RunsDiffer,
    /// The cost of the clock and of empty loops could not be measured, or it could not be detected
    /// whether the hypervisor moves virtual CPUs.
    Uncalibrated,
    /// A case of the lab failed after some samples, which are kept.
    SubjectFailed,
    /// The processor may vary its frequency, or was throttled because of heat.
    Frequency,
    /// The cgroup's CPU quota is smaller than the number of CPUs that contend may use.
    Quota,
    /// A measured task that never waits was preempted.
    InvoluntarySwitches,
    /// Changes to the pipeline could not be looked for, or copies could not run at the same time.
    NoAdvice,
    /// A stage or a command failed when it was observed, so the results of `--try` may not apply to a
    /// run that succeeds.
    FailedStage,
    /// The pipeline or its setup may have side effects each time it runs, so candidates cannot be
    /// tried.
    NotRepeatable,
    /// Only the beginning of standard input was read, because `--try` reads it several times; or the
    /// runs read an empty input instead of a terminal.
    PartOfInput,
    /// Compared runs were measured on different machines.
    MachinesDiffer,
    /// One of the compared records covers only the part of a run that contend observed.
    PartOfRun,
}

/// A circumstance that makes a measurement less reliable, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Name of the circumstance.
    pub id: WarningId,
    /// Description of the circumstance, in a sentence with figures where there are any.
    pub message: String,
}

impl Warning {
    /// Creates a warning whose message is `message`, a sentence.
    pub fn new(id: WarningId, message: impl Into<String>) -> Self {
        Self { id, message: message.into() }
    }

    /// Returns whether the warning is about other programs that use the CPUs, or about steal.
    pub fn is_disturbance(&self) -> bool {
        matches!(self.id, WarningId::OtherLoad | WarningId::Steal)
    }
}
