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
mod alone;
mod ended;
mod gaps;
mod since;
mod track;
mod waits;
mod wakes;

use std::collections::BTreeMap;
use std::time::Duration;

use contend_record::doctor::{Cause, Runtime, ThreadState};
use contend_sys::Pid;
use contend_sys::perf::{Event, Record};
use rustc_hash::FxHashMap;

use self::alone::Alone;
pub use self::ended::{Ended, Executions, only_sleeps};
use self::gaps::Gaps;
use self::track::Position;
pub use self::track::Track;
pub use self::waits::{WaitTime, Waits};
pub use self::wakes::Wakes;
use crate::thread::{Sample, Sampled};

/// Largest number of running threads that is counted on its own.
const MAX_LEVEL: usize = 64;
/// Sleeps up to this duration may be part of polling; longer ones are pauses.
pub const SHORT_SLEEP: Duration = Duration::from_millis(100);
/// `SHORT_SLEEP`, in nanoseconds.
const SHORT_NANOS: u64 = 100_000_000;
/// Number of thread states.
pub const STATES: usize = ThreadState::Unknown as usize + 1;
/// Number of causes.
pub const CAUSES: usize = Cause::Unknown as usize + 1;

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
    /// Threads that were running when recording began, and have not left their unknown CPUs since.
    running_before: Vec<i32>,
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
            running_before: Vec::new(),
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

    /// Returns whether records are missing now, so that the causes since the last one are not known.
    pub fn is_in_gap(&self) -> bool {
        self.gaps.is_open()
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
            if self.has_switches && state == Sampled::Active {
                self.running_before.push(thread);
            }
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
                self.running_before.retain(|running| *running != record.thread);
                self.on_cpu.insert(record.cpu, record.thread);
            }
            Event::Blocked | Event::Preempted => {
                self.track(record.process, record.thread, record.time);
                let waits = record.event == Event::Blocked;
                let position = if waits { Position::Waiting } else { Position::Queued };
                self.enter(record.thread, position, record.time);
                self.forget_waking(record.thread, record.time);
                self.on_cpu.remove(&record.cpu);
                self.running_before.retain(|running| *running != record.thread);
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

    /// Ends the history at `now`: assigns the rest of each thread's time.
    pub fn finish(&mut self, now: u64) {
        if self.gaps.is_open() {
            self.fill_gap(now);
        } else {
            self.end_runs(now);
        }
        self.count_unfinished(now);
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
}

#[cfg(test)]
mod tests;
