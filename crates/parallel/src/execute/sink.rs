//! Where output goes.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contend_sys::{inherited, interrupt};

use super::Tally;
use super::error::GroupError;
use super::launcher::Launcher;

/// Where output is written to.
pub(super) trait OutputSink {
    /// Writes a piece of output. `Break` if whoever reads the output wants no more of it.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError>;
}

impl<F: FnMut(&[u8]) -> Result<ControlFlow<()>, GroupError>> OutputSink for F {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        self(bytes)
    }
}

/// Passes on so many lines, or everything.
#[derive(Debug)]
pub(super) struct FirstLines<'o, S> {
    output: &'o mut S,
    /// How many lines are still wanted, if there is a limit.
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

/// The output of a step.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    file: File,
    /// Who wants to know before something is written, if anyone does.
    on_first_write: Option<&'a Tally>,
    /// Who knows whether everything is being ended.
    launcher: &'a Launcher,
    /// Bytes that were written.
    written: u64,
    /// Bytes that are written already and come again.
    skipped: u64,
    /// Whoever read it has gone.
    left: Arc<AtomicBool>,
}

impl<'a> Sink<'a> {
    /// An output; if it is standard output, with who is told before something is written.
    pub(super) fn new(
        file: File,
        on_first_write: Option<&'a Tally>,
        launcher: &'a Launcher,
    ) -> Self {
        Self { file, on_first_write, launcher, written: 0, skipped: 0, left: Arc::default() }
    }

    /// Becomes true when whoever reads it has gone.
    pub(super) fn reader_left(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.left)
    }

    /// Everything comes again from the beginning.
    pub(super) fn start_again(&mut self) {
        self.skipped = self.written;
    }

    /// Where it goes: nothing more is written here.
    pub(super) fn into_file(self) -> File {
        self.on_first_write.inspect(|tally| tally.writes());
        self.file
    }

    /// Whether it is a file on a disk, or like one.
    pub(super) fn is_file(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Whether the last command would fail when its reader has gone: SIGPIPE would not end it.
    fn fails_unread(&self) -> bool {
        self.on_first_write.is_some() && inherited::sigpipe_ends_nothing()
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

impl OutputSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(bytes.len());
        self.skipped -= skipped as u64;
        let bytes = &bytes[skipped..];
        // A Ctrl-C ends whoever feeds this, too: the end of the input may be no end.
        if self.written == 0 && interrupt::is_asked_to_end() {
            self.launcher.let_signals_be_heard();
        }
        if self.launcher.is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.on_first_write.inspect(|tally| tally.writes());
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.written += bytes.len() as u64;
                Ok(Continue(()))
            }
            // Its reader has gone, which is the reader's choice.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !self.fails_unread() => {
                self.left.store(true, Ordering::Relaxed);
                Ok(Break(()))
            }
            Err(error) if self.on_first_write.is_some() => Err(GroupError::Output(error)),
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
