//! What is counted while a plan is carried out.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contend_record::run::{Command, Group, StatusRule};
use contend_sys::Signal;
use contend_sys::child::ExitStatus;

use super::instance::Ended;

/// Figures of all stages.
#[derive(Debug, Default)]
pub struct Tally {
    stages: Mutex<BTreeMap<usize, StageTally>>,
    instances: AtomicU64,
    missing: Mutex<Vec<String>>,
    plain: Mutex<Vec<String>>,
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

    /// Commands over a part have ended.
    pub(super) fn ended(&self, commands: &[Command], ended: &Ended) {
        self.instances.fetch_add(1, Ordering::Relaxed);
        for (command, (status, cpu)) in commands.iter().zip(ended.statuses.iter().zip(&ended.cpu)) {
            self.used(command.stage, *cpu);
            self.status(command, *status);
        }
    }

    /// A command has used CPU time.
    pub(super) fn used(&self, stage: usize, cpu: Duration) {
        let mut stages = self.lock();
        let stage = stages.entry(stage).or_default();
        stage.cpu += cpu;
        stage.starts += 1;
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

    /// A group runs plain, since parts would not be faster.
    pub(super) fn left_plain(&self, group: &Group) {
        let stages: Vec<String> =
            group.serial.iter().map(|command| (command.stage + 1).to_string()).collect();
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        plain.push(format!("stages {}: parts would not be faster", stages.join(", ")));
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
