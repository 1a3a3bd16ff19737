//! Work of a chosen CPU time.

use std::hint::black_box;
use std::time::Duration;

use contend_sys::cpu;

/// Computes, for as long as was asked for on a CPU of its own.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    steps: u64,
}

impl Work {
    /// None.
    pub const NONE: Self = Self { steps: 0 };

    /// Finds out how much can be computed in this time: the median of several tries of some
    /// milliseconds each.
    pub fn of(time: Duration) -> Self {
        const STEPS: u64 = 2_000_000;
        const TRIES: usize = 9;
        let mut rates: Vec<f64> = (0..TRIES)
            .map(|_| {
                let begun = cpu::own_thread_time();
                Self { steps: STEPS }.work();
                cpu::own_thread_time().saturating_sub(begun).as_secs_f64() / STEPS as f64
            })
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        Self::at(rates[TRIES / 2], time)
    }

    /// What can be computed in this time, if a step takes so many seconds.
    fn at(step: f64, time: Duration) -> Self {
        let steps = time.as_secs_f64() / step.max(1e-12);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is positive, and no larger than it can be"
        )]
        Self { steps: steps.round() as u64 }
    }

    /// So many steps, whatever they take.
    pub fn steps(steps: u64) -> Self {
        Self { steps }
    }

    /// So many times as much.
    pub fn times(self, factor: u64) -> Self {
        Self { steps: self.steps * factor }
    }

    /// Does it.
    pub fn work(self) {
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
        assert!(Work::of(Duration::from_millis(1)).steps > 0);
    }
}
