//! Supervises the execution of a plan: handles signals, reports progress and memory, and computes
//! the exit code.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use contend_record::run::Outcome;
use contend_shell::environment::Paths;
use contend_sys::allocation::set_mmap_threshold;
use contend_sys::interrupt::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::check::{Check, Waited};
use super::end::{End, Report};
use super::error::{Context as _, RunError};
use super::not_divided;
use super::observer::{Notice, Observer};
use super::outcome::{outcome, status};
use super::records::Records;
use super::settings::Settings;
use super::shutdown::{Escalation, Shutdown};
use super::watch::Watch;
use crate::cluster::{Cluster, Clustered, Place, Work, Written};
use crate::execute::{self, ExecuteError, Executor as _, Launcher, Local, Plain, Tally};
use crate::plan::ir::{Command, Plan, Source, Step};

/// Minimum size in bytes of freed blocks that are returned to the system, if the memory budget is
/// small.
const MMAP_THRESHOLD_BYTES: u32 = 1 << 20;
/// Size in bytes below which a memory budget counts as small.
const SMALL_BUDGET_BYTES: u64 = 512 << 20;
/// Free space for temporary files, in bytes, below which sort keeps its own memory settings.
const MIN_TEMP_SPACE_BYTES: u64 = 64 << 20;
/// Interval at which signals and the end of the execution are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A plan to execute, with the data that its execution needs.
#[derive(Debug)]
pub(super) struct Task {
    /// The plan to execute.
    pub plan: Plan,
    /// Paths of the plan's programs.
    pub paths: Paths,
    /// Bytes already read from standard input.
    pub prefix: Vec<u8>,
    /// Whether the exit code is inverted, as after `!`.
    pub inverted: bool,
    /// The file for the records of pipelines that contend takes over in shell source, if they are
    /// requested.
    pub records: Option<Records>,
    /// What runs the first group over parts; `None` if it runs over chunks on this machine.
    pub cluster: Option<Cluster>,
}

/// Where the first group of a plan runs over parts.
struct Elsewhere {
    cluster: Cluster,
    work: Work,
    written: Written,
    /// The file that is locked so that no other driver runs the same job.
    lock: Arc<File>,
}

impl Elsewhere {
    /// Takes the work directory of the job that is continued, or creates one.
    fn new(cluster: Cluster, written: Written) -> Result<Self, RunError> {
        let work = if let Some(work) = &cluster.resume {
            work.clone()
        } else {
            let Place { directory, store } = &cluster.work;
            let folder = directory.display();
            let cannot = format!("cannot create a work directory in {folder}: see --work");
            Work::create(directory).context(cannot)?.in_new_store(store.as_deref())
        };
        let lock =
            work.take().context(format!("cannot run the job in {}", work.path().display()))?;
        Ok(Self { cluster, work, written, lock: Arc::new(lock) })
    }
}

/// The execution of a plan.
enum Running<'a> {
    /// Commands that inherit the standard streams, while this thread only waits.
    Plain(Plain<'a>),
    /// A thread that executes the plan and sends the result.
    Thread(mpsc::Receiver<Result<(), ExecuteError>>),
}

impl<'a> Running<'a> {
    /// Starts to execute a plan. `prefix` is data already read from standard input.
    fn begin(
        plan: &'a Plan,
        prefix: Vec<u8>,
        launcher: &'a Arc<Launcher>,
        tally: &'a Arc<Tally>,
        settings: &Settings,
        elsewhere: Option<Elsewhere>,
    ) -> Result<Self, ExecuteError> {
        if let [Step::Serial(commands)] = plan.steps.as_slice()
            && plan.source == Source::Own
            && prefix.is_empty()
        {
            let plain = Plain::start(launcher, tally, commands, None, None)?;
            return Ok(Self::Plain(plain));
        }
        let (sender, receiver) = mpsc::channel();
        let (launcher, tally, plan) = (Arc::clone(launcher), Arc::clone(tally), plan.clone());
        let prefix = Mutex::new(prefix);
        let settings = execute::Settings {
            jobs: settings.jobs(),
            memory: settings.memory(),
            chunk_bytes: settings.chunk_bytes,
            folder: std::env::temp_dir(),
        };
        execute::spawn(move || {
            let local = Local { settings, launcher: &launcher, tally: &tally, prefix };
            let result = match &elsewhere {
                None => local.execute(&plan),
                Some(Elsewhere { cluster, work, written, .. }) => {
                    Clustered { local, cluster, work, written }.execute(&plan)
                }
            };
            let _ = sender.send(result); // after a signal the receiver may be gone
        })
        .map_err(ExecuteError::Transfer)?;
        Ok(Self::Thread(receiver))
    }

    /// Waits at most [`POLL_INTERVAL`] for the end of the execution. Returns `None` if it has not
    /// ended.
    fn wait(&mut self, signals: &Signals) -> Option<Result<(), ExecuteError>> {
        match self {
            Self::Thread(end) => match end.recv_timeout(POLL_INTERVAL) {
                Ok(result) => Some(result),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                // Only a panic drops the sender before it is used, and a panic ends the program.
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    Some(Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))
                }
            },
            Self::Plain(plain) => {
                match plain.try_wait() {
                    Ok(false) => {}
                    result => return Some(result.map(drop).map_err(ExecuteError::from)),
                }
                let time = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
                // The end of a command raises a signal, which ends the poll.
                let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&time));
                None
            }
        }
    }

    /// Waits for the end of the execution, calling `tick` about every [`POLL_INTERVAL`]. A signal
    /// that asks contend to end shuts the execution down. If contend then stops waiting for it, the
    /// result is `Ok`.
    fn end(
        mut self,
        signals: &Signals,
        launcher: &Launcher,
        mut tick: impl FnMut(),
    ) -> Result<(), ExecuteError> {
        let mut escalation = Escalation::new(self.is_plain());
        loop {
            if let Some(result) = self.wait(signals) {
                self.discard_keyboard_interrupt(signals);
                return result;
            }
            tick();
            // Only contend's own threads are left, and they end with the process.
            if escalation.has_begun() && !self.is_plain() && launcher.is_idle() {
                return Ok(());
            }
            let signal = signals.next_ending();
            // What cleans up has time limits of its own.
            if signal.is_none() && escalation.has_begun() && launcher.is_held() {
                continue;
            }
            let Some(step) = escalation.advance(signal, Instant::now()) else {
                continue;
            };
            step.apply(launcher);
            if step == Shutdown::Abandon {
                return Ok(());
            }
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Discards a keyboard interrupt that the last command has survived, as a shell does. The
    /// interrupt was meant for a command that handles it.
    fn discard_keyboard_interrupt(&self, signals: &Signals) {
        if let (Self::Plain(plain), Some(signal)) = (self, signals.interrupted())
            && !plain.died_of(signal)
        {
            signals.discard_keyboard_interrupt();
        }
    }
}

/// Executes a task and returns how it ended. A signal that asks contend to end also ends the
/// commands.
///
/// # Errors
/// Returns an error in these cases:
///
/// - Signals cannot be blocked, or the executor fails.
/// - Standard error cannot be written.
/// - The records of pipelines cannot be read.
/// - The run cannot be compared with the original.
pub(super) fn run_plan(
    mut task: Task,
    mut report: Box<Report>,
    settings: &Settings,
    check: Option<Check>,
    observer: &mut dyn Observer,
) -> Result<End, RunError> {
    // Allocating returned memory again costs a tenth of the run time. With a large budget, unused
    // memory is harmless.
    if settings.memory() < SMALL_BUDGET_BYTES {
        set_mmap_threshold(MMAP_THRESHOLD_BYTES);
    }
    let signals = Signals::block().context("cannot block signals")?;
    let tally = Arc::new(Tally::default());
    let check = check.map(Check::capture).transpose()?;
    observer.started(&task.plan, &tally);
    let watch = Watch::new(settings.record || settings.stats && !report.by_shell);
    let cluster = task.cluster.take();
    let elsewhere = cluster.map(|cluster| {
        let (text, inverted) = (report.record.command.clone(), task.inverted);
        Elsewhere::new(cluster, Written { text, inverted, pipefail: settings.pipefail })
    });
    let elsewhere = elsewhere.transpose()?;
    let place = elsewhere.as_ref().map(|it| {
        let is_new = it.cluster.resume.is_none();
        (it.work.clone(), is_new, Arc::clone(&it.lock))
    });
    let begun = Instant::now();
    tally.work().start(begun, settings.trace);
    let (result, peak_memory_bytes) =
        supervise(&mut task, &signals, &tally, settings, watch, elsewhere, observer);
    observer.ended();
    if let Some((work, is_new, _lock)) = place {
        let is_complete = result.is_ok() && signals.interrupted().is_none();
        // The outputs of a job that is continued are worth more than those of a new one.
        let notice = if is_new && !work.is_kept() || is_complete {
            work.remove().err().map(|error| (work.path(), Some(error)))
        } else {
            Some((work.path(), None))
        };
        // How the run ended matters more.
        if let Some((path, error)) = notice {
            let notice =
                error.as_ref().map_or(Notice::Kept(path), |error| Notice::Left(path, error));
            observer.notify(notice).context("cannot write standard error")?;
        }
    }
    if let Some(signal) = signals.interrupted() {
        return Ok(End::Interrupted(signal));
    }
    if let Some(why) = tally.refusal() {
        not_divided(&why, settings, observer)?;
    }
    for missing in tally.missing_files() {
        let written = observer.notify(Notice::MissingFile(&missing));
        written.context("cannot write standard error")?;
    }
    let written = match check.map(|check| check.finish(&signals)).transpose()? {
        Some(Waited::Interrupted(signal)) => return Ok(End::Interrupted(signal)),
        Some(Waited::Done(written)) => Some(written),
        None => None,
    };
    let status = status(&task.plan, &tally, settings.pipefail, result, observer)?;
    let mut exit_code = if task.inverted { i32::from(status == 0) } else { status };
    let outcome = outcome(&tally, begun.elapsed(), exit_code);
    let mut outcome = Outcome { peak_memory_bytes, ..outcome };
    if let Some(written) = written {
        let parallel = report.record.decision.parallel;
        match written.compare(parallel, &mut outcome, &signals, observer)? {
            Waited::Interrupted(signal) => return Ok(End::Interrupted(signal)),
            Waited::Done(code) => exit_code = code,
        }
    }
    report.record.outcome = Some(outcome);
    report.record.division = tally.division().map(|(division, _)| division);
    report.begun = Some(begun);
    report.work = if settings.trace { tally.work().traced() } else { Vec::new() };
    report.record.pipelines = task.records.map_or(Ok(Vec::new()), Records::read)?;
    Ok(End::Finished { exit_code, report })
}

/// Executes the plan of a task. Returns the result, and the peak memory in bytes if `watch` samples
/// it.
fn supervise(
    task: &mut Task,
    signals: &Signals,
    tally: &Arc<Tally>,
    settings: &Settings,
    mut watch: Watch,
    elsewhere: Option<Elsewhere>,
    observer: &mut dyn Observer,
) -> (Result<(), ExecuteError>, Option<u64>) {
    let sorting = sorting(settings, &task.plan);
    let launcher = Arc::new(Launcher::new(signals.mask_before(), task.paths.clone(), sorting));
    let prefix = std::mem::take(&mut task.prefix);
    let running = Running::begin(&task.plan, prefix, &launcher, tally, settings, elsewhere);
    let result = running.and_then(|running| {
        running.end(signals, &launcher, || {
            observer.tick(tally);
            if let Some(why) = tally.take_delay() {
                let _ = observer.notify(Notice::Waiting(&why)); // the run is more important
            }
            watch.sample_if_due(&launcher);
        })
    });
    (result, watch.finish())
}

/// Returns the options for `sort` over chunks: its share of the memory budget, and one thread.
/// There are no options if no chunk is sorted, or if there is little space for temporary files.
fn sorting(settings: &Settings, plan: &Plan) -> Vec<String> {
    let sorts = |step: &&Step| match step {
        Step::Parallel(group) => group.each.iter().any(|command: &Command| command.sorts),
        Step::Serial(_) => false,
    };
    match plan.steps.iter().filter(sorts).count() {
        0 => Vec::new(),
        // Without space for temporary files, sort has to use its default amount of memory.
        _ if lacks_temp_space(&std::env::temp_dir()) => Vec::new(),
        groups => {
            let share = settings.memory() / (2 * settings.jobs() * groups) as u64;
            vec![format!("--buffer-size={}b", share.max(1 << 20)), "--parallel=1".to_owned()]
        }
    }
}

/// Returns whether the given directory has little free space, or does not exist.
fn lacks_temp_space(folder: &Path) -> bool {
    !rustix::fs::statvfs(folder)
        .is_ok_and(|of| of.f_bavail.saturating_mul(of.f_frsize) >= MIN_TEMP_SPACE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::planner;
    use crate::run::testing::{Recorder, stages};

    fn carried_out(texts: &[&[&str]], inverted: bool, pipefail: bool) -> (i32, Recorder) {
        let settings = Settings {
            pipefail,
            jobs: Some(2),
            memory: Some(1 << 30),
            record: true,
            ..Settings::default()
        };
        let (paths, mut recorder) = (Paths::new(), Recorder::default());
        let plan = planner::plain(&stages(texts), &paths, pipefail);
        let task = Task { plan, paths, prefix: Vec::new(), inverted, records: None, cluster: None };
        let report = Report::new("text", &settings);
        let end = run_plan(task, report, &settings, None, &mut recorder).expect("it runs");
        let End::Finished { exit_code, report } = end else { panic!("{end:?}") };
        let outcome = report.record.outcome.expect("it has run");
        assert_eq!(outcome.exit_code, exit_code);
        assert_eq!(outcome.stages.len(), texts.len());
        (exit_code, recorder)
    }

    #[test]
    fn the_exit_code_is_that_of_a_shell() {
        let stages: &[&[&str]] = &[&["sh", "-c", "exit 3"], &["true"]];
        for (inverted, pipefail, expected) in
            [(false, false, 0), (false, true, 3), (true, false, 1), (true, true, 0)]
        {
            let (exit_code, _) = carried_out(stages, inverted, pipefail);
            assert_eq!(exit_code, expected, "inverted {inverted}, pipefail {pipefail}");
        }
    }

    #[test]
    fn observers_get_ticks_between_start_and_end() {
        let (exit_code, recorder) =
            carried_out(&[&["sleep", "1"], &["sh", "-c", "exit 4"]], false, false);
        assert_eq!(exit_code, 4);
        let [first, ticks @ .., last] = recorder.calls.as_slice() else { panic!("no calls") };
        assert_eq!((*first, *last), ("started", "ended"));
        assert!(!ticks.is_empty() && ticks.iter().all(|&call| call == "tick"), "{ticks:?}");
    }

    #[test]
    fn a_missing_input_is_told_and_fails_its_stage() {
        let settings = Settings { jobs: Some(2), memory: Some(1 << 30), ..Settings::default() };
        let mut simple = stages(&[&["cat"]]);
        simple[0].input = Some(contend_commands::Word::new("/no/such/file"));
        let (paths, mut recorder) = (Paths::new(), Recorder::default());
        let plan = planner::plain(&simple, &paths, false);
        let task =
            Task { plan, paths, prefix: Vec::new(), inverted: false, records: None, cluster: None };
        let end = run_plan(task, Report::unwanted(), &settings, None, &mut recorder);
        let Ok(End::Finished { exit_code: 1, .. }) = end else { panic!("{end:?}") };
        let expected = "missing /no/such/file: No such file or directory";
        assert_eq!(recorder.notices, [expected]);
    }

    #[test]
    fn sorting_gets_a_share_of_the_memory_only_where_parts_are_sorted() {
        let settings = Settings { jobs: Some(4), memory: Some(1 << 30), ..Settings::default() };
        let plain = planner::plain(&stages(&[&["sort"]]), &Paths::new(), false);
        assert!(sorting(&settings, &plain).is_empty());
        let simple = stages(&[&["sort"]]);
        let environment = contend_shell::environment::Environment::for_tests("C");
        let situation = planner::Situation {
            environment: &environment,
            annotations: &[],
            input_bytes: None,
            output_is_terminal: false,
            reads_objects: false,
        };
        let plan = planner::plan(&simple, &situation);
        assert!(plan.is_parallel());
        if !lacks_temp_space(&std::env::temp_dir()) {
            let share = (1_u64 << 30) / 8;
            assert_eq!(sorting(&settings, &plan)[0], format!("--buffer-size={share}b"));
        }
    }
}
