//! Whether others used the CPUs while something was measured.
//!
//! The kernel counts what all CPUs do in ticks of 10 ms, so a single sample is too short to
//! be judged. Samples are judged together, by the window of time in which they were taken.

use std::time::Duration;

/// What the CPUs that we may use had done at a moment, and what of that was ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Busy time of these CPUs, whoever used them.
    pub busy: Duration,
    /// CPU time of this process and of all processes of cases, ended ones too.
    pub own: Duration,
    /// Time that the host of this virtual machine gave to others.
    pub steal: Duration,
    /// Time in which this process's cgroup was held back by its quota.
    pub throttled: Duration,
    /// How often these CPUs have had to slow down because of heat.
    pub slowed: u64,
}

/// A window is at least this long.
pub const MIN_WINDOW: Duration = Duration::from_millis(600);

/// The part of the CPUs that others may use without anything being said.
pub const TOLERATED_SHARE: f64 = 0.05;

/// How much the ticks may be off, for each CPU.
const TICK_LENGTH: Duration = Duration::from_millis(10);

/// What others used between two readings, and which part of the CPUs that was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Others {
    /// Their CPU time and the time that the host took.
    pub used: Duration,
    /// As a part of all CPUs concerned.
    pub share: f64,
    /// More than is tolerated and than the ticks can be off.
    pub is_disturbance: bool,
}

impl Others {
    /// What they used in this time on so many CPUs.
    pub fn between(before: Reading, after: Reading, time: Duration, cpus: usize) -> Self {
        let busy = after.busy.saturating_sub(before.busy);
        let own = after.own.saturating_sub(before.own);
        let steal = after.steal.saturating_sub(before.steal);
        let used = busy.saturating_sub(own) + steal;
        let capacity = time.as_secs_f64() * cpus.max(1) as f64;
        let share = if capacity > 0.0 { used.as_secs_f64() / capacity } else { 0.0 };
        // The ticks of several CPUs are off in different directions.
        let allowance = TICK_LENGTH.as_secs_f64() * (cpus.max(1) as f64).sqrt();
        let is_disturbance = used.as_secs_f64() > TOLERATED_SHARE * capacity + allowance;
        Self { used, share, is_disturbance }
    }
}

/// How much the distance between two CPUs may differ before and after a sample; a host that
/// moves a virtual CPU to another core changes it by more.
const MAX_DISTANCE_RATIO: f64 = 1.5;

/// Whether the host has moved a CPU between two measurements of a cache line's round trip.
pub fn has_moved(before: f64, after: f64) -> bool {
    let (low, high) = if before < after { (before, after) } else { (after, before) };
    high > MAX_DISTANCE_RATIO * low
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn reading(busy: u32, own: u32) -> Reading {
        Reading { busy: MS * busy, own: MS * own, ..Reading::default() }
    }

    #[test]
    fn a_neighbour_is_noticed_and_the_ticks_are_not() {
        let others = Others::between(reading(100, 50), reading(600, 450), MS * 500, 2);
        assert!(others.is_disturbance && (others.share - 0.1).abs() < 1e-9, "{others:?}");
        let others = Others::between(reading(100, 50), reading(560, 450), MS * 500, 2);
        assert!(!others.is_disturbance, "{others:?}");
        let ours_alone = Others::between(reading(0, 0), reading(480, 500), MS * 500, 1);
        assert_eq!(ours_alone.used, Duration::ZERO);
    }

    #[test]
    fn what_the_host_takes_counts_as_used_by_others() {
        let after = Reading { steal: MS * 100, ..reading(400, 400) };
        assert!(Others::between(reading(0, 0), after, MS * 500, 1).is_disturbance);
    }

    #[test]
    fn a_cpu_that_was_moved_is_farther_away() {
        assert!(has_moved(60.0, 140.0) && has_moved(140.0, 60.0) && !has_moved(60.0, 80.0));
    }
}
