//! How commands ended.

use std::time::Duration;

use contend_sys::child::ExitStatus;

use crate::plan::ir::StatusRule;

/// How the commands of an instance ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// Of each command.
    pub statuses: Vec<ExitStatus>,
    /// The CPU time that each command used; `None` where contend did its work.
    pub cpu: Vec<Option<Duration>>,
    /// All is as it has to be.
    pub well: bool,
    /// What they wrote to standard error.
    pub remarks: Vec<u8>,
}

/// Whether a command ended as it does if all goes well.
pub(super) fn is_well(status: ExitStatus, rule: StatusRule) -> bool {
    match (status, rule) {
        (ExitStatus::Exited(0), _) | (ExitStatus::Exited(1), StatusRule::Matches) => true,
        (ExitStatus::Exited(_) | ExitStatus::Signaled(_), _) => false,
    }
}
