//! Clocks in nanoseconds.

pub use rustix::time::ClockId;

/// Returns the time of a clock in nanoseconds; 0 for a time before its epoch.
pub fn nanoseconds(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance() {
        let before = nanoseconds(ClockId::Monotonic);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let passed = nanoseconds(ClockId::Monotonic) - before;
        assert!(passed >= 1_000_000, "{passed}");
        assert!(nanoseconds(ClockId::Realtime) > 1_600_000_000_000_000_000, "after 2020");
    }
}
