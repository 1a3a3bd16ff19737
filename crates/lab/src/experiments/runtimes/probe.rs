//! A probe at work: what it is told, what it answers, and what its processes take.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use contend_sys::{Pid, spawn};

use super::own;
use super::program::{Made, last_words};
use super::table::{Row, Source};
use super::wrong;
use crate::experiment::{Attempt, SubjectError};
use crate::files::unnamed_in;
use crate::limits::Kind;
use crate::tree::{self, Taken};

/// A probe that has been started.
#[derive(Debug)]
pub struct Probe {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it says on standard error.
    complaints: File,
    /// The runtime, and its version.
    pub version: String,
    /// Whether each unit is a process that it starts.
    has_processes: bool,
    _made: Option<Made>,
}

/// What it answers to `park`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parked {
    /// What one unit took to be made, in nanoseconds.
    pub each: f64,
    /// What the runtime says that it uses, in bytes.
    pub runtime: Option<f64>,
}

impl Probe {
    /// Starts the probe of a kind of unit, and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be made or started, or says that it cannot do this.
    pub fn start(row: &Row) -> Result<Self, SubjectError> {
        let (mut command, made) = match row.source {
            Source::Own(_) => {
                let mut command = Command::new("/proc/self/exe");
                command.arg0("contend").arg(own::VERB).arg(row.unit);
                (command, None)
            }
            Source::Program { program: probe, run } => {
                let made = probe.made()?;
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
        let complaints = unnamed_in(&std::env::temp_dir()).attempt("make a file for complaints")?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(complaints.try_clone().attempt("share a file")?);
        let mut child = spawn::spawn_bound(&mut command).attempt("start the probe")?;
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.ok_or_else(|| wrong("it has no output"))?);
        let version = String::new();
        let has_processes = row.task == Some(Kind::Process);
        let mut probe =
            Self { child, commands, answers, complaints, version, has_processes, _made: made };
        probe.version = probe.answer("ready")?;
        Ok(probe)
    }

    /// Makes so many units, of which those that wait for time are due so much later.
    ///
    /// # Errors
    /// When not all of them are there and wait.
    pub fn park(&mut self, n: u64, hold: Duration) -> Result<Parked, SubjectError> {
        let answer = self.ask(&format!("park {n} {}", hold.as_millis()), "parked")?;
        let words: Vec<_> = answer.split_whitespace().collect();
        let [waiting, time, runtime] = words[..] else { return Err(strange(&answer)) };
        let (Ok(waiting), Ok(time)) = (waiting.parse::<u64>(), time.parse::<f64>()) else {
            return Err(strange(&answer));
        };
        if waiting != n {
            return Err(wrong(format!("of {n} units {waiting} were there and waited")));
        }
        self.sees_processes(n)?;
        Ok(Parked { each: time / n.max(1) as f64, runtime: runtime.parse().ok() })
    }

    /// A kernel without `CONFIG_PROC_CHILDREN` names no children, and their memory would be missing.
    fn sees_processes(&self, n: u64) -> Result<(), SubjectError> {
        if !self.has_processes {
            return Ok(());
        }
        let seen = tree::pids(Pid::from_child(&self.child)).len() as u64 - 1;
        if seen >= n {
            return Ok(());
        }
        Err(wrong(format!("of {n} processes {seen} can be seen in /proc/*/task/*/children")))
    }

    /// Lets all units end. What that took for one, in nanoseconds.
    ///
    /// # Errors
    /// When some had ended before, or have not ended now.
    pub fn wake(&mut self, n: u64) -> Result<f64, SubjectError> {
        let answer = self.ask("wake", "woken")?;
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<u64>).collect();
        let [Ok(early), Ok(ended), Ok(time)] = numbers[..] else {
            return Err(strange(&answer));
        };
        if early > 0 {
            return Err(wrong(format!(
                "of {n} units {early} had ended before their memory was read"
            )));
        }
        if ended != n {
            return Err(wrong(format!("of {n} units {ended} have ended")));
        }
        Ok(time as f64 / n.max(1) as f64)
    }

    /// Has it forget its units, and collect garbage. What the runtime then says that it uses, in bytes.
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
            return Err(wrong(reason.trim()));
        }
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<u64>).collect();
        match numbers[..] {
            [Ok(exchanged), Ok(time)] if exchanged == messages => {
                Ok(time as f64 / messages.max(1) as f64)
            }
            _ => Err(strange(&answer)),
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
        const LONGEST: u64 = 4096;
        let mut line = String::new();
        match (&mut self.answers).take(LONGEST).read_line(&mut line) {
            Ok(1..) => match line.trim_end().strip_prefix(word) {
                Some(rest) => Ok(rest.trim_start().to_owned()),
                None => Err(strange(&line)),
            },
            _ => Err(self.how_it_ended()),
        }
    }

    /// After its output has ended.
    fn how_it_ended(&mut self) -> SubjectError {
        self.commands = None;
        let _ = self.child.kill(); // it may only have closed its output
        let status = self.child.wait();
        let mut said = String::new();
        let _ = self.complaints.rewind().and_then(|()| self.complaints.read_to_string(&mut said));
        let said = last_words(&said);
        match status {
            _ if !said.is_empty() => wrong(said),
            Ok(status) => wrong(format!("the probe ended: {status}")),
            Err(error) => wrong(format!("the probe is gone: {error}")),
        }
    }

    /// What it and the processes that it has started take now.
    ///
    /// # Errors
    /// When this user may not see it.
    pub fn taken(&self) -> Result<Taken, SubjectError> {
        tree::taken(Pid::from_child(&self.child))
    }
}

fn strange(answer: &str) -> SubjectError {
    wrong(format!("the probe said: {}", last_words(answer)))
}

impl Drop for Probe {
    /// Ends it, by itself if it will: it may have to end processes that it has started.
    fn drop(&mut self) {
        const STEP: Duration = Duration::from_millis(5);
        const STEPS: usize = 600;
        self.commands = None;
        for _ in 0..STEPS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
