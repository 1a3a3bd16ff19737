//! The history of a part of the observation: the difference between two states of a timeline.

use contend_record::doctor::ThreadState;
use rustc_hash::FxHashMap;

use super::{Ended, Executions, STATES, Timeline, Track, Wakes};

impl Timeline {
    /// Returns the history from the end of `earlier` to the end of this one. `earlier` is a previous
    /// state of this timeline, and both are finished.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut window = self.clone();
        window.begun = earlier.now;
        for (id, track) in &mut window.tracks {
            if let Some(before) = earlier.living(*id, track) {
                track.subtract(before, earlier.now);
            }
        }
        window.finished.retain(|(_, track)| track.ended.is_none_or(|ended| ended > earlier.now));
        for (id, track) in &mut window.finished {
            if let Some(before) = earlier.living(*id, track) {
                track.subtract(before, earlier.now);
            }
        }
        (window.past_states, window.past_nanos) = self.past_since(earlier);
        window.past_runs = self.past_runs_since(earlier);
        subtract_all(&mut window.levels, &earlier.levels);
        subtract_all(&mut window.causes, &earlier.causes);
        for (pair, wakes) in &mut window.wakes {
            *wakes = wakes.since(earlier.wakes.get(pair).copied().unwrap_or_default());
        }
        window.wakes.retain(|_, wakes| wakes.count > 0);
        // If a longer time alone has been found since, it ended since. Others are not known.
        window.longest_alone = self
            .longest_alone
            .filter(|_| self.longest_alone != earlier.longest_alone)
            .map(|(id, nanos)| (id, nanos.min(window.length())));
        window.ended = self.ended.since(earlier.ended);
        for (name, executions) in &mut window.programs {
            *executions = executions.since(earlier.programs.get(name).copied().unwrap_or_default());
        }
        window.programs.retain(|_, executions| executions.count > 0 || executions.busy > 0);
        window.gaps.subtract(&earlier.gaps);
        window.records -= earlier.records.min(window.records);
        window.lost -= earlier.lost.min(window.lost);
        window
    }

    /// Returns the history of a thread if it lived at the end of this timeline. `track` is another
    /// state of that history, which tells a thread from another one with the same ID.
    fn living(&self, id: i32, track: &Track) -> Option<&Track> {
        self.tracks.get(&id).filter(|living| living.begun == track.begun).map(AsRef::as_ref)
    }

    /// Returns the time since `earlier` of the threads that have ended since then: by state, and in
    /// total.
    fn past_since(&self, earlier: &Self) -> ([u64; STATES], u64) {
        let mut states = self.past_states;
        let mut before_states = earlier.past_states;
        let mut nanos = self.past_nanos.saturating_sub(earlier.past_nanos);
        // The sums include the whole lives of these threads.
        for (id, before) in &earlier.tracks {
            if self.living(*id, before).is_none() {
                for (sum, nanos) in before_states.iter_mut().zip(before.states) {
                    *sum += nanos;
                }
                nanos = nanos.saturating_sub(earlier.now.saturating_sub(before.begun));
            }
        }
        subtract_all(&mut states, &before_states);
        (states, nanos)
    }
}

impl Timeline {
    /// Returns the time on a CPU since `earlier` of the threads that have ended since then, by process.
    fn past_runs_since(&self, earlier: &Self) -> FxHashMap<i32, u64> {
        let mut runs = self.past_runs.clone();
        let mut subtract = |process: i32, nanos: u64| {
            if let Some(run) = runs.get_mut(&process) {
                *run = run.saturating_sub(nanos);
            }
        };
        for (process, nanos) in &earlier.past_runs {
            subtract(*process, *nanos);
        }
        for (id, before) in &earlier.tracks {
            if self.living(*id, before).is_none() {
                subtract(before.process, before.states[ThreadState::Running as usize]);
            }
        }
        runs
    }
}

impl Track {
    /// Leaves the time since `before`, a previous state of this track, at the time `now`.
    fn subtract(&mut self, before: &Self, now: u64) {
        self.begun = now;
        subtract_all(&mut self.states, &before.states);
        self.waits.subtract(&before.waits);
        self.slices = self.slices.saturating_sub(before.slices);
        self.run_nanos = self.run_nanos.saturating_sub(before.run_nanos);
        self.runs = self.runs.since(&before.runs);
        self.blocks = self.blocks.since(&before.blocks);
        self.preemptions = self.preemptions.saturating_sub(before.preemptions);
        self.short_sleeps = self.short_sleeps.saturating_sub(before.short_sleeps);
        self.sleeps_with_event = self.sleeps_with_event.saturating_sub(before.sleeps_with_event);
    }
}

impl Wakes {
    fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            alone: self.alone.saturating_sub(earlier.alone),
            across_cpus: self.across_cpus.saturating_sub(earlier.across_cpus),
        }
    }
}

impl Ended {
    fn since(self, earlier: Self) -> Self {
        Self {
            threads: self.threads.saturating_sub(earlier.threads),
            processes: self.processes.saturating_sub(earlier.processes),
            run_nanos: self.run_nanos.saturating_sub(earlier.run_nanos),
            life_nanos: self.life_nanos.saturating_sub(earlier.life_nanos),
            short_lived: self.short_lived.saturating_sub(earlier.short_lived),
        }
    }
}

impl Executions {
    fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            run_nanos: self.run_nanos.saturating_sub(earlier.run_nanos),
            life_nanos: self.life_nanos.saturating_sub(earlier.life_nanos),
            busy: self.busy.saturating_sub(earlier.busy),
            busy_run_nanos: self.busy_run_nanos.saturating_sub(earlier.busy_run_nanos),
            short_sleeps: self.short_sleeps.saturating_sub(earlier.short_sleeps),
            sleeps_with_event: self.sleeps_with_event.saturating_sub(earlier.sleeps_with_event),
        }
    }
}

/// Subtracts times one by one; the sum of the differences is the difference of the sums.
///
/// A single time may have decreased: what a finished state assigns to the last wait may turn out to be
/// another one. That is 0 then, and the others decrease in proportion.
fn subtract_all(times: &mut [u64], before: &[u64]) {
    let sum = |times: &[u64]| times.iter().map(|&time| u128::from(time)).sum::<u128>();
    let expected = sum(times).saturating_sub(sum(before));
    for (time, before) in times.iter_mut().zip(before) {
        *time = time.saturating_sub(*before);
    }
    let left = sum(times);
    if left > expected {
        for time in times {
            *time = u64::try_from(u128::from(*time) * expected / left).unwrap_or(*time);
        }
    }
}

#[cfg(test)]
mod tests {
    use contend_record::doctor::{Cause, ThreadState};
    use contend_sys::perf::{Event, Record};

    use super::*;
    use crate::thread::{Sample, Sampled};
    use crate::wait::{Object, Wait};

    const MS: u64 = 1_000_000;

    fn waiting(state: ThreadState) -> Sampled {
        Sampled::Waiting(Wait { state, object: Object::Unknown })
    }

    fn record(timeline: &mut Timeline, time: u64, thread: i32, event: Event) {
        timeline.record(&Record { time: time * MS, process: 1, thread, cpu: 0, event });
    }

    fn sample(timeline: &mut Timeline, thread: i32, time: u64, on_cpu: u64) {
        let state = waiting(ThreadState::Lock);
        let sample = Sample { on_cpu: on_cpu * MS, run_queue: 0, slices: 1, state };
        timeline.sample(thread, time * MS, &sample);
    }

    fn finished(timeline: &Timeline, time: u64) -> Timeline {
        let mut timeline = timeline.clone();
        timeline.finish(time * MS);
        timeline
    }

    #[test]
    fn the_sum_of_differences_is_kept() {
        let mut times = [100, 30, 70];
        subtract_all(&mut times, &[40, 50, 10]);
        assert_eq!(times, [50, 0, 50], "of 120, 20 are too much");
        let mut fewer = [5, 5];
        subtract_all(&mut fewer, &[6, 6]);
        assert_eq!(fewer, [0, 0]);
    }

    #[test]
    fn a_window_has_the_time_of_all_threads_in_it() {
        let mut timeline = Timeline::new(0, true);
        timeline.set_cpus(2.0);
        for thread in [1, 2] {
            timeline.add(1, thread, 0, waiting(ThreadState::Lock));
        }
        record(&mut timeline, 10, 1, Event::In);
        record(&mut timeline, 40, 1, Event::Blocked);
        sample(&mut timeline, 1, 50, 30);
        sample(&mut timeline, 2, 50, 0);
        let earlier = finished(&timeline, 50);

        record(&mut timeline, 60, 2, Event::In);
        record(&mut timeline, 80, 2, Event::Blocked);
        sample(&mut timeline, 2, 90, 20);
        record(&mut timeline, 90, 2, Event::Ended);
        record(&mut timeline, 92, 3, Event::Started { parent: 1 });
        sample(&mut timeline, 1, 100, 0);
        sample(&mut timeline, 3, 100, 0);
        let window = finished(&timeline, 100).since(&earlier);

        assert_eq!(window.length(), 50 * MS);
        assert_eq!(window.causes.iter().sum::<u64>(), 50 * MS);
        assert_eq!(window.causes[Cause::Serial as usize], 20 * MS);
        assert_eq!(window.levels[..2], [30 * MS, 20 * MS]);
        assert_eq!(window.tracks[&1].states[ThreadState::Running as usize], 0);
        assert_eq!(window.tracks[&1].states[ThreadState::Lock as usize], 50 * MS);
        assert_eq!(window.tracks[&1].runs.count(), 0);
        assert_eq!(window.tracks[&3].states.iter().sum::<u64>(), 8 * MS);
        let [(2, ended)] = &window.finished[..] else { panic!("{:?}", window.finished) };
        assert_eq!(ended.states[ThreadState::Running as usize], 20 * MS);
        assert_eq!(ended.run_nanos, 20 * MS);
        // Thread 2, which has ended, was observed for 40 ms of the window.
        assert_eq!(window.past_states.iter().sum::<u64>(), 40 * MS);
        assert_eq!(window.past_states[ThreadState::Running as usize], 20 * MS);
        assert_eq!(window.past_nanos, 40 * MS);
        assert_eq!((window.ended.threads, window.ended.short_lived), (1, 0));
        assert_eq!(window.records, 4);
    }

    #[test]
    fn the_longest_time_alone_counts_if_it_ended_in_the_window() {
        let mut timeline = Timeline::new(0, true);
        for thread in [1, 2] {
            timeline.add(1, thread, 0, waiting(ThreadState::Lock));
        }
        let run = |timeline: &mut Timeline, thread, from, to| {
            record(timeline, from, thread, Event::In);
            record(timeline, to, thread, Event::Blocked);
        };
        run(&mut timeline, 1, 0, 20);
        run(&mut timeline, 2, 20, 30);
        let early = finished(&timeline, 30);
        assert_eq!(early.longest_alone, Some((1, 20 * MS)));
        run(&mut timeline, 1, 40, 50);
        let later = finished(&timeline, 60);
        assert_eq!(later.since(&early).longest_alone, None);
        run(&mut timeline, 2, 60, 90);
        run(&mut timeline, 1, 90, 100);
        assert_eq!(finished(&timeline, 100).since(&later).longest_alone, Some((2, 30 * MS)));
    }

    #[test]
    fn a_reused_thread_id_is_another_thread() {
        let mut timeline = Timeline::new(0, true);
        timeline.add(1, 7, 0, waiting(ThreadState::Lock));
        sample(&mut timeline, 7, 40, 30);
        let earlier = finished(&timeline, 40);
        record(&mut timeline, 50, 7, Event::Ended);
        record(&mut timeline, 60, 7, Event::Started { parent: 1 });
        sample(&mut timeline, 7, 100, 25);
        let window = finished(&timeline, 100).since(&earlier);
        assert_eq!(window.tracks[&7].states[ThreadState::Running as usize], 25 * MS);
        assert_eq!(window.past_states.iter().sum::<u64>(), 10 * MS);
    }
}
