//! A probe at work: what it is told, what it answers, and what its processes take.

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
use crate::support::files::unnamed_in;
use crate::support::limits::Kind;
use crate::support::tree::{self, Taken};

/// A probe that has been started.
#[derive(Debug)]
pub struct Probe {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it says on standard error.
    stderr: File,
    /// The runtime, and its version.
    pub version: String,
    /// How long an answer may take, beside the time that units wait for.
    pub(super) timeout: Duration,
    /// For how long they wait.
    hold: Duration,
    /// Whether each unit is a process that it starts.
    has_processes: bool,
    _build: Option<Build>,
}

/// What it answers to `park`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parked {
    /// What one unit took to be made, in nanoseconds.
    pub each: f64,
    /// What the runtime says that it uses, in bytes.
    pub runtime: Option<f64>,
}

/// How many units had ended before they were woken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Early(u64);

impl Early {
    /// Why there is no figure of so many.
    pub fn of(self, n: u64) -> SubjectError {
        SubjectError::wrong(format!(
            "of {n} units {} had ended before their memory was read",
            self.0
        ))
    }
}

/// Far longer than anything took that came to its end, and shorter than whoever measures waits.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);

impl Probe {
    /// Starts the probe of a kind of unit, and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be made or started, or says that it cannot do this.
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
            BufReader::new(answers.ok_or_else(|| SubjectError::wrong("it has no output"))?);
        let version = String::new();
        let has_processes = row.task == Some(Kind::Process);
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

    /// Makes so many units, of which those that wait for time are due so much later.
    ///
    /// # Errors
    /// When not all of them are there and wait.
    pub fn park(&mut self, n: u64, hold: Duration) -> Result<Parked, SubjectError> {
        self.hold = hold;
        let answer = self.ask(&format!("park {n} {}", hold.as_millis()), "parked")?;
        let words: Vec<_> = answer.split_whitespace().collect();
        let [waiting, time, runtime] = words[..] else { return Err(unexpected(&answer)) };
        let (Ok(waiting), Ok(time)) = (waiting.parse::<u64>(), time.parse::<f64>()) else {
            return Err(unexpected(&answer));
        };
        if waiting != n {
            return Err(SubjectError::wrong(format!(
                "of {n} units {waiting} were there and waited"
            )));
        }
        self.sees_processes(n)?;
        Ok(Parked { each: time / n.max(1) as f64, runtime: runtime.parse().ok() })
    }

    /// A kernel without `CONFIG_PROC_CHILDREN` names no children, and their memory would be
    /// missing.
    fn sees_processes(&self, n: u64) -> Result<(), SubjectError> {
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

    /// Lets all units end. What that took for one, in nanoseconds, if all waited until now.
    ///
    /// # Errors
    /// When some have not ended now.
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

    /// Has it forget its units, and collect garbage. What the runtime then says that it uses, in
    /// bytes.
    ///
    /// # Errors
    /// When it cannot.
    pub fn rest(&mut self) -> Result<Option<f64>, SubjectError> {
        Ok(self.ask("rest", "rested")?.parse().ok())
    }

    /// Exchanges messages with one unit. What one of them took there and back, in nanoseconds.
    ///
    /// # Errors
    /// Why it has none, or that one was not answered.
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

    /// Tells it a line, and waits for its answer, which begins with this word.
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

    /// The next line of its output, or why none comes.
    fn line(&mut self, word: &str) -> Result<String, SubjectError> {
        const LONGEST: usize = 4096;
        let timeout = self.timeout + self.hold;
        let deadline = Instant::now() + timeout;
        let mut line = Vec::new();
        while line.len() < LONGEST {
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

    /// After its output has ended.
    fn how_it_ended(&mut self) -> SubjectError {
        let status = match self.end() {
            Some(Ok(status)) => format!("the probe ended: {status}"),
            Some(Err(error)) => format!("the probe is gone: {error}"),
            None => "the probe has closed its output".to_owned(),
        };
        self.failure(&status)
    }

    /// What has happened, behind what it said of it.
    fn failure(&mut self, what: &str) -> SubjectError {
        let mut said = Vec::new();
        let _ = self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut said));
        match gist(&String::from_utf8_lossy(&said)) {
            said if said.is_empty() => SubjectError::wrong(what),
            said => SubjectError::wrong(format!("{said} ({what})")),
        }
    }

    /// Lets it end by itself, as it may have to end processes that it has started. Its status; none
    /// if it had to be killed.
    fn end(&mut self) -> Option<io::Result<ExitStatus>> {
        const STEP: Duration = Duration::from_millis(5);
        const STEPS: usize = 600;
        self.commands = None;
        for _ in 0..STEPS {
            if let Some(status) = self.child.try_wait().transpose() {
                return Some(status);
            }
            std::thread::sleep(STEP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }

    /// What it and the processes that it has started take now.
    ///
    /// # Errors
    /// When this user may not see it.
    pub fn taken(&self) -> Result<Taken, SubjectError> {
        tree::taken(Pid::from_child(&self.child))
    }
}

/// Whether there is something to read, or its end, by then.
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
    SubjectError::wrong(format!("the probe said: {}", gist(answer)))
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
