use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;

use contend_record::Writer;
use contend_shell::environment::Paths;
use contend_sys::interrupt::Signals;

use super::super::attempt::Attempt;
use super::super::attempt::testing::job;
use super::super::engine::attempt;
use super::super::job::JobFile;
use super::super::tree;
use super::*;
use crate::execute::{Launcher, Settings};

/// Returns a driver that notices at once what happens.
fn driver<'a>(job: &'a Job, work: &'a Work, observer: &'a dyn Fn(Event<'_>)) -> Driver<'a> {
    let [delay, patience, tolerance] = [Duration::ZERO; 3];
    Driver { job, work, is_over: &|| false, observer, delay, patience, tolerance }
}

/// What happens to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// It is killed before it ends.
    Killed,
    /// Its output is damaged after the report.
    Corrupted,
    /// A byte of its output is changed after the report.
    Changed,
    /// Its report is cut off.
    Torn,
    /// Another attempt at the same part runs, too.
    Doubled,
    /// It does not begin.
    Absent,
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
        let attempt = Attempt { job: self.job, part, attempt, work };
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
            if fault == Fault::Absent {
                continue;
            }
            if fault == Fault::Killed {
                fs::write(file("tmp"), "half of an out").expect("room");
                fs::write(work.log_file(part, number), "Killed\n").expect("room");
                continue;
            }
            self.attempt(work, part, number);
            match fault {
                Fault::Corrupted => fs::write(file("part"), "x").expect("room"),
                Fault::Changed => {
                    let mut output = fs::read(file("part")).expect("an output");
                    output[0] ^= 1;
                    fs::write(file("part"), output).expect("room");
                }
                Fault::Torn => fs::write(file("json"), "{\"part\":").expect("room"),
                Fault::Doubled => self.attempt(work, part, attempt(batch, 1)),
                Fault::None | Fault::Killed | Fault::Absent => {}
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
    let result = match driver(job, work, &count).run(&mut engine) {
        Ok(Driven::Complete(outputs)) => {
            // The output of a part that a worker cannot use is accepted, and so is the next one.
            let rejected = accepted.get() - job.task_count();
            assert!(rejected == 0 || !job.combinations.is_empty(), "each part is accepted once");
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

/// Returns a job of five parts, whose outputs workers and the driver combine two at a time.
fn counts(folder: &Path) -> Job {
    let mut job = job(folder, "sort <@/in | uniq -c", &[("in", "a\nb\na\nb\na\n")], 5);
    job.combinations = tree::combinations(5, 2);
    assert_eq!(job.combinations, [0..1, 1..3, 3..5, 5..6, 6..8]);
    job
}

/// The outputs that the driver gets from [`counts`].
const COUNTS: &str = "      1 a\n      2 a\n      2 b\n";

#[test]
fn workers_combine_what_others_have_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (counts(folder.path()), Work::create(folder.path()).expect("room"));
    let (output, batches) = drive(&job, &work, &|_, _| Fault::None);
    assert_eq!(output.as_deref(), Ok(COUNTS));
    assert_eq!(batches, [vec![0, 1, 2, 3, 4], vec![5, 6, 7], vec![8, 9]]);
    let (output, batches) = drive(&job, &work, &|_, _| Fault::None);
    assert_eq!(output.as_deref(), Ok(COUNTS));
    assert_eq!(batches, [[0; 0]; 0], "a new driver repeats nothing");
}

#[test]
fn an_engine_that_refuses_one_batch_is_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (counts(folder.path()), Work::create(folder.path()).expect("room"));
    let refuses = |_, batch| if batch == 1 { Fault::Absent } else { Fault::None };
    let (output, batches) = drive(&job, &work, &refuses);
    assert_eq!(output.as_deref(), Ok(COUNTS));
    assert_eq!(batches[1..3], [vec![5, 6, 7], vec![5, 6, 7]]);
    let work = Work::create(folder.path()).expect("room");
    let (output, _) = drive(&job, &work, &|_, _| Fault::Absent);
    let why = output.expect_err("no part runs");
    assert!(why.contains("the engine has ended"), "{why}");
}

#[test]
fn a_combination_that_is_lost_runs_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (counts(folder.path()), Work::create(folder.path()).expect("room"));
    let of = |task, batch| if (task, batch) == (6, 1) { Fault::Killed } else { Fault::None };
    let (output, batches) = drive(&job, &work, &of);
    assert_eq!(output.as_deref(), Ok(COUNTS));
    assert_eq!(batches, [vec![0, 1, 2, 3, 4], vec![5, 6, 7], vec![6, 8], vec![9]]);
}

#[test]
fn an_output_that_changes_before_it_is_combined_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (counts(folder.path()), Work::create(folder.path()).expect("room"));
    let of = |task, batch| if (task, batch) == (1, 0) { Fault::Changed } else { Fault::None };
    let (output, batches) = drive(&job, &work, &of);
    assert_eq!(output.as_deref(), Ok(COUNTS));
    let expected = [vec![0, 1, 2, 3, 4], vec![5, 6, 7], vec![1, 8], vec![6], vec![9]];
    assert_eq!(batches, expected);
    // A new driver finds the output and the complaint, in any order.
    let left = work.path().join(format!("9.{}.part", attempt(4, 0)));
    fs::remove_file(left).expect("an output");
    let (output, batches) = drive(&job, &work, &|_, _| Fault::None);
    assert_eq!(output.as_deref(), Ok(COUNTS));
    assert_eq!(batches, [[9]]);
}

#[test]
fn a_combination_that_always_fails_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (counts(folder.path()), Work::create(folder.path()).expect("room"));
    let of = |task, _| if task == 7 { Fault::Killed } else { Fault::None };
    let (result, batches) = drive(&job, &work, &of);
    let expected = "the combination of parts 4 to 5 failed 3 times: the engine has ended\nKilled";
    assert_eq!(result, Err(expected.to_owned()));
    assert_eq!(batches.len(), 4, "no endless retries");
}

#[test]
fn an_output_that_always_changes_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (counts(folder.path()), Work::create(folder.path()).expect("room"));
    let of = |task, _| if task == 4 { Fault::Changed } else { Fault::None };
    let (result, batches) = drive(&job, &work, &of);
    let error = result.expect_err("no worker can use it");
    let expected = "part 5 of 5 (bytes 9 to 10) failed 3 times: its output has another checksum";
    assert!(error.starts_with(expected), "{error}");
    assert!(batches.len() <= 7, "no endless retries: {batches:?}");
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
    assert!(error.contains("No such file or directory") && error.contains("(on host)"), "{error}");
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

/// An engine that waits for machines, and says so, before it ends. It says once why that is.
struct Waiting {
    polls: u32,
}

impl Engine for Waiting {
    fn prepare(&self, _: &Work, _: &[usize], _: u32) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }

    fn submit(&mut self, _: &Work, _: &[usize], _: u32) -> Result<(), EngineError> {
        Ok(())
    }

    fn poll(&mut self) -> Result<State, EngineError> {
        self.polls += 1;
        Ok(match self.polls {
            ..=5 => State::Running,
            6 => State::Over("no machine".to_owned()),
            _ => State::Over(String::new()),
        })
    }

    fn waiting(&self, has_begun: bool) -> Option<String> {
        Some(if has_begun { "it has begun" } else { "all machines are busy" }.to_owned())
    }

    fn cancel(&mut self) {}
}

#[test]
fn the_user_learns_once_why_nothing_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
    let told = RefCell::new(Vec::new());
    let note = |event: Event<'_>| {
        if let Event::Waits(why) = event {
            told.borrow_mut().push(why);
        }
    };
    let ended = driver(&job, &work, &note).run(&mut Waiting { polls: 0 });
    assert!(matches!(ended, Err(DriveError::NoAttempt(why)) if why == "no machine"));
    assert_eq!(*told.borrow(), ["all machines are busy"]);
}

#[test]
fn the_reason_of_an_engine_is_not_forgotten_while_reports_may_appear() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
    let delay = Duration::from_millis(30);
    let driver = Driver { delay, ..driver(&job, &work, &|_| {}) };
    let ended = driver.run(&mut Waiting { polls: 0 });
    assert!(matches!(ended, Err(DriveError::NoAttempt(why)) if why == "no machine"));
}

#[test]
fn a_job_is_kept_if_its_store_stays_unreachable() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
    let work = work.in_store(Some("s3://bucket/jobs"));
    let told = Cell::new(0);
    let note =
        |event: Event<'_>| told.set(told.get() + u32::from(matches!(event, Event::Waits(_))));
    let driver = Driver { tolerance: 2 * MAX_PAUSE, ..driver(&job, &work, &note) };
    let trouble = || driver.work_error(io::Error::other("no answer"));
    let tries = Cell::new(0);
    let result = driver.patiently(|| {
        tries.set(tries.get() + 1);
        if tries.get() < 3 { Err(trouble()) } else { Ok(tries.get()) }
    });
    assert!(matches!(result, Ok(3)), "{result:?}");
    assert!(!work.is_kept(), "the store could be used again");
    let begun = Instant::now();
    let result: Result<(), _> = driver.patiently(|| Err(trouble()));
    assert!(matches!(&result, Err(DriveError::Work { path, .. }) if path.starts_with("s3://")));
    assert!(begun.elapsed() >= driver.tolerance && work.is_kept(), "{result:?}");
    assert_eq!(told.get(), 2, "once for each outage");
}

#[test]
fn an_interrupted_job_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, work) = (upper(folder.path()), Work::create(folder.path()).expect("room"));
    let mut engine = InProcess { job: &job, fault: &|_, _| Fault::Killed, batches: Vec::new() };
    let driver = Driver { is_over: &|| true, ..driver(&job, &work, &|_| {}) };
    assert!(matches!(driver.run(&mut engine), Err(DriveError::Interrupted)));
}
