//! Histograms of the durations of single operations, and their percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::engine::experiment::SubjectError;
use crate::engine::timing::nanoseconds;

/// Creates a histogram of durations in nanoseconds, up to one minute, with two significant digits.
///
/// # Errors
/// Returns an error if the library rejects the bounds, which are constants.
pub fn histogram() -> Result<Histogram<u64>, SubjectError> {
    let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 2);
    histogram.map_err(|error| SubjectError::Unexpected(error.to_string()))
}

/// Records the duration of one operation. More than a minute counts as a minute.
pub fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(nanoseconds(time));
}

/// Minimum number of recorded durations for the 99.9th percentile.
pub const MIN_P999_SAMPLES: u64 = 1000;

/// Returns the names and values, in nanoseconds, of the percentiles for which there are enough
/// durations: one for the 50th, 100 for the 99th, and [`MIN_P999_SAMPLES`] for the 99.9th. With
/// fewer, the last two would be the maximum.
pub fn percentiles(histogram: &Histogram<u64>) -> impl Iterator<Item = (&'static str, f64)> {
    let known = [("p50", 0.5, 1), ("p99", 0.99, 100), ("p99.9", 0.999, MIN_P999_SAMPLES)];
    let enough = known.into_iter().filter(|known| histogram.len() >= known.2);
    enough.map(|(name, quantile, _)| (name, histogram.value_at_quantile(quantile) as f64))
}
