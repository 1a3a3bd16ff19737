//! What the threads do over time, in constant memory: how many run at the same time, why no more do,
//! how long each runs and waits, and who wakes whom.
//!
//! ```text
//! context switches ─▶ levels, causes, run and wait lengths                exact, if recorded
//!          └────────▶ wake-ups, where these are not recorded              inferred
//! wake-ups ─────────▶ who wakes whom                                      exact, if recorded
//! samples ──────────▶ time by state and by object                         amounts exact, kinds sampled
//!          └────────▶ levels and causes, where no switches are recorded   estimated
//! ```
//!
//! A switch shows when a thread stops running, but not the reason. Until a sample finds that, the
//! thread is assumed to be in the same wait as the last time.

mod accounts;
mod gaps;
mod since;
mod waits;
mod wakes;

use std::collections::BTreeMap;
use std::time::Duration;

use contend_record::doctor::{Cause, Runtime, ThreadState};
use contend_sys::Pid;
use contend_sys::perf::{Event, Record};
use rustc_hash::FxHashMap;

use self::accounts::Account;
use self::gaps::Gaps;
pub use self::waits::{WaitTime, Waits};
use crate::histogram::Histogram;
use crate::thread::{Sample, Sampled};
use crate::wait::{Object, Wait};
use wakes::{Waker, Waking};

/// Largest number of running threads that is counted on its own.
const MAX_LEVEL: usize = 64;
/// Sleeps up to this duration may be part of polling; longer ones are pauses.
pub const SHORT_SLEEP: Duration = Duration::from_millis(100);
/// Time within which a thread that starts to run was probably woken by the thread that left the CPU,
/// in nanoseconds.
const WAKE_NANOS: u64 = 100_000;
/// Largest number of pairs of threads whose wake-ups are counted.
const MAX_PAIRS: usize = 4096;
/// Length of a run that is too short to interrupt another thread's time alone, in nanoseconds.
const BRIEF_NANOS: u64 = 2_000_000;
/// Time alone must be this many times as long as all brief runs of other threads in it.
const MIN_ALONE_RATIO: u64 = 50;
/// Largest number of programs whose executions are counted.
const MAX_PROGRAMS: usize = 256;
/// Programs that only sleep.
const SLEEP_PROGRAMS: &[&str] = &["sleep", "usleep"];
/// Share of its life that a process which computes runs.
const MIN_BUSY_SHARE: f64 = 0.7;
/// Smallest share of the time alone for which the thread must run.
const MIN_ALONE_SHARE: f64 = 0.7;
/// Largest number of ended threads whose history is kept.
const MAX_FINISHED: usize = 1000;
/// `SHORT_SLEEP`, in nanoseconds.
const SHORT_NANOS: u64 = 100_000_000;
/// Number of thread states.
pub const STATES: usize = ThreadState::Unknown as usize + 1;
/// Number of causes.
pub const CAUSES: usize = Cause::Unknown as usize + 1;

/// A thread's history.
#[derive(Debug, Clone)]
pub struct Track {
    /// PID of its process.
    pub process: i32,
    /// Time of the first observation, in nanoseconds of `CLOCK_MONOTONIC`.
    pub begun: u64,
    /// Time of its end; `None` if it had not ended.
    pub ended: Option<u64>,
    /// Time by state, in nanoseconds, by samples.
    pub states: [u64; STATES],
    /// Time and samples by wait; at most `MAX_WAITS`.
    pub waits: Waits,
    /// Number of times that the scheduler gave it the CPU.
    pub slices: u64,
    /// Time on a CPU by context switches, in nanoseconds.
    pub run_nanos: u64,
    /// Lengths of its runs, by context switches.
    pub runs: Histogram,
    /// Lengths of its waits, by context switches.
    pub blocks: Histogram,
    /// Number of times that it left the CPU although it could have continued.
    pub preemptions: u64,
    /// Number of short sleeps.
    pub short_sleeps: u64,
    /// Number of short sleeps during which another thread began to run when none did.
    pub sleeps_with_event: u64,
    /// The program that its process has executed during the observation.
    program: Option<Box<str>>,
    /// Whether that is a program which only sleeps, and for a short time.
    is_short_program: bool,
    runtime: Option<Runtime>,
    /// Whether it only serves its runtime.
    is_helper: bool,
    /// Whether it is on a CPU, queued or waiting, and since when.
    position: Position,
    since: u64,
    /// Whether it has been there for longer than since then, for an unknown time.
    is_cut: bool,
    /// The current wait or, while the thread runs, the last one.
    wait: Wait,
    /// Whether an event has been counted for the current sleep.
    has_event: bool,
    /// The last wake-up since it began to run, if these are recorded.
    waking: Option<Waking>,
    account: Account,
}

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    OnCpu,
    Queued,
    Waiting,
}

/// Number of wake-ups of one thread by another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Number of times that the one began to run because the other woke it or, where that is
    /// inferred, right after or while the other ran.
    pub count: u64,
    /// Number of these in which no thread of the program ran, or only the waker.
    pub alone: u64,
    /// Number of these on another CPU than that of the waker.
    pub across_cpus: u64,
}

/// Threads that ended during the observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Number of threads, processes included.
    pub threads: u64,
    /// Number of processes.
    pub processes: u64,
    /// CPU time of those that also began during the observation, in nanoseconds.
    pub run_nanos: u64,
    /// Sum of the lives of those that also began during the observation, in nanoseconds.
    pub life_nanos: u64,
    /// Number of those that also began during the observation.
    pub short_lived: u64,
}

/// Executions of a program that began and ended during the observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Executions {
    /// Number of processes.
    pub count: u64,
    /// Sum of their CPU times, in nanoseconds.
    pub run_nanos: u64,
    /// Sum of their lives, in nanoseconds.
    pub life_nanos: u64,
    /// Number of processes that ran for most of their lives.
    pub busy: u64,
    /// Sum of their CPU times, in nanoseconds.
    pub busy_run_nanos: u64,
    /// Number of short sleeps in them.
    pub short_sleeps: u64,
    /// Number of these during which another thread began to run when none did.
    pub sleeps_with_event: u64,
}

/// Time for which a thread runs alone.
#[derive(Debug, Clone, Copy)]
struct Alone {
    thread: i32,
    since: u64,
    /// Time before, for which at least two threads ran, in nanoseconds.
    together: u64,
    /// Time for which it ran, in nanoseconds.
    own: u64,
    /// Sum of the brief runs of others, in nanoseconds.
    brief: u64,
}

/// The accumulated history of all threads.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Number of CPUs that the program may use: with as many running threads, it is busy.
    cpus: usize,
    /// Time since which, and up to which, the history reaches.
    pub begun: u64,
    now: u64,
    /// The living threads by ID.
    pub tracks: FxHashMap<i32, Box<Track>>,
    running: usize,
    queued: usize,
    /// Number of waiting threads by state.
    waiting: [u32; STATES],
    short_sleepers: u32,
    /// Time by number of running threads, in nanoseconds.
    pub levels: [u64; MAX_LEVEL + 1],
    /// Time by cause, in nanoseconds.
    pub causes: [u64; CAUSES],
    /// Wake-ups by waker and woken thread.
    pub wakes: FxHashMap<(i32, i32), Wakes>,
    /// The thread that last left a CPU, when, and the CPU.
    last_left: Option<(i32, u64, u32)>,
    /// The thread on each CPU, as far as it is one of the program.
    on_cpu: FxHashMap<u32, i32>,
    /// The longest time for which only one thread ran, in nanoseconds, and the thread's ID. Runs of
    /// other threads that are shorter than `BRIEF_NANOS` do not count, if they are few.
    pub longest_alone: Option<(i32, u64)>,
    /// Time before that, for which at least two threads ran, in nanoseconds.
    pub together_before: u64,
    /// The thread that runs alone now.
    alone: Option<Alone>,
    /// End of the last run that was not brief.
    last_end: u64,
    /// Counts of threads that have ended.
    pub ended: Ended,
    /// Counts of processes that have ended by the program that they executed; at most `MAX_PROGRAMS`.
    pub programs: BTreeMap<Box<str>, Executions>,
    /// The first threads that have ended, among those that were sampled; at most `MAX_FINISHED`.
    pub finished: Vec<(i32, Track)>,
    /// Time by state of all threads that have ended, in nanoseconds.
    pub past_states: [u64; STATES],
    /// Time for which these threads were observed, in nanoseconds.
    pub past_nanos: u64,
    /// Time on a CPU of the threads that have ended, by process, in nanoseconds. Processes with a single
    /// thread that was never sampled are left out.
    pub past_runs: FxHashMap<i32, u64>,
    /// Number of records, without wake-ups.
    pub records: u64,
    /// Number of records that the kernel could not deliver.
    pub lost: u64,
    /// Whether context switches are recorded.
    has_switches: bool,
    /// Whether wake-ups are recorded.
    has_wakes: bool,
    /// Times without records.
    gaps: Gaps,
    /// Time for which threads ran that is in no level yet, in nanoseconds.
    run_left: u64,
}

impl Timeline {
    /// Creates an empty history that begins at `now`.
    pub fn new(now: u64, has_switches: bool) -> Self {
        Self {
            cpus: 1,
            begun: now,
            now,
            tracks: FxHashMap::default(),
            running: 0,
            queued: 0,
            waiting: [0; STATES],
            short_sleepers: 0,
            levels: [0; MAX_LEVEL + 1],
            causes: [0; CAUSES],
            wakes: FxHashMap::default(),
            last_left: None,
            on_cpu: FxHashMap::default(),
            longest_alone: None,
            together_before: 0,
            alone: None,
            last_end: now,
            ended: Ended::default(),
            programs: BTreeMap::new(),
            finished: Vec::new(),
            past_states: [0; STATES],
            past_nanos: 0,
            past_runs: FxHashMap::default(),
            records: 0,
            lost: 0,
            has_switches,
            has_wakes: false,
            gaps: Gaps::default(),
            run_left: 0,
        }
    }

    /// Sets the number of CPUs that the program may use from now on.
    pub fn set_cpus(&mut self, cpus: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let cpus = cpus.round().clamp(1.0, MAX_LEVEL as f64) as usize;
        self.cpus = cpus;
    }

    /// Returns the observed time, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.now - self.begun
    }

    /// Returns the sum of the times for which the threads were observed, in nanoseconds.
    pub fn life_nanos(&self) -> u64 {
        let living = self.tracks.values().map(|track| track.life_nanos(self.now));
        self.past_nanos + living.sum::<u64>()
    }

    /// Returns the living processes that work: those with at least a tenth of the CPU time of all.
    pub fn workers(&self) -> Vec<Pid> {
        let mut runs: BTreeMap<i32, u64> = BTreeMap::new();
        for track in self.tracks.values() {
            *runs.entry(track.process).or_default() += track.states[ThreadState::Running as usize];
        }
        let all = runs.values().sum::<u64>() + self.past_runs.values().sum::<u64>();
        let works =
            |(pid, run): (&i32, &u64)| Pid::from_raw(*pid).filter(|_| *run > 0 && 10 * run >= all);
        runs.iter().filter_map(works).collect()
    }

    /// Returns the living threads that run for at least a hundredth of the CPU time of all, which may be bound to
    /// different CPUs; at most 64.
    pub fn busy_threads(&self) -> Vec<Pid> {
        const MAX_THREADS: usize = 64;
        let run = |track: &Track| track.states[ThreadState::Running as usize];
        let all: u64 = self.tracks.values().map(|track| run(track)).sum();
        let busy =
            self.tracks.iter().filter(|(_, track)| run(track) > 0 && 100 * run(track) >= all);
        busy.filter_map(|(id, _)| Pid::from_raw(*id)).take(MAX_THREADS).collect()
    }

    /// Returns the end of the history, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn until(&self) -> u64 {
        self.now
    }

    /// Returns whether a thread is in a short sleep, which may be part of polling.
    pub fn has_short_sleepers(&self) -> bool {
        self.short_sleepers > 0
    }

    /// Returns whether context switches are recorded.
    pub fn has_switches(&self) -> bool {
        self.has_switches
    }

    /// Adds a thread that was found at `now` in the state of a sample.
    pub fn add(&mut self, process: i32, thread: i32, now: u64, state: Sampled) {
        self.track(process, thread, now);
        if let Some(track) = self.tracks.get_mut(&thread).filter(|track| track.is_new()) {
            track.account.begin(state);
        }
        self.settle(thread, state);
    }

    /// Sets the runtime of a thread, and whether it only serves that.
    pub fn set_runtime(&mut self, thread: i32, runtime: Option<Runtime>, is_helper: bool) {
        self.leave(thread);
        if let Some(track) = self.tracks.get_mut(&thread) {
            (track.runtime, track.is_helper) = (runtime, is_helper);
        }
        self.arrive(thread);
    }

    /// Records a context switch, a wake-up, the start or the end of a thread.
    pub fn record(&mut self, record: &Record) {
        if let Event::Woke { thread, by } = record.event {
            self.note_waking(record, thread, by);
            return;
        }
        self.records += 1;
        if let Event::Lost(count) = record.event {
            self.lost += count;
            return;
        }
        self.advance(record.time);
        match &record.event {
            Event::In => {
                self.track(record.process, record.thread, record.time);
                self.note_wake(record);
                self.enter(record.thread, Position::OnCpu, record.time);
                self.on_cpu.insert(record.cpu, record.thread);
            }
            Event::Blocked | Event::Preempted => {
                self.track(record.process, record.thread, record.time);
                let waits = record.event == Event::Blocked;
                let position = if waits { Position::Waiting } else { Position::Queued };
                self.enter(record.thread, position, record.time);
                self.forget_waking(record.thread, record.time);
                self.on_cpu.remove(&record.cpu);
                // A thread that wakes another one is often preempted by it.
                self.last_left = Some((record.thread, record.time, record.cpu));
            }
            Event::Started { .. } => self.track(record.process, record.thread, record.time),
            Event::Ended => self.end(record.process, record.thread, record.time),
            Event::Executed(program) => self.execute(record.thread, program),
            Event::Renamed(_) | Event::At(_) | Event::Woke { .. } | Event::Lost(_) => {}
        }
    }

    /// Adds a sample of a thread, taken at `now`, to its time by state.
    pub fn sample(&mut self, thread: i32, now: u64, sample: &Sample) {
        let Some(track) = self.tracks.get_mut(&thread) else { return };
        track.account(now, sample);
        // A record that has not been read yet may say that it runs again, so that a waiting thread
        // keeps its place, but its wait is known now.
        if !self.shows_switches() || matches!(sample.state, Sampled::Waiting(_)) {
            self.settle(thread, sample.state);
        }
    }

    /// Estimates levels and causes for the time up to `now`, in which the threads ran for `run` and
    /// were queued for `queued` nanoseconds. Does nothing if context switches are recorded.
    pub fn tick(&mut self, now: u64, run: u64, queued: u64) {
        if self.has_switches {
            return;
        }
        let time = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        if time == 0 {
            return;
        }
        // A thread that is sampled rarely may have run before, but not on more CPUs than there are.
        let run = self.run_left + run;
        let possible = run.min(time.saturating_mul(self.cpus as u64));
        self.run_left = run - possible;
        // The level is between two whole numbers, for a part of the time each.
        let mean = possible as f64 / time as f64;
        let low = mean.floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part")]
        let above = ((mean - low) * time as f64) as u64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let low = low.clamp(0.0, MAX_LEVEL as f64) as usize;
        // Queued for at least a tenth of the time.
        self.queued = usize::from(queued * 10 > time);
        for (level, part) in [(low, time - above), ((low + 1).min(MAX_LEVEL), above)] {
            self.running = level;
            self.levels[level] += part;
            self.causes[self.cause() as usize] += part;
        }
    }

    /// Records that a thread has ended at `now`, where no context switches are recorded.
    pub fn end_at(&mut self, thread: i32, now: u64) {
        if let Some(process) = self.tracks.get(&thread).map(|track| track.process) {
            self.end(process, thread, now);
        }
    }

    /// Ends the history at `now`: assigns the rest of each thread's time.
    pub fn finish(&mut self, now: u64) {
        if self.gaps.is_open() {
            self.fill_gap(now);
        } else {
            self.end_runs(now);
        }
        let by_switches = self.has_switches && !self.gaps.exist();
        for track in self.tracks.values_mut() {
            track.settle_end(now, by_switches);
        }
    }

    /// Ends the history of levels, causes and runs at `now`.
    fn end_runs(&mut self, now: u64) {
        self.advance(now);
        let mut running: Vec<(u64, i32)> = self
            .tracks
            .iter()
            .filter(|(_, track)| track.position == Position::OnCpu)
            .map(|(id, track)| (track.since, *id))
            .collect();
        running.sort_unstable();
        for (since, thread) in running {
            self.note_run(thread, since, now);
        }
        // The last one ran alone until it ended, or until now.
        self.end_alone(self.last_end);
    }

    /// Adds the time up to `now` to the current level and cause.
    fn advance(&mut self, now: u64) {
        let time = now.saturating_sub(self.now);
        if time == 0 {
            return;
        }
        self.now = now;
        self.levels[self.running.min(MAX_LEVEL)] += time;
        self.causes[self.cause() as usize] += time;
    }

    /// Returns the one cause of this moment.
    fn cause(&self) -> Cause {
        let count = |state: ThreadState| self.waiting[state as usize];
        let all: u32 = self.waiting.iter().sum();
        if self.running >= self.cpus {
            return Cause::Busy;
        }
        if self.queued > 0 {
            return Cause::Limited;
        }
        if self.running > 0 {
            return Cause::Serial;
        }
        match () {
            () if all > 0 && count(ThreadState::Stopped) == all => Cause::Stopped,
            () if count(ThreadState::Lock) > 0 => Cause::Lock,
            () if count(ThreadState::Disk) + count(ThreadState::PageFault) > 0 => Cause::Disk,
            () if self.short_sleepers > 0 => Cause::Sleep,
            () if all == count(ThreadState::Unknown) => Cause::Unknown,
            () if count(ThreadState::Child) > 0 && all == count(ThreadState::Child) => Cause::Child,
            () => Cause::Idle,
        }
    }

    fn track(&mut self, process: i32, thread: i32, now: u64) {
        if let std::collections::hash_map::Entry::Vacant(entry) = self.tracks.entry(thread) {
            entry.insert(Box::new(Track::new(process, now)));
            self.waiting[ThreadState::Unknown as usize] += 1;
        }
    }

    /// Returns whether context switches are recorded now.
    fn shows_switches(&self) -> bool {
        self.has_switches && !self.gaps.is_open()
    }

    /// Moves a thread to another position at `time`.
    fn enter(&mut self, thread: i32, position: Position, time: u64) {
        if self.gaps.is_open() {
            return; // lengths of runs and waits are not known
        }
        self.leave(thread);
        let run = self.tracks.get_mut(&thread).and_then(|track| {
            let begun = (track.position == Position::OnCpu).then_some(track.since);
            track.enter(position, time);
            begun
        });
        self.arrive(thread);
        if let Some(begun) = run {
            self.note_run(thread, begun, time);
        }
    }

    /// Notes a run of a thread, for the time that threads run alone.
    fn note_run(&mut self, thread: i32, begun: u64, ended: u64) {
        let length = ended.saturating_sub(begun);
        if length < BRIEF_NANOS {
            if let Some(alone) = &mut self.alone {
                let is_own = alone.thread == thread;
                *(if is_own { &mut alone.own } else { &mut alone.brief }) += length;
            }
            return;
        }
        if self.alone.is_none_or(|alone| alone.thread != thread) {
            self.end_alone(begun);
            let since = begun.max(self.last_end);
            let together = self.levels[2..].iter().sum();
            self.alone = Some(Alone { thread, since, together, own: 0, brief: 0 });
        }
        if let Some(alone) = &mut self.alone {
            alone.own += ended.saturating_sub(begun.max(alone.since));
        }
        self.last_end = ended;
    }

    /// Ends the time for which a thread has run alone, at `time`.
    fn end_alone(&mut self, time: u64) {
        if let Some(Alone { thread, since, together, own, brief }) = self.alone.take() {
            let length = time.saturating_sub(since);
            let is_alone =
                brief * MIN_ALONE_RATIO <= length && own as f64 >= MIN_ALONE_SHARE * length as f64;
            if is_alone && self.longest_alone.is_none_or(|(_, longest)| length > longest) {
                self.longest_alone = Some((thread, length));
                self.together_before = together;
            }
        }
    }

    /// Takes over what a sample has found, without a change of position if switches are recorded.
    pub fn settle(&mut self, thread: i32, state: Sampled) {
        let shows_switches = self.shows_switches();
        self.leave(thread);
        if let Some(track) = self.tracks.get_mut(&thread) {
            match state {
                Sampled::Waiting(wait) => {
                    track.wait = wait;
                    if !shows_switches || track.is_new() {
                        track.position = Position::Waiting;
                    }
                }
                Sampled::Active if !shows_switches || track.is_new() => {
                    track.position = Position::OnCpu;
                }
                Sampled::Active => {}
            }
        }
        self.arrive(thread);
    }

    /// Notes the program that a thread has executed.
    fn execute(&mut self, thread: i32, program: &str) {
        let is_sleep = only_sleeps(program);
        // The length of the sleep is not known yet. The earlier ones show how long it will be.
        let is_short = is_sleep
            && self
                .programs
                .get(program)
                .is_some_and(|past| past.life_nanos <= past.count * SHORT_NANOS && past.count > 0);
        self.leave(thread);
        if let Some(track) = self.tracks.get_mut(&thread) {
            track.program = Some(program.into());
            track.is_short_program = is_short;
            if is_sleep {
                track.wait = Wait { state: ThreadState::Sleep, object: Object::Time(None) };
            }
        }
        self.arrive(thread);
    }

    /// Removes a thread from the counts of its position.
    fn leave(&mut self, thread: i32) {
        let Some(track) = self.tracks.get(&thread) else { return };
        match track.position {
            Position::OnCpu => self.running = self.running.saturating_sub(1),
            Position::Queued => self.queued = self.queued.saturating_sub(1),
            Position::Waiting => {
                let count = &mut self.waiting[track.wait.state as usize];
                *count = count.saturating_sub(1);
                let short = u32::from(track.is_in_short_sleep());
                self.short_sleepers = self.short_sleepers.saturating_sub(short);
            }
        }
    }

    /// Adds a thread to the counts of its position.
    fn arrive(&mut self, thread: i32) {
        let Some(track) = self.tracks.get(&thread) else { return };
        match track.position {
            Position::OnCpu => self.running += 1,
            Position::Queued => self.queued += 1,
            Position::Waiting => {
                self.waiting[track.wait.state as usize] += 1;
                self.short_sleepers += u32::from(track.is_in_short_sleep());
            }
        }
    }

    /// Counts who woke the thread that begins to run, and the sleeps during which it does.
    fn note_wake(&mut self, record: &Record) {
        let recorded = self.take_waker(record.thread);
        let Some(track) = self.tracks.get_mut(&record.thread) else { return };
        let was_waiting = track.position == Position::Waiting;
        let serves_runtime = track.is_helper
            || track.runtime == Some(Runtime::Go) && matches!(track.wait.object, Object::Time(_));
        let has_slept = was_waiting
            && !matches!(recorded, Some(Waker::Thread { .. }))
            && track.has_slept(record.time.saturating_sub(track.since));
        if has_slept {
            track.short_sleeps += 1;
            track.sleeps_with_event += u64::from(track.has_event);
        }
        let waker = if self.has_wakes { recorded } else { self.inferred_waker(record) };
        if was_waiting
            && !has_slept
            && let Some(Waker::Thread { id, cpu }) = waker
            && (self.wakes.len() < MAX_PAIRS || self.wakes.contains_key(&(id, record.thread)))
        {
            let is_alone = self.runs_at_most(id);
            let wakes = self.wakes.entry((id, record.thread)).or_default();
            wakes.count += 1;
            wakes.alone += u64::from(is_alone);
            wakes.across_cpus += u64::from(cpu != record.cpu);
        }
        // The monitor thread of Go and the periodic one of Java wake by the clock, whatever happens.
        if was_waiting && self.running == 0 && self.short_sleepers > 0 && !serves_runtime {
            self.note_event(record.thread);
        }
    }

    /// Counts an event, the run of `thread`, in the sleep of every other thread in a short sleep.
    fn note_event(&mut self, thread: i32) {
        // The number of sleepers is small, or the search is skipped.
        if self.tracks.len() > MAX_LEVEL {
            return;
        }
        for (id, track) in &mut self.tracks {
            if *id != thread
                && track.position == Position::Waiting
                && track.is_in_short_sleep()
                && !track.has_event
            {
                track.has_event = true;
            }
        }
    }

    fn end(&mut self, process: i32, thread: i32, time: u64) {
        self.enter(thread, Position::Waiting, time);
        let Some(track) = self.tracks.get(&thread) else { return };
        self.ended.threads += 1;
        self.ended.processes += u64::from(process == thread);
        if track.begun > self.begun {
            self.ended.short_lived += 1;
            self.ended.run_nanos += track.run_nanos;
            self.ended.life_nanos += time.saturating_sub(track.begun);
            self.count_execution(thread, time);
        }
        self.remove(thread, time);
    }

    /// Counts the execution of a program by a process that ends at `time`.
    fn count_execution(&mut self, thread: i32, time: u64) {
        let Some(track) = self.tracks.get(&thread) else { return };
        let Some(program) = track.program.clone() else { return };
        if self.programs.len() >= MAX_PROGRAMS && !self.programs.contains_key(&program) {
            return;
        }
        let entry = self.programs.entry(program).or_default();
        entry.count += 1;
        entry.run_nanos += track.run_nanos;
        let life = time.saturating_sub(track.begun);
        entry.life_nanos += life;
        if track.run_nanos as f64 >= MIN_BUSY_SHARE * life as f64 {
            entry.busy += 1;
            entry.busy_run_nanos += track.run_nanos;
        }
        entry.short_sleeps += track.short_sleeps;
        entry.sleeps_with_event += track.sleeps_with_event;
    }

    /// Closes the history of a thread at `time` without counting it as ended. Does nothing if the thread
    /// is not known.
    pub fn forget(&mut self, thread: i32, time: u64) {
        self.enter(thread, Position::Waiting, time);
        self.remove(thread, time);
    }

    fn remove(&mut self, thread: i32, time: u64) {
        self.leave(thread);
        self.on_cpu.retain(|_, running| *running != thread);
        let Some(mut track) = self.tracks.remove(&thread) else { return };
        // A sample may have found it after that, before it was known to have ended.
        let time = time.max(track.account.sampled_at());
        track.ended = Some(time);
        track.settle_end(time, self.has_switches && !self.gaps.exist());
        for (sum, nanos) in self.past_states.iter_mut().zip(track.states) {
            *sum += nanos;
        }
        self.past_nanos += time.saturating_sub(track.begun);
        if track.was_sampled() || track.process != thread {
            let run = track.states[ThreadState::Running as usize];
            *self.past_runs.entry(track.process).or_default() += run;
        }
        // Many short-lived threads must not use memory.
        if track.was_sampled() && self.finished.len() < MAX_FINISHED {
            self.finished.push((thread, *track));
        }
    }
}

impl Track {
    fn new(process: i32, now: u64) -> Self {
        Self {
            process,
            begun: now,
            ended: None,
            states: [0; STATES],
            waits: Waits::default(),
            slices: 0,
            run_nanos: 0,
            runs: Histogram::default(),
            blocks: Histogram::default(),
            preemptions: 0,
            short_sleeps: 0,
            sleeps_with_event: 0,
            program: None,
            is_short_program: false,
            runtime: None,
            is_helper: false,
            position: Position::Waiting,
            since: now,
            is_cut: false,
            wait: Wait::UNKNOWN,
            has_event: false,
            waking: None,
            account: Account::new(now),
        }
    }

    /// Returns the time for which it was observed until its end, or until `now`, in nanoseconds.
    pub fn life_nanos(&self, now: u64) -> u64 {
        self.ended.unwrap_or(now).saturating_sub(self.begun)
    }

    /// Returns whether it has not been seen to move or been sampled.
    fn is_new(&self) -> bool {
        self.slices == 0 && self.runs.count() == 0 && self.since == self.begun
    }

    fn was_sampled(&self) -> bool {
        self.account.was_sampled()
    }

    /// Returns whether it is in a sleep that may be part of polling, while it waits.
    fn is_in_short_sleep(&self) -> bool {
        !self.is_helper
            && self.wait.is_timer(self.runtime)
            && match self.wait.timeout() {
                Some(time) => time <= SHORT_SLEEP,
                // A sleep of unknown length counts if such sleeps have been short so far.
                None if self.is_short_program => true,
                None => self.blocks.count() > 0 && self.blocks.median_nanos() <= SHORT_NANOS,
            }
    }

    /// Returns whether a wait of this length was a short sleep. A sleep does not end early, so a shorter
    /// wait was another one, although the last sample found a sleep.
    fn has_slept(&self, nanos: u64) -> bool {
        self.is_in_short_sleep()
            && match self.wait.timeout() {
                Some(time) => u128::from(nanos) >= time.as_nanos(),
                None => 2 * nanos >= self.blocks.median_nanos(),
            }
    }

    fn enter(&mut self, position: Position, time: u64) {
        let length = time.saturating_sub(self.since);
        match (self.position, position) {
            (Position::OnCpu, _) => {
                self.run_nanos += length;
                if !self.is_cut {
                    self.runs.add(length);
                }
                self.preemptions += u64::from(position == Position::Queued);
            }
            (Position::Waiting, _) if self.since > self.begun && !self.is_cut => {
                self.blocks.add(length);
            }
            _ => {}
        }
        self.is_cut = false;
        self.has_event = false;
        self.position = position;
        self.since = time;
    }
}

/// Returns whether a program with this name only sleeps.
pub fn only_sleeps(program: &str) -> bool {
    SLEEP_PROGRAMS.contains(&program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Object;

    const MS: u64 = 1_000_000;

    fn record(time: u64, thread: i32, cpu: u32, event: Event) -> Record {
        Record { time, process: 1, thread, cpu, event }
    }

    fn waiting(state: ThreadState) -> Sampled {
        Sampled::Waiting(Wait { state, object: Object::Unknown })
    }

    fn asleep(milliseconds: u64) -> Sampled {
        let object = Object::Time(Some(Duration::from_millis(milliseconds)));
        Sampled::Waiting(Wait { state: ThreadState::Sleep, object })
    }

    fn play(timeline: &mut Timeline, events: &[(u64, i32, u32, Event)]) {
        for (time, thread, cpu, event) in events {
            timeline.record(&record(time * MS, *thread, *cpu, event.clone()));
        }
    }

    fn milliseconds(timeline: &Timeline, cause: Cause) -> u64 {
        timeline.causes[cause as usize] / MS
    }

    #[test]
    fn every_moment_has_one_level_and_one_cause() {
        let mut timeline = Timeline::new(0, true);
        timeline.set_cpus(2.0);
        timeline.add(1, 1, 0, waiting(ThreadState::Lock));
        timeline.add(1, 2, 0, waiting(ThreadState::Poll));
        play(
            &mut timeline,
            &[
                (10, 1, 0, Event::In),
                (30, 2, 1, Event::In),
                (35, 1, 0, Event::Blocked),
                (40, 2, 1, Event::Preempted),
                (42, 2, 1, Event::In),
                (50, 2, 1, Event::Blocked),
            ],
        );
        timeline.finish(100 * MS);
        assert_eq!(timeline.levels[..3].iter().map(|t| t / MS).collect::<Vec<_>>(), [62, 33, 5]);
        assert_eq!(milliseconds(&timeline, Cause::Lock), 10 + 50);
        assert_eq!(milliseconds(&timeline, Cause::Serial), 20 + 5 + 8);
        assert_eq!(milliseconds(&timeline, Cause::Busy), 5);
        assert_eq!(milliseconds(&timeline, Cause::Limited), 2);
        assert_eq!(timeline.causes.iter().sum::<u64>(), timeline.length());
        assert_eq!(timeline.tracks[&1].run_nanos, 25 * MS);
        assert_eq!(timeline.tracks[&2].preemptions, 1);
    }

    #[test]
    fn the_time_of_threads_is_conserved() {
        let mut timeline = Timeline::new(0, true);
        timeline.add(1, 1, 0, waiting(ThreadState::Sleep));
        let sample = |on_cpu: u64, run_queue: u64, state| Sample {
            on_cpu: on_cpu * MS,
            run_queue: run_queue * MS,
            slices: 1,
            state,
        };
        timeline.sample(1, 40 * MS, &sample(10, 5, waiting(ThreadState::Sleep)));
        timeline.sample(1, 60 * MS, &sample(20, 0, Sampled::Active));
        play(&mut timeline, &[(60, 2, 1, Event::Started { parent: 1 }), (62, 2, 1, Event::In)]);
        play(&mut timeline, &[(65, 2, 1, Event::Ended), (80, 1, 0, Event::Blocked)]);
        timeline.finish(100 * MS);
        let living: u64 = timeline.tracks[&1].states.iter().sum();
        assert_eq!(living, 100 * MS);
        let states = timeline.tracks[&1].states;
        assert_eq!(states[ThreadState::Running as usize], 30 * MS);
        assert_eq!(states[ThreadState::Sleep as usize], 65 * MS);
        assert_eq!(timeline.past_nanos, 5 * MS);
        assert_eq!(timeline.past_states.iter().sum::<u64>(), 5 * MS);
        assert_eq!(timeline.past_states[ThreadState::Running as usize], 3 * MS);
        assert_eq!((timeline.ended.short_lived, timeline.ended.run_nanos), (1, 3 * MS));
        assert!(timeline.finished.is_empty(), "a thread that was not sampled is only counted");
    }

    #[test]
    fn wake_ups_and_events_in_sleeps_are_counted() {
        let mut timeline = Timeline::new(0, true);
        timeline.set_cpus(2.0);
        timeline.add(1, 1, 0, asleep(5));
        timeline.add(1, 2, 0, waiting(ThreadState::Condition));
        for turn in 0..4 {
            let at = 10 * turn;
            play(
                &mut timeline,
                &[
                    (at + 5, 1, 0, Event::In),
                    (at + 6, 1, 0, Event::Blocked),
                    (at + 6, 2, 1, Event::In),
                    (at + 8, 2, 1, Event::Blocked),
                ],
            );
        }
        timeline.finish(50 * MS);
        assert_eq!(timeline.wakes.get(&(1, 2)).map(|wakes| wakes.count), Some(4));
        assert_eq!(timeline.wakes.get(&(2, 1)), None, "a sleep ends by itself");
        assert_eq!(timeline.tracks[&1].short_sleeps, 4);
        assert_eq!(timeline.tracks[&1].sleeps_with_event, 3, "the last sleep goes on");
        assert_eq!(milliseconds(&timeline, Cause::Sleep), 50 - 4 * 3);
    }

    #[test]
    fn the_longest_time_alone_is_that_of_the_straggler() {
        let mut timeline = Timeline::new(0, true);
        timeline.add(1, 1, 0, waiting(ThreadState::Condition));
        timeline.add(1, 2, 0, waiting(ThreadState::Condition));
        play(
            &mut timeline,
            &[
                (0, 1, 0, Event::In),
                (0, 2, 1, Event::In),
                (40, 2, 1, Event::Blocked),
                (60, 2, 1, Event::In),
                (61, 2, 1, Event::Blocked),
                (100, 1, 0, Event::Blocked),
            ],
        );
        timeline.finish(110 * MS);
        assert_eq!(timeline.longest_alone, Some((1, 60 * MS)), "the brief run does not count");
    }

    #[test]
    fn without_context_switches_levels_are_estimated() {
        let mut timeline = Timeline::new(0, false);
        timeline.set_cpus(2.0);
        timeline.add(1, 1, 0, waiting(ThreadState::Poll));
        timeline.tick(10 * MS, 4 * MS, 0);
        timeline.tick(20 * MS, 15 * MS, 0);
        timeline.finish(20 * MS);
        assert_eq!(timeline.levels[..3].iter().map(|t| t / MS).collect::<Vec<_>>(), [6, 9, 5]);
        assert_eq!(milliseconds(&timeline, Cause::Idle), 6);
        assert_eq!(milliseconds(&timeline, Cause::Serial), 9);
        assert_eq!(milliseconds(&timeline, Cause::Busy), 5);
    }
}
