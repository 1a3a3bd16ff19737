//! A running probe: its commands, its answers, and the memory of its processes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use contend_sys::{Pid, procfs, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::builtin;
use super::program::{Build, summarize_output};
use super::table::{Row, Source};
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::support::limits::UnitKind;
use crate::support::process_tree::{self, MemoryUse};
use crate::support::unnamed_file::unnamed_in;

/// A running probe, which receives commands on standard input and answers on standard output.
#[derive(Debug)]
pub struct Probe {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// File that receives the probe's standard error.
    stderr: File,
    /// Name and version of the runtime.
    pub version: String,
    /// Time limit for an answer, apart from `hold`, which is added to it.
    pub(super) timeout: Duration,
    /// Time from the last command `park` until the timers of its units are due.
    hold: Duration,
    /// Whether each unit is a child process.
    has_processes: bool,
    _build: Option<Build>,
}

/// The probe's answer to the command `park`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParkAnswer {
    /// Time until all units wait, divided by their number, in nanoseconds.
    pub ns_per_unit: f64,
    /// Memory that the runtime reports to be in use while the units wait, in bytes, or `None` if it
    /// reports none.
    pub runtime_bytes: Option<f64>,
}

/// Number of units that had ended before they were woken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlyEnds(u64);

impl EarlyEnds {
    /// Returns the error for a case with `n` units, of which this many ended early.
    pub fn of(self, n: u64) -> SubjectError {
        SubjectError::unexpected(format!(
            "of {n} units {} had ended before their memory was read",
            self.0
        ))
    }
}

/// Default time limit for an answer: far longer than any takes, and shorter than the timeout of the
/// case.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);

impl Probe {
    /// Starts the probe for a kind of unit, and waits until the probe is ready.
    ///
    /// # Errors
    /// Returns an error if the probe cannot be built or started, does not support the unit, or is
    /// not ready in time.
    pub fn start(row: &Row) -> Result<Self, SubjectError> {
        let (mut command, made) = match row.source {
            Source::BuiltIn(_) => {
                let mut command = Command::new("/proc/self/exe");
                command.arg0("contend").arg(builtin::PROBE_VERB).arg(row.unit);
                (command, None)
            }
            Source::Program { program: probe, run } => {
                let made = probe.build()?;
                let program = match run[0].strip_prefix("./") {
                    Some(name) => made.folder.join(name),
                    None => run[0].into(),
                };
                let argument = if row.argument.is_empty() { row.unit } else { row.argument };
                let mut command = Command::new(program);
                command.args(&run[1..]).arg(argument).current_dir(&made.folder);
                command.envs(probe.environment.iter().copied());
                (command, Some(made))
            }
        };
        let stderr = unnamed_in(&std::env::temp_dir()).context("make a file for stderr")?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(stderr.try_clone().context("share a file")?);
        let mut child = spawn::spawn_bound(&mut command).context("start the probe")?;
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(
            answers.ok_or_else(|| SubjectError::unexpected("the probe has no output"))?,
        );
        let version = String::new();
        let has_processes = row.task == Some(UnitKind::Process);
        let mut probe = Self {
            child,
            commands,
            answers,
            stderr,
            version,
            timeout: ANSWER_TIMEOUT,
            hold: Duration::ZERO,
            has_processes,
            _build: made,
        };
        probe.version = probe.answer("ready")?;
        Ok(probe)
    }

    /// Has the probe create `n` units, and waits until all of them wait. Timers of units are due
    /// after `hold`, rounded down to milliseconds.
    ///
    /// # Errors
    /// Returns an error if the probe does not answer as expected, the number of waiting units is
    /// not `n`, or the units are processes that are not visible.
    pub fn park(&mut self, n: u64, hold: Duration) -> Result<ParkAnswer, SubjectError> {
        self.hold = hold;
        let answer = self.ask(&format!("park {n} {}", hold.as_millis()), "parked")?;
        let words: Vec<_> = answer.split_whitespace().collect();
        let [waiting, time, runtime] = words[..] else { return Err(unexpected(&answer)) };
        let (Ok(waiting), Ok(time)) = (waiting.parse::<u64>(), time.parse::<f64>()) else {
            return Err(unexpected(&answer));
        };
        if waiting != n {
            return Err(SubjectError::unexpected(format!(
                "of {n} units {waiting} existed and waited"
            )));
        }
        self.check_processes(n)?;
        Ok(ParkAnswer { ns_per_unit: time / n.max(1) as f64, runtime_bytes: runtime.parse().ok() })
    }

    /// Returns an error if the units are processes and fewer than `n` of them are visible. A kernel
    /// without `CONFIG_PROC_CHILDREN` lists no children, so their memory would be missing.
    fn check_processes(&self, n: u64) -> Result<(), SubjectError> {
        if !self.has_processes {
            return Ok(());
        }
        let seen = procfs::with_descendants(Pid::from_child(&self.child)).len() as u64 - 1;
        if seen >= n {
            return Ok(());
        }
        Err(SubjectError::unexpected(format!(
            "of {n} processes {seen} can be seen in /proc/*/task/*/children"
        )))
    }

    /// Wakes the `n` units of the last `park` and waits for them to end. Returns the time taken
    /// divided by `n`, in nanoseconds, or the number of units that had ended before they were
    /// woken, if any.
    ///
    /// # Errors
    /// Returns an error if the probe does not answer as expected, or the number of ended units is
    /// not `n`.
    pub fn wake(&mut self, n: u64) -> Result<Result<f64, EarlyEnds>, SubjectError> {
        let answer = self.ask("wake", "woken")?;
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<u64>).collect();
        let [Ok(early), Ok(ended), Ok(time)] = numbers[..] else {
            return Err(unexpected(&answer));
        };
        if early > 0 {
            return Ok(Err(EarlyEnds(early)));
        }
        if ended != n {
            return Err(SubjectError::unexpected(format!("of {n} units {ended} have ended")));
        }
        Ok(Ok(time as f64 / n.max(1) as f64))
    }

    /// Has the probe free what belonged to ended units and collect garbage. Returns the memory that
    /// the runtime then reports to be in use, in bytes, or `None` if it reports none.
    ///
    /// # Errors
    /// Returns an error if the probe does not answer as expected.
    pub fn rest(&mut self) -> Result<Option<f64>, SubjectError> {
        Ok(self.ask("rest", "rested")?.parse().ok())
    }

    /// Has the probe exchange `messages` messages with one unit. Returns the mean round-trip time
    /// in nanoseconds.
    ///
    /// # Errors
    /// Returns an error if the unit takes no messages, a reply is missing or wrong, or the probe
    /// does not answer as expected.
    pub fn round_trips(&mut self, messages: u64) -> Result<f64, SubjectError> {
        let answer = self.ask(&format!("trips {messages}"), "trips")?;
        if let Some(reason) = answer.strip_prefix("none") {
            return Err(SubjectError::unexpected(reason.trim()));
        }
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<u64>).collect();
        match numbers[..] {
            [Ok(exchanged), Ok(time)] if exchanged == messages => {
                Ok(time as f64 / messages.max(1) as f64)
            }
            _ => Err(unexpected(&answer)),
        }
    }

    /// Sends the command `line`, waits for an answer that begins with `word`, and returns the rest
    /// of the answer.
    ///
    /// # Errors
    /// Returns an error if the probe has ended, gives another answer, or gives none in time. In the
    /// last case, the probe is killed.
    pub fn ask(&mut self, line: &str, word: &str) -> Result<String, SubjectError> {
        let told = self.commands.as_mut().map(|commands| writeln!(commands, "{line}"));
        if !matches!(told, Some(Ok(()))) {
            return Err(self.exit_error());
        }
        self.answer(word)
    }

    fn answer(&mut self, word: &str) -> Result<String, SubjectError> {
        let line = self.line(word)?;
        match line.trim_end().strip_prefix(word) {
            Some(rest) => Ok(rest.trim_start().to_owned()),
            None => Err(unexpected(&line)),
        }
    }

    /// Reads the next line of the probe's output, or the first 4 KiB of a longer line, and returns
    /// it without the line break. Kills the probe if the line is not complete in time; the error
    /// then names the expected `word`.
    fn line(&mut self, word: &str) -> Result<String, SubjectError> {
        const MAX_LINE_BYTES: usize = 4096;
        let timeout = self.timeout + self.hold;
        let deadline = Instant::now() + timeout;
        let mut line = Vec::new();
        while line.len() < MAX_LINE_BYTES {
            if self.answers.buffer().is_empty() && !is_readable_by(self.answers.get_ref(), deadline)
            {
                let seconds = timeout.as_secs_f64();
                let _ = self.child.kill();
                return Err(self.failure(&format!("no line `{word}` within {seconds} s")));
            }
            let mut byte = [0];
            match self.answers.read_exact(&mut byte) {
                Ok(()) if byte == *b"\n" => break,
                Ok(()) => line.extend(byte),
                Err(_) => return Err(self.exit_error()),
            }
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Ends the probe after its input or output was closed. Returns an error with its exit status,
    /// or without one if the probe had to be killed.
    fn exit_error(&mut self) -> SubjectError {
        let status = match self.end() {
            Some(Ok(status)) => format!("the probe ended: {status}"),
            Some(Err(error)) => format!("the probe is gone: {error}"),
            None => "the probe has closed its output".to_owned(),
        };
        self.failure(&status)
    }

    /// Returns an error with the message `what`, preceded by a summary of the probe's standard
    /// error, if any.
    fn failure(&mut self, what: &str) -> SubjectError {
        let mut said = Vec::new();
        let _ = self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut said));
        match summarize_output(&String::from_utf8_lossy(&said)) {
            said if said.is_empty() => SubjectError::unexpected(what),
            said => SubjectError::unexpected(format!("{said} ({what})")),
        }
    }

    /// Closes the probe's input and waits up to three seconds for the probe to exit, since it may
    /// have to end child processes. Returns its status, or `None` if it had to be killed.
    fn end(&mut self) -> Option<io::Result<ExitStatus>> {
        const POLL_INTERVAL: Duration = Duration::from_millis(5);
        const MAX_POLLS: usize = 600;
        self.commands = None;
        for _ in 0..MAX_POLLS {
            if let Some(status) = self.child.try_wait().transpose() {
                return Some(status);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }

    /// Reads the memory of the probe and its descendants.
    ///
    /// # Errors
    /// Returns an error if the memory of one of them cannot be read.
    pub fn memory_use(&self) -> Result<MemoryUse, SubjectError> {
        process_tree::memory_use(Pid::from_child(&self.child))
    }
}

/// Waits until `output` can be read without blocking, because it has data, has ended or has failed.
/// Returns `false` if that does not happen by `deadline`.
fn is_readable_by(output: &ChildStdout, deadline: Instant) -> bool {
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(output, PollFlags::IN)], left.as_ref()) {
            Err(Errno::INTR) => {}
            Ok(0) => return false,
            _ => return true,
        }
    }
}

fn unexpected(answer: &str) -> SubjectError {
    SubjectError::unexpected(format!(
        "unexpected answer of the probe: {}",
        summarize_output(answer)
    ))
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
