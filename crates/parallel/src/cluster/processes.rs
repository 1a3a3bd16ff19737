//! The engine that starts attempts as processes on this machine.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::PathBuf;

use contend_sys::Pid;

use super::engine::{Engine, EngineError, State, attempt};
use super::work::Work;
use crate::execute::Launcher;
use crate::plan::ir::{Command, StatusRule};

/// Hidden verb that runs an attempt at a part.
pub const PART_VERB: &str = "part";

/// The resources of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// The number of chunks that it processes at the same time.
    pub jobs: usize,
    /// The memory that it may use for data, in bytes.
    pub memory: u64,
}

/// An engine that starts attempts as processes on this machine. Like a cluster, it shares only files with them.
#[derive(Debug)]
pub struct Processes<'a> {
    launcher: &'a Launcher,
    /// The path of contend.
    program: PathBuf,
    /// The number of attempts that run at the same time; not 0.
    slots: usize,
    share: Share,
    waiting: VecDeque<Command>,
    running: Vec<Pid>,
    logs: VecDeque<PathBuf>,
}

impl<'a> Processes<'a> {
    /// Creates an engine that starts the program contend, at most `slots` times at once.
    pub fn new(launcher: &'a Launcher, program: PathBuf, slots: usize, share: Share) -> Self {
        let (waiting, running, logs) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Self { launcher, program, slots: slots.max(1), share, waiting, running, logs }
    }

    fn start_waiting(&mut self) -> Result<(), EngineError> {
        while self.running.len() < self.slots
            && let (Some(command), Some(log)) = (self.waiting.pop_front(), self.logs.pop_front())
        {
            let (null, log) = (File::open("/dev/null")?, File::create(log)?);
            let output = File::create("/dev/null")?;
            let pid =
                self.launcher.start_helper(&command, [Some(&null), Some(&output), Some(&log)]);
            let cannot = |source| EngineError::Start { program: command.program.clone(), source };
            self.running.push(pid.map_err(cannot)?);
        }
        Ok(())
    }
}

impl Engine for Processes<'_> {
    fn prepare(&self, work: &Work, _: &[usize], _: u32) -> Result<Vec<String>, EngineError> {
        let words = ["run".to_owned(), "--resume".to_owned(), work.path().display().to_string()];
        Ok(std::iter::once(self.program.display().to_string()).chain(words).collect())
    }

    fn submit(&mut self, work: &Work, parts: &[usize], batch: u32) -> Result<(), EngineError> {
        let program = self.program.display().to_string();
        let job = work.job_file().display().to_string();
        let Share { jobs, memory } = self.share;
        let mut place = Vec::new();
        if work.store().is_some() {
            let scratch = work.scratch();
            fs::create_dir_all(&scratch)?;
            place = vec!["--scratch".to_owned(), scratch.display().to_string()];
        }
        for &part in parts {
            let attempt = attempt(batch, 0);
            let words = format!(
                "{PART_VERB} --part {part} --attempt {attempt} --jobs {jobs} --memory {memory} --plan"
            );
            let words = words.split(' ').map(str::to_owned).chain([job.clone()]);
            let words = words.chain(place.iter().cloned());
            self.waiting
                .push_back(command(std::iter::once(program.clone()).chain(words).collect()));
            self.logs.push_back(work.log_file(part, attempt));
        }
        self.start_waiting()
    }

    fn poll(&mut self) -> Result<State, EngineError> {
        let mut index = 0;
        while let Some(&pid) = self.running.get(index) {
            match self.launcher.try_wait(pid)? {
                Some(_) => drop(self.running.swap_remove(index)),
                None => index += 1,
            }
        }
        self.start_waiting()?;
        Ok(if self.running.is_empty() { State::Over(String::new()) } else { State::Running })
    }

    fn waiting(&self, _: bool) -> Option<String> {
        None // processes start at once
    }

    fn cancel(&mut self) {
        self.waiting.clear();
        self.logs.clear();
        self.launcher.end_helpers(&std::mem::take(&mut self.running));
    }
}

/// Returns a command of an engine, which belongs to no stage, of its words.
pub(super) fn command(words: Vec<String>) -> Command {
    let mut arguments = words;
    let program = arguments.drain(..1.min(arguments.len())).collect();
    Command {
        stage: 0,
        variables: Vec::new(),
        program,
        arguments,
        status: StatusRule::Zero,
        input: None,
        sorts: false,
        ascii_in_c: false,
        operator: None,
    }
}
