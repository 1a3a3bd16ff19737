//! Errors of [`filter`](crate::filter()).

use std::fmt;
use std::io;

/// An error that ends filtering.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The input cannot be read.
    #[error("cannot read")]
    Read(#[source] io::Error),
    /// The output cannot be written.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
    /// The input is not JSON or exceeds a limit.
    #[error("{place}: {problem}")]
    Malformed {
        /// Position of the problem in the input.
        place: Place,
        /// The problem, worded for users.
        problem: String,
    },
}

/// A position in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line number, from 1.
    pub line: u64,
    /// Number of the character within its line, from 1. A byte order mark does not count.
    pub column: u64,
    /// Byte offset from the start of the input, including a byte order mark.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {} (byte {})", self.line, self.column, self.offset)
    }
}
