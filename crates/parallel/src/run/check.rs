//! Implements `--check`: the shell runs the original as well, and the outputs are compared.
//!
//! The output passes through contend, which keeps its beginning and a digest of every block. They
//! locate a difference and take little memory. Standard input that can be read only once is saved to a
//! temporary file while it is read. The original reads that file, and then the rest of the stream.

mod digests;
mod original;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use contend_record::run::Outcome;
use contend_sys::interrupt::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::stdio::{dup2_stdin, dup2_stdout};

use super::error::{Context as _, RunError};
use super::observer::{Comparison, Notice, Observer};
use crate::plan::ir::Source;
use digests::Digests;
pub use digests::{BLOCK_BYTES, Difference};
use original::Original;

/// Size of the copy buffer in bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// Poll interval while waiting for the end of the output.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A run that will be compared with the original.
#[derive(Debug)]
pub(super) struct Check {
    input: Input,
    original: Command,
}

/// The result of waiting for an event that a signal may interrupt.
#[derive(Debug)]
pub(super) enum Waited<T> {
    /// The event occurred.
    Done(T),
    /// The signal with this number asked contend to end before the event.
    Interrupted(i32),
}

/// Standard input, prepared to be read twice.
#[derive(Debug)]
enum Input {
    /// Standard input that is not read, or a device that needs no preparation.
    AsItIs,
    /// A regular file, with the offset in bytes from which it is read.
    File(File, u64),
    /// A stream, with the thread that saves it while it is read.
    Kept(JoinHandle<Result<SavedStream, RunError>>),
}

/// A stream that has been saved up to the point where reading stopped.
#[derive(Debug)]
struct SavedStream {
    /// The bytes read so far.
    file: File,
    /// The rest of the stream; `None` if it has ended.
    rest: Option<File>,
}

/// A run whose output is captured.
#[derive(Debug)]
pub(super) struct Captured {
    check: Check,
    stdout: File,
    copy: JoinHandle<io::Result<CopyResult>>,
}

/// A run that has ended, with its captured output.
#[derive(Debug)]
pub(super) struct FinishedRun {
    check: Check,
    output: CopyResult,
}

/// The result of copying an output.
#[derive(Debug)]
struct CopyResult {
    digests: Digests,
    /// Whether the output was copied until EOF, not only until its reader closed it.
    whole: bool,
}

impl Check {
    /// Prepares standard input to be read twice, if the run may read it. `original` is the command
    /// to compare the run with.
    ///
    /// # Errors
    /// Returns an error if standard input cannot be examined, redirected or saved.
    pub(super) fn begin(source: &Source, original: Command) -> Result<Self, RunError> {
        let input = match source {
            Source::Files(_) => Input::AsItIs,
            Source::Standard | Source::Own => Input::of_standard_input()?,
        };
        Ok(Self { input, original })
    }

    /// Replaces standard output with a pipe, and starts a thread that copies the pipe to the
    /// original standard output.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be redirected, or if no pipe or thread can be
    /// created.
    pub(super) fn capture(self) -> Result<Captured, RunError> {
        let cannot_redirect = "cannot redirect standard output";
        let stdout = io::stdout().as_fd().try_clone_to_owned().context(cannot_redirect)?;
        let stdout = File::from(stdout);
        let (reader, writer) = pipe()?;
        dup2_stdout(&writer).context(cannot_redirect)?;
        let to = stdout.try_clone().context(cannot_redirect)?;
        let copy = start(move || pass_on(reader, Some(to)))?;
        Ok(Captured { check: self, stdout, copy })
    }
}

impl Input {
    fn of_standard_input() -> Result<Self, RunError> {
        let cannot_keep = "--check cannot keep standard input";
        let stdin = io::stdin().as_fd().try_clone_to_owned().context(cannot_keep)?;
        let mut stdin = File::from(stdin);
        let stat = rustix::fs::fstat(&stdin).context(cannot_keep)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let place = stdin.stream_position().context(cannot_keep)?;
                Ok(Self::File(stdin, place))
            }
            FileType::Fifo | FileType::Socket => Self::keep(stdin),
            _ if stdin.is_terminal() => Self::keep(stdin),
            _ => Ok(Self::AsItIs),
        }
    }

    /// Replaces standard input with a pipe, and starts a thread that saves the stream while copying
    /// it to the pipe.
    fn keep(stdin: File) -> Result<Self, RunError> {
        let kept = tempfile::tempfile().map_err(cannot_keep)?;
        let (reader, writer) = pipe()?;
        dup2_stdin(&reader).context("cannot redirect standard input")?;
        Ok(Self::Kept(start(move || keep(stdin, kept, writer))?))
    }

    /// Makes standard input ready to be read again.
    fn start_again(self) -> Result<(), RunError> {
        let cannot_read = "cannot read standard input again";
        match self {
            Self::AsItIs => {}
            Self::File(mut file, place) => {
                file.seek(SeekFrom::Start(place)).context(cannot_read)?;
            }
            Self::Kept(keeping) => {
                let (reader, mut writer) = pipe()?;
                // This closes contend's read end of the pipe that has been standard input. The
                // thread that saves the stream ends once that pipe has no reader.
                dup2_stdin(&reader).context("cannot redirect standard input")?;
                let SavedStream { mut file, rest } = joined(keeping)?;
                file.rewind().context(cannot_read)?;
                // The thread ends when its reader or this process ends.
                start(move || {
                    io::copy(&mut file, &mut writer)?;
                    rest.map_or(Ok(0), |mut rest| io::copy(&mut rest, &mut writer))
                })?;
            }
        }
        Ok(())
    }
}

/// Copies a stream to `to` and saves it in `kept`, until it ends or `to` no longer has a reader.
fn keep(mut from: File, mut kept: File, mut to: File) -> Result<SavedStream, RunError> {
    let cannot_read = "cannot read standard input";
    // Only the main thread handles signals. They stay blocked in this thread until it ends, so that
    // pending signals are left to the main thread.
    std::mem::forget(Signals::block().context("cannot block signals")?);
    let mut block = vec![0; BUFFER_BYTES];
    loop {
        let mut ends = [PollFd::new(&from, PollFlags::IN), PollFd::new(&to, PollFlags::empty())];
        match poll(&mut ends, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context(cannot_read),
        }
        let [some, unread] = ends.map(|end| !end.revents().is_empty());
        if unread {
            break;
        }
        if !some {
            continue;
        }
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(SavedStream { file: kept, rest: None }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context(cannot_read),
        };
        kept.write_all(&block[..read]).map_err(cannot_keep)?;
        match to.write_all(&block[..read]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written.context("cannot forward standard input")?,
        }
    }
    Ok(SavedStream { file: kept, rest: Some(from) })
}

fn cannot_keep(source: io::Error) -> RunError {
    RunError::KeepInput { folder: std::env::temp_dir(), source }
}

/// Reads an output until EOF, digests it, and copies it to `to`, if given. Stops early if `to` no
/// longer has a reader.
fn pass_on(mut from: File, mut to: Option<File>) -> io::Result<CopyResult> {
    let mut digests = Digests::default();
    let mut block = vec![0; BUFFER_BYTES];
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(CopyResult { digests, whole: true }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digests.add(&block[..read]);
        match to.as_mut().map_or(Ok(()), |to| to.write_all(&block[..read])) {
            // The reader has closed the output, which is not an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(CopyResult { digests, whole: false });
            }
            written => written?,
        }
    }
}

impl Captured {
    /// Restores standard output after a run, and waits until all of the output has been copied,
    /// including that of background processes.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be restored, or if the output could not be passed
    /// on.
    pub(super) fn finish(self, signals: &Signals) -> Result<Waited<FinishedRun>, RunError> {
        dup2_stdout(&self.stdout).context("cannot restore standard output")?;
        while !self.copy.is_finished() {
            if let Some(signal) = signals.interrupted() {
                return Ok(Waited::Interrupted(signal));
            }
            thread::sleep(POLL_INTERVAL);
        }
        let output = joined(self.copy).context("cannot write standard output")?;
        Ok(Waited::Done(FinishedRun { check: self.check, output }))
    }
}

impl FinishedRun {
    /// Runs the original, compares the outputs, notifies the observer of the result, and stores it
    /// in `outcome`. Returns the exit code of the run, or 1 if the outputs or exit codes differ. If
    /// the reader has closed the output of the run, nothing is compared, and the exit code is that
    /// of the run.
    ///
    /// # Errors
    /// Returns an error if the original cannot be run, if standard input has not been saved, or if
    /// standard error cannot be written.
    pub(super) fn compare(
        self,
        parallel: bool,
        outcome: &mut Outcome,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<Waited<i32>, RunError> {
        let cannot_write = "cannot write standard error";
        if !self.output.whole {
            observer.notify(Notice::NotCompared).context(cannot_write)?;
            return Ok(Waited::Done(outcome.exit_code));
        }
        let Check { input, original } = self.check;
        input.start_again()?;
        let original = match Original::run(original, signals)? {
            Waited::Done(original) => original,
            Waited::Interrupted(signal) => return Ok(Waited::Interrupted(signal)),
        };
        let check = original.compared_with(&self.output.digests, outcome.exit_code);
        let comparison = Comparison {
            check: &check,
            first: self.output.digests.first_byte(&original.digests),
            outcome,
            parallel,
            original_stderr: &original.stderr,
        };
        observer.notify(Notice::Compared(&comparison)).context(cannot_write)?;
        let exit_code = if check.same { outcome.exit_code } else { 1 };
        outcome.check = Some(check);
        Ok(Waited::Done(exit_code))
    }
}

fn pipe() -> Result<(File, File), RunError> {
    let (reader, writer) = io::pipe().context("--check cannot create a pipe")?;
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, 1 << 20); // fails if the user's pipes hold too much already
    Ok((File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer))))
}

fn start<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    Builder::new().spawn(work).context("--check cannot start a thread")
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests;
