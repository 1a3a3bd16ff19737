//! Medians and how far they can be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resamples drawn for an interval; at 2,000 its ends repeat to about 1 % of its width.
const RESAMPLES: usize = 2_000;

/// A median with its 95 % interval and the samples behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Median of the samples, in the unit of the field.
    pub median: f64,
    /// Percentile-bootstrap interval of the median (Efron & Tibshirani 1993, chapter 13).
    pub ci95: [f64; 2],
    /// Every sample, in the order measured.
    pub samples: Vec<f64>,
}

impl Estimate {
    /// Summarises `samples`; `None` when there are none. The same seed gives the same interval.
    pub fn from_samples(samples: Vec<f64>, seed: u64) -> Option<Self> {
        let median = median(&samples)?;
        let ci95 = bootstrap_median(&samples, seed);
        Some(Self { median, ci95, samples })
    }
}

/// The middle value, or the mean of the two middle values; `None` of nothing.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(sorted[middle - 1], upper)) }
}

fn bootstrap_median(samples: &[f64], seed: u64) -> [f64; 2] {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = vec![0.0; samples.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            resample.fill_with(|| samples[random.usize(..samples.len())]);
            resample.sort_by(f64::total_cmp);
            median_of_sorted(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    [medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_stays_within_the_samples(
            samples in prop::collection::vec(-1e9..1e9_f64, 1..40), seed: u64,
        ) {
            let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
            let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let estimate = Estimate::from_samples(samples, seed).expect("samples");
            prop_assert!(least <= estimate.ci95[0] && estimate.ci95[1] <= most);
            prop_assert!(estimate.ci95[0] <= estimate.median);
            prop_assert!(estimate.median <= estimate.ci95[1]);
        }

        #[test]
        fn the_same_seed_gives_the_same_interval(
            samples in prop::collection::vec(0.0..1.0_f64, 2..20), seed: u64,
        ) {
            let first = Estimate::from_samples(samples.clone(), seed);
            prop_assert_eq!(first, Estimate::from_samples(samples, seed));
        }
    }
}
