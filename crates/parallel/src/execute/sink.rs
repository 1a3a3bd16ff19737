//! Where output goes.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contend_sys::{inherited, interrupt};

use super::Tally;
use super::instance::{Launcher, Take};

/// The output of a step.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    file: File,
    /// Who wants to know before something is written, if anyone does.
    told: Option<&'a Tally>,
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
    pub(super) fn new(file: File, told: Option<&'a Tally>, launcher: &'a Launcher) -> Self {
        Self { file, told, launcher, written: 0, skipped: 0, left: Arc::default() }
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
        self.told.inspect(|tally| tally.writes());
        self.file
    }

    /// Whether it is a file on a disk, or like one.
    pub(super) fn is_file(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Whether the last command would fail when its reader has gone: SIGPIPE would not end it.
    fn fails_unread(&self) -> bool {
        self.told.is_some() && inherited::sigpipe_ends_nothing()
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

impl Take for Sink<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
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
        self.told.inspect(|tally| tally.writes());
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.written += bytes.len() as u64;
                Ok(true)
            }
            // Its reader has gone, which is the reader's choice.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !self.fails_unread() => {
                self.left.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) if self.told.is_some() => Err(io::Error::other(NotWritten(error))),
            Err(error) => Err(error),
        }
    }
}

/// Standard output takes no more.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub(super) struct NotWritten(#[source] pub io::Error);
