//! Divides the life of a thread among its states, by samples. Each nanosecond is in one state.
//!
//! The scheduler's counters are exact while a thread waits, but lag while it is ready:
//!
//! - CPU time grows at the next tick of the kernel or context switch.
//! - Time queued for a CPU grows when the thread gets one, by the whole time in the queue.
//!
//! So what the counters do not explain is waiting time, except for the time since the thread became
//! ready. That is not known. Until the counters show it, it counts as part of the wait before, and is
//! taken back from there.

use contend_record::doctor::ThreadState;

use super::{Position, Track, WaitTime};
use crate::thread::{Sample, Sampled};
use crate::wait::Wait;

/// Time for which the CPU time of a running thread may lag, in nanoseconds.
const LAG_NANOS: u64 = 10_000_000;

/// The part of a thread's accounts that only this module changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    /// Time of the last sample, or of the first observation, in nanoseconds of `CLOCK_MONOTONIC`.
    sampled_at: u64,
    /// Whether there has been a sample.
    is_sampled: bool,
    /// Whether the thread was running or queued at the last sample.
    is_ready: bool,
    /// Time before the last sample that is in no state yet, in nanoseconds.
    unassigned: u64,
    /// A wait, and the part of its time that may turn out to be time in the queue, in nanoseconds.
    lent: Option<(Wait, u64)>,
    /// Whether it was on a CPU then, by context switches.
    is_on_cpu: bool,
}

impl Account {
    /// Opens the account of a thread that was first observed at `now`.
    pub(super) fn new(now: u64) -> Self {
        Self {
            sampled_at: now,
            is_sampled: false,
            is_ready: false,
            unassigned: 0,
            lent: None,
            is_on_cpu: false,
        }
    }

    /// Returns whether there has been a sample after the first observation.
    pub(super) fn was_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Returns the time of the last sample, or of the first observation.
    pub(super) fn sampled_at(&self) -> u64 {
        self.sampled_at
    }

    /// Notes whether the thread was ready when it was first observed.
    pub(super) fn begin(&mut self, state: Sampled) {
        self.is_ready = state == Sampled::Active;
    }
}

impl Track {
    /// Adds the time since the last sample, by a sample at `now`.
    pub(super) fn account(&mut self, now: u64, sample: &Sample) {
        let account = &mut self.account;
        account.unassigned += now.saturating_sub(account.sampled_at);
        account.sampled_at = account.sampled_at.max(now);
        account.is_sampled = true;
        account.is_on_cpu = self.position == Position::OnCpu;
        let was_ready = std::mem::replace(&mut account.is_ready, sample.state == Sampled::Active);
        self.slices += sample.slices;
        self.take_back(sample.on_cpu.saturating_add(sample.run_queue));
        // A counter may include time from before the observation.
        self.move_to(ThreadState::Running, sample.on_cpu);
        self.move_to(ThreadState::Runnable, sample.run_queue);
        match sample.state {
            Sampled::Waiting(wait) => {
                let time = std::mem::take(&mut self.account.unassigned);
                self.assign(wait, time, true);
                self.account.lent = None;
            }
            // It has been running or queued all the time.
            Sampled::Active if was_ready && sample.slices == 0 => {}
            Sampled::Active => {
                let time = self.account.unassigned.saturating_sub(LAG_NANOS);
                self.account.unassigned -= time;
                self.assign(self.wait, time, false);
                self.account.lent = Some((self.wait, time));
            }
        }
    }

    /// Takes time back from a wait, so that at least `needed` is unassigned if possible.
    fn take_back(&mut self, needed: u64) {
        let Some((wait, lent)) = &mut self.account.lent else { return };
        let time = needed.saturating_sub(self.account.unassigned).min(*lent);
        *lent -= time;
        self.account.unassigned += time;
        let state = &mut self.states[wait.state as usize];
        *state = state.saturating_sub(time);
        if let Some(known) = self.waits.get_mut(wait) {
            known.nanos = known.nanos.saturating_sub(time);
        }
    }

    /// Assigns unassigned time to a state, at most `time`. Returns the assigned time.
    fn move_to(&mut self, state: ThreadState, time: u64) -> u64 {
        let time = time.min(self.account.unassigned);
        self.account.unassigned -= time;
        self.states[state as usize] += time;
        time
    }

    /// Adds waiting time to the state and, if there is space, to the wait.
    fn assign(&mut self, wait: Wait, nanos: u64, is_sampled: bool) {
        self.states[wait.state as usize] += nanos;
        self.waits.add(wait, WaitTime { nanos, samples: u64::from(is_sampled) });
    }

    /// Assigns the time up to `time`, the end of the thread or of the observation.
    pub(super) fn settle_end(&mut self, time: u64, has_switches: bool) {
        let rest = time.saturating_sub(self.account.sampled_at);
        self.account.sampled_at = self.account.sampled_at.max(time);
        if has_switches {
            self.settle_by_switches(time, rest);
        } else {
            let ready = self.running_part(self.account.unassigned);
            self.move_to(ThreadState::Running, ready);
            self.move_to(ThreadState::Runnable, u64::MAX);
            self.account.unassigned = rest;
            let state = if self.account.is_ready { self.running_part(rest) } else { 0 };
            self.move_to(ThreadState::Running, state);
            if self.account.is_ready {
                self.move_to(ThreadState::Runnable, u64::MAX);
            }
        }
        let left = std::mem::take(&mut self.account.unassigned);
        if self.account.is_sampled {
            self.assign(self.wait, left, false);
        } else {
            self.states[ThreadState::Unknown as usize] += left;
        }
    }

    /// Assigns runs up to `time` that the counters have not shown, and time in the queue. `rest` is the
    /// time since the last sample.
    fn settle_by_switches(&mut self, time: u64, rest: u64) {
        let current = match self.position {
            Position::OnCpu => time.saturating_sub(self.since),
            Position::Queued | Position::Waiting => 0,
        };
        let run = self.run_nanos + current;
        let unseen = run.saturating_sub(self.states[ThreadState::Running as usize]);
        let before = self.account.unassigned;
        let was_queued = self.account.is_ready && !self.account.is_on_cpu;
        self.account.unassigned = before + rest;
        let unseen = self.move_to(ThreadState::Running, unseen);
        // Before the last sample, it waited for a CPU only if it was queued then.
        if was_queued {
            self.move_to(ThreadState::Runnable, before.min(before + rest - unseen));
        }
        let since_sample = time - rest;
        let has_left = self.position == Position::Waiting && self.since > since_sample;
        match self.position {
            Position::Queued => {
                self.move_to(ThreadState::Runnable, time.saturating_sub(self.since).min(rest));
            }
            _ if was_queued && !has_left => {
                self.move_to(ThreadState::Runnable, u64::MAX);
            }
            _ => {}
        }
    }

    /// Returns the part of `ready` nanoseconds for which the thread ran, in proportion to the time that
    /// it has run so far.
    fn running_part(&self, ready: u64) -> u64 {
        let run = u128::from(self.states[ThreadState::Running as usize]);
        let queued = u128::from(self.states[ThreadState::Runnable as usize]);
        let part = (u128::from(ready) * run).checked_div(run + queued);
        part.map_or(ready, |part| u64::try_from(part).unwrap_or(ready))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Object;

    const MS: u64 = 1_000_000;
    const LOCK: Wait = Wait { state: ThreadState::Lock, object: Object::Unknown };

    fn track(state: Sampled) -> Track {
        let mut track = Track::new(1, 0);
        track.account.begin(state);
        if let Sampled::Waiting(wait) = state {
            track.wait = wait;
        }
        track
    }

    fn sample(on_cpu: u64, run_queue: u64, slices: u64, state: Sampled) -> Sample {
        Sample { on_cpu: on_cpu * MS, run_queue: run_queue * MS, slices, state }
    }

    fn milliseconds(track: &Track, state: ThreadState) -> u64 {
        track.states[state as usize] / MS
    }

    /// A thread in a long queue, as with many more threads than CPUs: samples find it ready, and the
    /// counter of the queue grows by more than the time since the last one.
    #[test]
    fn a_long_time_in_the_queue_is_no_wait() {
        let mut track = track(Sampled::Active);
        for time in (10..=200).step_by(10) {
            track.account(time * MS, &sample(0, 0, 0, Sampled::Active));
        }
        track.account(210 * MS, &sample(4, 204, 1, Sampled::Active));
        assert_eq!(milliseconds(&track, ThreadState::Runnable), 204);
        assert_eq!(track.states.iter().sum::<u64>(), 208 * MS);
        for time in (220..=400).step_by(10) {
            track.account(time * MS, &sample(0, 0, 0, Sampled::Active));
        }
        track.settle_end(400 * MS, true);
        assert_eq!(milliseconds(&track, ThreadState::Runnable), 396);
        assert_eq!(track.states.iter().sum::<u64>(), 400 * MS);
    }

    /// A thread that waits for 50 ms, and is queued for 100 ms when it is woken.
    #[test]
    fn time_in_the_queue_after_a_wait_is_taken_back_from_it() {
        let mut track = track(Sampled::Waiting(LOCK));
        track.account(90 * MS, &sample(0, 0, 0, Sampled::Active));
        assert_eq!(milliseconds(&track, ThreadState::Lock), 80);
        track.account(160 * MS, &sample(5, 100, 1, Sampled::Active));
        assert_eq!(milliseconds(&track, ThreadState::Lock), 55);
        track.account(170 * MS, &sample(5, 0, 0, Sampled::Waiting(LOCK)));
        let states = [ThreadState::Lock, ThreadState::Runnable, ThreadState::Running];
        assert_eq!(states.map(|state| milliseconds(&track, state)), [60, 100, 10]);
        assert_eq!(track.waits.get(&LOCK).map(|time| time.nanos), Some(60 * MS));
        assert_eq!(track.states.iter().sum::<u64>(), 170 * MS);
    }

    #[test]
    fn time_before_the_observation_does_not_count() {
        let mut track = track(Sampled::Active);
        track.account(10 * MS, &sample(2, 500, 1, Sampled::Waiting(LOCK)));
        assert_eq!(track.states.iter().sum::<u64>(), 10 * MS);
        assert_eq!(milliseconds(&track, ThreadState::Running), 2);
        assert_eq!(milliseconds(&track, ThreadState::Runnable), 8);
    }

    #[test]
    fn the_last_run_counts_as_far_as_switches_tell() {
        let mut track = track(Sampled::Waiting(LOCK));
        track.enter(Position::OnCpu, 5 * MS);
        track.account(10 * MS, &sample(1, 0, 1, Sampled::Active));
        track.enter(Position::Waiting, 14 * MS);
        track.settle_end(20 * MS, true);
        assert_eq!(milliseconds(&track, ThreadState::Running), 9);
        assert_eq!(milliseconds(&track, ThreadState::Lock), 11);
        assert_eq!(track.states.iter().sum::<u64>(), 20 * MS);
    }

    #[test]
    fn a_thread_that_was_never_sampled_ran_and_was_unknown() {
        let mut track = Track::new(1, 0);
        track.enter(Position::OnCpu, MS);
        track.settle_end(4 * MS, true);
        assert_eq!(milliseconds(&track, ThreadState::Running), 3);
        assert_eq!(milliseconds(&track, ThreadState::Unknown), 1);
    }
}
