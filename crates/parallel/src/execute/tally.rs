//! Counters of the execution of a plan.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use contend_record::run::{DividedOutcome, Division};
use contend_sys::Signal;
use contend_sys::child::ExitStatus;

use super::ended::{Cost, Ended};
use super::fallback::Fallback;
use super::intake::Intake;
use super::work::WorkLog;
use crate::plan::ir::{Command, Group, StatusRule};

/// Exit codes and costs of all stages, and counters of the input.
#[derive(Debug, Default)]
pub struct Tally {
    stages: Mutex<BTreeMap<usize, StageTally>>,
    missing: Mutex<Vec<String>>,
    input: Intake,
    before_output: Hook,
    notes: Mutex<Vec<String>>,
    refusal: Mutex<Option<String>>,
    delay: Mutex<Option<String>>,
    divided: Mutex<Option<(Division, DividedOutcome)>>,
    work: WorkLog,
}

/// A callback that runs before output is written.
#[derive(Default)]
struct Hook(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.get().is_some()).finish()
    }
}

/// The exit code and costs of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTally {
    /// The exit code as a shell reports it, combined over all chunks; 0 until a command has ended.
    pub status: i32,
    /// CPU time of the stage's commands that have ended.
    pub cpu: Duration,
    /// Number of processes started for the stage, counted when they end.
    pub starts: u64,
    has_ended: bool,
}

impl StageTally {
    /// Returns the tally of a stage that has ended.
    pub(crate) fn ended(status: i32, cpu: Duration, starts: u64) -> Self {
        Self { status, cpu, starts, has_ended: true }
    }
}

impl Tally {
    /// Returns the exit codes and costs of the stages that have run, by index.
    pub fn stages(&self) -> BTreeMap<usize, StageTally> {
        self.lock().clone()
    }

    /// Sets a callback that runs before each write of contend to standard output, and before a
    /// group hands standard output over to its commands. Only the first callback counts. Writes of
    /// the commands themselves are not observed.
    pub fn before_output(&self, hook: impl Fn() + Send + Sync + 'static) {
        let _ = self.before_output.0.set(Box::new(hook)); // the first callback stays
    }

    /// Runs the callback, if any. Must be called before each write to standard output.
    pub(super) fn writes(&self) {
        if let Some(hook) = self.before_output.0.get() {
            hook();
        }
    }

    /// Returns how many bytes of the first group's input have been handed out.
    pub fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    /// Returns the size of the first group's input in bytes, or `None` if it is unknown or 0.
    pub fn size(&self) -> Option<u64> {
        self.input.size()
    }

    /// Returns how many chunks of the first group's input have been handed out.
    pub fn chunks(&self) -> u64 {
        self.input.chunks()
    }

    /// Returns why groups fell back to one run over their whole input, as sentences for users.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that a group runs once over its whole input, for the given reason.
    pub(super) fn note_fallback(&self, group: &Group, why: &Fallback) {
        let stages = || group.serial.iter().map(|command| command.stage + 1);
        let stages = match (stages().min(), stages().max()) {
            (Some(first), Some(last)) if first < last => format!("stages {first} to {last}"),
            (first, _) => format!("stage {}", first.unwrap_or(1)),
        };
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(format!("{stages} ran once over the whole input: {why}"));
    }

    /// Returns why a plan that should have run on several machines ran on this one; `None` if it did not.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes how the input has been divided. Nothing has become of the parts yet.
    pub(crate) fn set_division(&self, division: Division) {
        *self.divided() = Some((division, DividedOutcome::default()));
    }

    /// Changes what has become of the parts, if the input has been divided.
    pub(crate) fn change_divided(&self, change: impl FnOnce(&mut DividedOutcome)) {
        if let Some((_, divided)) = &mut *self.divided() {
            change(divided);
        }
    }

    /// Returns how the input has been divided, and what has become of the parts; `None` if it has not been divided.
    pub fn division(&self) -> Option<(Division, DividedOutcome)> {
        self.divided().clone()
    }

    fn divided(&self) -> MutexGuard<'_, Option<(Division, DividedOutcome)>> {
        self.divided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the run waits, with the reason. It does not concern the figures.
    pub(crate) fn note_delay(&self, why: String) {
        *self.delay.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Returns why the run waits, once for each note.
    pub(crate) fn take_delay(&self) -> Option<String> {
        self.delay.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records why a plan that should run on several machines runs on this one.
    pub(crate) fn note_refusal(&self, why: String) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Returns the log of the workers' work.
    pub fn work(&self) -> &WorkLog {
        &self.work
    }

    /// Returns the counters for the input of the first group.
    pub(crate) fn input(&self) -> &Intake {
        &self.input
    }

    /// Records the exit statuses and costs of commands.
    pub(super) fn ended(&self, commands: &[Command], ended: &Ended) {
        for (command, (status, cost)) in
            commands.iter().zip(ended.statuses.iter().zip(&ended.costs))
        {
            self.used(command.stage, *cost);
            self.status(command, *status);
        }
    }

    /// Records how commands over a chunk ended. If they failed, only their costs count, because the
    /// input of the chunk is processed again.
    pub(super) fn ended_over_chunk(&self, commands: &[Command], ended: &Ended) {
        if ended.succeeded {
            self.ended(commands, ended);
        } else {
            for (command, cost) in commands.iter().zip(&ended.costs) {
                self.used(command.stage, *cost);
            }
        }
    }

    /// Adds the cost of a command to the stage with index `stage`.
    pub(super) fn used(&self, stage: usize, cost: Cost) {
        let mut stages = self.lock();
        let stage = stages.entry(stage).or_default();
        stage.cpu += cost.cpu;
        stage.starts += u64::from(cost.has_process);
    }

    /// Records the exit status of a command. A command such as `grep` succeeds if it finds a match
    /// in any chunk; for other commands, the last exit code other than 0 counts.
    pub(super) fn status(&self, command: &Command, status: ExitStatus) {
        self.code(command, status.shell_code());
    }

    /// Adds what the stages of a group took over a part of `bytes` bytes that ran elsewhere, and how they ended.
    /// `of_part` has the tallies of the part, by the index of the stage.
    pub(crate) fn part_ended(
        &self,
        group: &Group,
        of_part: &BTreeMap<usize, StageTally>,
        bytes: u64,
    ) {
        self.input.count_chunk();
        self.input.add_bytes(bytes);
        for command in &group.serial {
            let Some(part) = of_part.get(&command.stage) else { continue };
            self.code(command, part.status);
        }
        self.used_elsewhere(group, of_part);
    }

    /// Adds what the stages of a group took on another machine, by the index of the stage.
    pub(crate) fn used_elsewhere(&self, group: &Group, taken: &BTreeMap<usize, StageTally>) {
        let mut stages = self.lock();
        for command in &group.serial {
            let Some(taken) = taken.get(&command.stage) else { continue };
            let stage = stages.entry(command.stage).or_default();
            stage.cpu += taken.cpu;
            stage.starts += taken.starts;
        }
    }

    /// Records the exit code of a command, as a shell reports it; see [`Self::status`].
    fn code(&self, command: &Command, code: i32) {
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

    /// Records that a command cannot run, with exit code 1, because its input file cannot be
    /// opened.
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

    /// Returns the names of the input files that could not be opened, each with the reason.
    pub fn missing_files(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records success of a command that contend has replaced.
    pub(super) fn done_here(&self, command: &Command) {
        self.status(command, ExitStatus::Exited(0));
    }

    /// Records that the reader has closed the group's output, which ends the last stage by SIGPIPE.
    pub(super) fn cut_off(&self, group: &Group) {
        let Some(command) = group.serial.last() else { return };
        let mut stages = self.lock();
        let stage = stages.entry(command.stage).or_default();
        stage.has_ended = true;
        stage.status = ExitStatus::Signaled(Signal::PIPE.as_raw()).shell_code();
    }

    /// Resets the exit codes of a group's stages, because the stages run again. Keeps their costs.
    pub(crate) fn start_again(&self, group: &Group) {
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
