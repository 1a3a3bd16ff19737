//! How far a group got, and who read its input.

use super::fallback::Fallback;
use super::sink::Sink;

/// How far a group got over chunks.
pub(super) enum Progress<'a> {
    /// The group has ended, or its reader wants no more.
    Done,
    /// The group must run once over its whole input, and write to this sink.
    StartAgain(Sink<'a>, Fallback),
}

/// Who read the input of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The commands themselves, as far as they needed it.
    Commands,
    /// Contend, which passed it on to the commands.
    Contend,
}
