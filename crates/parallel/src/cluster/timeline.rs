//! When the attempts at the parts of a job ran, as far as its driver can tell.

use std::collections::BTreeMap;
use std::time::Instant;

use contend_record::run::DividedOutcome;

use super::report::PartReport;

/// Share of an attempt at its end that is left out when attempts at the same time are counted: clocks are not exact.
const LEFT_OUT: f64 = 0.1;

/// The times of attempts at parts, in seconds after the engine was asked to run them.
#[derive(Debug)]
pub struct Timeline {
    asked: Instant,
    attempts: Vec<Attempt>,
}

/// An attempt that has ended.
#[derive(Debug, Clone)]
struct Attempt {
    host: String,
    wall_seconds: f64,
    /// The end, by the clock of its machine.
    ended_at: f64,
    /// When the driver learned of the end, by the clock of the timeline.
    learned_at: f64,
}

impl Timeline {
    /// Creates the timeline of a job that an engine is asked to run now.
    pub fn new() -> Self {
        Self { asked: Instant::now(), attempts: Vec::new() }
    }

    /// Notes an attempt of which the driver has just learned.
    pub fn ended(&mut self, report: &PartReport) {
        let PartReport { host, wall_seconds, ended_at, .. } = report;
        let (host, wall_seconds, ended_at) = (host.clone(), *wall_seconds, *ended_at);
        let learned_at = self.asked.elapsed().as_secs_f64();
        self.attempts.push(Attempt { host, wall_seconds, ended_at, learned_at });
    }

    /// Writes what is known into the record of a run.
    pub fn record(&self, divided: &mut DividedOutcome) {
        divided.start_seconds = self.start_seconds();
        divided.parts_seconds = self.parts_seconds();
        divided.at_once = self.at_once();
    }

    /// Returns the begin and the end of each attempt. The clock of a machine is set by the report that arrived fastest.
    fn spans(&self) -> Vec<(f64, f64)> {
        let mut ahead: BTreeMap<&str, f64> = BTreeMap::new();
        for Attempt { host, ended_at, learned_at, .. } in &self.attempts {
            let difference = learned_at - ended_at;
            let least = ahead.entry(host).or_insert(difference);
            *least = least.min(difference);
        }
        let span = |attempt: &Attempt| {
            let end = attempt.ended_at + ahead[attempt.host.as_str()];
            ((end - attempt.wall_seconds).max(0.0), end)
        };
        self.attempts.iter().map(span).collect()
    }

    /// Returns the time in seconds until the first attempt began; `None` if there was none.
    fn start_seconds(&self) -> Option<f64> {
        self.spans().iter().map(|&(begin, _)| begin).min_by(f64::total_cmp)
    }

    /// Returns the time in seconds from then until the last attempt ended.
    fn parts_seconds(&self) -> Option<f64> {
        let last = self.spans().iter().map(|&(_, end)| end).max_by(f64::total_cmp);
        Some(last? - self.start_seconds()?)
    }

    /// Returns the greatest number of attempts at the same time.
    fn at_once(&self) -> u64 {
        let ends = |(begin, end): (f64, f64)| [(begin, 1), (end - (end - begin) * LEFT_OUT, -1)];
        let mut ends: Vec<(f64, i64)> = self.spans().into_iter().flat_map(ends).collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let running = ends.iter().scan(0, |running, (_, change)| {
            *running += change;
            Some(*running)
        });
        running.max().unwrap_or(0).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a timeline of attempts: the host, the begin and the end, and when the driver learned of it.
    fn timeline(attempts: &[(&str, f64, f64, f64)]) -> Timeline {
        // The clock of the second machine is wrong.
        let attempt = |&(host, begin, end, learned_at): &(&str, f64, f64, f64)| Attempt {
            host: host.to_owned(),
            wall_seconds: end - begin,
            ended_at: end + if host == "two" { 1e9 } else { 1e6 },
            learned_at,
        };
        Timeline { attempts: attempts.iter().map(attempt).collect(), ..Timeline::new() }
    }

    #[test]
    fn attempts_in_turn_are_not_at_the_same_time() {
        let none = timeline(&[]);
        assert_eq!((none.start_seconds(), none.parts_seconds(), none.at_once()), (None, None, 0));
        let two = timeline(&[
            ("one", 2.0, 3.0, 3.0),
            ("two", 2.5, 3.5, 3.5),
            ("one", 3.0, 4.0, 4.5),
            ("two", 3.5, 4.5, 4.6),
        ]);
        let (start, parts) = (two.start_seconds(), two.parts_seconds());
        assert!((start.expect("attempts") - 2.0).abs() < 1e-3, "{start:?}");
        assert!((parts.expect("attempts") - 2.5).abs() < 1e-3, "{parts:?}");
        assert_eq!(two.at_once(), 2);
        let early = timeline(&[("one", -5.0, 1.0, 1.0)]);
        assert_eq!(early.start_seconds(), Some(0.0), "an attempt does not begin before the job");
    }
}
