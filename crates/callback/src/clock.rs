//! The clock of a runtime, and the ticks of its timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Binary logarithm of the length of a tick in nanoseconds: a tick is 16.4 µs.
const TICK_BITS: u32 = 14;
/// Maximum number of ticks by which a timer can be ahead: 4.9 hours. Timers beyond that are set
/// again when this time has passed.
pub(crate) const MAX_TICKS_AHEAD: u64 = 1 << 30;

/// A monotonic clock that counts nanoseconds from the start of its runtime.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    Real(Instant),
    /// The time of a test in nanoseconds, which the test advances.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    Manual(Arc<AtomicU64>),
}

impl Clock {
    pub fn now(&self) -> u64 {
        match self {
            Self::Real(begun) => nanoseconds(begun.elapsed()),
            Self::Manual(now) => now.load(Ordering::Relaxed),
        }
    }
}

/// Converts a duration to nanoseconds. Durations of more than 584 years saturate at `u64::MAX`,
/// which means forever.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the last tick that has begun at the time `now`, which is in nanoseconds. Units due at
/// this tick may run.
pub(crate) fn tick_at(now: u64) -> u64 {
    now >> TICK_BITS
}

/// Returns the first tick that begins at or after the time `moment`, which is in nanoseconds.
pub(crate) fn tick_after(moment: u64) -> u64 {
    (moment >> TICK_BITS) + u64::from(!moment.is_multiple_of(1 << TICK_BITS))
}

/// Truncates a tick to the 32 bits that timers store; the result wraps around.
#[expect(clippy::cast_possible_truncation, reason = "it wraps around")]
pub(crate) fn short(tick: u64) -> u32 {
    tick as u32
}

/// Returns the nanoseconds from the time `now` until a tick begins, or 0 if it has begun. `tick` is
/// truncated to 32 bits, and must be less than 2³¹ ticks from `now`.
pub(crate) fn until(tick: u32, now: u64) -> u64 {
    let ahead = tick.wrapping_sub(short(tick_at(now))).cast_signed();
    match u64::try_from(ahead) {
        Ok(ahead) => (((now >> TICK_BITS) + ahead) << TICK_BITS).saturating_sub(now),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_never_too_early() {
        for moment in [0, 1, 16_383, 16_384, 16_385, 1 << 40, (1 << 40) + 1] {
            let tick = tick_after(moment);
            assert!(tick << TICK_BITS >= moment);
            assert!(tick == 0 || (tick - 1) << TICK_BITS < moment);
        }
        assert_eq!(until(3, 16_384), 2 * 16_384);
        assert_eq!(until(0, 16_384), 0);
    }
}
