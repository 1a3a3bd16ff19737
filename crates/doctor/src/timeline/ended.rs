//! Threads that have ended, and the programs that they executed.

use contend_record::doctor::ThreadState;

use super::track::Position;
use super::{SHORT_NANOS, Timeline};
use crate::wait::{Object, Wait};

/// Largest number of programs whose executions are counted.
const MAX_PROGRAMS: usize = 256;
/// Programs that only sleep.
const SLEEP_PROGRAMS: &[&str] = &["sleep", "usleep"];
/// Share of its life that a process which computes runs.
const MIN_BUSY_SHARE: f64 = 0.7;
/// Largest number of ended threads whose history is kept.
const MAX_FINISHED: usize = 1000;

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

/// Executions of a program that began during the observation. Those that have not ended only count as busy.
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

impl Timeline {
    /// Notes the program that a thread has executed.
    pub(super) fn execute(&mut self, thread: i32, program: &str) {
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

    /// Records that a thread has ended at `now`, where no context switches are recorded.
    pub fn end_at(&mut self, thread: i32, now: u64) {
        if let Some(process) = self.tracks.get(&thread).map(|track| track.process) {
            self.end(process, thread, now);
        }
    }

    pub(super) fn end(&mut self, process: i32, thread: i32, time: u64) {
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

    /// Counts executions that have not ended at `now` and have run for most of the time.
    pub(super) fn count_unfinished(&mut self, now: u64) {
        if self.gaps.is_open() {
            return; // their CPU times are not known
        }
        for track in self.tracks.values().filter(|track| track.begun > self.begun) {
            let entry = track.program.as_ref().and_then(|name| self.programs.get_mut(name));
            let Some(entry) = entry else { continue }; // none has ended, so that there is no list of tasks
            let last =
                if track.position == Position::OnCpu { now.saturating_sub(track.since) } else { 0 };
            let run = track.run_nanos + last;
            if run as f64 >= MIN_BUSY_SHARE * track.life_nanos(now) as f64 {
                entry.busy += 1;
                entry.busy_run_nanos += run;
            }
        }
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
        self.running_before.retain(|running| *running != thread);
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

/// Returns whether a program with this name only sleeps.
pub fn only_sleeps(program: &str) -> bool {
    SLEEP_PROGRAMS.contains(&program)
}
