//! Scales of axes.

/// Number of intervals between ticks of a linear scale, at most.
const MAX_STEPS: f64 = 5.0;
/// Largest number of ticks of a logarithmic scale.
const MAX_POWERS: i32 = 6;

/// Maps values to positions from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::render::html) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// Returns a linear scale from 0 up to the largest value.
    pub(in crate::render::html) fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let high = finite(values).fold(0.0, f64::max);
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, is_log: false }
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
        // Marks at the ends are whole.
        let margin = (high / low).powf(0.04).max(1.1);
        Self { low: low / margin, high: high * margin, is_log: true }
    }

    /// Returns the position of a value. One outside is at the nearest end.
    pub(in crate::render::html) fn at(&self, value: f64) -> f64 {
        let position = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
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
                self.low * (self.high / self.low).powf(position)
            } else {
                self.low + (self.high - self.low) * position
            }
        };
        (0..count).map(at).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let least = (self.high - self.low) / MAX_STEPS;
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= least).unwrap_or(least);
        let first = (self.low / step).ceil();
        let count = (self.high / step - first + 1e-9).floor().clamp(0.0, 2.0 * MAX_STEPS);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most ten")]
        let count = count as u32;
        (0..=count).map(|number| (first + f64::from(number)) * step).collect()
    }

    fn powers(&self) -> Vec<f64> {
        #[expect(clippy::cast_possible_truncation, reason = "exponents of f64")]
        let [first, last] =
            [self.low.log10().ceil(), self.high.log10().floor()].map(|power| power as i32);
        if last <= first {
            // Less than two powers of ten: steps of 1, 2 and 5 are closer.
            let all = (first - 1..=last)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|f| f * 10_f64.powi(power)));
            return all.filter(|value| (self.low..=self.high).contains(value)).collect();
        }
        let stride = (last - first) / MAX_POWERS + 1;
        (first..=last)
            .filter(|power| (power - first) % stride == 0)
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

    #[test]
    fn samples_include_both_ends() {
        assert_eq!(shown(Scale::over(0.0, 4.0).samples(3)), "0 2 4");
        assert_eq!(shown(Scale::over(0.0, 4.0).samples(1)), "0");
    }
}
