//! Runs one command between two pipes: contend writes its standard input and reads its standard
//! output.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::ops::ControlFlow::{self, Break, Continue};
use std::thread;

use contend_sys::child::Reaped;
use contend_sys::{Pid, Signal};

use super::ended::Cost;
use super::error::GroupError;
use super::processes::BLOCK_BYTES;
use super::sink::OutputSink;
use super::threads::{self, RetryLimit};
use super::{Context, pipe};
use crate::plan::ir::Command;

/// A running command whose standard input and output are pipes to contend.
#[derive(Debug)]
pub(super) struct Filter<'a> {
    context: &'a Context<'a>,
    command: &'a Command,
    pid: Pid,
}

/// The write end of the pipe to a command's standard input.
#[derive(Debug)]
pub(super) struct FilterInput(File);

impl<'a> Filter<'a> {
    /// Starts a command, and returns it with its standard input and standard output.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or the command cannot be started.
    pub(super) fn start(
        command: &'a Command,
        context: &'a Context<'a>,
    ) -> io::Result<(Self, FilterInput, File)> {
        let (reader, stdin) = pipe::wide()?;
        let (stdout, writer) = pipe::wide()?;
        let streams = [Some(&reader), Some(&writer), None];
        let pid = context.launcher.start(command, streams, RetryLimit::Long)?;
        Ok((Self { context, command, pid }, FilterInput(stdin), stdout))
    }

    /// Runs `feed` while another thread copies the command's output into `sink`, and returns the
    /// result of `feed`.
    ///
    /// `input` keeps the command's standard input open until `feed` has returned. If `feed` fails
    /// or returns `Break`, the command is terminated before `input` is dropped: the command must
    /// not mistake a closed input for the end of the data.
    ///
    /// # Errors
    /// Returns an error if feeding or copying fails, or if no thread can be started.
    pub(super) fn copy_while<I, B>(
        &self,
        stdout: File,
        sink: &mut (impl OutputSink + Send),
        mut input: I,
        feed: impl FnOnce(&mut I) -> Result<ControlFlow<B>, GroupError>,
    ) -> Result<ControlFlow<B>, GroupError> {
        thread::scope(|scope| {
            let copied = match threads::spawn_scoped(scope, || copy(stdout, sink)) {
                Ok(copied) => copied,
                Err(error) => {
                    self.terminate();
                    return Err(error.into());
                }
            };
            let fed = feed(&mut input);
            if !matches!(fed, Ok(Continue(()))) {
                self.terminate();
            }
            drop(input);
            let copied = copied.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let fed = fed?;
            let _ = copied.transpose()?; // everything is copied: the reader's state no longer matters
            Ok(fed)
        })
    }

    fn terminate(&self) {
        self.context.launcher.signal(&[self.pid], Signal::TERM);
    }

    /// Waits until the command ends, and adds its cost to the tally of its stage.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub(super) fn wait(self) -> io::Result<Reaped> {
        let reaped = self.context.launcher.wait(self.pid)?;
        self.context.tally.used(self.command.stage, Cost::of_process(reaped.usage.cpu()));
        Ok(reaped)
    }
}

impl FilterInput {
    /// Returns a duplicate of the pipe's write end. Polling it shows when the command closes the
    /// read end.
    ///
    /// # Errors
    /// Returns an error if the file descriptor cannot be duplicated.
    pub(super) fn watched(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

impl OutputSink for FilterInput {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        match self.0.write_all(bytes) {
            Ok(()) => Ok(Continue(())),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Break(())),
            Err(error) => Err(error.into()),
        }
    }
}

/// Copies until the end of `from`. Stops early and returns `Break` if the reader wants no more
/// output.
///
/// # Errors
/// Returns an error if reading or writing fails.
pub(super) fn copy(
    mut from: impl Read,
    to: &mut impl OutputSink,
) -> Result<ControlFlow<()>, GroupError> {
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(Continue(())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if to.write(&block[..read])?.is_break() {
            return Ok(Break(()));
        }
    }
}
