//! Carrying out a plan: signals are heard meanwhile, and what is wanted is said at the end.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::execute::{self, ExecuteError, Executor as _, Launcher, Local, Plain, Tally};
use contend_record::run::{Command, Outcome, Plan, Source, Step};
use contend_shell::environment::Paths;
use contend_sys::allocation::give_back_from;
use contend_sys::interrupt::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::check::{Check, Waited};
use super::end::{End, Report};
use super::error::{Context as _, RunError};
use super::observer::{Notice, Observer};
use super::outcome::{outcome, status};
use super::records::Records;
use super::settings::Settings;
use super::watch::Watch;

/// Pieces of memory of this size or more go back to the system when they are freed, in bytes, …
const LARGE: u32 = 1 << 20;
/// … with less memory for data than this, in bytes.
const LITTLE: u64 = 512 << 20;
/// With less room than this for temporary files there may be none for what is sorted, in bytes.
const ROOM: u64 = 64 << 20;
/// How often it is asked whether a signal has come.
const ASK: Duration = Duration::from_millis(20);
/// How long everything gets to end before the next measure is taken.
const GRACE: Duration = Duration::from_secs(2);

/// What is done to end everything, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Nothing more is started. Who typed the signal has sent it to the commands as well.
    StartNothing,
    /// Commands are asked to end.
    Ask,
    /// They are killed.
    Kill,
    /// Nobody waits for them any more.
    Leave,
}

impl Measure {
    fn next(self) -> Self {
        match self {
            Self::StartNothing => Self::Ask,
            Self::Ask => Self::Kill,
            Self::Kill | Self::Leave => Self::Leave,
        }
    }

    fn take(self, launcher: &Launcher) {
        match self {
            Self::StartNothing => launcher.start_nothing(),
            Self::Ask => launcher.end_all(),
            Self::Kill => launcher.kill_all(),
            Self::Leave => {}
        }
    }
}

/// What is to be carried out.
#[derive(Debug)]
pub(super) struct Task {
    /// The plan.
    pub plan: Plan,
    /// Where its programs are.
    pub paths: Paths,
    /// What of standard input has been read already.
    pub prefix: Vec<u8>,
    /// The status is inverted.
    pub inverted: bool,
    /// Where pipelines leave records that its commands hand on to contend.
    pub records: Option<Records>,
}

/// A run that is not over yet.
enum Running<'a> {
    /// Commands that need nobody.
    Plain(Plain<'a>),
    /// A thread that says how it ended.
    Thread(mpsc::Receiver<Result<(), ExecuteError>>),
}

impl<'a> Running<'a> {
    /// Begins to carry it out.
    fn begin(
        plan: &'a Plan,
        prefix: Vec<u8>,
        launcher: &'a Arc<Launcher>,
        tally: &'a Arc<Tally>,
        settings: &Settings,
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
            part_bytes: settings.part_bytes,
            folder: std::env::temp_dir(),
        };
        execute::spawn(move || {
            let local = Local { settings, launcher: &launcher, tally: &tally, prefix };
            let _ = sender.send(local.execute(&plan)); // nobody waits after a signal
        })
        .map_err(ExecuteError::Transfer)?;
        Ok(Self::Thread(receiver))
    }

    /// Waits for its end, or until it is time to ask for signals.
    fn wait(&mut self, signals: &Signals) -> Option<Result<(), ExecuteError>> {
        match self {
            Self::Thread(end) => match end.recv_timeout(ASK) {
                Ok(result) => Some(result),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                // Only a panic, which ends the program, takes the sender away before it is used.
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    Some(Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))
                }
            },
            Self::Plain(plain) => {
                match plain.try_wait() {
                    Ok(false) => {}
                    result => return Some(result.map(drop).map_err(ExecuteError::from)),
                }
                let time = Timespec { tv_sec: 0, tv_nsec: ASK.subsec_nanos().into() };
                // The end of a command is a signal, too.
                let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&time));
                None
            }
        }
    }

    /// Waits for its end. If a signal comes, everything is ended.
    fn end(
        mut self,
        signals: &Signals,
        launcher: &Launcher,
        mut look: impl FnMut(),
    ) -> Result<(), ExecuteError> {
        let mut taken: Option<(Measure, Instant)> = None;
        loop {
            if let Some(result) = self.wait(signals) {
                self.forgive(signals);
                return result;
            }
            look();
            // What is left then is contend's own work.
            if taken.is_some() && !self.is_plain() && launcher.pids().is_empty() {
                return Ok(());
            }
            let asked = signals.next_ending();
            let measure = match (taken, asked) {
                (_, Some(asked)) if asked.is_from_keyboard() && self.is_plain() => continue,
                (None, Some(asked)) if asked.is_from_keyboard() => Measure::StartNothing,
                (None, Some(_)) => Measure::Ask,
                (Some((measure, _)), Some(_)) => measure.next(),
                (Some((measure, since)), None) if since.elapsed() > GRACE => measure.next(),
                _ => continue,
            };
            measure.take(launcher);
            taken = Some((measure, Instant::now()));
            if measure == Measure::Leave {
                return Ok(());
            }
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// A Ctrl-C that the last command has not died of was meant for one that knows what to do with
    /// it; a shell goes on then, too.
    fn forgive(&self, signals: &Signals) {
        if let (Self::Plain(plain), Some(signal)) = (self, signals.interrupted())
            && !plain.died_of(signal)
        {
            signals.forgive_terminal();
        }
    }
}

/// Carries out a task and says how it ended. Signals that ask contend to end are heard until all is over, and
/// end the commands, too.
///
/// # Errors
/// If signals cannot be received, the executor fails, or the run cannot be compared.
pub(super) fn carry_out(
    mut task: Task,
    mut report: Box<Report>,
    settings: &Settings,
    check: Option<Check>,
    observer: &mut dyn Observer,
) -> Result<End, RunError> {
    // To ask for it again takes a tenth more time. Where there is much, some may stay unused.
    if settings.memory() < LITTLE {
        give_back_from(LARGE);
    }
    let signals = Signals::block().context("cannot receive signals")?;
    let tally = Arc::new(Tally::default());
    observer.started(&task.plan, &tally);
    let check = check.map(Check::capture).transpose()?;
    let watch = Watch::new(settings.record || settings.stats && !report.by_shell);
    let begun = Instant::now();
    let (result, peak_memory_bytes) =
        supervise(&mut task, &signals, &tally, settings, watch, observer);
    observer.ended();
    if let Some(signal) = signals.interrupted() {
        return Ok(End::Interrupted(signal));
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
    report.record.pipelines = task.records.map_or(Ok(Vec::new()), Records::read)?;
    Ok(End::Finished { exit_code, report })
}

/// Runs the plan of a task until its commands have ended. Returns what came of it, and the most memory
/// that was seen in use, in bytes, if `watch` looks at it.
fn supervise(
    task: &mut Task,
    signals: &Signals,
    tally: &Arc<Tally>,
    settings: &Settings,
    mut watch: Watch,
    observer: &mut dyn Observer,
) -> (Result<(), ExecuteError>, Option<u64>) {
    let sorting = sorting(settings, &task.plan);
    let launcher = Arc::new(Launcher::new(signals.mask_before(), task.paths.clone(), sorting));
    let prefix = std::mem::take(&mut task.prefix);
    let running = Running::begin(&task.plan, prefix, &launcher, tally, settings);
    let result = running.and_then(|running| {
        running.end(signals, &launcher, || {
            observer.tick(tally);
            watch.look(&launcher);
        })
    });
    (result, watch.finish())
}

/// Options for commands that sort parts: memory for each that runs at the same time, and one
/// thread.
fn sorting(settings: &Settings, plan: &Plan) -> Vec<String> {
    let sorts = |step: &&Step| match step {
        Step::Parallel(group) => group.each.iter().any(|command: &Command| command.sorts),
        Step::Serial(_) => false,
    };
    match plan.steps.iter().filter(sorts).count() {
        0 => Vec::new(),
        // Without room for temporary files they take the memory that they are used to.
        _ if has_no_room(&std::env::temp_dir()) => Vec::new(),
        groups => {
            let share = settings.memory() / (2 * settings.jobs() * groups) as u64;
            vec![format!("--buffer-size={}b", share.max(1 << 20)), "--parallel=1".to_owned()]
        }
    }
}

/// Whether there is little room in this folder, or no such folder.
fn has_no_room(folder: &Path) -> bool {
    !rustix::fs::statvfs(folder).is_ok_and(|of| of.f_bavail.saturating_mul(of.f_frsize) >= ROOM)
}
