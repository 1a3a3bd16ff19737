//! How long a pipe is left alone. A command that reads, or writes, few bytes at a time would wake
//! whoever is at the other end each time; a wide pipe needs that only once for many of them.

use std::time::{Duration, Instant};

/// Where nothing is known yet, so much goes through a pipe, in bytes a second.
const DEFAULT_BYTES_PER_SECOND: f64 = 1e9;
/// No pipe is left alone for longer.
const MAX_REST: Duration = Duration::from_millis(1);
/// As long as less than this has gone through a pipe it may be all that there is, in bytes.
const MIN_MOVED_BYTES: u64 = 64 << 10;

/// One end of a pipe.
#[derive(Debug)]
pub(super) struct PollBackoff {
    /// How much is to go through it while it is left alone, in bytes: half of what it holds.
    stride: f64,
    /// How much has gone through it, in bytes.
    moved: u64,
    /// When there was nothing to do last, and how much had gone through it by then.
    idle: Option<(Instant, u64)>,
    rests_until: Option<Instant>,
}

impl PollBackoff {
    /// Of a pipe that holds so many bytes.
    pub(super) fn of(capacity: usize) -> Self {
        Self { stride: (capacity / 2) as f64, moved: 0, idle: None, rests_until: None }
    }

    /// So much went through it just now.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.moved += bytes as u64;
    }

    /// Notes that there is nothing to do now, and rests for as long as the next stride takes.
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
        let time = self.stride / rate.max(1.0);
        self.rests_until = Some(now + MAX_REST.min(Duration::from_secs_f64(time.min(1.0))));
    }

    /// How long it is still left alone.
    pub(super) fn rest(&self, now: Instant) -> Option<Duration> {
        self.rests_until.filter(|&until| until > now).map(|until| until - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_left_alone_for_as_long_as_half_of_it_takes() {
        let start = Instant::now();
        let mut backoff = PollBackoff::of(1 << 20);
        backoff.moved(1000);
        backoff.note_idle(start);
        assert_eq!(backoff.rest(start), None, "it may be all that there is");
        backoff.moved(1 << 20);
        backoff.note_idle(start);
        let rest = backoff.rest(start).expect("a while");
        assert!(rest > Duration::from_micros(500) && rest < Duration::from_micros(550), "{rest:?}");
        assert_eq!(backoff.rest(start + rest), None);
        // Ten times as fast.
        let later = start + Duration::from_micros(100);
        backoff.moved(1 << 20);
        backoff.note_idle(later);
        let rest = backoff.rest(later).expect("a while");
        assert!(rest > Duration::from_micros(45) && rest < Duration::from_micros(55), "{rest:?}");
        // Nothing at all came for a second.
        let later = later + Duration::from_secs(1);
        backoff.note_idle(later);
        assert_eq!(backoff.rest(later), Some(MAX_REST));
    }
}
