//! Delays polling of a pipe after it has become empty or full.
//!
//! A command that reads or writes a few bytes at a time would otherwise wake the other end for each
//! of these calls. With a large pipe, one wake-up can handle many of them.

use std::time::{Duration, Instant};

/// The assumed throughput of a pipe before it is measured, in bytes per second.
const DEFAULT_BYTES_PER_SECOND: f64 = 1e9;
/// Maximum duration of a delay.
const MAX_DELAY: Duration = Duration::from_millis(1);
/// Number of bytes that must have passed through a pipe before polling is delayed: a smaller amount
/// may be the whole stream.
const MIN_MOVED_BYTES: u64 = 64 << 10;

/// The polling delay for one end of a pipe.
#[derive(Debug)]
pub(super) struct PollBackoff {
    /// Number of bytes expected to pass through the pipe during a delay: half of its capacity.
    bytes_per_delay: f64,
    /// Number of bytes moved through the pipe so far.
    moved: u64,
    /// When the last delay started, and the value of `moved` at that moment; `None` before the
    /// first delay.
    idle: Option<(Instant, u64)>,
    delayed_until: Option<Instant>,
}

impl PollBackoff {
    /// Creates a backoff for a pipe with the given capacity in bytes.
    pub(super) fn of(capacity: usize) -> Self {
        Self { bytes_per_delay: (capacity / 2) as f64, moved: 0, idle: None, delayed_until: None }
    }

    /// Adds `bytes` to the number of bytes moved through the pipe.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.moved += bytes as u64;
    }

    /// Records that the pipe is empty or full at `now`. If enough bytes have passed through it by
    /// then, starts a delay. The delay is the time in which half of its capacity is expected to
    /// pass, but at most [`MAX_DELAY`].
    pub(super) fn note_idle(&mut self, now: Instant) {
        if self.moved < MIN_MOVED_BYTES {
            return;
        }
        let rate = match self.idle {
            Some((then, moved)) if now > then => {
                (self.moved - moved) as f64 / (now - then).as_secs_f64()
            }
            _ => DEFAULT_BYTES_PER_SECOND,
        };
        self.idle = Some((now, self.moved));
        let time = self.bytes_per_delay / rate.max(1.0);
        self.delayed_until = Some(now + MAX_DELAY.min(Duration::from_secs_f64(time.min(1.0))));
    }

    /// Returns the remaining delay at `now`, or `None` if the pipe may be polled then.
    pub(super) fn remaining_delay(&self, now: Instant) -> Option<Duration> {
        self.delayed_until.filter(|&until| until > now).map(|until| until - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_is_delayed_while_half_the_capacity_moves() {
        let start = Instant::now();
        let mut backoff = PollBackoff::of(1 << 20);
        backoff.moved(1000);
        backoff.note_idle(start);
        assert_eq!(backoff.remaining_delay(start), None, "it may be all that there is");
        backoff.moved(1 << 20);
        backoff.note_idle(start);
        let delay = backoff.remaining_delay(start).expect("a while");
        assert!(
            delay > Duration::from_micros(500) && delay < Duration::from_micros(550),
            "{delay:?}"
        );
        assert_eq!(backoff.remaining_delay(start + delay), None);
        // The pipe is ten times as fast.
        let later = start + Duration::from_micros(100);
        backoff.moved(1 << 20);
        backoff.note_idle(later);
        let delay = backoff.remaining_delay(later).expect("a while");
        assert!(
            delay > Duration::from_micros(45) && delay < Duration::from_micros(55),
            "{delay:?}"
        );
        // Nothing arrived for a second.
        let later = later + Duration::from_secs(1);
        backoff.note_idle(later);
        assert_eq!(backoff.remaining_delay(later), Some(MAX_DELAY));
    }
}
