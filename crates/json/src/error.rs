//! Errors of [`filter`](crate::filter()).

use std::fmt;
use std::io;

/// Why filtering stopped.
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
        /// The position of the problem.
        place: Place,
        /// A description of the problem.
        problem: String,
    },
}

/// A position in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line number, from 1.
    pub line: u64,
    /// The character within the line, from 1.
    pub column: u64,
    /// The byte offset from the start of the input, from 0.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {} (byte {})", self.line, self.column, self.offset)
    }
}
