//! When the attempts at the parts of a job ran, as far as its driver can tell.

use std::time::Instant;

/// Share of an attempt at its end that is left out when attempts at the same time are counted: the driver learns of the end of one
/// perhaps only after the next one has begun.
const LEFT_OUT: f64 = 0.1;

/// The times of attempts at parts, in seconds after the engine was asked to run them. They are of the driver's clock: those of other
/// machines may be wrong.
#[derive(Debug)]
pub struct Timeline {
    asked: Instant,
    /// The begin and the end of each attempt.
    spans: Vec<(f64, f64)>,
}

impl Timeline {
    /// Creates the timeline of a job that an engine is asked to run now.
    pub fn new() -> Self {
        Self { asked: Instant::now(), spans: Vec::new() }
    }

    /// Notes an attempt that has just ended after the given wall time in seconds.
    pub fn ended(&mut self, wall_seconds: f64) {
        let end = self.asked.elapsed().as_secs_f64();
        self.spans.push(((end - wall_seconds).max(0.0), end));
    }

    /// Returns the time in seconds until the first attempt began; `None` if there was none.
    pub fn start_seconds(&self) -> Option<f64> {
        self.spans.iter().map(|&(begin, _)| begin).min_by(f64::total_cmp)
    }

    /// Returns the time in seconds from then until the last attempt ended.
    pub fn parts_seconds(&self) -> Option<f64> {
        let last = self.spans.iter().map(|&(_, end)| end).max_by(f64::total_cmp);
        Some(last? - self.start_seconds()?)
    }

    /// Returns the greatest number of attempts at the same time.
    pub fn at_once(&self) -> u64 {
        let ends = |&(begin, end): &(f64, f64)| [(begin, 1), (end - (end - begin) * LEFT_OUT, -1)];
        let mut ends: Vec<(f64, i64)> = self.spans.iter().flat_map(ends).collect();
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

    #[test]
    fn attempts_in_turn_are_not_at_the_same_time() {
        let timeline = |spans: &[(f64, f64)]| Timeline { spans: spans.to_vec(), ..Timeline::new() };
        let none = timeline(&[]);
        assert_eq!((none.start_seconds(), none.parts_seconds(), none.at_once()), (None, None, 0));
        let two = timeline(&[(3.0, 4.0), (2.0, 3.05), (2.5, 3.5), (3.5, 4.5)]);
        assert_eq!((two.start_seconds(), two.parts_seconds()), (Some(2.0), Some(2.5)));
        assert_eq!(two.at_once(), 2);
        let mut all = Timeline::new();
        all.ended(1e6);
        assert_eq!(all.start_seconds(), Some(0.0), "an attempt does not begin before the job");
    }
}
