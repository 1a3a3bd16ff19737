//! Notifications about a run in progress.

use std::io;
use std::path::Path;

use contend_record::run::{Check, Outcome};

use super::check::Difference;
use crate::execute::{ExecuteError, Tally};
use crate::plan::ir::Plan;

/// A receiver of notifications during a run. If a plan is executed, the methods about progress are
/// called in the order `started`, `tick` any number of times, `ended`; otherwise none of them is
/// called.
pub trait Observer {
    /// Shows the user a notice, on standard error.
    ///
    /// # Errors
    /// Returns an error if standard error cannot be written, and the run must therefore end.
    fn notify(&mut self, notice: Notice<'_>) -> io::Result<()>;

    /// Called before a plan is executed, and before anything is written to standard output. This is
    /// the time to register [`Tally::before_output`].
    fn started(&mut self, _plan: &Plan, _tally: &Tally) {}

    /// Called about every 20 ms while the plan is executed.
    fn tick(&mut self, _tally: &Tally) {}

    /// Called when the execution has ended or has been abandoned. Nothing may be drawn after that.
    fn ended(&mut self) {}
}

/// A message about a run that must be shown at once.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// A file that a stage should read cannot be opened. The message has its name and the reason,
    /// worded as in a shell.
    MissingFile(&'a str),
    /// The standard error of commands that have failed.
    CommandStderr(&'a [u8]),
    /// Standard output cannot be written, for the given reason.
    CannotWrite(&'a ExecuteError),
    /// The pipeline runs on this machine alone, for the given reason, although a cluster was requested.
    NotDivided(&'a str),
    /// No part has been started for some time, for the given reason.
    Waiting(&'a str),
    /// The work directory with this path, of a job that is continued, is kept.
    Kept(&'a Path),
    /// The work directory with this path cannot be removed, for the given reason.
    Left(&'a Path, &'a io::Error),
    /// The run was not compared with the original, since the reader closed its output.
    NotCompared,
    /// The run was compared with the original.
    Compared(&'a Comparison<'a>),
}

/// A comparison of a run with the original.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    /// The result of the comparison.
    pub check: &'a Check,
    /// The first byte that differs; `None` if the outputs are equal, or if only the block of the
    /// difference is known.
    pub first: Option<Difference>,
    /// The outcome of the run, without the result of the comparison.
    pub outcome: &'a Outcome,
    /// Whether contend decided to run stages over chunks.
    pub parallel: bool,
    /// The beginning of the original's standard error.
    pub original_stderr: &'a str,
}
