//! Time as the Workers count it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds of a tick, as a power of two: 16.4 µs.
const TICK_BITS: u32 = 14;
/// Ticks that timers can look ahead, 4.9 hours; what is further away is looked at again then.
pub(crate) const MAX_TICKS_AHEAD: u64 = 1 << 30;

/// Where a core gets the time from: nanoseconds since its runtime began, monotonic.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    Real(Instant),
    /// A test's.
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

/// A duration that may be too long for that is as good as for ever.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The last tick that has begun: who is due at it may run.
pub(crate) fn tick_at(now: u64) -> u64 {
    now >> TICK_BITS
}

/// The first tick at which a moment has certainly come.
pub(crate) fn tick_after(moment: u64) -> u64 {
    (moment >> TICK_BITS) + u64::from(!moment.is_multiple_of(1 << TICK_BITS))
}

/// A tick as timers keep it: it wraps around.
#[expect(clippy::cast_possible_truncation, reason = "it wraps around")]
pub(crate) fn short(tick: u64) -> u32 {
    tick as u32
}

/// Nanoseconds until a tick begins.
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
