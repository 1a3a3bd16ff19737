//! What starts attempts on machines.

use std::io;

use super::work::Work;

/// An engine: starts attempts at parts, on the machines of a cluster or on this one. It does not read or write data.
///
/// An engine may start several attempts at a part, one after the other or at the same time. All of them get different
/// numbers.
pub trait Engine {
    /// Writes what a batch needs into the work directory, besides the job. Returns the command that starts the batch: a
    /// program and its arguments. See [`Self::submit`].
    ///
    /// # Errors
    /// Returns an error if the files cannot be written.
    fn prepare(&self, work: &Work, parts: &[usize], batch: u32)
    -> Result<Vec<String>, EngineError>;

    /// Starts an attempt at each of the given parts of the job in `work`. Another batch is submitted only after the one
    /// before is over; `batch` is the number of batches before.
    ///
    /// # Errors
    /// Returns an error if the parts cannot be handed over to the engine.
    fn submit(&mut self, work: &Work, parts: &[usize], batch: u32) -> Result<(), EngineError>;

    /// Returns whether attempts of the batch may still run.
    ///
    /// # Errors
    /// Returns an error if that cannot be found out.
    fn poll(&mut self) -> Result<State, EngineError>;

    /// Returns why no attempt is running, as a sentence for users; `None` if one may be running. `has_begun` tells whether an
    /// attempt of the batch has begun.
    fn waiting(&self, has_begun: bool) -> Option<String>;

    /// Ends the attempts that still run, as far as that is possible, even while the run is being ended.
    fn cancel(&mut self);
}

/// The state of a batch of attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Attempts may still run, or wait for a machine.
    Running,
    /// All attempts have ended, or have been given up. The text is what the engine says about trouble; it may be empty.
    Over(String),
}

/// Trouble with an engine itself, rather than with an attempt.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A program of the engine cannot be started.
    #[error("cannot start {program}")]
    Start {
        /// The name of the program.
        program: String,
        /// Why that failed.
        source: io::Error,
    },
    /// A program of the engine failed.
    #[error("{program} failed: {message}")]
    Failed {
        /// The name of the program.
        program: &'static str,
        /// Its error message.
        message: String,
    },
    /// Another operation failed.
    #[error("I/O error while attempts run")]
    Io(#[from] io::Error),
}

/// Returns the number of an attempt: different for every batch, and for every number that the engine gives to
/// attempts of one batch.
pub(super) fn attempt(batch: u32, number: u32) -> u64 {
    u64::from(batch) << 32 | u64::from(number)
}

/// Returns the batch that an attempt belongs to.
pub(super) fn batch_of(attempt: u64) -> u32 {
    u32::try_from(attempt >> 32).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_attempts_differ() {
        let numbers = [attempt(0, 0), attempt(0, u32::MAX), attempt(1, 0), attempt(1, 1)];
        assert!(numbers.is_sorted_by(|a, b| a < b));
        assert_eq!(numbers.map(batch_of), [0, 0, 1, 1]);
    }
}
