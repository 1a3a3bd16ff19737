//! Which threads are sampled in an interval, and what is done with their samples.

use contend_sys::Pid;
use contend_sys::cpu::Pinned;
use contend_sys::procfs::SchedStat;

use super::{Observer, now};
use crate::backoff::Backoff;
use crate::futex::{Futex, Primitive};
use crate::thread::{self, Sample, Sampled, ThreadFiles};
use crate::trace::Taken;
use crate::wait::{Object, Wait};

/// Number of intervals between two steps of the round, in which all threads are sampled in turn, with
/// context switches.
const ROUND_STEP_TICKS: u64 = 4;
/// Number of threads for which a step has one sample.
const THREADS_PER_ROUND_SAMPLE: usize = 100;
/// Largest number of samples in a step of the round. With more threads, a round takes longer.
const MAX_ROUND_SAMPLES: usize = 4;
/// Number of idle threads sampled in an interval, without context switches.
const IDLE_SAMPLES: u64 = 8;
/// Largest number of intervals for which a thread that does not run is not sampled, without context
/// switches.
const MAX_BACKOFF: u64 = 16;
/// Largest number of threads sampled in an interval because they have run.
const MAX_ACTIVE_SAMPLES: usize = 256;
/// Largest number of locks whose owners are counted.
const MAX_LOCKS: usize = 1000;
/// Largest number of runs in an interval after which one may be skipped.
const MAX_QUIET_RUNS: usize = 100;
/// One may be skipped if at most this part of the threads that have run are sampled: one divided by the
/// number.
const MIN_RUNS_PER_SAMPLE: usize = 4;

/// A thread with its files, and when it is sampled next.
#[derive(Debug)]
pub(super) struct Sampler {
    pub(super) files: ThreadFiles,
    /// The scheduler's counters when busy threads were last searched.
    pub(super) examined: SchedStat,
    pub(super) process: i32,
    /// Interval in which it was found.
    pub(super) found: u64,
    /// When it is sampled next, without context switches, and how many intervals later again.
    pub(super) due: u64,
    pub(super) backoff: u64,
    /// When it is sampled next, with context switches.
    pub(super) run_backoff: Backoff,
}

impl Sampler {
    /// Samples the thread less often if it is idle. The first steps are larger the more threads there are.
    fn back_off(&mut self, is_idle: bool, most: u64) {
        self.backoff = if is_idle { most.min((2 * self.backoff).max(most / 8)) } else { 1 };
    }

    /// Returns the number of intervals until the next sample. It differs between idle threads, so that
    /// they are not sampled at the same time.
    fn wait_ticks(&self, id: i32) -> u64 {
        self.backoff - u64::from(id.cast_unsigned()) % (self.backoff / 4 + 1)
    }
}

/// Returns whether the next interval may be skipped after one with this number of runs, in which `samples`
/// of the `threads` that have run had to be sampled. Those of busy threads do not count.
fn is_quiet(runs: usize, threads: usize, samples: usize) -> bool {
    runs <= MAX_QUIET_RUNS && samples * MIN_RUNS_PER_SAMPLE <= threads
}

/// Returns the lock that a thread has begun to wait for, with its process.
fn new_lock(sampler: &Sampler, sample: &Sample) -> Option<(Pid, Futex)> {
    match sample.state {
        Sampled::Waiting(Wait { object: Object::Futex(futex), .. })
            if sample.slices > 0 && futex.primitive == Primitive::Lock =>
        {
            Some((Pid::from_raw(sampler.process)?, futex))
        }
        _ => None,
    }
}

impl Observer<'_> {
    pub(super) fn sample_all(&mut self) {
        let all = self.samplers.keys().copied().collect();
        self.sample(all);
    }

    pub(super) fn sample(&mut self, threads: Vec<i32>) {
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
                    sampler.back_off(is_idle, max_backoff);
                    if self.recorder.is_none() {
                        sampler.due = self.tick + sampler.wait_ticks(id);
                        self.deadlines.enter(id, sampler.due);
                    }
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
                    if let Some((process, futex)) = new_lock(sampler, &sample) {
                        self.lock_files.note(process, futex.address);
                        found.extend(futex.owner(process).map(|owner| (futex.address, owner)));
                    }
                }
                Err(error) if thread::is_out_of_descriptors(&error) => {}
                Err(_) => self.drop_thread(id),
            }
        }
        self.timeline.tick(now(), run, queued);
        if self.timeline.is_in_gap() {
            let used = run as f64 / self.config.interval.as_nanos() as f64;
            self.duty_cycle.note_use(self.tick, used, self.limits.cpus());
            match self.duty_cycle.uses_all_cpus() {
                // Binding is only for speed, so that a failure does not matter.
                Some(true) if self.pinned.is_none() => self.pinned = Pinned::here().ok(),
                Some(false) => self.pinned = None,
                _ => {}
            }
        }
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

    /// Returns the IDs of the threads to sample now.
    pub(super) fn due(&mut self, active: &[i32]) -> Vec<i32> {
        if self.recorder.is_none() {
            // In a gap, the program needs its CPUs itself.
            let is_gap = self.timeline.has_switches() && self.trace.is_none();
            self.stride = if is_gap { self.duty_cycle.stride(self.tick) } else { 1 };
            let due = self.deadlines.due(self.tick).into_iter();
            let is_due = |(id, deadline): (i32, u64)| {
                self.samplers.get(&id).filter(|sampler| sampler.due == deadline).map(|_| id)
            };
            return due.filter_map(is_due).collect();
        }
        let runs = active.len();
        let mut active = active.to_vec();
        active.sort_unstable();
        active.dedup();
        let mut due: Vec<i32> = Vec::new();
        let mut busy = 0;
        for &id in &active {
            let Some(sampler) = self.samplers.get_mut(&id) else { continue };
            // A trace shows each wait.
            let has_time = due.len() < MAX_ACTIVE_SAMPLES;
            if (sampler.run_backoff.has_run(self.tick) || self.trace.is_some()) && has_time {
                due.push(id);
                busy += usize::from(sampler.run_backoff.is_busy());
            } else {
                self.deadlines.enter(id, sampler.run_backoff.deadline());
            }
        }
        for (id, deadline) in self.deadlines.due(self.tick) {
            let sampler = self.samplers.get(&id);
            if sampler.is_some_and(|sampler| sampler.run_backoff.deadline() == deadline) {
                due.push(id);
            }
        }
        let may_skip = is_quiet(runs, active.len(), due.len() - busy)
            && self.trace.is_none()
            && self.started.is_empty();
        // The number of the interval remains even, so that none of those is skipped in which more is done.
        self.stride = if may_skip && self.tick.is_multiple_of(2) { 2 } else { 1 };
        if self.tick.is_multiple_of(ROUND_STEP_TICKS) {
            let part = self.samplers.len() / THREADS_PER_ROUND_SAMPLE;
            let part = part.clamp(1, MAX_ROUND_SAMPLES);
            let part: Vec<i32> =
                self.samplers.range(self.round..).map(|(id, _)| *id).take(part).collect();
            self.round = part.last().map_or(0, |last| last + 1);
            due.extend(part);
        }
        due.sort_unstable();
        due.dedup();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::is_quiet;

    #[test]
    fn intervals_are_skipped_only_while_there_is_little_to_sample() {
        assert!(is_quiet(0, 0, 0), "nothing has happened");
        assert!(is_quiet(100, 10, 2), "most threads are in the same waits again");
        assert!(!is_quiet(101, 10, 0), "buffers for records could overflow");
        assert!(!is_quiet(10, 10, 3));
        assert!(!is_quiet(1, 1, 1), "a thread runs all the time");
        assert!(!is_quiet(0, 0, 1), "a thread has not run as expected");
    }
}
