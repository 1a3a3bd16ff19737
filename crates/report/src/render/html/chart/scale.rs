//! Scales of axes.

/// Number of intervals between ticks of a linear scale, at most.
const MAX_STEPS: f64 = 5.0;
/// Largest number of intervals between ticks of a logarithmic scale.
const MAX_POWERS: i32 = 6;

/// Maps values to positions from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::render::html) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// Returns a linear scale from 0, or from the smallest value if it is negative, up to the largest value,
    /// or to 0.
    pub(in crate::render::html) fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = finite(values)
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Self { low, high: if high > low { high } else { 1.0 }, is_log: false }
    }

    /// Returns a linear scale over a span of values.
    pub(in crate::render::html) fn over(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, is_log: false }
    }

    /// Returns a logarithmic scale over all positive values.
    pub(in crate::render::html) fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let positive = finite(values).filter(|value| *value > 0.0);
        let (low, high) = positive
            .fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if high == 0.0 {
            return Self { low: 1.0, high: 10.0, is_log: true };
        }
        // Marks at the ends are whole. The ratio of the ends may be infinite, that of their logarithms is not.
        let margin = (0.04 * (high.ln() - low.ln())).exp().max(1.1);
        let low = (low / margin).max(f64::MIN_POSITIVE);
        let high = (high * margin).clamp(1.1 * f64::MIN_POSITIVE, f64::MAX);
        Self { low, high, is_log: true }
    }

    /// Returns whether the scale is logarithmic.
    pub(in crate::render::html) fn is_log(&self) -> bool {
        self.is_log
    }

    /// Returns whether a linear scale has values on both sides of 0.
    pub(in crate::render::html) fn crosses_zero(&self) -> bool {
        !self.is_log && self.low < 0.0 && self.high > 0.0
    }

    /// Returns the position of a value. One outside is at the nearest end.
    pub(in crate::render::html) fn at(&self, value: f64) -> f64 {
        let position = if self.is_log {
            let low = self.low.ln();
            (value.max(f64::MIN_POSITIVE).ln() - low) / (self.high.ln() - low)
        } else {
            // Half of each, since the difference of two finite numbers may be infinite.
            (value / 2.0 - self.low / 2.0) / self.half_span()
        };
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
    }

    /// Returns half of the distance between the ends of a linear scale.
    fn half_span(&self) -> f64 {
        self.high / 2.0 - self.low / 2.0
    }

    /// Returns the values of the ticks: 1, 2 or 5 times a power of ten apart, or powers of ten.
    pub(in crate::render::html) fn ticks(&self) -> Vec<f64> {
        if self.is_log { self.powers() } else { self.steps() }
    }

    /// Returns values at equal distances on the page, both ends included.
    pub(in crate::render::html) fn samples(&self, count: u32) -> Vec<f64> {
        let at = |number: u32| {
            let position = f64::from(number) / f64::from(count.saturating_sub(1).max(1));
            if self.is_log {
                let (low, high) = (self.low.ln(), self.high.ln());
                (low + (high - low) * position).exp().clamp(self.low, self.high)
            } else {
                self.low * (1.0 - position) + self.high * position
            }
        };
        (0..count).map(at).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let least = self.half_span() / (MAX_STEPS / 2.0);
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= least).unwrap_or(least);
        // The smallest and the largest numbers have no step between them.
        if !(step > 0.0 && step.is_finite()) {
            return vec![self.low];
        }
        let first = (self.low / step).ceil();
        let count = (self.high / step - first + 1e-9).floor().clamp(0.0, 2.0 * MAX_STEPS);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most ten")]
        let count = count as u32;
        (0..=count).map(|number| (first + f64::from(number)) * step).collect()
    }

    fn powers(&self) -> Vec<f64> {
        let most = f64::from(f64::MAX_10_EXP);
        #[expect(clippy::cast_possible_truncation, reason = "exponents of f64")]
        let [first, last] = [self.low.log10().ceil(), self.high.log10().floor()]
            .map(|power| power.clamp(-most, most) as i32);
        if last <= first {
            // Less than two powers of ten: steps of 1, 2 and 5 are closer.
            let all = (first - 1..=last)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|f| f * 10_f64.powi(power)));
            return all.filter(|value| (self.low..=self.high).contains(value)).collect();
        }
        // At most `MAX_POWERS` strides, and a tick at each end of them.
        let stride = (last - first) / MAX_POWERS + 1;
        (0..=MAX_POWERS)
            .map(|number| first + number * stride)
            .take_while(|power| *power <= last)
            .map(|power| 10_f64.powi(power))
            .collect()
    }
}

fn finite(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::Scale;

    fn shown(values: impl IntoIterator<Item = f64>) -> String {
        let values = values.into_iter().map(|value| format!("{}", (value * 1e6).round() / 1e6));
        values.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn linear_ticks_are_round_numbers_within_the_scale() {
        assert_eq!(shown(Scale::from_zero([0.0, 9.0]).ticks()), "0 2 4 6 8");
        assert_eq!(shown(Scale::from_zero([1.0]).ticks()), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(shown(Scale::over(3.0, 7.5).ticks()), "3 4 5 6 7");
        for high in [1e-9, 0.37, 1.0, 42.0, 99_999.0, 3.2e12] {
            let ticks = Scale::from_zero([high]).ticks();
            assert!((2..=6).contains(&ticks.len()), "{high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| *tick <= high * 1.000_001), "{high}: {ticks:?}");
        }
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_closer() {
        assert_eq!(shown(Scale::log([3.0, 20_000.0]).ticks()), "10 100 1000 10000");
        assert_eq!(shown(Scale::log([1.5, 6.0]).ticks()), "2 5");
        assert!(Scale::log([1.0, 1e18]).ticks().len() <= 7);
    }

    #[test]
    fn positions_are_from_0_to_1_for_any_value() {
        let linear = Scale::from_zero([10.0]);
        assert_eq!(shown([0.0, 5.0, 10.0].map(|value| linear.at(value))), "0 0.5 1");
        assert_eq!(shown([-1.0, 11.0, f64::NAN].map(|value| linear.at(value))), "0 1 0");
        let log = Scale::log([1.0, 100.0]);
        assert!((log.at(10.0) - 0.5).abs() < 1e-9);
        assert_eq!(shown([0.0, -5.0].map(|value| log.at(value))), "0 0");
        for empty in [
            Scale::from_zero([]),
            Scale::log([]),
            Scale::from_zero([f64::NAN]),
            Scale::over(2.0, 2.0),
        ] {
            assert!((0.0..=1.0).contains(&empty.at(1.0)) && !empty.ticks().is_empty(), "{empty:?}");
        }
    }

    /// Checks a scale over extreme values: its ticks are few, finite and within it, and positions rise.
    fn check_extremes(scale: Scale, values: &[f64]) {
        let ticks = scale.ticks();
        assert!((1..=11).contains(&ticks.len()), "{scale:?}: {} ticks", ticks.len());
        assert!(ticks.iter().all(|tick| tick.is_finite()), "{scale:?}: {ticks:?}");
        assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&scale.at(*tick))), "{scale:?}");
        let positions: Vec<f64> = values.iter().map(|value| scale.at(*value)).collect();
        assert!(positions.is_sorted(), "{scale:?}: {positions:?}");
        let distance = positions[positions.len() - 1] - positions[0];
        assert!(distance > 0.9, "{scale:?}: {positions:?}");
        let samples = scale.samples(5);
        assert!(samples.iter().all(|sample| sample.is_finite()), "{scale:?}: {samples:?}");
        assert!(samples.is_sorted(), "{scale:?}: {samples:?}");
    }

    #[test]
    fn extreme_values_have_few_ticks_at_finite_places() {
        for values in [
            [1e-200, 1.0, 1e200],
            [f64::MIN_POSITIVE, 1.0, f64::MAX],
            [f64::from_bits(1), 1.0, f64::MAX],
            [1e-308, 1e-307, 1e-306],
        ] {
            check_extremes(Scale::log(values), &values);
        }
        for value in [f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX] {
            let alone = Scale::log([value]);
            assert!(alone.ticks().len() <= 11 && alone.at(value).is_finite(), "{alone:?}");
            let linear = Scale::from_zero([value]);
            assert!((1..=11).contains(&linear.ticks().len()), "{linear:?}");
            assert!(linear.ticks().iter().all(|tick| tick.is_finite()), "{linear:?}");
        }
        let values = [f64::MIN, 0.0, f64::MAX];
        check_extremes(Scale::from_zero(values), &values);
        check_extremes(Scale::over(f64::MIN, f64::MAX), &values);
        assert!((Scale::from_zero(values).at(0.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_scale_from_zero_reaches_down_to_negative_values() {
        let scale = Scale::from_zero([-2048.0, 0.0, 2048.0]);
        assert_eq!(shown([-2048.0, 0.0, 2048.0].map(|value| scale.at(value))), "0 0.5 1");
        assert!(scale.crosses_zero() && scale.ticks().contains(&0.0), "{:?}", scale.ticks());
        let below = Scale::from_zero([-10.0, -5.0]);
        assert_eq!(shown([-10.0, -5.0, 0.0].map(|value| below.at(value))), "0 0.5 1");
        assert!(!below.crosses_zero() && !Scale::from_zero([5.0]).crosses_zero());
    }

    #[test]
    fn samples_include_both_ends() {
        assert_eq!(shown(Scale::over(0.0, 4.0).samples(3)), "0 2 4");
        assert_eq!(shown(Scale::over(0.0, 4.0).samples(1)), "0");
    }
}
