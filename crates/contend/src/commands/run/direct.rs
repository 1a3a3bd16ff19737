//! A pipeline of plain commands, which needs no shell.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use contend_profile::commands::Simple;
use contend_profile::parallel::estimate;
use contend_profile::parallel::execute::{
    ExecuteError, Executor as _, Launcher, Local, Settings, Tally,
};
use contend_profile::parallel::planner::{self, Situation};
use contend_profile::parallel::text;
use contend_profile::rewrite::environment::{Environment, in_path};
use contend_record::run::{
    Command, Decision, Outcome, Plan, RunRecord, Source, StageOutcome, Step,
};
use contend_report::render;
use contend_sys::interrupt::Signals;
use contend_sys::{child, cpu, inherited};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, FileType, access};

use super::check::{Captured, Check};
use super::progress::Progress;
use super::watch::Watch;
use crate::exit::Exit;
use crate::settings::{Run, RunHow};
use crate::{host, output};

/// A stream that is over before so much of it was read runs plain, in bytes.
const FIRST: usize = 1 << 20;
/// A stream that is silent for so long goes on as it is.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often it is asked whether a signal has come.
const ASK: Duration = Duration::from_millis(20);
/// How long commands get to end when they are asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A pipeline that contend can run itself.
#[derive(Debug)]
pub(super) struct Direct {
    plan: Plan,
    plain: Plan,
    input_bytes: Option<u64>,
    input: Kind,
}

/// What standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Stream,
}

impl Direct {
    /// Plans it.
    ///
    /// # Errors
    /// The reason why a shell is needed.
    pub(super) fn new(stages: &[Simple], how: &RunHow) -> Result<Self, String> {
        let functions =
            |name: &str| name == "BASH_ENV" || name == "ENV" || name.starts_with("BASH_FUNC_");
        if let Some((name, _)) =
            std::env::vars_os().find(|(name, _)| name.to_str().is_some_and(functions))
        {
            let name = name.to_string_lossy().into_owned();
            return Err(format!("`{name}` is set, so that names may be functions of the shell"));
        }
        if let Some(fd) = (0..3).find(|&fd| !inherited::was_open(fd)) {
            return Err(format!("file descriptor {fd} is closed"));
        }
        for stage in stages {
            let name = &stage.program.text;
            if in_path(name).is_none() {
                return Err(format!("`{name}` is not found"));
            }
            if let Some(file) = &stage.input
                && access(&file.text, Access::READ_OK).is_err()
            {
                return Err(format!("`{}` cannot be read", file.text));
            }
            debug_assert!(!text::is_built_in(stage.name()), "text::read refuses these");
        }
        let names = stages.iter().map(|stage| stage.program.text.as_str());
        let environment = Environment::of_process(names);
        let standard = rustix::fs::fstat(io::stdin());
        let is_file = standard
            .as_ref()
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let situation = Situation {
            environment: &environment,
            annotations: &how.annotations,
            input_bytes: standard
                .as_ref()
                .ok()
                .filter(|_| is_file)
                .and_then(|stat| u64::try_from(stat.st_size).ok()),
            output_is_terminal: io::stdout().is_terminal(),
        };
        let plan = planner::plan(stages, &situation);
        let input_bytes = match &plan.source {
            Source::Files(names) => Some(names.iter().map(|name| size_of(name)).sum()),
            Source::Standard if is_file => {
                standard.ok().and_then(|stat| u64::try_from(stat.st_size).ok())
            }
            Source::Standard | Source::Own => None,
        };
        let input = if is_file { Kind::File } else { Kind::Stream };
        Ok(Self { plan, plain: planner::plain(stages), input_bytes, input })
    }

    /// Runs it as is best, or says how.
    pub(super) fn run(mut self, text: &str, inverted: bool, settings: Run) -> Result<Exit> {
        let how = &settings.how;
        let check = settings.check.then(|| Check::begin(&self.plan.source)).transpose()?;
        let mut decision = match how.part_bytes {
            Some(_) if self.plan.is_parallel() => {
                let why = "the size of parts is given".to_owned();
                Decision { parallel: true, why, ..Decision::default() }
            }
            _ => estimate::decide(&self.plan, self.input_bytes, how.jobs),
        };
        let mut prefix = Vec::new();
        let reads_stream = self.plan.source == Source::Standard && self.input == Kind::Stream;
        if decision.parallel && reads_stream && !settings.explain && how.part_bytes.is_none() {
            let (read, over) = beginning().context("cannot read standard input")?;
            prefix = read;
            if over {
                decision = estimate::decide(&self.plan, Some(prefix.len() as u64), how.jobs);
            }
        }
        let record = RunRecord {
            plan: Some(self.plan.clone()),
            decision: decision.clone(),
            ..super::empty(text, how)
        };
        if settings.explain {
            return super::explain(&record, settings);
        }
        if !decision.parallel {
            std::mem::swap(&mut self.plan, &mut self.plain);
        }
        carry_out(&self.plan, prefix, inverted, record, settings, check)
    }
}

fn size_of(name: &str) -> u64 {
    std::fs::metadata(name).map_or(0, |data| data.len())
}

/// The beginning of standard input: until there is enough for parts, or it is over, or nothing
/// comes any more. Whether it is over.
fn beginning() -> io::Result<(Vec<u8>, bool)> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut bytes = Vec::new();
    let mut block = vec![0; 64 << 10];
    while bytes.len() < FIRST {
        let time = Timespec { tv_sec: 0, tv_nsec: PATIENCE.subsec_nanos().into() };
        let time = (!bytes.is_empty()).then_some(&time);
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], time) {
            Ok(0) => return Ok((bytes, false)),
            Err(rustix::io::Errno::INTR) => continue,
            _ => {}
        }
        match input.read(&mut block) {
            Ok(0) => return Ok((bytes, true)),
            Ok(read) => bytes.extend_from_slice(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((bytes, false))
}

/// Carries a plan out, hears signals meanwhile, and says what is wanted at the end.
fn carry_out(
    plan: &Plan,
    prefix: Vec<u8>,
    inverted: bool,
    mut record: RunRecord,
    settings: Run,
    check: Option<Check>,
) -> Result<Exit> {
    let how = settings.how;
    let signals = Signals::block().context("cannot receive signals")?;
    // With --check, contend does not notice what is written to a terminal, either.
    let shows = how.progress && !(check.is_some() && io::stdout().is_terminal());
    let check = check.map(Check::capture).transpose()?;
    let launcher = Arc::new(Launcher::new(signals.mask_before(), sorting(&how, plan)));
    let tally = Arc::new(Tally::default());
    let mut progress = Progress::new(shows, plan, &tally);
    let mut watch = Watch::new(settings.stats || settings.json.is_some());
    let begun = Instant::now();
    let (sender, done) = mpsc::channel();
    let execution = {
        let (launcher, tally, plan) = (Arc::clone(&launcher), Arc::clone(&tally), plan.clone());
        let settings = Settings {
            jobs: how.jobs,
            memory: how.memory,
            part_bytes: how.part_bytes,
            folder: std::env::temp_dir(),
        };
        move || {
            let prefix = Mutex::new(prefix);
            let local = Local { settings, launcher: &launcher, tally: &tally, prefix };
            let _ = sender.send(local.execute(&plan)); // nobody waits after a signal
        }
    };
    thread::spawn(execution);
    let result = loop {
        match done.recv_timeout(ASK) {
            Ok(result) => break result,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
        }
        progress.show(&tally);
        watch.look(&launcher);
        if signals.interrupted().is_some() {
            launcher.end_all();
            if let Ok(result) = done.recv_timeout(GRACE) {
                break result;
            }
            launcher.kill_all();
            break done.recv_timeout(GRACE).unwrap_or(Ok(()));
        }
    };
    drop(progress);
    let peak_memory_bytes = watch.finish();
    if let Some(signal) = signals.interrupted() {
        return Ok(Exit::Signal(signal));
    }
    for missing in tally.missing_files() {
        output::error(&missing);
    }
    let check = check.map(Captured::finish).transpose()?;
    let status = status(plan, &tally, how.pipefail, result)?;
    let status = if inverted { i32::from(status == 0) } else { status };
    let outcome = outcome(&tally, begun.elapsed(), status);
    let mut outcome = Outcome { peak_memory_bytes, ..outcome };
    let mut exit = Exit::Pipeline(status);
    if let Some(check) = check {
        exit = check.compare(&how, &record, &mut outcome, &signals)?;
    }
    record.outcome = Some(outcome);
    if settings.stats {
        output::stderr(&render::run::statistics(&record, output::width()))?;
    }
    if let Some(file) = settings.json {
        record.host = host::describe();
        file.write(&render::json::run(&record)?)?;
    }
    Ok(exit)
}

/// The status of all stages together, as the shell gives it.
fn status(
    plan: &Plan,
    tally: &Tally,
    pipefail: bool,
    result: Result<(), ExecuteError>,
) -> Result<i32> {
    match result {
        Ok(()) => {}
        Err(ExecuteError::Failed { remarks, status }) => {
            output::stderr(&String::from_utf8_lossy(&remarks))?;
            return Ok(status);
        }
        Err(error) => return Err(error.into()),
    }
    let stages = tally.stages();
    let of = |stage: usize| stages.get(&stage).map_or(0, |figures| figures.status);
    let count = plan.stages.len();
    Ok(if pipefail {
        (0..count).rev().map(of).find(|&status| status != 0).unwrap_or(0)
    } else {
        count.checked_sub(1).map_or(0, of)
    })
}

fn outcome(tally: &Tally, wall: Duration, exit_code: i32) -> Outcome {
    let stages = tally.stages();
    let last = stages.keys().max().map_or(0, |last| last + 1);
    let stages = (0..last).map(|stage| {
        let figures = stages.get(&stage).copied().unwrap_or_default();
        StageOutcome {
            index: stage + 1,
            exit_code: figures.status,
            cpu_seconds: figures.cpu.as_secs_f64(),
            starts: figures.starts,
        }
    });
    Outcome {
        exit_code,
        wall_seconds: wall.as_secs_f64(),
        own_cpu_seconds: cpu::own_time().as_secs_f64(),
        own_max_rss_bytes: child::own_usage().max_rss,
        command_max_rss_bytes: child::children_usage().max_rss,
        input_bytes: tally.bytes(),
        parts: tally.parts(),
        in_one_piece: tally.notes(),
        stages: stages.collect(),
        ..Outcome::default()
    }
}

/// Options for commands that sort: memory for each that runs at the same time, and one thread.
fn sorting(how: &RunHow, plan: &Plan) -> Vec<String> {
    let sorts = |step: &&Step| match step {
        Step::Parallel(group) => group.each.iter().any(|command: &Command| command.sorts),
        Step::Serial(_) => false,
    };
    let groups = plan.steps.iter().filter(sorts).count().max(1);
    let share = how.memory / (2 * how.jobs * groups) as u64;
    vec![format!("--buffer-size={}b", share.max(1 << 20)), "--parallel=1".to_owned()]
}
