//! Gaps in the records of context switches: times for which they are not recorded, because there are
//! very many of them.
//!
//! A gap counts as the burst before it: levels, causes and counts grow in proportion. The time of
//! threads by state, which comes from samples, has no gaps.

use contend_record::doctor::ThreadState;
use rustc_hash::FxHashMap;

use super::{CAUSES, MAX_LEVEL, Position, Timeline, Track, Wakes};
use crate::histogram::Histogram;

/// Where a burst begins, and the gaps so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    /// The beginning of the burst; `None` for that of the history.
    burst: Option<Box<Burst>>,
    /// Whether a gap has begun.
    is_open: bool,
    /// Length of all gaps, in nanoseconds.
    nanos: u64,
}

/// What had been counted when a burst began.
#[derive(Debug, Clone)]
struct Burst {
    begun: u64,
    levels: [u64; MAX_LEVEL + 1],
    causes: [u64; CAUSES],
    wakes: FxHashMap<(i32, i32), Wakes>,
    tracks: FxHashMap<i32, Box<Track>>,
}

impl Gaps {
    /// Returns whether there has been a gap.
    pub(super) fn exist(&self) -> bool {
        self.is_open || self.nanos > 0
    }

    /// Returns whether there is a gap now.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Leaves the gaps since `earlier`.
    pub(super) fn subtract(&mut self, earlier: &Self) {
        self.nanos = self.nanos.saturating_sub(earlier.nanos);
    }
}

impl Timeline {
    /// Returns the share of the time for which context switches were recorded, if they were.
    pub fn recorded_share(&self) -> Option<f64> {
        let share = 1.0 - self.gaps.nanos as f64 / self.length().max(1) as f64;
        self.has_switches.then(|| share.max(0.0))
    }

    /// Begins a burst, which any gap until the next one will count as.
    pub fn begin_burst(&mut self) {
        self.gaps.burst = Some(Box::new(Burst {
            begun: self.now,
            levels: self.levels,
            causes: self.causes,
            wakes: self.wakes.clone(),
            tracks: self.tracks.clone(),
        }));
    }

    /// Begins a gap at `now`.
    pub fn pause(&mut self, now: u64) {
        self.advance(now);
        self.end_alone(self.last_end);
        for track in self.tracks.values_mut() {
            if track.position == Position::OnCpu {
                track.run_nanos += now.saturating_sub(track.since);
            }
            track.cut(now);
        }
        self.on_cpu.clear();
        self.running_before.clear();
        self.last_left = None;
        self.gaps.is_open = true;
    }

    /// Ends the gap at `now`, and begins a burst. Threads are where samples have found them since the
    /// gap began.
    pub fn resume(&mut self, now: u64) {
        self.fill_gap(now);
        self.gaps.is_open = false;
        let mut ready = Vec::new();
        for (id, track) in &mut self.tracks {
            track.cut(now);
            if track.position == Position::OnCpu {
                ready.push((track.states[ThreadState::Running as usize], *id));
            }
        }
        // A sample does not tell whether a thread is on a CPU or queued. Those that run most are.
        ready.sort_unstable();
        let excess = ready.len().saturating_sub(self.cpus);
        for (_, id) in ready.into_iter().take(excess) {
            self.leave(id);
            if let Some(track) = self.tracks.get_mut(&id) {
                track.position = Position::Queued;
            }
            self.arrive(id);
        }
        let running = self.tracks.iter().filter(|(_, track)| track.position == Position::OnCpu);
        self.running_before = running.map(|(id, _)| *id).collect();
        self.last_end = now;
        self.begin_burst();
    }

    /// Counts the gap up to `now` as the burst before it.
    pub(super) fn fill_gap(&mut self, now: u64) {
        let gap = now.saturating_sub(self.now);
        let burst = self.gaps.burst.as_deref();
        let begun = burst.map_or(self.begun, |burst| burst.begun);
        let ratio = gap as f64 / self.now.saturating_sub(begun).max(1) as f64;
        let levels = burst.map_or([0; MAX_LEVEL + 1], |burst| burst.levels);
        let causes = burst.map_or([0; CAUSES], |burst| burst.causes);
        fill(&mut self.levels, &levels, gap);
        fill(&mut self.causes, &causes, gap);
        for (pair, wakes) in &mut self.wakes {
            let before = burst.and_then(|burst| burst.wakes.get(pair)).copied();
            wakes.extrapolate(before.unwrap_or_default(), ratio);
        }
        for (id, track) in &mut self.tracks {
            let before = burst.and_then(|burst| burst.tracks.get(id)).map(Box::as_ref);
            let new = Track::new(track.process, track.begun);
            let before = before.filter(|before| before.begun == track.begun).unwrap_or(&new);
            track.extrapolate(before, ratio);
        }
        self.gaps.nanos += gap;
        self.now = self.now.max(now);
    }
}

/// Divides `gap` nanoseconds among times in proportion to their growth since `before`.
fn fill(times: &mut [u64], before: &[u64], gap: u64) {
    let growth: Vec<u64> =
        times.iter().zip(before).map(|(time, before)| time.saturating_sub(*before)).collect();
    let sum: u128 = growth.iter().map(|&growth| u128::from(growth)).sum();
    let Some(largest) = (0..growth.len()).max_by_key(|&index| growth[index]) else { return };
    let mut rest = gap;
    for (time, growth) in times.iter_mut().zip(&growth) {
        let part = (u128::from(gap) * u128::from(*growth)).checked_div(sum).unwrap_or(0);
        let part = u64::try_from(part).unwrap_or(0).min(rest);
        *time += part;
        rest -= part;
    }
    times[largest] += rest;
}

/// Adds `ratio` times the growth since `before`.
fn grow(count: &mut u64, before: u64, ratio: f64) {
    let growth = count.saturating_sub(before) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let more = (growth * ratio).round() as u64;
    *count = count.saturating_add(more);
}

impl Wakes {
    fn extrapolate(&mut self, before: Self, ratio: f64) {
        grow(&mut self.count, before.count, ratio);
        grow(&mut self.alone, before.alone, ratio);
        grow(&mut self.across_cpus, before.across_cpus, ratio);
    }
}

impl Track {
    /// Cuts the current run or wait in two at `now`. What follows has no known length.
    fn cut(&mut self, now: u64) {
        self.since = now;
        self.is_cut = true;
        self.waking = None;
        self.has_event = false;
    }

    fn extrapolate(&mut self, before: &Self, ratio: f64) {
        grow(&mut self.run_nanos, before.run_nanos, ratio);
        grow(&mut self.preemptions, before.preemptions, ratio);
        grow(&mut self.short_sleeps, before.short_sleeps, ratio);
        grow(&mut self.sleeps_with_event, before.sleeps_with_event, ratio);
        extrapolate(&mut self.runs, &before.runs, ratio);
        extrapolate(&mut self.blocks, &before.blocks, ratio);
    }
}

fn extrapolate(lengths: &mut Histogram, before: &Histogram, ratio: f64) {
    let growth = lengths.since(before);
    lengths.add_times(&growth, ratio);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Sampled;
    use crate::wait::{Object, Wait};
    use contend_record::doctor::Cause;
    use contend_sys::perf::{Event, Record};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn asleep() -> Sampled {
        let wait = Wait { state: ThreadState::Condition, object: Object::Unknown };
        Sampled::Waiting(wait)
    }

    /// Returns a history in which threads 1 and 2 wait, and thread 1 begins to run at times that are
    /// multiples of 10 ms, for 4 ms each, and wakes thread 2, which runs for 2 ms.
    fn played(timeline: &mut Timeline, times: std::ops::Range<u64>) {
        for turn in times.filter(|time| time % 10 == 0) {
            let events = [
                (turn, 1, 0, Event::In),
                (turn + 4, 1, 0, Event::Blocked),
                (turn + 4, 2, 1, Event::In),
                (turn + 6, 2, 1, Event::Blocked),
            ];
            for (time, thread, cpu, event) in events {
                timeline.record(&Record { time: time * MS, process: 1, thread, cpu, event });
            }
        }
    }

    fn begun() -> Timeline {
        let mut timeline = Timeline::new(0, true);
        timeline.set_cpus(2.0);
        timeline.add(1, 1, 0, asleep());
        timeline.add(1, 2, 0, asleep());
        timeline
    }

    #[test]
    fn a_gap_counts_as_the_burst_before_it() {
        let mut whole = begun();
        played(&mut whole, 0..1000);
        whole.finish(1000 * MS);

        let mut timeline = begun();
        played(&mut timeline, 0..100);
        timeline.begin_burst();
        played(&mut timeline, 100..200);
        timeline.pause(200 * MS);
        timeline.settle(1, asleep());
        timeline.settle(2, asleep());
        timeline.resume(500 * MS);
        played(&mut timeline, 500..600);
        timeline.pause(600 * MS);
        timeline.finish(1000 * MS);

        assert_eq!(timeline.recorded_share().map(|share| (share * 100.0).round()), Some(30.0));
        let close = |a: u64, b: u64| assert!(a.abs_diff(b) * 20 <= b, "{a} and {b}");
        close(timeline.levels[0], whole.levels[0]);
        close(timeline.levels[1], whole.levels[1]);
        close(timeline.causes[Cause::Serial as usize], whole.causes[Cause::Serial as usize]);
        assert_eq!(timeline.causes.iter().sum::<u64>(), timeline.length());
        assert_eq!(timeline.levels.iter().sum::<u64>(), timeline.length());
        close(timeline.wakes[&(1, 2)].count, whole.wakes[&(1, 2)].count);
        for id in [1, 2] {
            close(timeline.tracks[&id].run_nanos, whole.tracks[&id].run_nanos);
            close(timeline.tracks[&id].runs.count(), whole.tracks[&id].runs.count());
        }
    }

    #[test]
    fn more_threads_than_cpus_are_queued_after_a_gap() {
        let mut timeline = begun();
        timeline.add(1, 3, 0, asleep());
        timeline.pause(10 * MS);
        (1..=3).for_each(|id| timeline.settle(id, Sampled::Active));
        timeline.resume(20 * MS);
        timeline.finish(30 * MS);
        assert_eq!(timeline.levels[2], 10 * MS);
        assert_eq!(timeline.causes[Cause::Busy as usize], 10 * MS);
    }

    #[test]
    fn a_thread_that_always_runs_is_on_a_cpu_after_a_gap() {
        for busy in 1..=3 {
            let mut timeline = begun();
            timeline.add(1, 3, 0, asleep());
            timeline.pause(10 * MS);
            (1..=3).for_each(|id| timeline.settle(id, Sampled::Active));
            let track = timeline.tracks.get_mut(&busy).expect("known");
            track.states[ThreadState::Running as usize] = 10 * MS;
            timeline.resume(20 * MS);
            assert_eq!(timeline.tracks[&busy].position, Position::OnCpu, "{busy}");
        }
    }

    #[test]
    fn what_is_cut_has_no_length() {
        let mut timeline = begun();
        played(&mut timeline, 0..10);
        timeline.pause(100 * MS);
        timeline.settle(1, Sampled::Active);
        timeline.resume(200 * MS);
        let (runs, waits) = (timeline.tracks[&1].runs.count(), timeline.tracks[&2].blocks.count());
        let end = Record { time: 201 * MS, process: 1, thread: 1, cpu: 0, event: Event::Blocked };
        timeline.record(&end);
        timeline.record(&Record { time: 202 * MS, thread: 2, event: Event::In, ..end });
        assert_eq!(timeline.tracks[&1].runs.count(), runs);
        assert_eq!(timeline.tracks[&2].blocks.count(), waits);
    }

    proptest! {
        #[test]
        fn all_of_the_gap_is_divided(
            times in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 40), 1..10),
            gap in 0_u64..1 << 40,
        ) {
            let before: Vec<u64> = times.iter().map(|(before, _)| *before).collect();
            let mut after: Vec<u64> = times.iter().map(|(before, more)| before + more).collect();
            let sum: u64 = after.iter().sum();
            fill(&mut after, &before, gap);
            prop_assert_eq!(after.iter().sum::<u64>(), sum + gap);
        }
    }
}
