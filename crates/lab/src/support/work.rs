//! Computations of a given number of steps, or of a given CPU time.

use std::hint::black_box;
use std::time::Duration;

use contend_sys::cpu;

/// A computation of a fixed number of steps.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    steps: u64,
}

impl Work {
    /// A computation of no steps.
    pub const NONE: Self = Self { steps: 0 };

    /// Creates a computation that takes about `time` of CPU time. First measures the time of a
    /// step, as the median of nine trials of a few milliseconds each.
    pub fn lasting(time: Duration) -> Self {
        const STEPS_PER_TRIAL: u64 = 2_000_000;
        const TRIALS: usize = 9;
        let mut rates: Vec<f64> = (0..TRIALS)
            .map(|_| {
                let begun = cpu::own_thread_time();
                Self { steps: STEPS_PER_TRIAL }.run();
                cpu::own_thread_time().saturating_sub(begun).as_secs_f64() / STEPS_PER_TRIAL as f64
            })
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        Self::at(rates[TRIALS / 2], time)
    }

    /// Creates a computation that takes `time` if one step takes `step` seconds.
    fn at(step: f64, time: Duration) -> Self {
        let steps = time.as_secs_f64() / step.max(1e-12);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturates"
        )]
        Self { steps: steps.round() as u64 }
    }

    /// Creates a computation of `steps` steps.
    pub fn steps(steps: u64) -> Self {
        Self { steps }
    }

    /// Returns a computation with `factor` times as many steps.
    pub fn times(self, factor: u64) -> Self {
        Self { steps: self.steps * factor }
    }

    /// Runs the computation on the calling thread.
    pub fn run(self) {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..self.steps {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state = black_box(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_is_more_work() {
        let work = |microseconds| Work::at(2e-9, Duration::from_micros(microseconds)).steps;
        assert_eq!([work(37), work(3700)], [18_500, 1_850_000]);
        assert!(Work::lasting(Duration::from_millis(1)).steps > 0);
    }
}
