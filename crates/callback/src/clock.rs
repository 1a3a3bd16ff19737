//! The clock of a runtime, and the ticks of its timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Log2 of the nanoseconds of a tick, which is 16.4 µs.
const TICK_BITS: u32 = 14;
/// Ticks by which a timer can be ahead, 4.9 hours. Longer timers are set again when these have passed.
pub(crate) const MAX_TICKS_AHEAD: u64 = 1 << 30;

/// Where a core gets the time from: nanoseconds since its runtime began, monotonic.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    Real(Instant),
    /// Set by a test.
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

/// Converts a duration to nanoseconds. One of more than 584 years becomes `u64::MAX`, which means for ever.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the last tick that has begun: units that are due at it may run.
pub(crate) fn tick_at(now: u64) -> u64 {
    now >> TICK_BITS
}

/// Returns the first tick that begins at or after a moment.
pub(crate) fn tick_after(moment: u64) -> u64 {
    (moment >> TICK_BITS) + u64::from(!moment.is_multiple_of(1 << TICK_BITS))
}

/// Converts a tick to the 32 bits that timers store, which wrap around.
#[expect(clippy::cast_possible_truncation, reason = "it wraps around")]
pub(crate) fn short(tick: u64) -> u32 {
    tick as u32
}

/// Returns the nanoseconds until a tick begins; 0 if it has.
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
