//! Notifications about a run in progress.

use std::io;

use contend_record::run::{Check, Outcome};

use crate::execute::{ExecuteError, Tally};
use crate::plan::ir::Plan;

/// Is notified during a run. The methods about progress are called in the order `started`, `tick`
/// any number of times, `ended`, and not at all if no plan is executed.
pub trait Observer {
    /// Shows the user a notice, on standard error.
    ///
    /// # Errors
    /// Returns an error if standard error cannot be written, and the run must therefore end.
    fn notify(&mut self, notice: Notice<'_>) -> io::Result<()>;

    /// A plan is about to be executed. This is the time to register [`Tally::before_output`].
    /// Nothing has been written to standard output yet.
    fn started(&mut self, _plan: &Plan, _tally: &Tally) {}

    /// The plan is being executed; called about every 20 ms.
    fn tick(&mut self, _tally: &Tally) {}

    /// The execution has ended or was abandoned. Nothing may be drawn any more.
    fn ended(&mut self) {}
}

/// A message about a run that must be shown at once.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// A file that a stage should read cannot be opened: its name and the reason, worded as in a
    /// shell.
    MissingFile(&'a str),
    /// What commands wrote to standard error before they failed.
    CommandStderr(&'a [u8]),
    /// Standard output cannot be written.
    CannotWrite(&'a ExecuteError),
    /// The run was not compared with the original, since the reader closed its output.
    NotCompared,
    /// The run was compared with the original.
    Compared(&'a Comparison<'a>),
}

/// A run and the original, side by side.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    /// What the comparison found.
    pub check: &'a Check,
    /// The outcome of the run.
    pub outcome: &'a Outcome,
    /// Whether stages ran over chunks.
    pub parallel: bool,
    /// The beginning of what the original wrote to standard error.
    pub original_stderr: &'a str,
}
