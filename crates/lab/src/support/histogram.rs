//! Percentiles of the durations of single operations.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::engine::experiment::SubjectError;
use crate::engine::timing::nanoseconds;

/// Creates a histogram of nanoseconds with two significant digits. Longer times than a minute count
/// as a minute.
///
/// # Errors
/// Returns an error if the bounds are invalid.
pub fn histogram() -> Result<Histogram<u64>, SubjectError> {
    let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 2);
    histogram.map_err(|error| SubjectError::Wrong(error.to_string()))
}

/// Records a time.
pub fn note(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(nanoseconds(time));
}

/// Number of times that is enough for all percentiles.
pub const P999_SAMPLES: u64 = 1000;

/// Returns the percentiles for which there are enough times: with fewer than a thousand, the 99.9th
/// would be the maximum.
pub fn percentiles(histogram: &Histogram<u64>) -> impl Iterator<Item = (&'static str, f64)> {
    let known = [("p50", 0.5, 1), ("p99", 0.99, 100), ("p99.9", 0.999, P999_SAMPLES)];
    let enough = known.into_iter().filter(|known| histogram.len() >= known.2);
    enough.map(|(name, quantile, _)| (name, histogram.value_at_quantile(quantile) as f64))
}
