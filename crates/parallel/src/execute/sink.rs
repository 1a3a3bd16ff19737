//! Destinations for the output of a group.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contend_sys::{inherited, interrupt};

use super::error::GroupError;
use super::launcher::Launcher;
use super::{Context, Tally};

/// A destination for output.
pub(super) trait OutputSink {
    /// Writes a piece of output. Returns `Break` if the reader wants no more output.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError>;
}

impl<F: FnMut(&[u8]) -> Result<ControlFlow<()>, GroupError>> OutputSink for F {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        self(bytes)
    }
}

/// A sink that forwards only the first lines, or everything. Its lines end in newlines.
#[derive(Debug)]
pub(super) struct FirstLines<'o, S> {
    output: &'o mut S,
    /// Number of lines left to write, or `None` for all.
    left: Option<u64>,
}

impl<'o, S> FirstLines<'o, S> {
    pub(super) fn new(output: &'o mut S, lines: Option<u64>) -> Self {
        Self { output, left: lines }
    }
}

impl<S: OutputSink> OutputSink for FirstLines<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        let Some(left) = &mut self.left else { return self.output.write(bytes) };
        if *left == 0 {
            return Ok(Break(()));
        }
        let mut end = bytes.len();
        for at in memchr::memchr_iter(b'\n', bytes) {
            *left -= 1;
            if *left == 0 {
                end = at + 1;
                break;
            }
        }
        let is_last = *left == 0;
        let wanted = self.output.write(&bytes[..end])?;
        Ok(if is_last { Break(()) } else { wanted })
    }
}

/// The output file of a step.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    file: File,
    /// The tally to notify before each write; set only if the file is standard output.
    before_write: Option<&'a Tally>,
    /// The launcher, which knows whether the run is being ended.
    launcher: &'a Launcher,
    /// Number of bytes written so far.
    written: u64,
    /// The number of bytes to skip, because they were written before the output started again.
    skipped: u64,
    /// Whether the reader has closed the output.
    left: Arc<AtomicBool>,
}

impl<'a> Sink<'a> {
    /// Creates a sink. `before_write` must be given if the file is standard output, and only then.
    pub(super) fn new(file: File, before_write: Option<&'a Tally>, launcher: &'a Launcher) -> Self {
        Self { file, before_write, launcher, written: 0, skipped: 0, left: Arc::default() }
    }

    /// Creates the sink for the output of a group.
    pub(super) fn for_group(file: File, context: &Context<'a>) -> Self {
        let before_write = Some(context.tally).filter(|_| context.is_last);
        Self::new(file, before_write, context.launcher)
    }

    /// Returns a flag that becomes true when a write finds that the reader has closed the output.
    pub(super) fn reader_left(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.left)
    }

    /// Skips the bytes that have already been written, because the output is produced again from
    /// its beginning.
    pub(super) fn start_again(&mut self) {
        self.skipped = self.written;
    }

    /// Returns the file, for a command that writes to it directly. If it is standard output,
    /// notifies the tally first.
    pub(super) fn into_file(self) -> File {
        self.before_write.inspect(|tally| tally.writes());
        self.file
    }

    /// Returns whether the output is a regular file.
    pub(super) fn is_file(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Returns whether a reader that closes the output causes an error: the output is standard
    /// output, and commands run with SIGPIPE ignored or blocked, so that the last one would fail.
    fn fails_unread(&self) -> bool {
        self.before_write.is_some() && inherited::children_survive_sigpipe()
    }

    /// Returns the number of bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

impl OutputSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(bytes.len());
        self.skipped -= skipped as u64;
        let bytes = &bytes[skipped..];
        // Ctrl-C also ends the program that writes contend's input, so an end of input may be
        // premature.
        if self.written == 0 && interrupt::has_end_request() {
            self.launcher.wait_for_signals();
        }
        if self.launcher.is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.before_write.inspect(|tally| tally.writes());
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.written += bytes.len() as u64;
                Ok(Continue(()))
            }
            // The reader may leave at any time; that is not an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !self.fails_unread() => {
                self.left.store(true, Ordering::Relaxed);
                Ok(Break(()))
            }
            Err(error) if self.before_write.is_some() => Err(GroupError::Output(error)),
            Err(error) => Err(GroupError::Transfer(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_first_lines_are_passed_on() {
        for (lines, expected, wants_more) in [
            (None, "a\nb\nc\nd", true),
            (Some(0), "", false),
            (Some(1), "a\n", false),
            (Some(2), "a\nb\n", false),
            (Some(3), "a\nb\nc\n", false),
            (Some(4), "a\nb\nc\nd", true),
        ] {
            let mut text = Vec::new();
            let mut take = |bytes: &[u8]| {
                text.extend_from_slice(bytes);
                Ok(Continue(()))
            };
            let mut first = FirstLines::new(&mut take, lines);
            let written = [b"a\nb".as_slice(), b"\nc\n", b"d"].map(|piece| first.write(piece));
            let [.., last] = written.map(|wanted| wanted.expect("room").is_continue());
            assert_eq!((String::from_utf8_lossy(&text).as_ref(), last), (expected, wants_more));
        }
    }

    #[test]
    fn a_sink_whose_reader_has_had_enough_breaks_off_before_its_limit() {
        let mut enough = |_: &[u8]| Ok(Break(()));
        let mut first = FirstLines::new(&mut enough, Some(9));
        assert!(first.write(b"a\n").expect("room").is_break());
    }
}
