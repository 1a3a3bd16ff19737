//! Exit statuses and costs of commands that have ended.

use std::time::Duration;

use contend_sys::child::ExitStatus;

use crate::plan::ir::StatusRule;

/// Exit statuses, costs and standard error of an instance's commands.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// The exit status of each command, in the order of the pipeline.
    pub statuses: Vec<ExitStatus>,
    /// The cost of each command, in the order of the pipeline; empty if the costs have already been
    /// added to the tally.
    pub costs: Vec<Cost>,
    /// Whether all commands succeeded and none wrote to the captured standard error. A command also
    /// counts as successful if SIGPIPE ended it because the next one needed no more input.
    pub succeeded: bool,
    /// The beginning of the commands' standard error; empty if it was not captured.
    pub stderr: Vec<u8>,
}

/// The cost of one run of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// CPU time of the command's process, or of contend's thread while it ran the command's
    /// operator.
    pub cpu: Duration,
    /// Whether the command ran as a process rather than as an operator.
    pub has_process: bool,
}

impl Cost {
    /// Returns the cost of a process with the given CPU time.
    pub(super) fn of_process(cpu: Duration) -> Self {
        Self { cpu, has_process: true }
    }
}

/// Returns whether the exit status means success for a command with the given rule. Termination by
/// a signal never means success.
pub(super) fn has_succeeded(status: ExitStatus, rule: StatusRule) -> bool {
    match (status, rule) {
        (ExitStatus::Exited(0), _) | (ExitStatus::Exited(1), StatusRule::Matches) => true,
        (ExitStatus::Exited(_) | ExitStatus::Signaled(_), _) => false,
    }
}
