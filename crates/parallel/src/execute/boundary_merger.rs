//! Concatenates outputs of chunks. If the plan asks for it, merges equal lines where two outputs
//! meet.

use std::ops::ControlFlow::{self, Continue};

use memchr::{memchr, memrchr};

use super::counted;
use super::error::GroupError;
use super::reorder::Combiner;
use super::sink::OutputSink;
use crate::plan::ir::Combine;

/// A combiner that concatenates outputs. With [`Combine::Adjoin`], equal lines on both sides of a
/// chunk boundary are merged into one line.
#[derive(Debug)]
pub(super) struct BoundaryMerger<T> {
    pub output: T,
    boundary: Option<Adjoin>,
}

#[derive(Debug, Default)]
struct Adjoin {
    counted: bool,
    /// The last complete line, held back because the output of the next chunk may begin with an
    /// equal one; empty if there is none.
    held: Vec<u8>,
    /// The beginning of a line whose end has not arrived.
    unfinished: Vec<u8>,
    /// Whether the first line of the current chunk has been seen.
    begun: bool,
}

impl<T: OutputSink> BoundaryMerger<T> {
    pub(super) fn new(output: T, combine: &Combine) -> Self {
        let boundary = match combine {
            Combine::Adjoin { counted } => Some(Adjoin { counted: *counted, ..Adjoin::default() }),
            _ => None,
        };
        Self { output, boundary }
    }

    /// Writes the held line, if any. Must be called after the last chunk has ended. Returns `Break`
    /// if the reader wants no more output.
    pub(super) fn end(&mut self) -> Result<ControlFlow<()>, GroupError> {
        let held = self.boundary.as_mut().map(|adjoin| std::mem::take(&mut adjoin.held));
        held.filter(|held| !held.is_empty())
            .map_or(Ok(Continue(())), |held| self.output.write(&held))
    }

    /// Discards the held and the unfinished line, because the output will be produced again from
    /// its beginning.
    pub(super) fn reset(&mut self) {
        if let Some(adjoin) = &mut self.boundary {
            *adjoin = Adjoin { counted: adjoin.counted, ..Adjoin::default() };
        }
    }
}

impl<T: OutputSink + Send> Combiner for BoundaryMerger<T> {
    fn piece(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        let Some(adjoin) = &mut self.boundary else { return self.output.write(bytes) };
        adjoin.unfinished.extend_from_slice(bytes);
        match adjoin.complete() {
            Some(complete) => self.output.write(&complete),
            None => Ok(Continue(())),
        }
    }

    fn chunk_ended(&mut self) -> Result<ControlFlow<()>, GroupError> {
        if let Some(adjoin) = &mut self.boundary {
            adjoin.begun = false;
        }
        Ok(Continue(()))
    }
}

impl Adjoin {
    /// Holds the last complete line, and returns the lines before it, which later output cannot
    /// change. The result may be empty. Returns `None` if no line has been completed since the last
    /// call.
    fn complete(&mut self) -> Option<Vec<u8>> {
        let end = memrchr(b'\n', &self.unfinished)? + 1;
        let rest = self.unfinished.split_off(end);
        let mut lines = std::mem::replace(&mut self.unfinished, rest);
        let mut complete = Vec::new();
        if !self.begun {
            self.begun = true;
            let first = memchr(b'\n', &lines).map_or(lines.len(), |at| at + 1);
            let others = lines.split_off(first);
            self.merge_first_line(lines, &mut complete);
            lines = others;
        }
        if !lines.is_empty() {
            let last = memrchr(b'\n', &lines[..lines.len() - 1]).map_or(0, |at| at + 1);
            complete.append(&mut self.held);
            self.held = lines.split_off(last);
            complete.append(&mut lines);
        }
        Some(complete)
    }

    /// Merges `line`, the first line of a chunk's output, into the held line if they are equal.
    /// Counts at the beginning of the lines, if any, are not compared but added. If the lines
    /// differ, moves the held line to `complete` and holds `line`.
    fn merge_first_line(&mut self, line: Vec<u8>, complete: &mut Vec<u8>) {
        if self.counted
            && let (Some((before, held)), Some((count, text))) =
                (counted::read(&self.held), counted::read(&line))
            && held == text
        {
            let mut sum = Vec::new();
            counted::write(&mut sum, before + count, text);
            self.held = sum;
        } else if self.counted || self.held != line {
            complete.append(&mut self.held);
            self.held = line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(counted: bool, chunks: &[&[&str]]) -> String {
        let mut text = Vec::new();
        let mut merger = BoundaryMerger::new(
            |bytes: &[u8]| {
                text.extend_from_slice(bytes);
                Ok(Continue(()))
            },
            &Combine::Adjoin { counted },
        );
        for chunk in chunks {
            for piece in *chunk {
                assert!(merger.piece(piece.as_bytes()).expect("room").is_continue());
            }
            assert!(merger.chunk_ended().expect("room").is_continue());
        }
        assert!(merger.end().expect("room").is_continue());
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn equal_lines_that_meet_are_one() {
        assert_eq!(joined(false, &[&["a\nb\n"], &["b", "\nc\n"], &[], &["c\n"]]), "a\nb\nc\n");
        assert_eq!(joined(false, &[&["a\n"], &["a\n"], &["a\nb\n"]]), "a\nb\n");
        assert_eq!(joined(false, &[&["\n"], &["\n"]]), "\n");
    }

    #[test]
    fn counts_of_lines_that_meet_are_added() {
        let chunks: &[&[&str]] =
            &[&["      2 a\n      1 b\n"], &["      4 b\n"], &["      1 b\n      9 a\n"]];
        assert_eq!(joined(true, chunks), "      2 a\n      6 b\n      9 a\n");
        assert_eq!(joined(true, &[&["      1 a\n"], &["      1 A\n"]]), "      1 a\n      1 A\n");
    }
}
