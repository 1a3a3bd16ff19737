//! Observes a program until it ends, the time is over or a signal arrives.
//!
//! In each interval, the observer first reads the context switches, then samples threads that have run
//! since their last sample (module `backoff`), and a part of the others. Without context switches, a
//! thread that does not run is sampled less and less often. While there is little to sample, every
//! second interval is skipped, because waking up takes a large part of contend's CPU time.

mod duty_cycle;
mod file_locks;
mod sampling;
mod stopped;
mod switches;
mod threads;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use contend_record::doctor::Runtime;
use contend_record::trace::{ProcessTrace, Trace};
use contend_sys::Pid;
use contend_sys::cgroup::Throttling;
use contend_sys::child;
use contend_sys::cpu::Pinned;
use contend_sys::interrupt::Signals;
use contend_sys::load::Load;
use contend_sys::perf::Recorder;
use contend_sys::waking::Waking;

use self::duty_cycle::DutyCycle;
pub use self::file_locks::FileLocks;
use self::sampling::Sampler;
use self::switches::record_switches;
use self::time::{clocks, ends, next, now, sleep};
use crate::backoff::Deadlines;
use crate::descriptors::{self, Budget};
use crate::limits::Limits;
use crate::lock_files::LockFiles;
use crate::processes::{self, Observed};
use crate::stacks::{Code, Runs, Stacks};
use crate::time_series::CauseLog;
use crate::timeline::Timeline;
use crate::trace::Collector;
use crate::wakes;

/// What to observe, and how.
#[derive(Debug, Clone)]
pub struct Config {
    /// The named processes.
    pub targets: Vec<Pid>,
    /// Time after which the observation ends; `None` for the end of the program or a signal.
    pub limit: Option<Duration>,
    /// Time between two samples.
    pub interval: Duration,
    /// Whether to record context switches, if that is permitted.
    pub switches: bool,
    /// Whether to record wake-ups together with context switches, if that is permitted. Otherwise, they
    /// are inferred from the order of context switches.
    pub wakes: bool,
    /// Largest number of spans of a trace, such as [`crate::trace::MAX_SPANS`]; `None` for no trace.
    pub trace: Option<usize>,
}

/// The results of an observation, or of a part of it.
#[derive(Debug)]
pub struct Observation {
    /// The history of the threads.
    pub timeline: Timeline,
    /// Number of CPUs that the program may use at the same time, by its affinity and its quota.
    pub cpus: f64,
    /// The processes, in the order in which they were found.
    pub processes: Vec<Observed>,
    /// Names of the threads by ID.
    pub names: BTreeMap<i32, String>,
    /// Length of the observation.
    pub length: Duration,
    /// Number of samples of all threads.
    pub samples: u64,
    /// Times between two samples, in seconds; in a snapshot the last 1000.
    pub intervals: Vec<f64>,
    /// Why context switches were not recorded; `None` if they were.
    pub no_switches: Option<String>,
    /// Why wake-ups were not recorded; `None` if they were.
    pub no_wakes: Option<String>,
    /// Whether the system calls of at least one thread could be read.
    pub shows_calls: bool,
    /// Whether the wait channel of at least one thread could be read.
    pub shows_names: bool,
    /// Number of threads that could not be sampled, without free descriptors.
    pub unsampled: usize,
    /// Number of processes that were not observed, because there were more than `MAX_PROCESSES`.
    pub left_out: usize,
    /// CPU time that contend used.
    pub own_cpu: Duration,
    /// Increase of the machine's load.
    pub load: Load,
    /// How often a quota stopped the program's cgroup.
    pub throttling: Throttling,
    /// Where busy threads execute, by thread ID.
    pub codes: BTreeMap<i32, Code>,
    /// Number of samples in which a thread waited for a lock, by its address and by its owner.
    pub lock_owners: BTreeMap<u64, BTreeMap<i32, u64>>,
    /// Names of the files to which locks belong that threads waited for, by address.
    pub lock_files: BTreeMap<u64, String>,
    /// Share of the readings of the machine's file locks in which an observed process held one, without
    /// processes that always do.
    pub file_lock_share: f64,
    /// These readings.
    pub file_locks: FileLocks,
    /// The times by cause over time; empty for a window of the observation.
    pub causes: CauseLog,
    /// What each thread did over time, if that was requested.
    pub trace: Option<Trace>,
    /// The stacks of busy threads; none in a snapshot.
    pub stacks: Stacks,
}

/// Number of intervals between two searches for new threads, without context switches.
const SEARCH_TICKS: u64 = 10;
/// Number of threads for which a search may take place this often.
const THREADS_PER_SEARCH: u64 = 200;
/// Number of intervals between two readings of the processes' counters.
const UPDATE_TICKS: u64 = 10;
/// Number of intervals after which the program has settled.
const SETTLED_TICKS: u64 = 100;
/// Number of intervals between two searches for new threads, with context switches.
const LATER_SEARCH_TICKS: u64 = 1000;
/// A thread whose stacks are sampled is on a CPU for at least this part of the time: one divided by the number.
const MIN_BUSY: u64 = 20;
/// Share of the time with records below which more threads with brief runs are sampled at the same time.
const MAX_BURSTS: f64 = 0.5;
/// Mean length of a run below which it is brief, in nanoseconds.
const BRIEF_NANOS: u64 = 500_000;
/// Largest number of times between two samples in a snapshot.
const MAX_SNAPSHOT_INTERVALS: usize = 1000;

/// Largest number of executables that are searched for libraries.
const MAX_SEARCHED: usize = 8;

/// When a thread started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Before the observation or during it.
    Unknown,
    /// During the observation: its counters show the time since then.
    Observed,
}

/// An observation in progress.
#[derive(Debug)]
pub struct Observer<'a> {
    config: &'a Config,
    begun: Instant,
    /// CPU time of contend, and the machine's load, when the observation began.
    cpu_before: Duration,
    load_before: Load,
    /// The same at the end of the observation.
    at_end: Option<(Duration, Load)>,
    no_switches: Option<String>,
    no_wakes: Option<String>,
    /// Times between two samples, in seconds.
    intervals: Vec<f64>,
    timeline: Timeline,
    causes: CauseLog,
    trace: Option<Collector>,
    limits: Limits,
    recorder: Option<Recorder>,
    /// The tracepoint for wake-ups, if these may be recorded.
    waking: Option<Waking>,
    duty_cycle: DutyCycle,
    /// Binds this thread to its CPU while the program uses all CPUs.
    pinned: Option<Pinned>,
    processes: BTreeMap<i32, Observed>,
    /// By thread ID. Boxes, because nodes of the map are only half full if IDs ascend.
    samplers: BTreeMap<i32, Box<Sampler>>,
    /// Threads that have started recently: their processes, and the interval of their start.
    started: BTreeMap<i32, (i32, u64)>,
    names: BTreeMap<i32, String>,
    samples: u64,
    stacks: Stacks,
    lock_owners: BTreeMap<u64, BTreeMap<i32, u64>>,
    lock_files: LockFiles,
    file_locks: FileLocks,
    /// Interval in which a thread was last found in a short sleep.
    last_sleep: Option<u64>,
    shows_calls: bool,
    shows_names: bool,
    unsampled: BTreeSet<i32>,
    left_out: usize,
    budget: Budget,
    deadlines: Deadlines,
    /// Processes of which a thread has run in this interval, and in the one before.
    awake: BTreeSet<i32>,
    awake_before: BTreeSet<i32>,
    /// ID of the thread from which an idle one is searched whose files are closed.
    hand: i32,
    /// Threads that have run in this interval, some of them several times.
    active: Vec<i32>,
    /// Threads that have ended, as a sample has shown.
    vanished: Vec<i32>,
    buffer: Vec<u8>,
    /// Number of sampling intervals up to now.
    tick: u64,
    /// Interval in which busy threads were last searched.
    examined_at: u64,
    /// Number of intervals until the next step.
    stride: u32,
    /// ID of the thread from which the next part of the round begins.
    round: i32,
}

/// Observes the program. Calls `each` after each interval, which may end the observation. The observation
/// is empty if all processes have ended already.
///
/// # Errors
/// Returns an error if a system call fails.
pub fn observe(
    config: &Config,
    signals: &Signals,
    each: &mut dyn FnMut(&mut Observer<'_>) -> ControlFlow<()>,
) -> io::Result<Observation> {
    descriptors::check()?;
    let mut observer = Observer::start(config)?;
    observer.run(signals, each)?;
    observer.finish();
    observer.search_executables();
    let trace = observer.end_trace();
    Ok(Observation { trace, ..observer.into_observation() })
}

impl<'a> Observer<'a> {
    /// Finds the program's processes and threads, and starts to record their context switches.
    fn start(config: &'a Config) -> io::Result<Self> {
        let own = Pid::from_raw(std::process::id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let found = processes::related(&config.targets, own);
        let found_waking = wakes::find(config.wakes);
        let waking = found_waking.as_ref().ok().copied();
        let (recorder, no_switches) = record_switches(config, &found, waking);
        let no_wakes = wakes::missing(found_waking, recorder.as_ref());
        let cpu_before = child::own_usage().cpu();
        let load_before = Load::read();
        let timeline =
            Timeline::new(now(), recorder.is_some()).with_recorded_wakes(no_wakes.is_none());
        let trace = |limit| Collector::new(clocks(timeline.begun), recorder.is_some(), limit);
        let mut observer = Self {
            trace: config.trace.map(trace),
            config,
            begun: Instant::now(),
            cpu_before,
            load_before,
            at_end: None,
            no_switches,
            no_wakes,
            intervals: Vec::new(),
            timeline,
            causes: CauseLog::default(),
            recorder,
            waking,
            duty_cycle: DutyCycle::default(),
            pinned: None,
            limits: Limits::default(),
            processes: BTreeMap::new(),
            samplers: BTreeMap::new(),
            started: BTreeMap::new(),
            names: BTreeMap::new(),
            samples: 0,
            stacks: Stacks::default(),
            lock_owners: BTreeMap::new(),
            lock_files: LockFiles::default(),
            file_locks: FileLocks::default(),
            last_sleep: None,
            shows_calls: false,
            shows_names: false,
            unsampled: BTreeSet::new(),
            left_out: 0,
            budget: Budget::new(),
            deadlines: Deadlines::default(),
            awake: BTreeSet::new(),
            awake_before: BTreeSet::new(),
            hand: 0,
            active: Vec::new(),
            vanished: Vec::new(),
            buffer: vec![0; 4096],
            tick: 0,
            examined_at: 0,
            stride: 1,
            round: 0,
        };
        observer.update_limits();
        for (pid, relation) in found {
            observer.add_process(pid, relation, Start::Unknown);
        }
        observer.search();
        observer.awake = observer.processes.keys().copied().collect();
        Ok(observer)
    }

    /// Observes until the program or the time ends, a signal arrives, or `each` breaks.
    fn run(
        &mut self,
        signals: &Signals,
        each: &mut dyn FnMut(&mut Observer<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let ends = ends(&self.config.targets);
        let mut last = Instant::now();
        while !self.has_ended() {
            let over = self.config.limit.is_some_and(|limit| self.elapsed() >= limit);
            let time = next(self.config, self.stride, self.begun, &last);
            let ended = sleep(signals, ends.as_ref(), time)?;
            self.step();
            self.intervals.push(last.elapsed().as_secs_f64());
            last = Instant::now();
            let flow = each(self);
            if over || ended || flow.is_break() || signals.interrupted().is_some() {
                break;
            }
        }
        Ok(())
    }
}

impl Observer<'_> {
    /// Returns the time since the observation began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the observation up to now, which continues. Samples all threads for that.
    pub fn snapshot(&mut self) -> Observation {
        self.sample_all();
        let mut timeline = self.timeline.clone();
        timeline.finish(now());
        let intervals = self.intervals.len().saturating_sub(MAX_SNAPSHOT_INTERVALS);
        self.results(timeline, self.intervals[intervals..].to_vec())
    }

    fn into_observation(mut self) -> Observation {
        let timeline = std::mem::replace(&mut self.timeline, Timeline::new(0, false));
        let intervals = std::mem::take(&mut self.intervals);
        let names = std::mem::take(&mut self.names);
        // Their memory is used again for what is found out about them.
        (self.samplers, self.deadlines) = (BTreeMap::new(), Deadlines::default());
        let results = self.results(timeline, intervals);
        Observation { names, stacks: std::mem::take(&mut self.stacks), ..results }
    }

    /// Returns the results up to now, with a finished timeline.
    fn results(&mut self, timeline: Timeline, intervals: Vec<f64>) -> Observation {
        let processes = &self.processes;
        let (cpu, load) = self.at_end.unwrap_or_else(|| (child::own_usage().cpu(), Load::read()));
        let runtime_of = |pid| processes.get(&pid).and_then(|known: &Observed| known.runtime);
        let codes = self.stacks.codes(runtime_of);
        Observation {
            length: Duration::from_nanos(timeline.length()),
            timeline,
            cpus: self.limits.cpus(),
            processes: self.processes.values().map(Observed::snapshot).collect(),
            names: self.names.clone(),
            samples: self.samples,
            intervals,
            no_switches: self.no_switches.clone(),
            no_wakes: self.no_wakes.clone(),
            shows_calls: self.shows_calls,
            shows_names: self.shows_names,
            unsampled: self.unsampled.len(),
            left_out: self.left_out,
            own_cpu: cpu.saturating_sub(self.cpu_before),
            load: load.since(self.load_before),
            throttling: self.limits.throttling(),
            codes,
            lock_owners: self.lock_owners.clone(),
            lock_files: self.lock_files.known(),
            file_lock_share: self.file_locks.share(),
            file_locks: self.file_locks.clone(),
            causes: self.causes.clone(),
            trace: None,
            stacks: Stacks::default(),
        }
    }

    /// Reads context switches, finds new threads, and samples the threads that are due.
    fn step(&mut self) {
        self.tick += u64::from(self.stride);
        self.awake_before = std::mem::take(&mut self.awake);
        let vanished = self.vanished.len();
        let lost = self.timeline.lost;
        let active = self.read_switches();
        self.cycle();
        self.forget_vanished(vanished);
        if self.tick.is_multiple_of(self.search_ticks()) || self.timeline.lost > lost {
            self.search();
        }
        self.read_file_locks();
        let due = self.due(&active);
        self.active = active;
        self.sample(due);
        self.find_stopped();
        self.causes.note(&self.timeline);
        for pid in &self.awake {
            if let Some(process) = self.processes.get_mut(pid) {
                process.is_changed = true;
            }
        }
        if self.tick.is_multiple_of(LATER_SEARCH_TICKS) {
            self.forget_names();
        }
        if self.tick.is_multiple_of(UPDATE_TICKS) {
            self.update_processes();
        }
    }

    /// Returns the number of intervals between two searches for new threads.
    fn search_ticks(&self) -> u64 {
        match self.recorder {
            // Threads that started while the others were found are not known from records.
            Some(_) if self.tick <= SETTLED_TICKS => SETTLED_TICKS,
            Some(_) => LATER_SEARCH_TICKS,
            // A search takes longer the more threads there are.
            None => SEARCH_TICKS * (1 + self.samplers.len() as u64 / THREADS_PER_SEARCH),
        }
    }

    /// Reads how many CPUs the program may use, which may change.
    fn update_limits(&mut self) {
        let workers = self.timeline.workers();
        if !workers.is_empty() {
            self.limits.update(&workers, &self.timeline.busy_threads());
        } else if !self.limits.are_known() {
            self.limits.update(&self.config.targets, &self.config.targets);
        }
        self.timeline.set_cpus(self.limits.cpus());
    }

    /// Starts to sample stacks of threads that were busy since the last call.
    fn examine_busy_threads(&mut self) {
        let Some(recorder) = &mut self.recorder else { return };
        let ticks = self.tick - std::mem::replace(&mut self.examined_at, self.tick);
        let time = ticks * u64::try_from(self.config.interval.as_nanos()).unwrap_or(0);
        let in_bursts = self.timeline.recorded_share().is_some_and(|share| share < MAX_BURSTS);
        for (id, sampler) in &mut self.samplers {
            let sched = sampler.files.sched;
            let ran = sched.on_cpu.saturating_sub(sampler.examined.on_cpu);
            let slices = sched.slices.saturating_sub(sampler.examined.slices);
            sampler.examined = sched;
            let (Some(process), Some(thread)) =
                (Pid::from_raw(sampler.process), Pid::from_raw(*id))
            else {
                continue;
            };
            let count = recorder.descriptors();
            if MIN_BUSY * ran <= time || !self.budget.take(count) {
                continue; // nothing is said about its code
            }
            let runtime = self.processes.get(&sampler.process).and_then(|process| process.runtime);
            // Programs in Go are judged by their stacks alone.
            let runs = match runtime {
                Some(Runtime::Go) => Runs::Goroutines,
                _ if ran < BRIEF_NANOS * slices.max(1) => Runs::Brief,
                _ => Runs::Long,
            };
            if !self.stacks.begin(process, *id, runs, in_bursts)
                || recorder.sample(thread, runs.period()).is_err()
            {
                self.budget.give_back(count);
            }
        }
    }

    fn update_processes(&mut self) {
        self.examine_busy_threads();
        // At first, the program may be moved to other CPUs or to another group.
        if (self.tick / UPDATE_TICKS).is_power_of_two() || self.tick.is_multiple_of(SETTLED_TICKS) {
            self.update_limits();
        }
        for process in self.processes.values_mut() {
            if process.is_changed || process.pipes.is_none() {
                let was_open = process.is_open();
                process.update(&mut self.buffer);
                if was_open && !process.is_open() {
                    self.budget.give_back(processes::DESCRIPTORS);
                }
            }
        }
    }

    /// Samples all threads for the last time.
    fn finish(&mut self) {
        self.sample_all();
        self.update_processes();
        self.update_limits();
        self.timeline.finish(now());
        // What follows is not part of the observed time.
        self.at_end = Some((child::own_usage().cpu(), Load::read()));
        self.note_moments();
    }

    fn note_moments(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.note_moments(&self.timeline);
        }
    }

    /// Ends the trace, if there is one, where the timeline ends.
    fn end_trace(&mut self) -> Option<Trace> {
        let no_switches = self.no_switches.clone();
        let end = self.timeline.begun + self.timeline.length();
        let command = |process: &Observed| ProcessTrace {
            pid: process.pid.as_raw_nonzero().get(),
            command: process.command.clone(),
            name: None,
        };
        let processes = self.processes.values().map(command);
        self.trace.take().map(|trace| trace.finish(end, no_switches, processes))
    }

    /// Looks for statically linked libraries of processes with several threads. Those of known
    /// runtimes, whose executables are large, have none that matter.
    fn search_executables(&mut self) {
        let may_have =
            |process: &&mut Observed| process.runtime.is_none() && process.most_threads > 1;
        self.processes
            .values_mut()
            .filter(may_have)
            .take(MAX_SEARCHED)
            .for_each(|process| process.libraries.search_executable());
    }

    /// Returns whether all processes have ended, as far as samples have shown.
    fn has_ended(&mut self) -> bool {
        if !self.samplers.is_empty() {
            return false;
        }
        for process in self.processes.values_mut().filter(|process| !process.has_ended()) {
            process.update(&mut self.buffer);
        }
        self.processes.values().all(Observed::has_ended)
    }
}
