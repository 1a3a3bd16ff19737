//! The driver: has all parts of a job run by an engine, and accepts one attempt at each.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::engine::{Engine, EngineError, State};
use super::job::Job;
use super::report::{End, PartReport};
use super::work::{Seen, Work};

/// Number of batches in which a part may fail. Each batch has the parts that are still missing.
const MAX_FAILURES: u32 = 3;
/// Number of consecutive batches without a complete part after which the driver gives up.
const MAX_IDLE_BATCHES: u32 = 3;
/// Shortest time between two looks into the work directory.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// Longest time between two looks into the work directory.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// Time between two looks, as a multiple of the time that one takes.
const PAUSE_FACTOR: u32 = 10;
/// Number of attempts at a part in which a command fails, until the part is refused. One may fail because of its machine.
const FAILURES_OF_COMMAND: u32 = 2;
/// Time without an attempt until the user learns of it.
const PATIENCE: Duration = Duration::from_secs(30);
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
}

/// What happens while a job is driven.
#[derive(Debug)]
pub enum Event<'a> {
    /// The output of a part has been accepted.
    Accepted(&'a PartReport),
    /// An attempt failed, or was lost without a report, for the given reason.
    Failed(&'a str),
    /// No attempt of a batch has begun for some time, for the given reason.
    Waits(String),
}

/// The end of a job whose engine worked.
#[derive(Debug)]
pub enum Driven {
    /// All parts are complete. The paths are those of the outputs, in order of the parts. Parts in which no record begins
    /// have none.
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
    /// The work directory cannot be read.
    #[error("cannot read the work directory {path}")]
    Work {
        /// The path of the directory.
        path: String,
        /// Why that failed.
        source: io::Error,
    },
    /// A part has failed in each batch.
    #[error("part {number} of {count} (bytes {first} to {last}) {}: {why}", times(*failures))]
    Part {
        /// The number of the part, counted from 1.
        number: usize,
        /// The number of parts.
        count: usize,
        /// The position of its first byte in the concatenated files, counted from 1.
        first: u64,
        /// The position of its last byte.
        last: u64,
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

/// The output of a part.
#[derive(Debug)]
enum Output {
    /// The file with this path.
    File(PathBuf),
    /// No record begins in the part.
    None,
}

/// The state of a part.
#[derive(Debug, Default)]
struct Part {
    /// The output of the attempt that was accepted.
    accepted: Option<Output>,
    /// Why the last attempt failed; empty if none did.
    failure: String,
    /// Number of batches in which an attempt failed or was lost.
    failures: u32,
    /// Number of attempts in which a command failed.
    failures_of_command: u32,
}

/// Says how often a part has failed.
fn times(failures: u32) -> String {
    match failures {
        0 => "was not run".to_owned(),
        1 => "failed".to_owned(),
        failures => format!("failed {failures} times"),
    }
}

impl Driver<'_> {
    /// Has the parts run that have no valid output yet. A part that fails in one batch is in the next one, too.
    ///
    /// # Errors
    /// Returns an error if the engine or the work directory fails, a part fails in several batches, or the run is being
    /// ended. No attempt runs any more then, as far as the engine can tell.
    pub fn run(&self, engine: &mut dyn Engine) -> Result<Driven, DriveError> {
        let result = self.run_batches(engine);
        engine.cancel();
        result
    }

    fn run_batches(&self, engine: &mut dyn Engine) -> Result<Driven, DriveError> {
        let count = self.job.parts.len();
        let mut parts: Vec<Part> = (0..count).map(|_| Part::default()).collect();
        let mut seen = Seen::default();
        // A driver that died may have left complete parts.
        if let Some(why) = self.take_reports(&mut seen, &mut parts)? {
            return Ok(Driven::Refused(why));
        }
        let mut batch = self.work.next_batch().map_err(|source| self.cannot_read(source))?;
        let mut idle = 0;
        while idle < MAX_IDLE_BATCHES && parts.iter().all(|part| part.failures < MAX_FAILURES) {
            let missing: Vec<usize> =
                (0..count).filter(|&part| parts[part].accepted.is_none()).collect();
            if missing.is_empty() {
                break;
            }
            for part in &mut parts {
                part.failure.clear();
            }
            engine.submit(self.work, &missing, batch)?;
            if let Some(why) = self.wait_for_batch(engine, batch, &mut seen, &mut parts)? {
                return Ok(Driven::Refused(why));
            }
            let left = parts.iter().filter(|part| part.accepted.is_none()).count();
            idle = if left < missing.len() { 0 } else { idle + 1 };
            batch = batch.saturating_add(1);
        }
        self.complete(parts)
    }

    /// Accepts outputs until all parts are complete or the batch is over. Returns the reason if a part is refused.
    fn wait_for_batch(
        &self,
        engine: &mut dyn Engine,
        batch: u32,
        seen: &mut Seen,
        parts: &mut [Part],
    ) -> Result<Option<String>, DriveError> {
        let mut over_since = None;
        let (mut quiet_since, mut told) = (Instant::now(), String::new());
        loop {
            if (self.is_over)() {
                return Err(DriveError::Interrupted);
            }
            let state = engine.poll()?;
            let begun = Instant::now();
            if over_since.is_some() {
                self.work.refresh();
            }
            let complete = |parts: &[Part]| parts.iter().filter(|it| it.accepted.is_some()).count();
            let before = complete(parts);
            if let Some(why) = self.take_reports(seen, parts)? {
                return Ok(Some(why));
            }
            if complete(parts) > before {
                quiet_since = begun;
            }
            if quiet_since.elapsed() > PATIENCE {
                quiet_since = begun;
                let has_begun = self.work.has_attempts(batch).unwrap_or(true);
                if let Some(why) = engine.waiting(has_begun).filter(|why| *why != told) {
                    told.clone_from(&why);
                    (self.observer)(Event::Waits(why));
                }
            }
            if parts.iter().all(|part| part.accepted.is_some()) {
                return Ok(None);
            }
            let over = matches!(state, State::Over(_)).then(|| *over_since.get_or_insert(begun));
            if let (State::Over(trouble), Some(since)) = (state, over)
                && since.elapsed() >= self.delay
            {
                // Another batch would end in the same way.
                if !trouble.is_empty() && !self.work.has_attempts(batch).unwrap_or(true) {
                    return Err(DriveError::NoAttempt(trouble));
                }
                self.end_batch(batch, &trouble, parts)?;
                return Ok(None);
            }
            thread::sleep((begun.elapsed() * PAUSE_FACTOR).clamp(MIN_PAUSE, MAX_PAUSE));
        }
    }

    /// Counts failures of the parts that are not complete at the end of a batch. A part that no attempt has begun has not
    /// failed.
    fn end_batch(&self, batch: u32, trouble: &str, parts: &mut [Part]) -> Result<(), DriveError> {
        let begun = self.work.parts_of(batch).map_err(|source| self.cannot_read(source))?;
        for (index, part) in parts.iter_mut().enumerate() {
            if part.accepted.is_some() {
                continue;
            }
            part.failures += u32::from(begun.contains(&index));
            if part.failure.is_empty() {
                trouble.clone_into(&mut part.failure);
                let why = self.reason(index, trouble.to_owned());
                (self.observer)(Event::Failed(&format!("part {}: {why}", index + 1)));
            }
        }
        Ok(())
    }

    /// Reads the reports that have appeared, and accepts the first valid output of each part. Returns the reason if a
    /// part is refused.
    fn take_reports(
        &self,
        seen: &mut Seen,
        parts: &mut [Part],
    ) -> Result<Option<String>, DriveError> {
        let reports = self.work.new_reports(seen);
        for report in reports.map_err(|source| self.cannot_read(source))? {
            let Some(part) = parts.get_mut(report.part) else { continue };
            if part.accepted.is_some() {
                continue;
            }
            let failure = match &report.end {
                End::Refused(why) => return Ok(Some(why.clone())),
                End::Failed(why) => format!("{why} (on {})", report.host),
                End::CommandFailed(why) => {
                    part.failures_of_command += 1;
                    if part.failures_of_command >= FAILURES_OF_COMMAND {
                        return Ok(Some(why.clone()));
                    }
                    format!("{why} (on {})", report.host)
                }
                End::NoRecord => {
                    (self.observer)(Event::Accepted(&report));
                    part.accepted = Some(Output::None);
                    continue;
                }
                End::Complete { .. } => match self.work.verified(&report) {
                    Ok(path) => {
                        (self.observer)(Event::Accepted(&report));
                        part.accepted = Some(Output::File(path));
                        continue;
                    }
                    Err(why) => format!("{why} (from {})", report.host),
                },
            };
            (self.observer)(Event::Failed(&format!("part {}: {failure}", report.part + 1)));
            part.failure = failure;
        }
        Ok(None)
    }

    fn cannot_read(&self, source: io::Error) -> DriveError {
        DriveError::Work { path: self.work.path().display().to_string(), source }
    }

    /// Returns the outputs of all parts, or an error about the one without an output that has failed most often.
    fn complete(&self, parts: Vec<Part>) -> Result<Driven, DriveError> {
        let missing = parts.iter().enumerate().filter(|(_, part)| part.accepted.is_none());
        // Of several, the first one.
        let worst = missing.rev().max_by_key(|(_, part)| part.failures);
        if let Some((index, part)) = worst {
            let range = &self.job.parts[index];
            return Err(DriveError::Part {
                number: index + 1,
                count: parts.len(),
                first: range.start + 1,
                last: range.end,
                failures: part.failures,
                why: self.reason(index, part.failure.clone()),
            });
        }
        let outputs = parts.into_iter().filter_map(|part| match part.accepted {
            Some(Output::File(path)) => Some(path),
            _ => None,
        });
        Ok(Driven::Complete(outputs.collect()))
    }

    /// Returns why a part failed: the reason that is known, and the end of its last log.
    fn reason(&self, part: usize, failure: String) -> String {
        let why =
            if failure.is_empty() { "no worker has reported on it".to_owned() } else { failure };
        match self.work.last_log(part, SHOWN_LOG_BYTES) {
            Some(log) => format!("{why}\n{log}"),
            None => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;

    use contend_record::Writer;
    use contend_shell::environment::Paths;
    use contend_sys::interrupt::Signals;

    use super::super::attempt::Attempt;
    use super::super::attempt::testing::job;
    use super::super::engine::attempt;
    use super::super::job::JobFile;
    use super::*;
    use crate::execute::{Launcher, Settings};

    /// What happens to an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Fault {
        /// Nothing.
        None,
        /// It is killed before it ends.
        Killed,
        /// Its output is damaged after the report.
        Corrupted,
        /// Its report is cut off.
        Torn,
        /// Another attempt at the same part runs, too.
        Doubled,
    }

    /// An engine that runs attempts in this process.
    struct InProcess<'a> {
        job: &'a Job,
        fault: &'a dyn Fn(usize, u32) -> Fault,
        /// The parts of each batch.
        batches: Vec<Vec<usize>>,
    }

    impl InProcess<'_> {
        fn attempt(&self, work: &Work, part: usize, attempt: u64) {
            let signals = Signals::block().expect("signals");
            let launcher = Launcher::new(signals.mask_before(), Paths::new(), Vec::new());
            let folder = work.path().to_owned();
            let settings = Settings { jobs: 1, memory: 64 << 20, chunk_bytes: None, folder };
            let attempt = Attempt { job: self.job, part, attempt, work: work.path() };
            let host = "host".to_owned();
            let report = attempt.run_and_report(&Writer::default(), host, settings, &launcher);
            report.expect("room for the report");
        }
    }

    impl Engine for InProcess<'_> {
        fn prepare(&self, _: &Work, _: &[usize], _: u32) -> Result<Vec<String>, EngineError> {
            Ok(Vec::new())
        }

        fn submit(&mut self, work: &Work, parts: &[usize], batch: u32) -> Result<(), EngineError> {
            self.batches.push(parts.to_vec());
            for &part in parts {
                let number = attempt(batch, 0);
                let file = |end: &str| work.path().join(format!("{part}.{number}.{end}"));
                let fault = (self.fault)(part, batch);
                if fault == Fault::Killed {
                    fs::write(file("tmp"), "half of an out").expect("room");
                    fs::write(work.log_file(part, number), "Killed\n").expect("room");
                    continue;
                }
                self.attempt(work, part, number);
                match fault {
                    Fault::Corrupted => fs::write(file("part"), "x").expect("room"),
                    Fault::Torn => fs::write(file("json"), "{\"part\":").expect("room"),
                    Fault::Doubled => self.attempt(work, part, attempt(batch, 1)),
                    Fault::None | Fault::Killed => {}
                }
            }
            Ok(())
        }

        fn poll(&mut self) -> Result<State, EngineError> {
            Ok(State::Over("the engine has ended".to_owned()))
        }

        fn waiting(&self, _: bool) -> Option<String> {
            None
        }

        fn cancel(&mut self) {}
    }

    /// Drives a job of three parts. Returns the output of all parts or the error, and the parts of each batch.
    fn drive(
        job: &Job,
        work: &Work,
        fault: &dyn Fn(usize, u32) -> Fault,
    ) -> (Result<String, String>, Vec<Vec<usize>>) {
        let mut engine = InProcess { job, fault, batches: Vec::new() };
        let accepted = Cell::new(0);
        let count = |event: Event<'_>| {
            if let Event::Accepted(_) = event {
                accepted.set(accepted.get() + 1);
            }
        };
        let driver =
            Driver { job, work, is_over: &|| false, observer: &count, delay: Duration::ZERO };
        let result = match driver.run(&mut engine) {
            Ok(Driven::Complete(outputs)) => {
                assert_eq!(accepted.get(), job.parts.len(), "each part is accepted once");
                let text = |path: &PathBuf| fs::read_to_string(path).expect("text");
                Ok(outputs.iter().map(text).collect())
            }
            Ok(Driven::Refused(why)) => Err(format!("refused: {why}")),
            Err(error) => Err(error.to_string()),
        };
        (result, engine.batches)
    }

    const INPUT: &str = "a\nb\nc\nd\ne\nf\n";

    fn upper(folder: &Path) -> Job {
        let job = job(folder, "tr a-z A-Z <@/in", &[("in", INPUT)], 3);
        assert_eq!(job.parts.len(), 3);
        job
    }

    #[test]
    fn parts_that_fail_run_again_and_the_others_do_not() {
        for fault in [Fault::Killed, Fault::Corrupted, Fault::Torn] {
            let folder = tempfile::tempdir().expect("a folder");
            let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
            let of = |part, batch| if part > 0 && batch == 0 { fault } else { Fault::None };
            let (output, batches) = drive(&job, &work, &of);
            assert_eq!(output.as_deref(), Ok("A\nB\nC\nD\nE\nF\n"), "{fault:?}");
            assert_eq!(batches, [vec![0, 1, 2], vec![1, 2]], "{fault:?}");
        }
    }

    #[test]
    fn parts_in_which_no_record_begins_have_no_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let (long, work) = ("x".repeat(60), Work::create(folder.path()).expect("room"));
        let files = [("in", &*format!("{long}\nb\n"))];
        let job = job(folder.path(), "wc -l <@/in", &files, 4);
        let (output, batches) = drive(&job, &work, &|_, _| Fault::None);
        assert_eq!(output.expect("complete").split_whitespace().count(), 2, "two parts have lines");
        assert_eq!(batches.len(), 1);
    }

    #[test]
    fn of_two_attempts_at_a_part_one_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
        let (output, batches) = drive(&job, &work, &|_, _| Fault::Doubled);
        assert_eq!(output.as_deref(), Ok("A\nB\nC\nD\nE\nF\n"));
        assert_eq!(batches.len(), 1);
    }

    #[test]
    fn a_part_that_always_fails_is_an_error_with_its_place_and_the_log() {
        for (fault, expected) in [
            (Fault::Killed, "failed 3 times: the engine has ended\nKilled"),
            (Fault::Corrupted, "failed 3 times: its output has 1 bytes instead of 4 (from host)"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
            let of = |part, _| if part == 1 { fault } else { Fault::None };
            let (result, batches) = drive(&job, &work, &of);
            let expected = format!("part 2 of 3 (bytes 5 to 8) {expected}");
            assert_eq!(result, Err(expected));
            assert_eq!(batches, [vec![0, 1, 2], vec![1], vec![1]], "no endless retries");
        }
    }

    #[test]
    fn an_input_that_has_vanished_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
        fs::remove_file(folder.path().join("in")).expect("own file");
        let (result, _) = drive(&job, &work, &|_, _| Fault::None);
        let error = result.expect_err("there is no input");
        assert!(
            error.contains("No such file or directory") && error.contains("(on host)"),
            "{error}"
        );
    }

    #[test]
    fn a_refused_part_ends_the_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
        job.group.guard.terminated = true;
        let input = folder.path().join("in");
        fs::write(&input, INPUT.replace("f\n", "ff")).expect("own file");
        job.files = vec![JobFile::examine(&job.files[0].name, folder.path()).expect("a file")];
        let (result, batches) = drive(&job, &work, &|_, _| Fault::None);
        assert!(result.expect_err("the last record has no end").starts_with("refused: "));
        assert_eq!(batches.len(), 1);
    }

    #[test]
    fn a_new_driver_repeats_no_part_that_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
        let (result, _) =
            drive(&job, &work, &|part, _| if part == 2 { Fault::Killed } else { Fault::None });
        assert!(result.is_err());
        let (output, batches) = drive(&job, &work, &|_, _| Fault::None);
        assert_eq!(output.as_deref(), Ok("A\nB\nC\nD\nE\nF\n"));
        assert_eq!(batches, [[2]]);
        let (output, batches) = drive(&job, &work, &|_, _| Fault::None);
        assert_eq!(output.as_deref(), Ok("A\nB\nC\nD\nE\nF\n"));
        assert_eq!(batches, [[0; 0]; 0], "nothing is left to do");
    }

    #[test]
    fn an_interrupted_job_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
        let mut engine = InProcess { job: &job, fault: &|_, _| Fault::Killed, batches: Vec::new() };
        let driver = Driver {
            job: &job,
            work: &work,
            is_over: &|| true,
            observer: &|_| {},
            delay: Duration::ZERO,
        };
        assert!(matches!(driver.run(&mut engine), Err(DriveError::Interrupted)));
    }
}
