//! What is counted while a plan is carried out.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use contend_sys::Signal;
use contend_sys::child::ExitStatus;

use super::ended::{Cost, Ended};
use super::fallback::Fallback;
use super::intake::Intake;
use crate::plan::ir::{Command, Group, StatusRule};

/// Figures of all stages.
#[derive(Debug, Default)]
pub struct Tally {
    stages: Mutex<BTreeMap<usize, StageTally>>,
    missing: Mutex<Vec<String>>,
    input: Intake,
    before_output: Hook,
    notes: Mutex<Vec<String>>,
}

/// What is done once, before anything is written.
#[derive(Default)]
struct Hook(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.get().is_some()).finish()
    }
}

/// Figures of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTally {
    /// How it ended, as a shell sees it: of several parts together.
    pub status: i32,
    /// CPU time of its commands.
    pub cpu: Duration,
    /// How often its commands were started.
    pub starts: u64,
    has_ended: bool,
}

impl Tally {
    /// Figures by stage, of those that were run.
    pub fn stages(&self) -> BTreeMap<usize, StageTally> {
        self.lock().clone()
    }

    /// Does this each time before something is written to standard output here. What commands write
    /// to it themselves is not noticed.
    pub fn before_output(&self, hook: impl Fn() + Send + Sync + 'static) {
        let _ = self.before_output.0.set(Box::new(hook)); // the first one stays
    }

    /// Something is about to be written to standard output.
    pub(super) fn writes(&self) {
        if let Some(hook) = self.before_output.0.get() {
            hook();
        }
    }

    /// Bytes of the input of the first group that have been taken so far.
    pub fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    /// The size of that input in bytes, if it is known.
    pub fn size(&self) -> Option<u64> {
        self.input.size()
    }

    /// How many parts of it have been taken.
    pub fn chunks(&self) -> u64 {
        self.input.chunks()
    }

    /// Why groups were run in one piece after all, in sentences for people.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A group is run in one piece, for this reason.
    pub(super) fn note_fallback(&self, group: &Group, why: &Fallback) {
        let stages = || group.serial.iter().map(|command| command.stage + 1);
        let stages = match (stages().min(), stages().max()) {
            (Some(first), Some(last)) if first < last => format!("stages {first} to {last}"),
            (first, _) => format!("stage {}", first.unwrap_or(1)),
        };
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(format!("{stages} in one piece: {why}"));
    }

    /// What is taken of the input of the first group is counted here.
    pub(super) fn input(&self) -> &Intake {
        &self.input
    }

    /// Commands have ended.
    pub(super) fn ended(&self, commands: &[Command], ended: &Ended) {
        for (command, (status, cost)) in
            commands.iter().zip(ended.statuses.iter().zip(&ended.costs))
        {
            self.used(command.stage, *cost);
            self.status(command, *status);
        }
    }

    /// Commands over a part have ended. If not well they run over it again, and how they end then
    /// counts.
    pub(super) fn ended_over_chunk(&self, commands: &[Command], ended: &Ended) {
        if ended.succeeded {
            self.ended(commands, ended);
        } else {
            for (command, cost) in commands.iter().zip(&ended.costs) {
                self.used(command.stage, *cost);
            }
        }
    }

    /// Adds what a command cost to the figures of its stage.
    pub(super) fn used(&self, stage: usize, cost: Cost) {
        let mut stages = self.lock();
        let stage = stages.entry(stage).or_default();
        stage.cpu += cost.cpu;
        stage.starts += u64::from(cost.has_process);
    }

    /// A command has ended. One that looks for something has found it if any of them has.
    pub(super) fn status(&self, command: &Command, status: ExitStatus) {
        let code = status.shell_code();
        let mut stages = self.lock();
        let stage = stages.entry(command.stage).or_default();
        let first = !stage.has_ended;
        stage.has_ended = true;
        stage.status = match (command.status, stage.status, code) {
            _ if first => code,
            (StatusRule::Matches, 0 | 1, 0 | 1) => stage.status.min(code),
            (_, before, 0) => before,
            (_, _, code) => code,
        };
    }

    /// A command cannot be run, since a file is not there that its input should be.
    pub(super) fn missing(&self, command: &Command, file: &str, error: &io::Error) {
        self.status(command, ExitStatus::Exited(1));
        let why = match error.kind() {
            io::ErrorKind::NotFound => "No such file or directory".to_owned(),
            io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
            kind => kind.to_string(),
        };
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.push(format!("{file}: {why}"));
    }

    /// Files that were not there, with the reasons.
    pub fn missing_files(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a command would have done is done, without it.
    pub(super) fn done_here(&self, command: &Command) {
        self.status(command, ExitStatus::Exited(0));
    }

    /// Whoever read what the group wrote has gone, which ends the last stage as it would any
    /// writer to a pipe.
    pub(super) fn cut_off(&self, group: &Group) {
        let Some(command) = group.serial.last() else { return };
        let mut stages = self.lock();
        let stage = stages.entry(command.stage).or_default();
        stage.has_ended = true;
        stage.status = ExitStatus::Signaled(Signal::PIPE.as_raw()).shell_code();
    }

    /// The stages of a group will all run once more.
    pub(super) fn start_again(&self, group: &Group) {
        let mut stages = self.lock();
        for command in &group.serial {
            if let Some(stage) = stages.get_mut(&command.stage) {
                (stage.status, stage.has_ended) = (0, false);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, StageTally>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
