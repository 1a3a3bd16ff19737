//! Observes a program until it ends, the time is over or a signal arrives.
//!
//! In each interval, the observer first reads the context switches, then samples threads that have run
//! since their last sample ([`crate::backoff`]), and a part of the others. Without context switches, a
//! thread that does not run is sampled less and less often.

mod stopped;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use contend_record::doctor::{Relation, Runtime};
use contend_record::trace::{Clocks, ProcessTrace, Trace};
use contend_sys::Pid;
use contend_sys::cgroup::Throttling;
use contend_sys::interrupt::Signals;
use contend_sys::load::Load;
use contend_sys::perf::{Event, Recorder};
use contend_sys::procfs::with_descendants;
use contend_sys::waking::Waking;
use contend_sys::{child, cpu};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use crate::backoff::{Backoff, Deadlines};
use crate::descriptors::{self, Budget};
use crate::limits::Limits;
use crate::processes::{self, Observed};
use crate::runtime;
use crate::stacks::{Code, Stacks};
use crate::thread::{self, Sample, Sampled, ThreadFiles};
use crate::timeline::Timeline;
use crate::trace::{Collector, Taken};
use crate::wait::{Object, Wait};
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
    /// Share of the readings of the machine's file locks in which an observed process held one, without
    /// processes that always do.
    pub file_lock_share: f64,
    /// These readings.
    pub file_locks: FileLocks,
    /// What each thread did over time, if that was requested.
    pub trace: Option<Trace>,
}

/// Readings of the machine's file locks.
#[derive(Debug, Clone, Default)]
pub struct FileLocks {
    /// Number of readings.
    pub readings: u64,
    /// Number of readings in which each observed process held a lock, by PID.
    pub holders: BTreeMap<i32, u64>,
}

/// Number of intervals between two searches for new threads, without context switches.
const SEARCH_TICKS: u64 = 10;
/// Number of threads for which a search may take place this often.
const THREADS_PER_SEARCH: u64 = 200;
/// Number of intervals between two readings of the processes' counters.
const UPDATE_TICKS: u64 = 10;
/// Number of threads for which the program's limits may be read that often.
const THREADS_PER_UPDATE: u64 = 500;
/// Number of intervals in which every thread is sampled once, with context switches.
const ROUND_TICKS: u64 = 100;
/// Number of intervals between two searches for new threads, with context switches.
const LATER_SEARCH_TICKS: u64 = 1000;
/// Largest number of threads sampled in an interval that have not run, with context switches. With more
/// threads, a round takes longer.
const MAX_ROUND_SAMPLES: usize = 4;
/// Number of idle threads sampled in an interval, without context switches.
const IDLE_SAMPLES: u64 = 32;
/// Largest number of threads that could not be sampled which are counted.
const MAX_UNSAMPLED: usize = 100_000;
/// Number of intervals until the next sample from which a thread is idle.
const IDLE_BACKOFF: u64 = 4;
/// Number of threads among which one is searched whose files are closed in place of others.
const MAX_CANDIDATES: usize = 32;
/// Number of intervals between two readings of the machine's file locks.
const LOCK_TICKS: u64 = 3;
/// Largest number of intervals for which a thread that does not run is not sampled, without context
/// switches.
const MAX_BACKOFF: u64 = 16;
/// Largest number of threads sampled in an interval because they have run.
const MAX_ACTIVE_SAMPLES: usize = 256;
/// Largest number of locks whose owners are counted.
const MAX_LOCKS: usize = 1000;
/// Share of the readings from which a process always holds a file lock.
const ALWAYS: f64 = 0.8;
/// Largest number of processes that are sampled. Others are only in the records.
const MAX_PROCESSES: usize = 10_000;
/// A thread whose stacks are sampled is on a CPU for at least this part of the time: one divided by the number.
const MIN_BUSY: u64 = 20;
/// Largest number of threads whose context switches are recorded from the start.
const MAX_FOLLOWED: usize = 2000;
/// Largest number of times between two samples in a snapshot.
const MAX_SNAPSHOT_INTERVALS: usize = 1000;

/// Largest number of executables that are searched for libraries.
const MAX_SEARCHED: usize = 8;

/// A thread with its files, and when it is sampled next.
#[derive(Debug)]
struct Sampler {
    files: ThreadFiles,
    /// Time on a CPU when the processes were last updated, in nanoseconds.
    on_cpu: u64,
    process: i32,
    /// Interval in which it was found.
    found: u64,
    /// When it is sampled next, without context switches.
    due: u64,
    backoff: u64,
    /// When it is sampled next, with context switches.
    run_backoff: Backoff,
}

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
    no_switches: Option<String>,
    no_wakes: Option<String>,
    /// Times between two samples, in seconds.
    intervals: Vec<f64>,
    timeline: Timeline,
    trace: Option<Collector>,
    limits: Limits,
    recorder: Option<Recorder>,
    processes: BTreeMap<i32, Observed>,
    samplers: BTreeMap<i32, Sampler>,
    /// Threads that have started recently: their processes, and the interval of their start.
    started: BTreeMap<i32, (i32, u64)>,
    names: BTreeMap<i32, String>,
    samples: u64,
    stacks: Stacks,
    lock_owners: BTreeMap<u64, BTreeMap<i32, u64>>,
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
    tick: u64,
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
    let own = Pid::from_raw(std::process::id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    let cpu_before = child::own_usage().cpu();
    let load_before = Load::read();
    let found = processes::related(&config.targets, own);
    let waking = wakes::find(config.wakes);
    let (recorder, no_switches) = record_switches(config, &found, waking.as_ref().ok().copied());
    let no_wakes = wakes::missing(waking, recorder.as_ref());
    let timeline = Timeline::new(now(), recorder.is_some()).with_recorded_wakes(no_wakes.is_none());
    let trace = |limit| Collector::new(clocks(timeline.begun), recorder.is_some(), limit);
    let mut observer = Observer {
        trace: config.trace.map(trace),
        config,
        begun: Instant::now(),
        cpu_before,
        load_before,
        no_switches,
        no_wakes,
        intervals: Vec::new(),
        timeline,
        recorder,
        limits: Limits::default(),
        processes: BTreeMap::new(),
        samplers: BTreeMap::new(),
        started: BTreeMap::new(),
        names: BTreeMap::new(),
        samples: 0,
        stacks: Stacks::default(),
        lock_owners: BTreeMap::new(),
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
        round: 0,
    };
    observer.update_limits();
    for (pid, relation) in found {
        observer.add_process(pid, relation, Start::Unknown);
    }
    observer.search();
    observer.awake = observer.processes.keys().copied().collect();
    let ends = ends(&config.targets);
    let mut last = Instant::now();
    while !observer.has_ended() {
        let over = config.limit.is_some_and(|limit| observer.elapsed() >= limit);
        let ended = sleep(signals, ends.as_ref(), next(config, observer.begun, &last))?;
        observer.step();
        observer.intervals.push(last.elapsed().as_secs_f64());
        last = Instant::now();
        let flow = each(&mut observer);
        if over || ended || flow.is_break() || signals.interrupted().is_some() {
            break;
        }
    }
    observer.finish();
    observer.search_executables();
    let trace = observer.end_trace();
    Ok(Observation { trace, ..observer.into_observation() })
}

/// Starts to record context switches of the found processes, and wake-ups by `waking`. Returns why that
/// is not possible, if it is not.
fn record_switches(
    config: &Config,
    found: &[(Pid, Relation)],
    waking: Option<Waking>,
) -> (Option<Recorder>, Option<String>) {
    if !config.switches {
        return (None, Some("it was not requested".to_owned()));
    }
    let cpus = cpu::online_list();
    let mut recorder: Option<Recorder> = None;
    let mut followed: HashSet<Pid> = HashSet::new();
    let mut all: Vec<Pid> = found.iter().map(|(pid, _)| *pid).collect();
    loop {
        // A thread that was created before its creator was followed must be followed on its own; one
        // that was created later is followed already.
        let created: HashSet<i32> = recorder.iter_mut().flat_map(started).collect();
        let threads: Vec<Pid> = all
            .iter()
            .flat_map(|pid| processes::threads(*pid))
            .filter(|id| !followed.contains(id) && !created.contains(&id.as_raw_nonzero().get()))
            .collect();
        if threads.is_empty() {
            break;
        }
        if threads.len() + followed.len() > MAX_FOLLOWED {
            let reason = format!("the program has more than {MAX_FOLLOWED} threads");
            return (None, Some(reason));
        }
        let count = (threads.len() + followed.len()) * cpus.len();
        let mut budget = Budget::new();
        if !budget.take(threads.len() * cpus.len()) {
            let reason = format!(
                "{count} file descriptors are needed, one for each thread and CPU, and only {} more may \
                 be opened (`ulimit -n`)",
                budget.left()
            );
            return (None, Some(reason));
        }
        for thread in threads {
            followed.insert(thread);
            let result = match &mut recorder {
                Some(recorder) => recorder.follow(thread),
                None => wakes::recorder(thread, waking).map(|new| recorder = Some(new)),
            };
            match result {
                Ok(()) => {}
                // It has ended in the meantime.
                Err(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                Err(error) => return (None, Some(why_no_switches(&error))),
            }
        }
        all = all.iter().flat_map(|pid| with_descendants(*pid)).collect();
        all.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        all.dedup();
    }
    match recorder {
        Some(recorder) => (Some(recorder), None),
        None => (None, Some("the program has ended".to_owned())),
    }
}

/// Returns the threads whose start is in the records.
fn started(recorder: &mut Recorder) -> Vec<i32> {
    let records = recorder.peek().iter();
    let is_start =
        |record: &&contend_sys::perf::Record| matches!(record.event, Event::Started { .. });
    records.filter(is_start).map(|record| record.thread).collect()
}

/// Returns the address and the owner of the lock that a thread has begun to wait for.
fn owner(sampler: &Sampler, sample: &Sample) -> Option<(u64, i32)> {
    match sample.state {
        Sampled::Waiting(Wait { object: Object::Futex(futex), .. }) if sample.slices > 0 => {
            Some((futex.address, futex.owner(Pid::from_raw(sampler.process)?)?))
        }
        _ => None,
    }
}

fn why_no_switches(error: &io::Error) -> String {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    match error.kind() {
        io::ErrorKind::PermissionDenied => match level {
            Some(level) if level.trim().parse::<i32>().is_ok_and(|level| level > 2) => format!(
                "kernel.perf_event_paranoid is {}: set it to 2 or less, or run contend as root",
                level.trim()
            ),
            // A filter of system calls (seccomp) denies the call even for the user's own processes.
            _ if is_denied() => {
                "perf_event_open is not permitted here, as in containers with the usual filter of system \
                 calls (seccomp)"
                    .to_owned()
            }
            _ => "not permitted for processes of another user: run contend as root".to_owned(),
        },
        _ => format!("the kernel does not provide it ({error})"),
    }
}

/// Returns whether this process may not even record its own context switches.
fn is_denied() -> bool {
    Pid::from_raw(std::process::id().cast_signed())
        .is_some_and(|own| Recorder::new(own, &cpu::allowed_list()).is_err())
}

/// Returns the time until the next sample, or until the end of the observation if that comes first.
fn next(config: &Config, begun: Instant, last: &Instant) -> Duration {
    let until = config.interval.saturating_sub(last.elapsed());
    let rest = config.limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    rest.map_or(until, |rest| until.min(rest))
}

/// Returns a descriptor that is readable once the named process has ended, if there is a single one.
fn ends(targets: &[Pid]) -> Option<OwnedFd> {
    match targets {
        [one] => pidfd_open(*one, PidfdFlags::empty()).ok(),
        _ => None,
    }
}

/// Sleeps for `time`, or until a signal arrives or the process of `ends` has ended. Returns whether the
/// latter has happened.
fn sleep(signals: &Signals, ends: Option<&OwnedFd>, time: Duration) -> io::Result<bool> {
    let end = ends.map_or_else(|| signals.as_fd(), |end| end.as_fd());
    let mut fds =
        [PollFd::new(signals, PollFlags::IN), PollFd::from_borrowed_fd(end, PollFlags::IN)];
    let limit = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut fds, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(ends.is_some() && !fds[1].revents().is_empty())
}

/// Returns the time in nanoseconds of `CLOCK_MONOTONIC`.
fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// Returns what other clocks read now, which is shortly after `monotonic`.
fn clocks(monotonic: u64) -> Clocks {
    let since = now() - monotonic;
    let at_start = |clock| read(clock).saturating_sub(since);
    Clocks {
        monotonic,
        boottime: at_start(ClockId::Boottime),
        realtime: at_start(ClockId::Realtime),
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl FileLocks {
    /// Returns the share of the readings in which a process held a lock, without processes that always do.
    pub fn share(&self) -> f64 {
        let readings = self.readings.max(1) as f64;
        let shares = self.holders.values().map(|&count| count as f64 / readings);
        // A process that always holds a lock marks its presence; no process retries for that one.
        shares.filter(|share| *share < ALWAYS).sum::<f64>().min(1.0)
    }

    /// Returns the readings since `earlier`, a previous state of these.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut increase = self.clone();
        increase.readings -= earlier.readings.min(self.readings);
        for (pid, count) in &mut increase.holders {
            *count -= earlier.holders.get(pid).copied().unwrap_or(0).min(*count);
        }
        increase
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
        self.results(timeline, intervals)
    }

    /// Returns the results up to now, with a finished timeline.
    fn results(&mut self, timeline: Timeline, intervals: Vec<f64>) -> Observation {
        let processes = &self.processes;
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
            own_cpu: child::own_usage().cpu().saturating_sub(self.cpu_before),
            load: Load::read().since(self.load_before),
            throttling: self.limits.throttling(),
            codes,
            lock_owners: self.lock_owners.clone(),
            file_lock_share: self.file_locks.share(),
            file_locks: self.file_locks.clone(),
            trace: None,
        }
    }

    /// Reads context switches, finds new threads, and samples the threads that are due.
    fn step(&mut self) {
        self.tick += 1;
        self.awake_before = std::mem::take(&mut self.awake);
        let vanished = self.vanished.len();
        let lost = self.timeline.lost;
        let active = self.read_switches();
        self.forget_vanished(vanished);
        if self.tick.is_multiple_of(self.search_ticks()) || self.timeline.lost > lost {
            self.search();
        }
        self.read_file_locks();
        let due = self.due(&active);
        self.active = active;
        self.sample(due);
        self.find_stopped();
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

    /// Forgets the names of threads whose histories are not kept.
    fn forget_names(&mut self) {
        let finished: HashSet<i32> = self.timeline.finished.iter().map(|(id, _)| *id).collect();
        let tracks = &self.timeline.tracks;
        self.names.retain(|id, _| tracks.contains_key(id) || finished.contains(id));
    }

    /// Returns the number of intervals between two searches for new threads.
    fn search_ticks(&self) -> u64 {
        match self.recorder {
            // Threads that started while the others were found are not known from records.
            Some(_) if self.tick <= ROUND_TICKS => ROUND_TICKS,
            Some(_) => LATER_SEARCH_TICKS,
            // A search takes longer the more threads there are.
            None => SEARCH_TICKS * (1 + self.samplers.len() as u64 / THREADS_PER_SEARCH),
        }
    }

    /// Reads how many CPUs the program may use, which may change.
    fn update_limits(&mut self) {
        let mut workers = self.timeline.workers();
        if workers.is_empty() {
            workers.clone_from(&self.config.targets);
        }
        self.limits.update(&workers);
        self.timeline.set_cpus(self.limits.cpus());
    }

    /// Reads who holds file locks now, if threads sleep for short times, as when they retry.
    fn read_file_locks(&mut self) {
        if self.timeline.has_short_sleepers() {
            self.last_sleep = Some(self.tick);
        }
        let is_polling = self.last_sleep.is_some_and(|last| self.tick - last < ROUND_TICKS);
        if !is_polling || !self.tick.is_multiple_of(LOCK_TICKS) {
            return;
        }
        let holders = contend_sys::procfs::lock_holders();
        self.file_locks.readings += 1;
        let observed: BTreeSet<i32> =
            holders.into_iter().filter(|pid| self.processes.contains_key(pid)).collect();
        for pid in observed {
            *self.file_locks.holders.entry(pid).or_default() += 1;
        }
    }

    /// Starts to sample stacks of threads that were busy since the last call.
    fn examine_busy_threads(&mut self) {
        let Some(recorder) = &mut self.recorder else { return };
        let time = UPDATE_TICKS * u64::try_from(self.config.interval.as_nanos()).unwrap_or(0);
        for (id, sampler) in &mut self.samplers {
            let ran = sampler.files.sched.on_cpu.saturating_sub(sampler.on_cpu);
            sampler.on_cpu = sampler.files.sched.on_cpu;
            let (Some(process), Some(thread)) =
                (Pid::from_raw(sampler.process), Pid::from_raw(*id))
            else {
                continue;
            };
            let count = recorder.descriptors();
            if MIN_BUSY * ran <= time || !self.budget.take(count) {
                continue; // nothing is said about its code
            }
            if !self.stacks.begin(process, *id) || recorder.sample(thread).is_err() {
                self.budget.give_back(count);
            }
        }
    }

    fn update_processes(&mut self) {
        self.examine_busy_threads();
        // It takes longer the more threads there are.
        let updates = 1 + self.samplers.len() as u64 / THREADS_PER_UPDATE;
        if self.tick.is_multiple_of(updates * UPDATE_TICKS) {
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

    fn sample_all(&mut self) {
        let all = self.samplers.keys().copied().collect();
        self.sample(all);
    }

    /// Samples all threads for the last time.
    fn finish(&mut self) {
        self.sample_all();
        self.update_processes();
        self.timeline.finish(now());
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

    fn sample(&mut self, threads: Vec<i32>) {
        let (mut run, mut queued) = (0, 0);
        let mut found: Vec<(u64, i32)> = Vec::new();
        let mut reopened: Vec<i32> = Vec::new();
        // Without context switches, it takes longer until each idle thread is sampled the more there are.
        let max_backoff = MAX_BACKOFF.max(self.samplers.len() as u64 / IDLE_SAMPLES);
        for id in threads {
            let Some(sampler) = self.samplers.get_mut(&id) else { continue };
            let runtime = self.processes.get(&sampler.process).and_then(|process| process.runtime);
            let (last, before) = (sampler.files.state, now());
            match sampler.files.sample(runtime, &mut self.buffer) {
                Ok(sample) => {
                    self.samples += 1;
                    run += sample.on_cpu;
                    queued += sample.run_queue;
                    let is_idle = sample.slices == 0 && sample.state != Sampled::Active;
                    sampler.backoff =
                        if is_idle { max_backoff.min(2 * sampler.backoff) } else { 1 };
                    sampler.due = self.tick + sampler.backoff;
                    if sample.slices > 0 {
                        sampler.run_backoff.note(last, sample.state);
                    }
                    if !is_idle {
                        self.awake.insert(sampler.process);
                        if !sampler.files.is_open() {
                            reopened.push(id);
                        }
                    }
                    let after = now();
                    self.timeline.sample(id, after, &sample);
                    if let Some(trace) = &mut self.trace {
                        let taken = Taken { before, after, sample: &sample };
                        trace.sample(sampler.process, id, &taken);
                    }
                    if let Some((address, owner)) = owner(sampler, &sample) {
                        found.push((address, owner));
                    }
                }
                Err(error) if thread::is_out_of_descriptors(&error) => {}
                Err(_) => self.drop_thread(id),
            }
        }
        self.timeline.tick(now(), run, queued);
        self.note_moments();
        for id in reopened {
            self.keep_open(id);
        }
        for (address, owner) in found {
            // Other primitives have something else in this place.
            if self.samplers.contains_key(&owner) && self.lock_owners.len() < MAX_LOCKS {
                *self.lock_owners.entry(address).or_default().entry(owner).or_default() += 1;
            }
        }
    }

    /// Reads the context switches up to now, and returns the threads that they are about, each at least
    /// once. Adds new threads and processes.
    fn read_switches(&mut self) -> Vec<i32> {
        let mut active = std::mem::take(&mut self.active);
        active.clear();
        let Some(recorder) = &mut self.recorder else { return active };
        let mut executed: BTreeMap<i32, u64> = BTreeMap::new();
        let mut renamed: Vec<(i32, Box<str>)> = Vec::new();
        let (timeline, started, tick) = (&mut self.timeline, &mut self.started, self.tick);
        let mut trace = self.trace.as_mut();
        let (stacks, awake) = (&mut self.stacks, &mut self.awake);
        let mut enough: Vec<i32> = Vec::new();
        recorder.read(now(), &mut |record| {
            match &record.event {
                Event::Started { .. } => {
                    started.insert(record.thread, (record.process, tick));
                }
                Event::Executed(name) => {
                    executed.insert(record.process, record.time);
                    renamed.push((record.thread, name.clone()));
                }
                Event::In | Event::Blocked | Event::Preempted => {
                    if active.last() != Some(&record.thread) {
                        active.push(record.thread);
                        awake.insert(record.process);
                    }
                }
                Event::Ended => drop(started.remove(&record.thread)),
                Event::At(stack) => {
                    if stacks.note(record.thread, stack) {
                        enough.push(record.thread);
                    }
                    return;
                }
                Event::Woke { .. } => return timeline.record(&record),
                Event::Renamed(name) => renamed.push((record.thread, name.clone())),
                Event::Lost(_) => {}
            }
            timeline.record(&record);
            if let Some(trace) = &mut trace {
                trace.record(&record);
                trace.note_moments(timeline);
            }
        });
        for thread in enough.into_iter().filter_map(Pid::from_raw) {
            recorder.stop_sampling(thread);
            self.budget.give_back(recorder.descriptors());
        }
        self.add_started();
        for (process, time) in executed {
            self.note_execution(process, time);
        }
        for (thread, name) in renamed {
            if let Some(known) = self.names.get_mut(&thread) {
                *known = name.into_string();
            }
        }
        active
    }

    /// Notes that a process has executed another program at `time`. Its other threads have ended, and the
    /// one that continues has the ID of the process, whichever it was.
    fn note_execution(&mut self, process: i32, time: u64) {
        let Some(known) = self.processes.get_mut(&process) else { return };
        known.update_program();
        let runtime = known.runtime;
        if known.threads > 1 {
            let is_other = |(id, sampler): (&i32, &Sampler)| {
                (sampler.process == process && *id != process).then_some(*id)
            };
            let others: Vec<i32> = self.samplers.iter().filter_map(is_other).collect();
            for id in others {
                self.drop_thread(id);
                self.timeline.forget(id, time);
            }
        }
        let name = self.names.get(&process).map_or("", String::as_str);
        self.timeline.set_runtime(process, runtime, runtime::is_helper(runtime, name));
    }

    /// Returns the IDs of the threads to sample now.
    fn due(&mut self, active: &[i32]) -> Vec<i32> {
        if self.recorder.is_none() {
            let is_due =
                |(id, sampler): (&i32, &Sampler)| (sampler.due <= self.tick).then_some(*id);
            return self.samplers.iter().filter_map(is_due).collect();
        }
        let active: BTreeSet<i32> = active.iter().copied().collect();
        let mut due: Vec<i32> = Vec::new();
        for id in active {
            let Some(sampler) = self.samplers.get_mut(&id) else { continue };
            // A trace shows each wait.
            let has_time = due.len() < MAX_ACTIVE_SAMPLES;
            if (sampler.run_backoff.has_run(self.tick) || self.trace.is_some()) && has_time {
                due.push(id);
            } else {
                self.deadlines.enter(id, &sampler.run_backoff);
            }
        }
        for (id, deadline) in self.deadlines.due(self.tick) {
            let sampler = self.samplers.get(&id);
            if sampler.is_some_and(|sampler| sampler.run_backoff.is_deadline(deadline)) {
                due.push(id);
            }
        }
        let part = self.samplers.len().div_ceil(usize::try_from(ROUND_TICKS).unwrap_or(1));
        let part = part.min(MAX_ROUND_SAMPLES);
        let part: Vec<i32> =
            self.samplers.range(self.round..).map(|(id, _)| *id).take(part).collect();
        self.round = part.last().map_or(0, |last| last + 1);
        due.extend(part);
        due.sort_unstable();
        due.dedup();
        due
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

    /// Adds a process with all its threads.
    fn add_process(&mut self, pid: Pid, relation: Relation, start: Start) {
        if self.processes.len() >= MAX_PROCESSES {
            self.left_out += 1;
            return;
        }
        let Ok(mut process) = Observed::open(pid, relation) else { return };
        if self.budget.take(processes::DESCRIPTORS) {
            process.keep_open();
            if !process.is_open() {
                self.budget.give_back(processes::DESCRIPTORS);
            }
        }
        let runtime = process.runtime;
        let id = pid.as_raw_nonzero().get();
        self.processes.insert(id, process);
        for thread in processes::threads(pid) {
            self.add_thread(pid, thread, runtime, start);
        }
    }

    fn add_thread(&mut self, process: Pid, thread: Pid, runtime: Option<Runtime>, start: Start) {
        let (pid, id) = (process.as_raw_nonzero().get(), thread.as_raw_nonzero().get());
        if self.samplers.contains_key(&id) {
            return;
        }
        let mut files = match ThreadFiles::open(process, thread, &mut self.buffer) {
            Ok(files) => files,
            Err(error) => {
                if thread::is_out_of_descriptors(&error) && self.unsampled.len() < MAX_UNSAMPLED {
                    self.unsampled.insert(id);
                }
                return;
            }
        };
        self.unsampled.remove(&id);
        if start == Start::Observed {
            files.count_from_start();
        }
        let before = now();
        let Ok(sample) = files.sample(runtime, &mut self.buffer) else { return };
        let after = now();
        self.follow(thread);
        self.shows_calls |= files.shows_calls();
        self.shows_names |= files.shows_name();
        self.timeline.add(pid, id, after, sample.state);
        if start == Start::Observed {
            self.timeline.sample(id, after, &sample);
        }
        let name = thread::name(process, thread);
        self.timeline.set_runtime(id, runtime, runtime::is_helper(runtime, &name));
        if let Some(trace) = &mut self.trace {
            trace.add((pid, id), (before, after), sample.state, &name);
        }
        self.names.insert(id, name);
        let on_cpu = files.sched.on_cpu;
        let (found, due, run_backoff) = (self.tick, self.tick + 1, Backoff::default());
        let sampler = Sampler { files, on_cpu, process: pid, found, due, backoff: 1, run_backoff };
        self.samplers.insert(id, sampler);
        self.keep_open(id);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads += 1;
            process.most_threads = process.most_threads.max(process.threads);
        }
    }

    /// Starts to record the context switches of a thread that has been found later than the others, unless
    /// they are recorded already.
    fn follow(&mut self, thread: Pid) {
        let id = thread.as_raw_nonzero().get();
        let Some(recorder) = &mut self.recorder else { return };
        if self.tick == 0 || self.timeline.tracks.contains_key(&id) {
            return;
        }
        let count = recorder.descriptors();
        if self.budget.take(count) && recorder.follow(thread).is_err() {
            self.budget.give_back(count); // samples still count
        }
    }

    /// Keeps the files of a thread open, if necessary in place of those of an idle thread.
    fn keep_open(&mut self, id: i32) {
        if !self.budget.take(thread::DESCRIPTORS) && !self.close_idle() {
            return;
        }
        if self.samplers.get_mut(&id).is_none_or(|sampler| sampler.files.keep_open().is_err()) {
            self.budget.give_back(thread::DESCRIPTORS);
        }
    }

    /// Closes the files of a thread that has not run for some time. Returns whether one was found among
    /// the next ones.
    fn close_idle(&mut self) -> bool {
        for (id, sampler) in self.samplers.range_mut(self.hand..).take(MAX_CANDIDATES) {
            self.hand = id + 1;
            if sampler.files.is_open() && sampler.backoff >= IDLE_BACKOFF {
                sampler.files.close();
                return true;
            }
        }
        if self.samplers.range(self.hand..).next().is_none() {
            self.hand = 0;
        }
        false
    }

    /// Adds the threads that have started in earlier intervals and have not ended since. Their records
    /// suffice for those that live shorter.
    fn add_started(&mut self) {
        let tick = self.tick;
        let lasting: Vec<(i32, i32, u64)> = self
            .started
            .iter()
            .filter(|(_, (_, started))| *started < tick)
            .map(|(thread, (process, started))| (*process, *thread, *started))
            .collect();
        for (process, thread, started) in lasting {
            self.started.remove(&thread);
            let (Some(pid), Some(id)) = (Pid::from_raw(process), Pid::from_raw(thread)) else {
                continue;
            };
            // An earlier thread had the same ID.
            if self.samplers.get(&thread).is_some_and(|sampler| sampler.found + 1 < started) {
                self.drop_thread(thread);
                self.vanished.retain(|vanished| *vanished != thread);
            }
            match self.processes.get(&process).filter(|known| !known.has_ended()) {
                Some(known) => self.add_thread(pid, id, known.runtime, Start::Observed),
                None => self.add_process(pid, Relation::Descendant, Start::Observed),
            }
        }
    }

    /// Looks for new threads and children of all processes.
    fn search(&mut self) {
        let mut next: Vec<(Pid, Option<Runtime>)> = self
            .processes
            .values()
            .filter(|process| !process.has_ended())
            .map(|process| (process.pid, process.runtime))
            .collect();
        while let Some((pid, runtime)) = next.pop() {
            for thread in processes::threads(pid) {
                self.add_thread(pid, thread, runtime, Start::Unknown);
            }
            for child in contend_sys::procfs::children(pid) {
                let id = child.as_raw_nonzero().get();
                if !self.processes.contains_key(&id) && id.cast_unsigned() != std::process::id() {
                    self.add_process(child, Relation::Descendant, Start::Unknown);
                    // It may have children of its own.
                    next.push((child, None));
                }
            }
        }
    }

    /// Removes the histories of threads that vanished before the records were last read. Their ends have
    /// been read by now. One that is left was found while it ended, after its end had been read.
    fn forget_vanished(&mut self, before: usize) {
        for id in self.vanished.drain(..before) {
            if !self.samplers.contains_key(&id) {
                self.timeline.forget(id, now());
            }
        }
    }

    /// Forgets the files of a thread that has ended. With context switches, its record tells when.
    fn drop_thread(&mut self, id: i32) {
        let sampler = self.samplers.remove(&id);
        let ended = now();
        if let (Some(sampler), Some(trace)) = (&sampler, &mut self.trace) {
            trace.end_at(sampler.process, id, ended);
        }
        if sampler.as_ref().is_some_and(|sampler| sampler.files.is_open()) {
            self.budget.give_back(thread::DESCRIPTORS);
        }
        let process = sampler.and_then(|sampler| self.processes.get_mut(&sampler.process));
        if let Some(process) = process {
            process.threads = process.threads.saturating_sub(1);
        }
        if self.recorder.is_none() {
            self.timeline.end_at(id, ended);
        } else {
            self.vanished.push(id);
        }
    }
}
