//! How often threads that run again and again are sampled.
//!
//! If a thread always returns to the same wait, a sample after each run would add cost, but no information. So
//! such a thread is sampled after some of its runs only. A thread that does not run again as soon as
//! expected may be in another wait, and is sampled then.

use std::collections::BTreeMap;

use crate::thread::Sampled;

/// Numbers of samples in the same wait from which only every second, fourth, eighth and sixteenth run is
/// sampled.
const SAME_SAMPLES: [u32; 4] = [3, 6, 10, 16];
/// Number of samples on a CPU, or queued for one, from which a thread is busy.
const BUSY_SAMPLES: u32 = 8;
/// Number of intervals without a run after which a thread is always sampled.
const MAX_GAP: u64 = 25;

/// How often one thread is sampled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    /// Number of samples in the same wait, without others between.
    same: u32,
    /// Number of samples on a CPU or queued for one, without others between.
    active: u32,
    /// Number of runs since the last sample.
    runs: u32,
    /// Interval of the last run.
    last_run: u64,
    /// Interval in which the thread is sampled unless it runs before; 0 for none.
    deadline: u64,
}

impl Backoff {
    /// Returns whether the thread, which has run in the interval `tick`, should be sampled now. If not,
    /// it must be entered in `Deadlines`.
    pub fn has_run(&mut self, tick: u64) -> bool {
        let gap = (tick - self.last_run).max(1);
        self.last_run = tick;
        self.runs += 1;
        let doublings = SAME_SAMPLES.iter().filter(|samples| self.same >= **samples).count();
        if self.runs >= 1 << doublings || gap > MAX_GAP {
            return true;
        }
        self.deadline = tick + 2 * gap + 1;
        false
    }

    /// Notes a sample, which found the thread in `state` instead of `before`.
    pub fn note(&mut self, before: Sampled, state: Sampled) {
        let is_same = match (before, state) {
            (Sampled::Waiting(before), Sampled::Waiting(wait)) => wait.is_like(&before),
            _ => false,
        };
        self.same = if is_same { self.same.saturating_add(1) } else { 0 };
        let is_active = state == Sampled::Active;
        self.active = if is_active { self.active.saturating_add(1) } else { 0 };
        (self.runs, self.deadline) = (0, 0);
    }

    /// Returns whether the last `BUSY_SAMPLES` samples found the thread on a CPU or queued for one. Its next sample
    /// may come later.
    pub fn is_busy(&self) -> bool {
        self.active >= BUSY_SAMPLES
    }

    /// Returns the interval in which the thread is sampled unless it runs before; 0 for none.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }
}

/// When threads are sampled, unless they run before.
#[derive(Debug, Default)]
pub struct Deadlines(BTreeMap<u64, Vec<i32>>);

impl Deadlines {
    /// Enters the deadline of a thread.
    pub fn enter(&mut self, thread: i32, deadline: u64) {
        self.0.entry(deadline).or_default().push(thread);
    }

    /// Removes and returns the threads that are due in the interval `tick`, with their deadlines. Those
    /// that have run since have later ones.
    pub fn due(&mut self, tick: u64) -> Vec<(i32, u64)> {
        let mut due = Vec::new();
        while let Some(first) = self.0.first_entry().filter(|first| *first.key() <= tick) {
            let (deadline, threads) = first.remove_entry();
            due.extend(threads.into_iter().map(|thread| (thread, deadline)));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use contend_record::doctor::ThreadState;

    use super::*;
    use crate::wait::{Object, Wait};

    const LOCK: Sampled =
        Sampled::Waiting(Wait { state: ThreadState::Lock, object: Object::Unknown });

    /// Returns the number of samples in `ticks` intervals, in each of which a thread runs.
    fn samples(backoff: &mut Backoff, ticks: std::ops::Range<u64>, states: &[Sampled]) -> usize {
        let mut before = states[0];
        let sampled = |tick: &u64| {
            let is_due = backoff.has_run(*tick);
            if is_due {
                let state = states[usize::try_from(*tick).expect("small") % states.len()];
                backoff.note(before, state);
                before = state;
            }
            is_due
        };
        ticks.filter(sampled).count()
    }

    #[test]
    fn a_thread_in_the_same_wait_is_sampled_less_often() {
        let mut backoff = Backoff::default();
        assert_eq!(samples(&mut backoff, 1..4, &[LOCK]), 3);
        assert_eq!(samples(&mut backoff, 4..14, &[LOCK]), 3 + 1);
        assert_eq!(
            samples(&mut backoff, 1000..1801, &[LOCK]),
            1 + 2 + 6 + (800 - 4 * 2 - 8 * 6) / 16
        );
        backoff.note(LOCK, Sampled::Waiting(crate::wait::STOPPED));
        assert!(backoff.has_run(2000), "another wait");
    }

    #[test]
    fn a_thread_that_is_found_ready_or_in_changing_waits_is_always_sampled() {
        let stopped = Sampled::Waiting(crate::wait::STOPPED);
        assert_eq!(samples(&mut Backoff::default(), 1..101, &[Sampled::Active]), 100);
        assert_eq!(samples(&mut Backoff::default(), 1..101, &[LOCK, stopped]), 100);
    }

    #[test]
    fn a_thread_is_busy_after_some_samples_on_a_cpu() {
        let mut backoff = Backoff::default();
        samples(&mut backoff, 1..8, &[Sampled::Active]);
        assert!(!backoff.is_busy());
        samples(&mut backoff, 8..9, &[Sampled::Active]);
        assert!(backoff.is_busy());
        backoff.note(Sampled::Active, LOCK);
        assert!(!backoff.is_busy(), "it waits now");
    }

    #[test]
    fn a_thread_that_does_not_run_as_expected_is_due() {
        let (mut backoff, mut deadlines) = (Backoff::default(), Deadlines::default());
        samples(&mut backoff, 1..4, &[LOCK]);
        assert!(!backoff.has_run(10));
        deadlines.enter(7, backoff.deadline());
        assert_eq!(deadlines.due(24), [], "it ran again after seven intervals");
        assert_eq!(deadlines.due(25), [(7, 25)]);
        assert_eq!(backoff.deadline(), 25);
        backoff.note(LOCK, LOCK);
        assert_eq!(backoff.deadline(), 0);
        assert_eq!(deadlines.due(100), []);
    }
}
