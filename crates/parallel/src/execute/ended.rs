//! How commands ended.

use std::time::Duration;

use contend_sys::child::ExitStatus;

use crate::plan::ir::StatusRule;

/// How the commands of an instance ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// Of each command.
    pub statuses: Vec<ExitStatus>,
    /// What each command cost.
    pub costs: Vec<Cost>,
    /// All is as it has to be.
    pub succeeded: bool,
    /// What they wrote to standard error.
    pub stderr: Vec<u8>,
}

/// What a command cost, in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// CPU time: of its process, or of contend's thread while it did the command's work.
    pub cpu: Duration,
    /// A process was started for it.
    pub has_process: bool,
}

impl Cost {
    /// That of a process which used so much CPU time.
    pub(super) fn of_process(cpu: Duration) -> Self {
        Self { cpu, has_process: true }
    }
}

/// Whether a command ended as it does if all goes well.
pub(super) fn has_succeeded(status: ExitStatus, rule: StatusRule) -> bool {
    match (status, rule) {
        (ExitStatus::Exited(0), _) | (ExitStatus::Exited(1), StatusRule::Matches) => true,
        (ExitStatus::Exited(_) | ExitStatus::Signaled(_), _) => false,
    }
}
