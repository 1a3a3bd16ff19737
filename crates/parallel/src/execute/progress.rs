//! How far a group got, and who has read its input.

use super::fallback::Fallback;
use super::sink::Sink;

/// How far a group got over parts.
pub(super) enum Progress<'a> {
    /// To its end, or its reader wants no more.
    Done,
    /// All has to be done again in one piece, into this sink.
    StartAgain(Sink<'a>, Fallback),
}

/// Who has read the input of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Its commands themselves, as far as they needed it.
    Commands,
    /// It was read here, and handed to commands.
    Contend,
}
