//! Medians, ratios of medians, straight lines and scaling laws, with confidence intervals.

mod ratio;
mod scaling;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ratio::Ratio;
pub use scaling::{Coefficient, Law, Point, Scaling, Unfit};

/// Minimum number of samples for a 95 % interval of the median. With 5 samples, even the range from
/// the smallest to the largest contains the true median with a probability of only 94 %.
pub const MIN_CI95_SAMPLES: usize = 6;

/// Number of resamples for an interval. With 2,000, the ends of the interval are reproducible to
/// about 2 % of its width.
const RESAMPLES: usize = 2_000;

/// A median with its 95 % interval and its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Median of the samples, in the unit of the field.
    pub median: f64,
    /// 95 % interval of the median, lower and upper end, by percentile bootstrap (Efron &
    /// Tibshirani 1993, chapter 13).
    pub ci95: [f64; 2],
    /// Every sample, in the order in which they were measured.
    pub samples: Vec<f64>,
}

impl Estimate {
    /// Returns the estimate from `samples`, which must be in the order of measurement, or `None`
    /// without samples. The same seed gives the same interval. From fewer than `MIN_CI95_SAMPLES`
    /// samples, the interval is too narrow.
    pub fn from_samples(samples: Vec<f64>, seed: u64) -> Option<Self> {
        let median = median(&samples)?;
        let ci95 = bootstrap_median(&samples, seed);
        Some(Self { median, ci95, samples })
    }
}

/// Returns the median of `samples`, which may be in any order: the middle value, or the mean of the
/// two middle values. Returns `None` without samples.
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

/// Minimum number of samples for which autocorrelation is estimated. For fewer, none is assumed.
const MIN_AUTOCORRELATION_SAMPLES: usize = 12;

/// Returns the number of consecutive samples to draw together, at least 1 and at most a quarter of
/// the samples. Slow drift makes neighbouring samples similar. Drawn individually, they would count
/// as independent, and the interval would be too narrow (moving-block bootstrap, Künsch 1989;
/// length for a first-order process, Carlstein 1986).
fn block_length(samples: &[f64]) -> usize {
    let count = samples.len();
    if count < MIN_AUTOCORRELATION_SAMPLES {
        return 1;
    }
    let autocorrelation = lag_one_autocorrelation(samples).clamp(0.0, 0.97);
    let length = (2.0 * autocorrelation / (1.0 - autocorrelation.powi(2))).powf(2.0 / 3.0)
        * (count as f64).cbrt();
    // Between 0 and about 10 times the cube root of `count`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let length = length.round() as usize;
    length.clamp(1, count / 4)
}

/// Returns the lag-one autocorrelation of the samples' ranks, from -1 to 1; 0 if all samples are
/// equal. Ranks are used so that a single outlier does not hide a drift.
fn lag_one_autocorrelation(samples: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|&a, &b| samples[a].total_cmp(&samples[b]));
    let mut ranks = vec![0.0; samples.len()];
    // Equal samples share the mean of their ranks.
    for equal in order.chunk_by(|&a, &b| samples[a].total_cmp(&samples[b]).is_eq()) {
        let below = samples.iter().filter(|&&other| other < samples[equal[0]]).count();
        let mean = below as f64 + equal.len() as f64 / 2.0;
        for &index in equal {
            ranks[index] = mean;
        }
    }
    let middle = ranks.iter().sum::<f64>() / ranks.len() as f64;
    let spread: f64 = ranks.iter().map(|rank| (rank - middle).powi(2)).sum();
    if spread <= 0.0 {
        return 0.0;
    }
    let pairs = ranks.windows(2).map(|pair| (pair[0] - middle) * (pair[1] - middle));
    pairs.sum::<f64>() / spread
}

/// Returns the indexes of outliers, in ascending order: samples with a modified z-score above 3.5
/// (Iglewicz & Hoaglin 1993, "How to detect and handle outliers"). If the median deviation is 0,
/// because more than half of the samples are equal, the mean deviation is used instead.
pub fn outliers(samples: &[f64]) -> Vec<usize> {
    let Some(middle) = median(samples) else { return Vec::new() };
    let deviations: Vec<f64> = samples.iter().map(|sample| (sample - middle).abs()).collect();
    let typical = median(&deviations).filter(|&mad| mad > 0.0).map(|mad| 1.4826 * mad);
    let mean = deviations.iter().sum::<f64>() / samples.len() as f64;
    let spread = typical.unwrap_or(1.2533 * mean);
    let far = |&(_, &deviation): &(usize, &f64)| spread > 0.0 && deviation / spread > 3.5;
    deviations.iter().enumerate().filter(far).map(|(index, _)| index).collect()
}

/// A straight line through measured points, by least squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Increase of the ordinate for each unit of the abscissa.
    pub slope: f64,
    /// 95 % interval of the slope by Student's t, assuming the same variance at all points; null
    /// with fewer than three points.
    pub slope_ci95: Option<[f64; 2]>,
    /// Ordinate at an abscissa of 0.
    pub intercept: f64,
    /// Number of points through which the line was fitted.
    pub points: usize,
}

impl Line {
    /// Returns the least-squares line through `points`, pairs of abscissa and ordinate. Returns
    /// `None` if there are no points, or if all have the same abscissa.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
        let squares: f64 = points.iter().map(|point| (point.0 - mean_x).powi(2)).sum();
        if points.len() < 2 || squares <= 0.0 {
            return None;
        }
        let products: f64 =
            points.iter().map(|point| (point.0 - mean_x) * (point.1 - mean_y)).sum();
        let slope = products / squares;
        let intercept = mean_y - slope * mean_x;
        let slope_ci95 = points.len().checked_sub(2).filter(|&free| free > 0).map(|free| {
            let rest = |point: &(f64, f64)| (point.1 - intercept - slope * point.0).powi(2);
            let variance = points.iter().map(rest).sum::<f64>() / free as f64;
            let half = student_t(free) * (variance / squares).sqrt();
            [slope - half, slope + half]
        });
        Some(Self { slope, slope_ci95, intercept, points: points.len() })
    }
}

/// Returns the 97.5th percentile of Student's t for `free` degrees of freedom, which must be at
/// least 1. Above 30 degrees, the value is approximate.
fn student_t(free: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    TABLE.get(free.saturating_sub(1)).copied().unwrap_or(1.96 + 2.5 / free as f64)
}

fn bootstrap_median(samples: &[f64], seed: u64) -> [f64; 2] {
    central_95(resampled_medians(samples, &mut fastrand::Rng::with_seed(seed)))
}

/// Returns the medians of `RESAMPLES` resamples, in the order drawn. Counts how often each sample
/// is drawn, by rank, which is faster than sorting every resample.
///
/// # Panics
/// Panics if there are no samples.
fn resampled_medians(samples: &[f64], random: &mut fastrand::Rng) -> Vec<f64> {
    let count = samples.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| samples[a].total_cmp(&samples[b]));
    let mut rank = vec![0; count];
    order.iter().enumerate().for_each(|(place, &index)| rank[index] = place);
    let block = block_length(samples);
    let mut drawn = vec![0; count];
    let mut resample = || {
        drawn.fill(0);
        for first in (0..count).step_by(block) {
            let start = random.usize(..count);
            for index in start..start + block.min(count - first) {
                drawn[rank[if index < count { index } else { index - count }]] += 1;
            }
        }
        let [lower, upper] = [(count - 1) / 2, count / 2].map(|place| nth(&drawn, place));
        f64::midpoint(samples[order[lower]], samples[order[upper]])
    };
    (0..RESAMPLES).map(|_| resample()).collect()
}

/// Returns the value at position `place`, from 0, of the sorted list in which each value i occurs
/// `counts[i]` times. `place` must be less than the sum of `counts`.
fn nth(counts: &[usize], place: usize) -> usize {
    let mut before = 0;
    let passes = |&count: &usize| {
        before += count;
        before > place
    };
    counts.iter().position(passes).unwrap_or(0)
}

/// Returns the ends of the interval that contains the central 95 % of `resampled`, which must have
/// `RESAMPLES` values, in any order.
fn central_95(mut resampled: Vec<f64>) -> [f64; 2] {
    resampled.sort_by(f64::total_cmp);
    [resampled[RESAMPLES / 40], resampled[RESAMPLES - 1 - RESAMPLES / 40]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn median_of_odd_even_and_no_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_drift_widens_the_interval() {
        let mut random = fastrand::Rng::with_seed(1);
        let noise: Vec<f64> = (0..100).map(|_| 100.0 + random.f64()).collect();
        assert!(lag_one_autocorrelation(&noise).abs() < 0.25);
        assert!(block_length(&noise) <= 4);
        let mut sorted = noise.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(lag_one_autocorrelation(&sorted) > 0.9 && block_length(&sorted) > 10);
        let width = |samples: &[f64]| {
            let [low, high] = bootstrap_median(samples, 7);
            high - low
        };
        assert!(width(&sorted) > 2.0 * width(&noise), "the same samples, drifting");
        assert_eq!(block_length(&[5.0; 50]), 1);
        assert_eq!(block_length(&sorted[..11]), 1);
    }

    #[test]
    fn samples_far_from_the_others_are_outliers() {
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 1.05, 0.95, 5.0, 1.0]), [5]);
        assert_eq!(outliers(&[1.0, 2.0, 3.0, 4.0, 5.0]), [0; 0]);
        let mostly_equal = [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 90.0];
        assert_eq!(outliers(&mostly_equal), [7]);
        assert_eq!(outliers(&[3.0; 5]), [0; 0]);
        assert_eq!(outliers(&[]), [0; 0]);
    }

    #[test]
    fn a_line_is_found_with_its_interval() {
        // Anscombe's first data set (1973): slope 0.5001, intercept 3.0001, and a standard error of
        // the slope of 0.1179.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<_> = x.into_iter().zip(y).collect();
        let line = Line::through(&points).expect("a line");
        assert!((line.slope - 0.5001).abs() < 1e-4 && (line.intercept - 3.0001).abs() < 1e-4);
        let [low, high] = line.slope_ci95.expect("enough points");
        assert!((low - (0.5001 - 2.262 * 0.1179)).abs() < 1e-3, "{low}");
        assert!((high - (0.5001 + 2.262 * 0.1179)).abs() < 1e-3, "{high}");
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (2.0, 3.0)]).and_then(|l| l.slope_ci95), None);
    }

    proptest! {
        #[test]
        fn places_by_counts_are_those_of_the_sorted_list(
            counts in prop::collection::vec(0..4_usize, 1..20),
        ) {
            let sorted: Vec<usize> =
                counts.iter().enumerate().flat_map(|(rank, &count)| vec![rank; count]).collect();
            for (place, &rank) in sorted.iter().enumerate() {
                prop_assert_eq!(nth(&counts, place), rank);
            }
        }

        #[test]
        fn outliers_are_fewer_than_half_and_the_farthest(
            samples in prop::collection::vec(-1e6..1e6_f64, 1..60),
        ) {
            let found = outliers(&samples);
            prop_assert!(2 * found.len() <= samples.len());
            let middle = median(&samples).expect("samples");
            let distance = |index: usize| (samples[index] - middle).abs();
            let nearest = found.iter().map(|&i| distance(i)).fold(f64::INFINITY, f64::min);
            let inliers = (0..samples.len()).filter(|index| !found.contains(index));
            prop_assert!(inliers.map(distance).all(|inlier| inlier <= nearest));
        }

        #[test]
        fn outliers_do_not_depend_on_unit_or_offset(
            samples in prop::collection::vec(-1000..1000_i32, 1..40), shift in -1000..1000_i32,
        ) {
            let first: Vec<f64> = samples.iter().map(|&s| f64::from(s)).collect();
            let moved: Vec<f64> = samples.iter().map(|&s| 8.0 * f64::from(s + shift)).collect();
            prop_assert_eq!(outliers(&first), outliers(&moved));
        }

        #[test]
        fn the_interval_contains_the_median_and_stays_within_the_samples(
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
