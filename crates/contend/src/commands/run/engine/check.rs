//! `--check`: the shell runs the original too, and the outputs are compared.
//!
//! What is written passes through contend, which keeps a digest of every block: that is enough to
//! tell where two outputs differ, and takes no room. Standard input is kept as far as it was read
//! if it can be read only once; the original reads what was kept, and then the rest.

mod digests;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use contend_record::run::{Check as Record, Outcome, RunRecord, Source};
use contend_report::render::units::seconds;
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, Signal, child, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::process::kill_process;
use rustix::stdio::{dup2_stdin, dup2_stdout};

use super::shell;
use crate::exit::Exit;
use crate::output;
use crate::settings::RunHow;
use digests::{BLOCK, Digests};

/// How much is copied at a time, in bytes.
const PIECE: usize = 256 << 10;
/// How often it is asked whether a signal has come.
const ASK: Duration = Duration::from_millis(20);
/// How often it is asked whether everything was passed on.
const MOMENT: Duration = Duration::from_millis(1);
/// How much of what the original remarks is shown, in bytes.
const REMARKS: u64 = 64 << 10;

/// A run that will be compared with the original.
#[derive(Debug)]
pub(super) struct Check {
    input: Input,
}

/// How standard input is read twice.
#[derive(Debug)]
enum Input {
    /// Nothing needs to be done.
    AsItIs,
    /// It is a regular file, read from this place.
    File(File, u64),
    /// It is kept while it is read.
    Kept(JoinHandle<io::Result<Kept>>),
}

/// An input that can be read only once.
#[derive(Debug)]
struct Kept {
    /// What was read of it.
    file: File,
    /// What comes then, if it is not over.
    rest: Option<File>,
}

/// A run whose output is looked at.
#[derive(Debug)]
pub(super) struct Captured {
    input: Input,
    stdout: File,
    copy: JoinHandle<io::Result<Copied>>,
}

/// What a run has written.
#[derive(Debug)]
pub(super) struct Written {
    input: Input,
    output: Copied,
}

/// An output that was passed on.
#[derive(Debug)]
struct Copied {
    digests: Digests,
    /// It was passed on to its end.
    whole: bool,
}

/// What came of the original.
#[derive(Debug)]
struct Original {
    digests: Digests,
    status: i32,
    wall: Duration,
    remarks: String,
}

impl Check {
    /// Sees to it that standard input can be read twice, if anyone reads it.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub(super) fn begin(source: &Source) -> Result<Self> {
        if matches!(source, Source::Files(_)) {
            return Ok(Self { input: Input::AsItIs });
        }
        let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&stdin)?.st_mode);
        let input = match kind {
            FileType::RegularFile => {
                let place = stdin.stream_position()?;
                Input::File(stdin, place)
            }
            FileType::Fifo | FileType::Socket => Input::keep(stdin)?,
            _ if stdin.is_terminal() => Input::keep(stdin)?,
            _ => Input::AsItIs,
        };
        Ok(Self { input })
    }

    /// Puts a pipe in the place of standard output, and passes on what comes through it.
    ///
    /// # Errors
    /// When there is no pipe to be had.
    pub(super) fn capture(self) -> Result<Captured> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (reader, writer) = pipe()?;
        dup2_stdout(&writer).context("cannot redirect standard output")?;
        let to = stdout.try_clone()?;
        let copy = start(move || pass_on(reader, Some(to)))?;
        Ok(Captured { input: self.input, stdout, copy })
    }
}

impl Input {
    /// Puts a pipe in the place of standard input, and keeps what goes through it.
    fn keep(stdin: File) -> Result<Self> {
        let kept = tempfile::tempfile().map_err(|error| cannot_keep(&error))?;
        let (reader, writer) = pipe()?;
        dup2_stdin(&reader).context("cannot redirect standard input")?;
        Ok(Self::Kept(start(move || keep(stdin, kept, writer))?))
    }

    /// Gets ready to be read again.
    fn start_again(self) -> Result<()> {
        match self {
            Self::AsItIs => {}
            Self::File(mut file, place) => {
                file.seek(SeekFrom::Start(place)).context("cannot read standard input again")?;
            }
            Self::Kept(keeping) => {
                let (reader, mut writer) = pipe()?;
                // Whoever keeps it notices that it is read no more.
                dup2_stdin(&reader).context("cannot redirect standard input")?;
                let Kept { mut file, rest } = joined(keeping)?;
                file.rewind()?;
                // It ends with its reader, or with this process.
                start(move || {
                    io::copy(&mut file, &mut writer)?;
                    rest.map_or(Ok(0), |mut rest| io::copy(&mut rest, &mut writer))
                })?;
            }
        }
        Ok(())
    }
}

/// Hands on an input and keeps it, until it is over or nobody reads it any more.
fn keep(mut from: File, mut kept: File, mut to: File) -> io::Result<Kept> {
    // Signals are for the others; in the end those that have come meanwhile are left for them, too.
    std::mem::forget(Signals::block()?);
    let mut block = vec![0; PIECE];
    loop {
        let mut ends = [PollFd::new(&from, PollFlags::IN), PollFd::new(&to, PollFlags::empty())];
        match poll(&mut ends, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [some, unread] = ends.map(|end| !end.revents().is_empty());
        if unread {
            break;
        }
        if !some {
            continue;
        }
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(Kept { file: kept, rest: None }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        kept.write_all(&block[..read]).map_err(|error| cannot_keep(&error))?;
        match to.write_all(&block[..read]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
    }
    Ok(Kept { file: kept, rest: Some(from) })
}

fn cannot_keep(error: &io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let message = format!("--check cannot keep standard input in {}: {error}", folder.display());
    io::Error::new(error.kind(), message)
}

/// Reads an output to its end and passes it on, if there is anyone who wants it.
fn pass_on(mut from: File, mut to: Option<File>) -> io::Result<Copied> {
    let mut digests = Digests::default();
    let mut block = vec![0; PIECE];
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(Copied { digests, whole: true }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digests.add(&block[..read]);
        match to.as_mut().map_or(Ok(()), |to| to.write_all(&block[..read])) {
            // Its reader has gone, which is the reader's choice.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Copied { digests, whole: false });
            }
            written => written?,
        }
    }
}

impl Captured {
    /// The run is over: standard output is what it was. All that was written is waited for: what
    /// runs in the background may have more. A signal that arrived meanwhile if one did.
    ///
    /// # Errors
    /// When what was written could not be passed on.
    pub(super) fn finish(self, signals: &Signals) -> Result<Result<Written, i32>> {
        dup2_stdout(&self.stdout).context("cannot restore standard output")?;
        while !self.copy.is_finished() {
            if let Some(signal) = signals.interrupted() {
                return Ok(Err(signal));
            }
            thread::sleep(MOMENT);
        }
        let output = joined(self.copy).context("cannot write standard output")?;
        Ok(Ok(Written { input: self.input, output }))
    }
}

impl Written {
    /// Runs the original, compares, and says what was found.
    ///
    /// # Errors
    /// When the original cannot be run, or its input was not kept.
    pub(super) fn compare(
        self,
        how: &RunHow,
        record: &RunRecord,
        outcome: &mut Outcome,
        signals: &Signals,
    ) -> Result<Exit> {
        if !self.output.whole {
            output::error("nothing was compared, since the reader of the output has gone");
            return Ok(Exit::Pipeline(outcome.exit_code));
        }
        self.input.start_again()?;
        let original = match original(how, &record.command, signals)? {
            Ok(original) => original,
            Err(signal) => return Ok(Exit::Signal(signal)),
        };
        let digests = &self.output.digests;
        let first_difference = digests.first_difference(&original.digests);
        let check = Record {
            same: first_difference.is_none() && original.status == outcome.exit_code,
            first_difference,
            bytes: digests.bytes(),
            original_bytes: original.digests.bytes(),
            exit_code: original.status,
            wall_seconds: original.wall.as_secs_f64(),
        };
        let name = if record.decision.parallel { "parallel" } else { "plain" };
        let mut message = said(&check, outcome, name);
        if !check.same && !original.remarks.is_empty() {
            message = format!("{message}; the original remarked:\n{}", original.remarks);
        }
        output::error(&message);
        let exit = if check.same { outcome.exit_code } else { 1 };
        outcome.check = Some(check);
        Ok(Exit::Pipeline(exit))
    }
}

/// What was found, in a line.
fn said(check: &Record, outcome: &Outcome, name: &str) -> String {
    let (wall, original) = (outcome.wall_seconds, check.wall_seconds);
    let (status, other) = (outcome.exit_code, check.exit_code);
    if check.same {
        return format!(
            "the same: {} bytes, status {status}; {name} {}, original {}, {:.2} times",
            check.bytes,
            seconds(wall),
            seconds(original),
            original / wall.max(1e-6),
        );
    }
    let Some(start) = check.first_difference else {
        return format!(
            "the output is the same, {} bytes, but not the status: {name} {status}, original {other}",
            check.bytes
        );
    };
    let end = check.bytes.max(check.original_bytes).min(start + BLOCK as u64);
    format!(
        "the outputs differ, first between bytes {start} and {end}: {name} {} bytes, status {status}; \
         original {} bytes, status {other} (what prints the time or random numbers is never the same)",
        check.bytes, check.original_bytes
    )
}

/// Lets the shell run the text. A signal that arrived meanwhile if one did.
fn original(how: &RunHow, text: &str, signals: &Signals) -> Result<Result<Original, i32>> {
    let (reader, writer) = pipe()?;
    let mut remarks = tempfile::tempfile().context("there is no room for what it remarks")?;
    let (sender, ended) = mpsc::channel();
    let (started, original) = mpsc::channel();
    // Before the shell: a thread that cannot be started leaves no shell behind.
    start(move || {
        let output = pass_on(reader, None);
        let Ok(pid) = original.recv() else { return };
        // It stays there for signals until it is reaped.
        let _ = sender.send(output.and_then(|output| child::wait_for_end(pid).map(|()| output)));
    })?;
    let begun = Instant::now();
    let pid = {
        let mut command = shell::with_text(&how.shell()?, how, text);
        command.stdin(Stdio::inherit()).stdout(writer).stderr(remarks.try_clone()?);
        let child = spawn::spawn(&mut command, &[1, 2], signals.mask_before(), Signal::TERM)
            .context("cannot start the shell for --check")?;
        Pid::from_child(&child)
    };
    let _ = started.send(pid); // the thread waits for it
    let output = loop {
        match ended.recv_timeout(ASK) {
            Ok(output) => break output.context("cannot read what the original writes")?,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(anyhow!("the original is lost"));
            }
        }
        if let Some(signal) = signals.interrupted() {
            let _ = kill_process(pid, Signal::TERM); // it may have ended
            return Ok(Err(signal));
        }
    };
    let wall = begun.elapsed();
    let status = child::reap(pid).context("cannot wait for the shell")?.status.shell_code();
    remarks.rewind()?;
    let mut said = Vec::new();
    remarks.take(REMARKS).read_to_end(&mut said)?;
    let remarks = String::from_utf8_lossy(&said).trim_end().to_owned();
    Ok(Ok(Original { digests: output.digests, status, wall, remarks }))
}

fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, 1 << 20); // a user's pipes may be many already
    Ok((File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer))))
}

fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).context("--check cannot start a thread")
}

fn joined<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
