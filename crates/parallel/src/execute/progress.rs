//! Results of running a group: whether it is done, and the reader of its input.

use super::fallback::Fallback;
use super::sink::Sink;

/// The result of running a group over chunks.
pub(super) enum Progress<'a> {
    /// The group has ended, or its reader wants no more output.
    Done,
    /// The group must run once over its whole input for the given reason, and write to the sink.
    StartAgain(Sink<'a>, Fallback),
}

/// The reader of a group's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The commands themselves, as far as they needed the input.
    Commands,
    /// Contend, which passed the input on to the commands.
    Contend,
}
