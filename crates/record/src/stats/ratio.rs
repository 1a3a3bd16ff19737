//! The ratio of two medians, with its interval.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MIN_CI95_SAMPLES, central_95, median, resampled_medians};

/// The median of some samples divided by that of other samples, the baseline. It has no unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The median of the samples divided by that of the baseline.
    pub ratio: f64,
    /// 95 % interval of the ratio, lower and upper end, by percentile bootstrap with both sides
    /// resampled independently; null if either side has fewer than six samples. The interval covers
    /// how the samples of each side scatter, not how whole runs differ from each other.
    pub ci95: Option<[f64; 2]>,
    /// The smallest sample divided by the largest of the baseline, and the largest divided by the
    /// smallest; null if each side has only one sample, or if a sample of the baseline is 0 or
    /// less.
    pub range: Option<[f64; 2]>,
}

impl Ratio {
    /// Returns the ratio of the median of `samples` to that of `baseline`. The same seed gives the
    /// same interval. Returns `None` if:
    /// - either side is empty,
    /// - the median of `samples` is below 0, or
    /// - the interval (or the range, without an interval) is unbounded, because the median of
    ///   `baseline` may be 0 or less.
    pub fn of(samples: &[f64], baseline: &[f64], seed: u64) -> Option<Self> {
        let ratio = quotient(median(samples)?, median(baseline)?);
        let range = range(samples, baseline).filter(|ends| ends.iter().all(|end| end.is_finite()));
        let few = samples.len().min(baseline.len()) < MIN_CI95_SAMPLES;
        let ci95 = (!few).then(|| interval(samples, baseline, seed));
        let bounded = match ci95 {
            Some(ends) => ends.iter().all(|end| end.is_finite()),
            None => range.is_some(),
        };
        let range = range.filter(|_| samples.len() + baseline.len() > 2);
        (bounded && ratio.is_finite() && ratio >= 0.0).then_some(Self { ratio, ci95, range })
    }

    /// Compares the ratio with 1. Returns `Equal` if the interval contains 1, and `None` without an
    /// interval. A range would not suffice: with two samples on each side, ranges are disjoint by
    /// chance one time in three.
    pub fn compare_to_one(&self) -> Option<Ordering> {
        let [low, high] = self.ci95?;
        Some(match (low > 1.0, high < 1.0) {
            (true, _) => Ordering::Greater,
            (_, true) => Ordering::Less,
            _ => Ordering::Equal,
        })
    }

    /// Returns whether the interval (or the range, without an interval) contains 1, so that the
    /// samples show no difference. Returns `false` if there is neither an interval nor a range.
    pub fn contains_one(&self) -> bool {
        self.ci95.or(self.range).is_some_and(|[low, high]| low <= 1.0 && 1.0 <= high)
    }
}

fn interval(samples: &[f64], baseline: &[f64], seed: u64) -> [f64; 2] {
    let mut random = fastrand::Rng::with_seed(seed);
    let above = resampled_medians(samples, &mut random);
    let below = resampled_medians(baseline, &mut random);
    central_95(above.into_iter().zip(below).map(|(above, below)| quotient(above, below)).collect())
}

fn range(samples: &[f64], baseline: &[f64]) -> Option<[f64; 2]> {
    let least = |samples: &[f64]| samples.iter().copied().reduce(f64::min);
    let most = |samples: &[f64]| samples.iter().copied().reduce(f64::max);
    let low = quotient(least(samples)?, most(baseline)?);
    let high = quotient(most(samples)?, least(baseline)?);
    Some([low, high])
}

/// Returns `above / below`, or infinity if `below` is 0 or less.
fn quotient(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| 100.0 + 20.0 * random.f64()).collect()
    }

    #[test]
    fn few_samples_have_a_range_and_one_has_nothing() {
        let ratio = Ratio::of(&[2.0, 4.0], &[1.0; 9], 1).expect("a ratio");
        assert_eq!(ratio, Ratio { ratio: 3.0, ci95: None, range: Some([2.0, 4.0]) });
        assert!(ratio.compare_to_one().is_none() && !ratio.contains_one());
        let ratio = Ratio::of(&[2.0], &[4.0], 1).expect("a ratio");
        assert_eq!(ratio, Ratio { ratio: 0.5, ci95: None, range: None });
        assert!(ratio.compare_to_one().is_none() && !ratio.contains_one());
        let ratio = Ratio::of(&[2.0, 4.0], &[3.0; 9], 1).expect("a ratio");
        assert!(ratio.compare_to_one().is_none() && ratio.contains_one());
        let ratio = Ratio::of(&[2.0; 6], &[3.0; 6], 1).expect("a ratio");
        assert!(ratio.compare_to_one() == Some(Ordering::Less) && !ratio.contains_one());
        assert_eq!(Ratio::of(&[], &[4.0], 1), None);
        assert_eq!(Ratio::of(&[4.0], &[], 1), None);
    }

    #[test]
    fn a_baseline_that_may_be_zero_has_no_ratio() {
        assert_eq!(Ratio::of(&[1.0], &[0.0], 1), None);
        assert_eq!(Ratio::of(&[-1.0], &[1.0], 1), None);
        assert_eq!(Ratio::of(&[1.0, 2.0], &[1.0, 0.0], 1), None);
        let around_zero = [-2.0, -1.0, -0.1, 0.1, 1.0, 2.0, 0.2];
        assert_eq!(Ratio::of(&[1.0; 9], &around_zero, 1), None);
        let nothing = Ratio::of(&[0.0; 9], &[1.0; 9], 1).expect("it is 0");
        assert_eq!(nothing.compare_to_one(), Some(Ordering::Less));
    }

    #[test]
    fn one_sample_of_zero_removes_the_range_but_not_the_interval() {
        let mut baseline = noise(1, 30);
        baseline[7] = 0.0;
        let ratio = Ratio::of(&noise(2, 30), &baseline, 1).expect("a ratio");
        assert!(ratio.ci95.is_some() && ratio.range.is_none());
    }

    /// At least 90 % of the intervals contain the true ratio, which is 1. With 12 samples on each
    /// side, the coverage of a 95 % interval is slightly less than 95 %.
    #[test]
    fn interval_covers_the_true_ratio() {
        let holds = |seed: u64| {
            let (one, other) = (noise(2 * seed, 12), noise(2 * seed + 1, 12));
            Ratio::of(&one, &other, seed).expect("a ratio").contains_one()
        };
        let held = (0..200).filter(|&seed| holds(seed)).count();
        assert!((180..=199).contains(&held), "{held} of 200");
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.1..1e6_f64, 6..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn the_interval_holds_the_ratio_and_stays_within_the_range(
            one in samples(), other in samples(), seed: u64,
        ) {
            let found = Ratio::of(&one, &other, seed).expect("a ratio");
            let ([low, high], [least, most]) = found.ci95.zip(found.range).expect("both");
            prop_assert!(low <= found.ratio && found.ratio <= high, "{found:?}");
            prop_assert!(least <= low && high <= most, "{found:?}");
        }

        #[test]
        fn ratio_is_scale_invariant(
            one in samples(), other in samples(), seed: u64, power in -8..8_i32,
        ) {
            // A power of two, so that no digits are lost.
            let factor = 2_f64.powi(power);
            let times = |samples: &[f64]| samples.iter().map(|s| s * factor).collect::<Vec<_>>();
            let found = Ratio::of(&one, &other, seed).expect("a ratio");
            prop_assert_eq!(Ratio::of(&times(&one), &times(&other), seed), Some(found.clone()));
            let ends = |ends: [f64; 2]| ends.map(|end| end * factor);
            let scaled = Ratio {
                ratio: found.ratio * factor,
                ci95: found.ci95.map(ends),
                range: found.range.map(ends),
            };
            prop_assert_eq!(Ratio::of(&times(&one), &other, seed), Some(scaled));
        }

        #[test]
        fn swapping_the_sides_inverts_the_ratio(seed in 0..1_000_000_u64, count in 30..60_usize) {
            let (one, other) = (noise(seed, count), noise(!seed, count));
            let there = Ratio::of(&one, &other, seed).expect("a ratio");
            let back = Ratio::of(&other, &one, seed).expect("a ratio");
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
            let ([low, high], [back_low, back_high]) = there.ci95.zip(back.ci95).expect("both");
            let tolerance = 0.5 * (high - low);
            prop_assert!((low - 1.0 / back_high).abs() < tolerance, "{there:?} {back:?}");
            prop_assert!((high - 1.0 / back_low).abs() < tolerance, "{there:?} {back:?}");
        }
    }
}
