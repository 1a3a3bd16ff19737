//! Reasons for running a group once over its whole input.

use std::fmt;

use super::input::ChunkSource;

/// The reason, shown by `--stats`, for running a group once over its whole input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fallback {
    /// Running over chunks would not be faster.
    NotFaster,
    /// Input was rejected for the given reason: by the guard, or because the stream is slow or
    /// silent, or its records are too long.
    GuardRefused(String),
    /// Commands failed over a chunk, or wrote to standard error.
    CommandFailed,
    /// Commands fail even on empty input.
    CommandsAlwaysFail,
    /// Totals of chunks were rounded, or are too large for an exact sum.
    InexactTotals,
    /// Totals may be rounded, and the input is a stream.
    TotalsOfStream,
    /// Chunks must be processed in order, and the input is a stream.
    OrderOfStream,
    /// Numbers in the input have an order that contend does not know.
    DoubtfulNumbers,
    /// The input is empty.
    EmptyInput,
    /// Processes, open files or memory ran out.
    Scarcity,
}

impl Fallback {
    /// Returns a more precise reason if the state of the input shows one: a rejection of input,
    /// which is the cause of later failures, or, for [`Self::CommandFailed`], an empty input, on
    /// which some commands fail. Otherwise, returns `self`.
    pub(super) fn refined(self, chunks: &ChunkSource<'_>) -> Self {
        let is_empty = || chunks.size().map_or_else(|| chunks.none_was_taken(), |size| size == 0);
        match (chunks.refused(), self) {
            (Some(why), _) => Self::GuardRefused(why.to_owned()),
            (None, Self::CommandFailed) if is_empty() => Self::EmptyInput,
            (None, fallback) => fallback,
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFaster => "chunks would not be faster",
            Self::GuardRefused(why) => why,
            Self::CommandFailed => "a command failed on a chunk, or wrote to standard error",
            Self::CommandsAlwaysFail => "commands fail for any input",
            Self::InexactTotals => "totals were rounded",
            Self::TotalsOfStream => "totals may be rounded, and a pipe cannot be re-read",
            Self::OrderOfStream => "chunks must stay in order, and a pipe cannot be re-read",
            Self::DoubtfulNumbers => "the order of its numbers is unknown here",
            Self::EmptyInput => "the input was empty",
            Self::Scarcity => "too few processes or open files, or too little memory",
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::ir::{Cut, Guard, Records};

    use super::super::testing::{file_input, launcher};
    use super::*;

    /// Returns the refined reason after commands have failed over chunks of `text`.
    fn after_failure(text: &str, guard: &Guard) -> Fallback {
        let launcher = launcher();
        let chunks =
            ChunkSource::new(&launcher, file_input(text), &Cut::between(Records::Lines), guard);
        while let super::super::input::NextChunk::Chunk(chunk) = chunks.take(10).expect("readable")
        {
            chunks.bytes(chunk.data).expect("readable");
        }
        Fallback::CommandFailed.refined(&chunks)
    }

    #[test]
    fn the_rejection_by_the_guard_is_the_cause() {
        let guard = Guard { terminated: true, ..Guard::NONE };
        let why = after_failure("a\nb", &guard);
        assert!(matches!(&why, Fallback::GuardRefused(why) if !why.is_empty()), "{why:?}");
        assert_eq!(after_failure("a\nb\n", &guard), Fallback::CommandFailed);
    }

    #[test]
    fn commands_over_nothing_fail_for_want_of_input() {
        assert_eq!(after_failure("", &Guard::NONE), Fallback::EmptyInput);
    }

    #[test]
    fn every_reason_has_words_of_its_own() {
        let all = [
            Fallback::NotFaster,
            Fallback::GuardRefused("its input is not UTF-8".to_owned()),
            Fallback::CommandFailed,
            Fallback::CommandsAlwaysFail,
            Fallback::InexactTotals,
            Fallback::TotalsOfStream,
            Fallback::OrderOfStream,
            Fallback::DoubtfulNumbers,
            Fallback::EmptyInput,
            Fallback::Scarcity,
        ];
        let texts: std::collections::BTreeSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), all.len());
    }
}
