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
use super::program::{Build, gist};
use super::table::{Row, Source};
use crate::engine::experiment::{Attempt, SubjectError};
use crate::support::limits::UnitKind;
use crate::support::process_tree::{self, MemoryUse};
use crate::support::unnamed_file::unnamed_in;

/// A running probe.
#[derive(Debug)]
pub struct Probe {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Its standard error.
    stderr: File,
    /// The runtime and its version.
    pub version: String,
    /// Timeout of an answer, in addition to `hold`.
    pub(super) timeout: Duration,
    /// How long units with timers wait.
    hold: Duration,
    /// Whether each unit is a child process.
    has_processes: bool,
    _build: Option<Build>,
}

/// The answer to `park`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parked {
    /// Time to create one unit, in nanoseconds.
    pub each: f64,
    /// Memory in use as the runtime reports it, in bytes.
    pub runtime: Option<f64>,
}

/// The number of units that had ended before they were woken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Early(u64);

impl Early {
    /// Returns the error for a case with `n` units.
    pub fn of(self, n: u64) -> SubjectError {
        SubjectError::wrong(format!(
            "of {n} units {} had ended before their memory was read",
            self.0
        ))
    }
}

/// Timeout of an answer: far longer than any takes, and shorter than the timeout of the case.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);

impl Probe {
    /// Starts the probe of a kind of unit, and waits until it is ready.
    ///
    /// # Errors
    /// Returns an error if it cannot be built or started, or does not support this unit.
    pub fn start(row: &Row) -> Result<Self, SubjectError> {
        let (mut command, made) = match row.source {
            Source::BuiltIn(_) => {
                let mut command = Command::new("/proc/self/exe");
                command.arg0("contend").arg(builtin::VERB).arg(row.unit);
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
        let stderr = unnamed_in(&std::env::temp_dir()).attempt("make a file for stderr")?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(stderr.try_clone().attempt("share a file")?);
        let mut child = spawn::spawn_bound(&mut command).attempt("start the probe")?;
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        let answers =
            BufReader::new(answers.ok_or_else(|| SubjectError::wrong("the probe has no output"))?);
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

    /// Creates `n` units. Timers are due after `hold`.
    ///
    /// # Errors
    /// Returns an error if not all of them exist and wait.
    pub fn park(&mut self, n: u64, hold: Duration) -> Result<Parked, SubjectError> {
        self.hold = hold;
        let answer = self.ask(&format!("park {n} {}", hold.as_millis()), "parked")?;
        let words: Vec<_> = answer.split_whitespace().collect();
        let [waiting, time, runtime] = words[..] else { return Err(unexpected(&answer)) };
        let (Ok(waiting), Ok(time)) = (waiting.parse::<u64>(), time.parse::<f64>()) else {
            return Err(unexpected(&answer));
        };
        if waiting != n {
            return Err(SubjectError::wrong(format!("of {n} units {waiting} existed and waited")));
        }
        self.check_processes(n)?;
        Ok(Parked { each: time / n.max(1) as f64, runtime: runtime.parse().ok() })
    }

    /// Checks that the units are visible if they are processes: a kernel without
    /// `CONFIG_PROC_CHILDREN` lists no children, whose memory would be missing.
    fn check_processes(&self, n: u64) -> Result<(), SubjectError> {
        if !self.has_processes {
            return Ok(());
        }
        let seen = procfs::with_descendants(Pid::from_child(&self.child)).len() as u64 - 1;
        if seen >= n {
            return Ok(());
        }
        Err(SubjectError::wrong(format!(
            "of {n} processes {seen} can be seen in /proc/*/task/*/children"
        )))
    }

    /// Wakes all units, and waits for their end. Returns the time for one in nanoseconds, or how
    /// many had ended before.
    ///
    /// # Errors
    /// Returns an error if some have not ended.
    pub fn wake(&mut self, n: u64) -> Result<Result<f64, Early>, SubjectError> {
        let answer = self.ask("wake", "woken")?;
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<u64>).collect();
        let [Ok(early), Ok(ended), Ok(time)] = numbers[..] else {
            return Err(unexpected(&answer));
        };
        if early > 0 {
            return Ok(Err(Early(early)));
        }
        if ended != n {
            return Err(SubjectError::wrong(format!("of {n} units {ended} have ended")));
        }
        Ok(Ok(time as f64 / n.max(1) as f64))
    }

    /// Has it free its units and collect garbage. Returns the memory in use as the runtime reports
    /// it, in bytes.
    ///
    /// # Errors
    /// Returns an error if the probe fails.
    pub fn rest(&mut self) -> Result<Option<f64>, SubjectError> {
        Ok(self.ask("rest", "rested")?.parse().ok())
    }

    /// Exchanges messages with one unit. Returns the round-trip time in nanoseconds.
    ///
    /// # Errors
    /// The reason why units take no messages, or that an answer was missing or wrong.
    pub fn trips(&mut self, messages: u64) -> Result<f64, SubjectError> {
        let answer = self.ask(&format!("trips {messages}"), "trips")?;
        if let Some(reason) = answer.strip_prefix("none") {
            return Err(SubjectError::wrong(reason.trim()));
        }
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<u64>).collect();
        match numbers[..] {
            [Ok(exchanged), Ok(time)] if exchanged == messages => {
                Ok(time as f64 / messages.max(1) as f64)
            }
            _ => Err(unexpected(&answer)),
        }
    }

    /// Sends a command, and waits for the answer, which begins with this word.
    pub fn ask(&mut self, line: &str, word: &str) -> Result<String, SubjectError> {
        let told = self.commands.as_mut().map(|commands| writeln!(commands, "{line}"));
        if !matches!(told, Some(Ok(()))) {
            return Err(self.how_it_ended());
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

    /// Reads the next line of its output.
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
                Err(_) => return Err(self.how_it_ended()),
            }
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Returns the error for a probe whose output has ended.
    fn how_it_ended(&mut self) -> SubjectError {
        let status = match self.end() {
            Some(Ok(status)) => format!("the probe ended: {status}"),
            Some(Err(error)) => format!("the probe is gone: {error}"),
            None => "the probe has closed its output".to_owned(),
        };
        self.failure(&status)
    }

    /// Returns the error for what happened, after what the probe wrote to standard error.
    fn failure(&mut self, what: &str) -> SubjectError {
        let mut said = Vec::new();
        let _ = self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut said));
        match gist(&String::from_utf8_lossy(&said)) {
            said if said.is_empty() => SubjectError::wrong(what),
            said => SubjectError::wrong(format!("{said} ({what})")),
        }
    }

    /// Waits for its end, as it may have to end child processes. Returns its status, or `None` if
    /// it had to be killed.
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
    /// Returns an error if this user may not read it.
    pub fn memory_use(&self) -> Result<MemoryUse, SubjectError> {
        process_tree::memory_use(Pid::from_child(&self.child))
    }
}

/// Returns whether there is input, or the end of it, before the deadline.
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
    SubjectError::wrong(format!("unexpected answer of the probe: {}", gist(answer)))
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
