//! The driver: has all tasks of a job run by an engine, and accepts one attempt at each.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::engine::{Engine, EngineError, State};
use super::job::Job;
use super::report::{End, OutputFile, PartReport};
use super::work::{Seen, Work};

/// Number of batches in which a task may fail. Each batch has the tasks that can run and are still missing.
const MAX_FAILURES: u32 = 3;
/// Number of consecutive batches without a complete task after which the driver gives up.
const MAX_IDLE_BATCHES: u32 = 3;
/// Shortest time between two looks into the work directory.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// Longest time between two looks into the work directory.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// Time between two looks, as a multiple of the time that one takes.
const PAUSE_FACTOR: u32 = 10;
/// Number of attempts at a part in which a command fails, until the part is refused. One may fail because of its machine.
const FAILURES_OF_COMMAND: u32 = 2;
/// Number of times that an output in a store is read until it counts as unreadable.
const READS: u32 = 3;
/// Number of bytes from the end of a log that an error shows.
const SHOWN_LOG_BYTES: usize = 2000;

/// The driver of a job.
pub struct Driver<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its work directory.
    pub work: &'a Work,
    /// Tells whether the run is being ended.
    pub is_over: &'a dyn Fn() -> bool,
    /// Is called with what happens.
    pub observer: &'a dyn Fn(Event<'_>),
    /// Time until all reports of a batch that is over can be read. On a network file system, they may appear late.
    pub delay: Duration,
    /// Time without an attempt until the user learns of it.
    pub patience: Duration,
    /// Time that a store may be unreachable.
    pub tolerance: Duration,
}

/// What happens while a job is driven.
#[derive(Debug)]
pub enum Event<'a> {
    /// The engine is asked to run tasks.
    Submits,
    /// The output of a task has been accepted.
    Accepted(&'a PartReport),
    /// An attempt failed, or was lost without a report, for the given reason.
    Failed(&'a str),
    /// No attempt of a batch has begun for some time, for the given reason.
    Waits(String),
}

/// The end of a job whose engine worked.
#[derive(Debug)]
pub enum Driven {
    /// All tasks are complete. The paths are those of the outputs that no worker combines, in order of the parts. Tasks in
    /// whose parts no record begins have none.
    Complete(Vec<PathBuf>),
    /// A part was refused, for the given reason: the group must run once over its whole input.
    Refused(String),
}

/// Why a job has no output.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The engine does not work.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The work directory, or its store, cannot be read or written.
    #[error("cannot use the work directory {path}")]
    Work {
        /// The path of the directory, or the prefix in the store.
        path: String,
        /// Why that failed.
        source: io::Error,
    },
    /// A task has failed in each batch.
    #[error("{task} {}: {why}", times(*failures))]
    Task {
        /// The name of the task.
        task: String,
        /// The number of batches in which it failed.
        failures: u32,
        /// The last reason, with the host if it is known.
        why: String,
    },
    /// The engine ended without an attempt at any part.
    #[error("no part was run: {0}")]
    NoAttempt(String),
    /// The run is being ended.
    #[error("the run was interrupted")]
    Interrupted,
}

/// The output of a task.
#[derive(Debug)]
enum Output {
    /// A file.
    File(OutputFile),
    /// No record begins in its parts.
    None,
}

/// The state of a task.
#[derive(Debug, Default)]
struct Task {
    /// The output of the attempt that was accepted.
    accepted: Option<Output>,
    /// Why the last attempt failed; empty if none did.
    failure: String,
    /// Number of batches in which an attempt failed or was lost.
    failures: u32,
    /// Number of attempts in which a command failed.
    failures_of_command: u32,
}

/// What is known of the tasks, from the reports of attempts.
#[derive(Debug)]
struct Known {
    /// The reports that have been read.
    seen: Seen,
    /// The tasks, by index.
    tasks: Vec<Task>,
    /// The names of outputs that a worker could not use. They are not accepted again.
    bad: HashSet<String>,
}

impl Known {
    /// Returns whether the output of a task has been accepted.
    fn is_complete(&self, task: usize) -> bool {
        self.tasks[task].accepted.is_some()
    }
}

/// Says how often a task has failed.
fn times(failures: u32) -> String {
    match failures {
        0 => "was not run".to_owned(),
        1 => "failed".to_owned(),
        failures => format!("failed {failures} times"),
    }
}

impl Driver<'_> {
    /// Has the tasks run that have no valid output yet: in each batch those whose inputs are complete. A task that fails in
    /// one batch is in the next one, too.
    ///
    /// # Errors
    /// Returns an error if the engine or the work directory fails, a task fails in several batches, or the run is being
    /// ended. No attempt runs any more then, as far as the engine can tell.
    pub fn run(&self, engine: &mut dyn Engine) -> Result<Driven, DriveError> {
        let result = self.run_batches(engine);
        engine.cancel();
        result
    }

    fn run_batches(&self, engine: &mut dyn Engine) -> Result<Driven, DriveError> {
        let tasks = (0..self.job.task_count()).map(|_| Task::default()).collect();
        // Otherwise, each attempt would fail later.
        self.work.open_store().map_err(|source| self.work_error(source))?;
        let mut known = Known { seen: Seen::default(), tasks, bad: HashSet::new() };
        // A driver that died may have left complete tasks.
        if let Some(why) = self.take_reports(&mut known)? {
            return Ok(Driven::Refused(why));
        }
        let mut batch = self.work.next_batch().map_err(|source| self.work_error(source))?;
        let mut idle = 0;
        while idle < MAX_IDLE_BATCHES {
            let wanted = self.wanted(&known);
            let fails = |&task: &usize| known.tasks[task].failures >= MAX_FAILURES;
            if wanted.is_empty() || wanted.iter().any(fails) {
                break;
            }
            let ready: Vec<usize> =
                wanted.into_iter().filter(|&task| self.is_ready(&known, task)).collect();
            for task in &mut known.tasks {
                task.failure.clear();
            }
            self.patiently(|| {
                self.write_inputs(&known, &ready).map_err(|source| self.work_error(source))
            })?;
            (self.observer)(Event::Submits);
            engine.submit(self.work, &ready, batch)?;
            if let Some(why) = self.wait_for_batch(engine, batch, &ready, &mut known)? {
                return Ok(Driven::Refused(why));
            }
            // Attempts that are not needed any more may still run.
            engine.cancel();
            let is_idle = !ready.iter().any(|&task| known.is_complete(task));
            idle = if is_idle { idle + 1 } else { 0 };
            batch = batch.saturating_add(1);
        }
        self.complete(&known)
    }

    /// Returns the tasks that are not complete, and whose outputs are needed.
    fn wanted(&self, known: &Known) -> Vec<usize> {
        let mut is_needed = vec![false; known.tasks.len()];
        is_needed[self.job.last_tasks()].fill(true);
        for task in (0..known.tasks.len()).rev() {
            is_needed[task] &= !known.is_complete(task);
            if let (true, Some(inputs)) = (is_needed[task], self.job.inputs_of(task)) {
                is_needed[inputs].fill(true);
            }
        }
        (0..known.tasks.len()).filter(|&task| is_needed[task]).collect()
    }

    /// Returns whether the inputs of a task are complete.
    fn is_ready(&self, known: &Known, task: usize) -> bool {
        let mut inputs = self.job.inputs_of(task).into_iter().flatten();
        inputs.all(|input| known.is_complete(input))
    }

    /// Writes which outputs the combinations among the given tasks combine.
    fn write_inputs(&self, known: &Known, tasks: &[usize]) -> io::Result<()> {
        for &task in tasks {
            let Some(inputs) = self.job.inputs_of(task) else { continue };
            let file = |input: usize| match &known.tasks[input].accepted {
                Some(Output::File(file)) => Some(file),
                Some(Output::None) | None => None,
            };
            self.work.write_inputs(task, &inputs.filter_map(file).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Repeats an operation as long as a store cannot be used, because complete parts are worth more than some minutes. Gives up when
    /// the tolerance is exceeded; then the job can be continued later.
    fn patiently<T>(
        &self,
        mut operation: impl FnMut() -> Result<T, DriveError>,
    ) -> Result<T, DriveError> {
        let mut since = None;
        loop {
            let (path, source) = match operation() {
                Err(DriveError::Work { path, source }) if self.work.store().is_some() => {
                    (path, source)
                }
                result => return result,
            };
            if (self.is_over)() {
                return Err(DriveError::Interrupted);
            }
            if since.is_none() {
                (self.observer)(Event::Waits(format!("cannot use {path}: {source}")));
            }
            if since.get_or_insert_with(Instant::now).elapsed() >= self.tolerance {
                self.work.keep();
                return Err(DriveError::Work { path, source });
            }
            thread::sleep(MAX_PAUSE);
        }
    }

    /// Accepts outputs until the given tasks are complete or the batch is over. Returns the reason if a part is refused.
    fn wait_for_batch(
        &self,
        engine: &mut dyn Engine,
        batch: u32,
        tasks: &[usize],
        known: &mut Known,
    ) -> Result<Option<String>, DriveError> {
        // An engine says once why the batch is over.
        let (mut over_since, mut trouble) = (None, String::new());
        let (mut quiet_since, mut told) = (Instant::now(), String::new());
        let complete = |known: &Known| tasks.iter().filter(|&&it| known.is_complete(it)).count();
        loop {
            if (self.is_over)() {
                return Err(DriveError::Interrupted);
            }
            let state = engine.poll()?;
            let begun = Instant::now();
            if over_since.is_some() {
                self.work.refresh();
            }
            let before = complete(known);
            if let Some(why) = self.patiently(|| self.take_reports(known))? {
                return Ok(Some(why));
            }
            if complete(known) > before {
                quiet_since = begun;
            }
            if quiet_since.elapsed() > self.patience {
                quiet_since = begun;
                let has_begun = self.work.has_attempts(batch).unwrap_or(true);
                if let Some(why) = engine.waiting(has_begun).filter(|why| *why != told) {
                    told.clone_from(&why);
                    (self.observer)(Event::Waits(why));
                }
            }
            if complete(known) == tasks.len() {
                return Ok(None);
            }
            if let State::Over(why) = state {
                over_since.get_or_insert(begun);
                if trouble.is_empty() {
                    trouble = why;
                }
            }
            if over_since.is_some_and(|since| since.elapsed() >= self.delay) {
                // Another batch would end in the same way, unless earlier ones had attempts.
                let is_first = known.tasks.iter().all(|task| task.accepted.is_none());
                if is_first && !trouble.is_empty() && !self.work.has_attempts(batch).unwrap_or(true)
                {
                    return Err(DriveError::NoAttempt(trouble));
                }
                self.end_batch(batch, &trouble, tasks, known)?;
                return Ok(None);
            }
            thread::sleep((begun.elapsed() * PAUSE_FACTOR).clamp(MIN_PAUSE, MAX_PAUSE));
        }
    }

    /// Counts failures of those of the given tasks that are not complete at the end of their batch. A task that no attempt has
    /// begun has not failed, nor has one with a bad input.
    fn end_batch(
        &self,
        batch: u32,
        trouble: &str,
        tasks: &[usize],
        known: &mut Known,
    ) -> Result<(), DriveError> {
        let begun = self.work.parts_of(batch).map_err(|source| self.work_error(source))?;
        for &index in tasks {
            if known.is_complete(index) || !self.is_ready(known, index) {
                continue;
            }
            let task = &mut known.tasks[index];
            task.failures += u32::from(begun.contains(&index));
            if task.failure.is_empty() {
                trouble.clone_into(&mut task.failure);
                self.tell_failure(index, &self.reason(index, trouble.to_owned()));
            }
        }
        Ok(())
    }

    /// Reads the reports that have appeared, and accepts the first valid output of each task. Returns the reason if a
    /// part is refused.
    fn take_reports(&self, known: &mut Known) -> Result<Option<String>, DriveError> {
        let reports = self.work.new_reports(&mut known.seen);
        let mut reports = reports.map_err(|source| self.work_error(source))?;
        // An output that a worker cannot use must not be accepted first.
        reports.sort_by_key(|report| !matches!(report.end, End::BadInput { .. }));
        for (place, report) in reports.iter().enumerate() {
            let failed = |known: &mut Known, source| {
                reports[place..].iter().for_each(|report| known.seen.forget(report));
                self.work_error(source)
            };
            if report.part >= known.tasks.len() {
                continue;
            }
            if known.is_complete(report.part) {
                continue;
            }
            let accepted = match &report.end {
                End::Refused(why) => return Ok(Some(why.clone())),
                End::NoRecord => Ok(Output::None),
                End::Complete(output) if known.bad.contains(&output.file) => continue,
                End::Complete(output) => {
                    self.fetch(report.part, output).map_err(|source| failed(known, source))?;
                    self.examined(report.part, output)
                        .map_err(|why| format!("{why} (from {})", report.host))
                }
                End::Failed(why) => Err(format!("{why} (on {})", report.host)),
                End::CommandFailed(why) => {
                    let failures = &mut known.tasks[report.part].failures_of_command;
                    *failures += 1;
                    if *failures >= FAILURES_OF_COMMAND {
                        return Ok(Some(why.clone()));
                    }
                    Err(format!("{why} (on {})", report.host))
                }
                End::BadInput { file, why } => Err(self.reject(known, report, file, why)),
            };
            match accepted {
                Ok(output) => {
                    (self.observer)(Event::Accepted(report));
                    known.tasks[report.part].accepted = Some(output);
                }
                Err(why) => {
                    self.tell_failure(report.part, &why);
                    known.tasks[report.part].failure = why;
                }
            }
        }
        Ok(None)
    }

    /// Copies an output that no worker combines from the store, if there is one.
    fn fetch(&self, task: usize, output: &OutputFile) -> io::Result<()> {
        let is_last = self.job.last_tasks().contains(&task);
        if is_last { self.work.fetch_output(output) } else { Ok(()) }
    }

    /// Checks the output of a complete attempt at a task. The checksum of one that a worker combines is left to that worker, so
    /// that the driver need not read all outputs.
    fn examined(&self, task: usize, output: &OutputFile) -> Result<Output, String> {
        let is_combined = !self.job.last_tasks().contains(&task);
        if is_combined {
            self.work.check_size(output)?;
        } else {
            self.work.verified(output)?;
        }
        Ok(Output::File(output.clone()))
    }

    /// Rejects an output that a worker could not use in a combination, if the driver cannot read it either. The task that has
    /// left it then runs again. Returns why the combination failed.
    fn reject(&self, known: &mut Known, report: &PartReport, file: &str, why: &str) -> String {
        let why = format!("{why} (read on {})", report.host);
        let output_of = |task: &Task| match &task.accepted {
            Some(Output::File(output)) if output.file == file => Some(output.clone()),
            _ => None,
        };
        let inputs = self.job.inputs_of(report.part).into_iter().flatten();
        let mut found = inputs.filter_map(|index| Some((index, output_of(&known.tasks[index])?)));
        match found.next() {
            Some((index, output)) if self.is_unreadable(&output) => {
                known.bad.insert(file.to_owned());
                self.tell_failure(index, &why);
                let task = &mut known.tasks[index];
                task.accepted = None;
                task.failures += 1;
                task.failure.clone_from(&why);
            }
            Some(_) => {}
            // Its report may be read later.
            None => drop(known.bad.insert(file.to_owned())),
        }
        why
    }

    /// Returns whether an output cannot be read, or is not as reported. A store, which has just been read, gets several chances.
    fn is_unreadable(&self, output: &OutputFile) -> bool {
        let reads = if self.work.store().is_some() { READS } else { 1 };
        (0..reads).all(|read| {
            if read > 0 {
                thread::sleep(MAX_PAUSE);
            }
            self.work.verified(output).is_err()
        })
    }

    /// Reports a failed attempt at a task to the observer.
    fn tell_failure(&self, task: usize, why: &str) {
        (self.observer)(Event::Failed(&format!("{}: {why}", self.job.name_of(task))));
    }

    fn work_error(&self, source: io::Error) -> DriveError {
        let path = self.work.path().display().to_string();
        let path = self.work.store().map_or(path, ToString::to_string);
        DriveError::Work { path, source }
    }

    /// Returns the outputs that no worker combines, or an error about the missing one that has failed most often.
    fn complete(&self, known: &Known) -> Result<Driven, DriveError> {
        // Of several, the first one.
        let wanted = self.wanted(known).into_iter();
        let worst = wanted.rev().max_by_key(|&task| known.tasks[task].failures);
        if let Some(index) = worst {
            let Task { failures, failure, .. } = &known.tasks[index];
            let why = self.reason(index, failure.clone());
            return Err(DriveError::Task { task: self.place_of(index), failures: *failures, why });
        }
        let outputs = known.tasks[self.job.last_tasks()].iter();
        let outputs = outputs.filter_map(|task| match &task.accepted {
            Some(Output::File(output)) => Some(self.work.path().join(&output.file)),
            _ => None,
        });
        Ok(Driven::Complete(outputs.collect()))
    }

    /// Returns the name of a task, and for a part its place in the input.
    fn place_of(&self, task: usize) -> String {
        let name = self.job.name_of(task);
        let Some(range) = self.job.parts.get(task) else { return name };
        let (count, first) = (self.job.parts.len(), range.start + 1);
        format!("{name} of {count} (bytes {first} to {})", range.end)
    }

    /// Returns why a task failed: the reason that is known, and the end of its last log.
    fn reason(&self, task: usize, failure: String) -> String {
        let why =
            if failure.is_empty() { "no worker has reported on it".to_owned() } else { failure };
        let room = if self.work.is_full() { "; the work directory has no room left" } else { "" };
        let why = why + room;
        match self.work.last_log(task, SHOWN_LOG_BYTES) {
            Some(log) => format!("{why}\n{log}"),
            None => why,
        }
    }
}
