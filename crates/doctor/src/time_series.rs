//! What the program did over time, in intervals of equal length: causes from the timeline, and the states
//! of threads from the trace, if there is one.

use std::collections::BTreeMap;

use contend_record::doctor::{Cause, Finding, ThreadSeries, ThreadState, TimeSeries};
use contend_record::trace::{Activity, ThreadTrace, Trace};

use crate::timeline::{CAUSES, Timeline};

/// Largest number of intervals, which are as many as can be told apart on a page.
const MAX_INTERVALS: usize = 100;
/// Largest number of points in a log.
const MAX_POINTS: usize = 2 * MAX_INTERVALS;
/// Largest number of threads.
const MAX_THREADS: usize = 24;

/// The times by cause at points in time. Once it has its maximum number of points, every second one is
/// dropped, and from then on only every second call adds one, and so on.
#[derive(Debug, Clone, Default)]
pub struct CauseLog {
    /// Time of the point, and the times by cause up to it, in nanoseconds.
    points: Vec<(u64, [u64; CAUSES])>,
    /// Number of calls so far, and the binary logarithm of the number of calls for each point.
    calls: u64,
    calls_per_point_log2: u32,
}

impl CauseLog {
    /// Adds a point, if one is due. To be called in each interval of the observation. In a gap between
    /// records, the causes are not known yet.
    pub fn note(&mut self, timeline: &Timeline) {
        if timeline.is_in_gap() {
            return;
        }
        let is_due = self.calls.trailing_zeros() >= self.calls_per_point_log2;
        self.calls += 1;
        if !is_due {
            return;
        }
        self.points.push((timeline.until(), timeline.causes));
        if self.points.len() >= MAX_POINTS {
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.calls_per_point_log2 += 1;
        }
    }

    /// Returns the times by cause up to `time`, which is between two points: they are taken to increase
    /// evenly there.
    fn at(points: &[(u64, [u64; CAUSES])], time: u64) -> [f64; CAUSES] {
        let after = points.partition_point(|(point, _)| *point < time);
        let of = |place: usize| points[place].1.map(|nanos| nanos as f64);
        if after == 0 {
            return [0.0; CAUSES];
        }
        if after == points.len() {
            return of(after - 1);
        }
        let (begin, end) = (points[after - 1].0, points[after].0);
        let share = (time - begin) as f64 / (end - begin).max(1) as f64;
        let (before, behind) = (of(after - 1), of(after));
        std::array::from_fn(|cause| before[cause] + share * (behind[cause] - before[cause]))
    }
}

/// Returns what the program did over time; `None` if the observation had too few intervals. `name` gives
/// a cause the name under which it is reported.
pub fn time_series(
    log: &CauseLog,
    timeline: &Timeline,
    trace: Option<&Trace>,
    findings: &[Finding],
    name: impl Fn(Cause) -> Cause,
) -> Option<TimeSeries> {
    let mut points = vec![(timeline.begun, [0; CAUSES])];
    points.extend(
        log.points.iter().filter(|(time, _)| *time > timeline.begun && *time < timeline.until()),
    );
    points.push((timeline.until(), timeline.causes));
    let intervals = (points.len() / 2).min(MAX_INTERVALS);
    if intervals < 2 || timeline.length() == 0 {
        return None;
    }
    let border = |number: usize| {
        let share = number as f64 / intervals as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part")]
        let after = (timeline.length() as f64 * share) as u64;
        timeline.begun + after
    };
    let borders: Vec<u64> = (0..=intervals).map(border).collect();
    let sums: Vec<[f64; CAUSES]> =
        borders.iter().map(|time| CauseLog::at(&points, *time)).collect();
    let mut causes: BTreeMap<Cause, Vec<f64>> = BTreeMap::new();
    for cause in Cause::ALL {
        let place = cause as usize;
        if sums[intervals][place] == 0.0 {
            continue;
        }
        let shares = causes.entry(name(cause)).or_insert_with(|| vec![0.0; intervals]);
        for (number, share) in shares.iter_mut().enumerate() {
            let nanos = sums[number + 1][place] - sums[number][place];
            *share =
                rounded(*share + nanos / (borders[number + 1] - borders[number]).max(1) as f64);
        }
    }
    let threads = trace.map_or_else(Vec::new, |trace| threads(trace, findings, &borders));
    let interval_seconds = timeline.length() as f64 / 1e9 / intervals as f64;
    Some(TimeSeries { interval_seconds, causes, threads })
}

/// Returns the states of the chosen threads between the borders.
fn threads(trace: &Trace, findings: &[Finding], borders: &[u64]) -> Vec<ThreadSeries> {
    let running = |thread: &ThreadTrace| -> u64 {
        let runs =
            thread.spans().filter(|(_, _, activity)| matches!(activity, Activity::Running { .. }));
        runs.map(|(start, end, _)| end - start).sum()
    };
    let is_named = |thread: &ThreadTrace| {
        let mut named = findings.iter().flat_map(|finding| &finding.threads);
        named.any(|name| name.tid == thread.tid && name.pid == thread.pid)
    };
    let mut order: Vec<(bool, u64, &ThreadTrace)> =
        trace.threads.iter().map(|thread| (is_named(thread), running(thread), thread)).collect();
    order.sort_by_key(|(named, running, _)| std::cmp::Reverse((*named, *running)));
    let chosen = order.into_iter().take(MAX_THREADS).map(|(_, _, thread)| thread);
    chosen.map(|thread| series(trace, thread, borders)).collect()
}

fn series(trace: &Trace, thread: &ThreadTrace, borders: &[u64]) -> ThreadSeries {
    let intervals = borders.len() - 1;
    let mut states: BTreeMap<ThreadState, Vec<f64>> = BTreeMap::new();
    for (start, end, activity) in thread.spans() {
        let shares = states.entry(trace.state(activity)).or_insert_with(|| vec![0.0; intervals]);
        let first = borders.partition_point(|border| *border <= start).saturating_sub(1);
        for number in first..intervals {
            let (from, to) = (borders[number], borders[number + 1]);
            if from >= end {
                break;
            }
            let nanos = end.min(to).saturating_sub(start.max(from));
            shares[number] += nanos as f64 / (to - from).max(1) as f64;
        }
    }
    for shares in states.values_mut() {
        for share in shares.iter_mut() {
            *share = rounded(*share);
        }
    }
    ThreadSeries { pid: thread.pid, tid: thread.tid, name: thread.name.clone(), states }
}

/// Rounds a share to three decimal places: more are not measured, and take room in every record.
fn rounded(share: f64) -> f64 {
    (share.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use contend_record::trace::{Clocks, Source, Span};

    use super::*;

    /// Returns a log of a second in which the program is idle for 400 ms, and then busy.
    fn log(timeline: &mut Timeline) -> CauseLog {
        let mut log = CauseLog::default();
        for ms in 1..=1000_u64 {
            timeline.tick(ms * 1_000_000, if ms > 400 { 1_000_000 } else { 0 }, 0);
            log.note(timeline);
        }
        log
    }

    #[test]
    fn causes_show_when_the_program_was_busy() {
        let mut timeline = Timeline::new(0, false);
        let log = log(&mut timeline);
        let series = time_series(&log, &timeline, None, &[], |cause| cause).expect("a second");
        let busy = &series.causes[&Cause::Busy];
        assert!(busy.len() > 40, "{}", busy.len());
        assert!((series.interval_seconds * busy.len() as f64 - 1.0).abs() < 1e-9);
        for (number, share) in busy.iter().enumerate() {
            let middle = (number as f64 + 0.5) * series.interval_seconds;
            let is_border = (middle - 0.4).abs() < 2.0 * series.interval_seconds;
            assert!(is_border || (*share > 0.9) == (middle > 0.4), "{middle}: {share}");
        }
    }

    #[test]
    fn a_renamed_cause_keeps_its_time() {
        let mut timeline = Timeline::new(0, false);
        let log = log(&mut timeline);
        let series = time_series(&log, &timeline, None, &[], |_| Cause::Unknown).expect("a second");
        assert_eq!(series.causes.len(), 1);
        assert!(series.causes[&Cause::Unknown].iter().all(|share| (*share - 1.0).abs() < 0.01));
    }

    #[test]
    fn the_log_is_bounded() {
        let mut timeline = Timeline::new(0, false);
        let mut log = CauseLog::default();
        for ms in 1..=100_000_u64 {
            timeline.tick(ms * 1_000_000, 0, 0);
            log.note(&timeline);
            assert!(log.points.len() < MAX_POINTS);
        }
        assert!(log.points.len() >= MAX_POINTS / 4);
    }

    #[test]
    fn spans_are_divided_at_the_borders() {
        let running = Activity::Running { cpu: None };
        let spans = [(10, running), (25, Activity::Queued)];
        let thread = ThreadTrace {
            pid: 1,
            tid: 2,
            name: "one".to_owned(),
            begun: 10,
            end: 40,
            has_ended: true,
            spans: spans.map(|(start, activity)| Span { start, activity }).into(),
            events: Vec::new(),
        };
        let trace = Trace {
            start: Clocks::default(),
            end: 60,
            observed_until: 60,
            source: Source::Switches,
            processes: Vec::new(),
            threads: vec![thread],
            waits: Vec::new(),
            work: Vec::new(),
            moments: Vec::new(),
        };
        let series = threads(&trace, &[], &[0, 20, 40, 60]);
        let states = &series[0].states;
        assert_eq!(states[&ThreadState::Running], [0.5, 0.25, 0.0]);
        assert_eq!(states[&ThreadState::Runnable], [0.0, 0.75, 0.0]);
    }
}
