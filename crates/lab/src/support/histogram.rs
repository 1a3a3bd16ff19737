//! How long single operations take: percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::engine::experiment::SubjectError;
use crate::engine::timing::nanoseconds;

/// Of times in nanoseconds: two digits; whatever lasts longer than a minute is one.
///
/// # Errors
/// None is known.
pub fn histogram() -> Result<Histogram<u64>, SubjectError> {
    let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 2);
    histogram.map_err(|error| SubjectError::Wrong(error.to_string()))
}

/// Notes a time.
pub fn note(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(nanoseconds(time));
}

/// So many times are enough for all percentiles.
pub const ENOUGH: u64 = 1000;

/// Its percentiles by name, as far as it has times enough for them: of fewer than a thousand, the
/// largest would stand for the 99.9th.
pub fn percentiles(histogram: &Histogram<u64>) -> impl Iterator<Item = (&'static str, f64)> {
    let known = [("p50", 0.5, 1), ("p99", 0.99, 100), ("p99.9", 0.999, ENOUGH)];
    let enough = known.into_iter().filter(|known| histogram.len() >= known.2);
    enough.map(|(name, quantile, _)| (name, histogram.value_at_quantile(quantile) as f64))
}
