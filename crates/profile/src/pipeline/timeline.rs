//! The counters of all stages over time, from which parts of a run are accounted.
//!
//! A timeline has a point for every sample at first. Once it has its maximum number of points,
//! every second one is dropped, and from then on only every second sample adds one, and so on. The
//! memory of a timeline is thus bounded. With up to 16 stages, at least 256 points remain.

use std::time::Duration;

use contend_sys::procfs::SchedStat;

use super::critical::CriticalTime;
use crate::observe::tree::SampledTime;

/// Maximum number of points in a timeline.
const MAX_POINTS: usize = 512;
/// Maximum number of points of a timeline, multiplied by the square of its number of stages, unless
/// that would allow fewer than [`MIN_POINTS`].
const MAX_CELLS: usize = MAX_POINTS * 256;
/// Smallest maximum number of points, for pipelines with many stages.
const MIN_POINTS: usize = 64;

/// Counters of a stage: their values at a point in time, or their increase during a period.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// The scheduler's counters, summed over the tasks that samples have found.
    pub sched: SchedStat,
    /// Time by state, as found by samples.
    pub seen: SampledTime,
    /// Fill of the pipe to the next stage.
    pub output_fill: FillSum,
}

/// The fill of a pipe, summed over samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FillSum {
    /// Sum of the numbers of bytes in the pipe.
    pub bytes: u64,
    /// Number of samples.
    pub samples: u64,
}

/// The counters of all stages at points in time, earliest first.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Times of the points, since the gate opened.
    times: Vec<Duration>,
    /// Counters at the points: those of all stages at the first point, at the second, and so on.
    counters: Vec<Counters>,
    /// Critical times up to the points.
    critical: Vec<CriticalTime>,
    /// Binary logarithm of the number of samples for each point.
    samples_per_point_log2: u32,
    /// Number of samples so far.
    samples: u64,
}

impl Timeline {
    /// Takes the next sample, at time `now` since the gate opened. Adds a point if one is due: the
    /// critical times, and the counters of all stages from `read`, first stage to last.
    pub fn sample(
        &mut self,
        now: Duration,
        critical: &CriticalTime,
        read: impl Iterator<Item = Counters>,
    ) {
        let is_due = self.samples.trailing_zeros() >= self.samples_per_point_log2;
        self.samples += 1;
        if is_due {
            self.push(now, critical.clone(), read);
            let stages = self.stages().max(1);
            if self.times.len() >= (MAX_CELLS / (stages * stages)).clamp(MIN_POINTS, MAX_POINTS) {
                self.thin();
            }
        }
    }

    /// Adds the last point: the critical times and the counters of all stages at the end of the
    /// run, at time `now` since the gate opened.
    pub fn finish(
        &mut self,
        now: Duration,
        critical: CriticalTime,
        read: impl Iterator<Item = Counters>,
    ) {
        self.push(now, critical, read);
    }

    fn push(
        &mut self,
        now: Duration,
        critical: CriticalTime,
        read: impl Iterator<Item = Counters>,
    ) {
        self.times.push(now);
        self.critical.push(critical);
        self.counters.extend(read);
    }

    /// Drops every second point.
    fn thin(&mut self) {
        let stages = self.stages();
        let kept = self.times.len().div_ceil(2);
        for place in 1..kept {
            self.times[place] = self.times[2 * place];
            self.critical.swap(place, 2 * place);
            let from = 2 * place * stages;
            self.counters.copy_within(from..from + stages, place * stages);
        }
        self.times.truncate(kept);
        self.critical.truncate(kept);
        self.counters.truncate(kept * stages);
        self.samples_per_point_log2 += 1;
    }

    fn stages(&self) -> usize {
        self.counters.len().checked_div(self.times.len()).unwrap_or(0)
    }

    /// Returns the times of the points since the gate opened, earliest first.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// Returns by how much the counters of `stage`, from 0, increased between two times. Between
    /// two points, counters are taken to increase evenly. Returns zeros for an unknown stage.
    pub fn between(&self, stage: usize, from: Duration, to: Duration) -> Counters {
        let (before, after) = (self.at(stage, from), self.at(stage, to));
        combine(&before, &after, |before, after| after.saturating_sub(before))
    }

    /// Returns the mean fill of the pipe after `stage` between two times, in bytes, or `None` without samples there. Between two
    /// points, samples are taken to be spread evenly, so that the mean is one of the samples' fills or between them.
    pub fn mean_fill_between(&self, stage: usize, from: Duration, to: Duration) -> Option<f64> {
        let [(bytes_before, samples_before), (bytes, samples)] =
            [from, to].map(|time| self.fill_at(stage, time));
        let samples = samples - samples_before;
        (samples > 0.0).then(|| (bytes - bytes_before) / samples)
    }

    /// Returns the sums of the fills and the number of samples at `time`, with fractions of samples.
    fn fill_at(&self, stage: usize, time: Duration) -> (f64, f64) {
        let stages = self.stages();
        let Some((before, share)) = self.position(time).filter(|_| stage < stages) else {
            return (0.0, 0.0);
        };
        let fill =
            |place: usize| self.counters.get(place * stages + stage).map(|it| it.output_fill);
        let Some(first) = fill(before) else { return (0.0, 0.0) };
        let next = fill(before + 1).unwrap_or(first);
        let between =
            |before: u64, after: u64| before as f64 + share * after.saturating_sub(before) as f64;
        (between(first.bytes, next.bytes), between(first.samples, next.samples))
    }

    /// Returns the increase of the critical times between two times. Between two points, they are
    /// taken to increase evenly. Returns `None` without points.
    pub fn critical_between(&self, from: Duration, to: Duration) -> Option<CriticalTime> {
        let at = |time: Duration| match self.position(time)? {
            (before, 0.0) => Some(self.critical[before].clone()),
            (before, share) => Some(CriticalTime::interpolate(
                &self.critical[before],
                &self.critical[before + 1],
                share,
            )),
        };
        Some(at(to)?.since(&at(from)?))
    }

    /// Returns the counters of `stage` at `time`, and zeros for an unknown stage.
    fn at(&self, stage: usize, time: Duration) -> Counters {
        let stages = self.stages();
        let Some((before, share)) = self.position(time).filter(|_| stage < stages) else {
            return Counters::default();
        };
        let point = |place: usize| &self.counters[place * stages + stage];
        match share {
            0.0 => *point(before),
            share => interpolate(point(before), point(before + 1), share),
        }
    }

    /// Returns the last point before `time`, and the share of the way to the next point at which
    /// `time` is, from 0 to 1. Outside of the timeline, returns the nearest point and 0. Returns
    /// `None` without points.
    fn position(&self, time: Duration) -> Option<(usize, f64)> {
        let after = self.times.partition_point(|&point| point < time);
        if after == 0 || after == self.times.len() {
            let last = self.times.len().checked_sub(1)?;
            return Some((after.min(last), 0.0));
        }
        let (begin, end) = (self.times[after - 1], self.times[after]);
        Some((
            after - 1,
            time.saturating_sub(begin).as_secs_f64() / end.saturating_sub(begin).as_secs_f64(),
        ))
    }
}

/// Returns the counters at `share`, from 0 to 1, of the way from `before` to `after`.
fn interpolate(before: &Counters, after: &Counters, share: f64) -> Counters {
    combine(before, after, |before, after| before + after.saturating_sub(before).mul_f64(share))
}

/// Applies `of` to each pair of counters. A number counts as that many nanoseconds.
fn combine(
    before: &Counters,
    after: &Counters,
    of: impl Fn(Duration, Duration) -> Duration,
) -> Counters {
    let number = |before: u64, after: u64| {
        let result = of(Duration::from_nanos(before), Duration::from_nanos(after));
        u64::try_from(result.as_nanos()).unwrap_or(u64::MAX)
    };
    let mut waiting = before.seen.waiting;
    for (wait, after) in waiting.iter_mut().zip(after.seen.waiting) {
        *wait = of(*wait, after);
    }
    Counters {
        sched: SchedStat {
            on_cpu: number(before.sched.on_cpu, after.sched.on_cpu),
            run_queue: number(before.sched.run_queue, after.sched.run_queue),
            slices: number(before.sched.slices, after.sched.slices),
        },
        seen: SampledTime {
            active: of(before.seen.active, after.seen.active),
            active_tasks: of(before.seen.active_tasks, after.seen.active_tasks),
            waiting,
            samples: number(before.seen.samples, after.seen.samples),
            waiting_samples: number(before.seen.waiting_samples, after.seen.waiting_samples),
        },
        output_fill: FillSum {
            bytes: number(before.output_fill.bytes, after.output_fill.bytes),
            samples: number(before.output_fill.samples, after.output_fill.samples),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{State, Wait};
    use crate::pipeline::critical::{Critical, RecentWork};

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Returns counters of a stage that has run for `on_cpu_ms` and was starved for `starved_ms`.
    fn counters(on_cpu_ms: u32, starved_ms: u32) -> Counters {
        let mut counters = Counters::default();
        counters.sched.on_cpu = u64::from(on_cpu_ms) * 1_000_000;
        counters.seen.active = MILLISECOND * on_cpu_ms;
        counters.seen.waiting[Wait::Starved as usize] = MILLISECOND * starved_ms;
        counters
    }

    /// Returns the critical times of two stages, the first of which was critical for `ms`.
    fn critical(ms: u32) -> CriticalTime {
        let mut critical = CriticalTime::new(2);
        let starved = State::Waiting(Wait::Starved);
        let states = [Some(State::Active), Some(starved)];
        critical.add(&states, &RecentWork::default(), MILLISECOND * ms);
        critical
    }

    /// Returns a timeline of two stages: the first runs all the time, the second is starved all the
    /// time.
    fn timeline(samples: u32) -> Timeline {
        let mut timeline = Timeline::default();
        for ms in 0..=samples {
            timeline.sample(
                MILLISECOND * ms,
                &critical(ms),
                [counters(ms, 0), counters(0, ms)].into_iter(),
            );
        }
        timeline.finish(
            MILLISECOND * samples,
            critical(samples),
            [counters(samples, 0), counters(0, samples)].into_iter(),
        );
        timeline
    }

    #[test]
    fn the_mean_fill_is_never_more_than_the_fullest_sample() {
        const FULL: u64 = 65_536;
        let mut timeline = Timeline::default();
        let fill = |samples: u64| {
            let output_fill = FillSum { bytes: FULL * samples, samples };
            Counters { output_fill, ..Counters::default() }
        };
        for number in 0..20_u32 {
            let counters = [fill(u64::from(number)), Counters::default()];
            timeline.sample(MILLISECOND * 10 * number, &critical(number), counters.into_iter());
        }
        // Intervals that contain a fraction of a sample, or one and a half.
        for length in [3, 7, 13, 16] {
            for start in 0..100 {
                let from = MILLISECOND * start;
                let mean = timeline.mean_fill_between(0, from, from + MILLISECOND * length);
                assert!(mean.is_some_and(|mean| (mean - FULL as f64).abs() < 1.0), "{mean:?}");
            }
        }
        assert_eq!(timeline.mean_fill_between(1, Duration::ZERO, MILLISECOND * 100), None);
        assert_eq!(timeline.mean_fill_between(0, MILLISECOND * 900, MILLISECOND * 950), None);
    }

    #[test]
    fn increases_are_interpolated_between_points() {
        for samples in [10, 511, 512, 513, 5_000, 100_000] {
            let timeline = timeline(samples);
            assert!(timeline.times().len() <= MAX_POINTS + 1, "{}", timeline.times().len());
            let (from, to) = (MILLISECOND * (samples / 7), MILLISECOND * (samples - 2));
            let length = to.saturating_sub(from);
            let first = timeline.between(0, from, to);
            let error = first.seen.active.abs_diff(length);
            assert!(error < MILLISECOND / 100, "{samples}: {error:?}");
            let second = timeline.between(1, from, to);
            let error = second.seen.waited(Wait::Starved).abs_diff(length);
            assert!(error < MILLISECOND / 100, "{samples}: {error:?}");
            assert_eq!(second.sched.on_cpu, 0);
            let critical = timeline.critical_between(from, to).expect("there are points");
            assert!(critical.of(Critical::Stage(0)).abs_diff(length) < MILLISECOND / 100);
        }
    }

    #[test]
    fn outside_of_the_timeline_nothing_happens() {
        let timeline = timeline(100);
        let after = timeline.between(0, MILLISECOND * 100, MILLISECOND * 200);
        assert_eq!(after.sched.on_cpu, 0);
        let whole = timeline.between(0, Duration::ZERO, MILLISECOND * 900);
        assert_eq!(whole.sched.on_cpu, 100_000_000);
        assert_eq!(timeline.between(2, Duration::ZERO, MILLISECOND).sched.on_cpu, 0);
        assert_eq!(Timeline::default().between(0, Duration::ZERO, MILLISECOND).seen.samples, 0);
    }
}
