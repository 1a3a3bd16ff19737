//! Detects whether other programs used the CPUs while samples were taken, and whether the
//! hypervisor moved a virtual CPU.
//!
//! The kernel counts the busy time of a CPU in ticks of 10 ms, which is too coarse for a single
//! sample. The samples of a time window are therefore judged together, by the CPU time that other
//! programs used in it.

use std::time::Duration;

/// A reading of the kernel's CPU accounting, for the CPUs that this process may use. The counters
/// start at different times, so only differences between two readings are meaningful.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Busy time of all these CPUs.
    pub busy: Duration,
    /// CPU time of this process and of all processes of cases. A living process of a case counts
    /// with the CPU time that it last reported.
    pub own: Duration,
    /// Time of these CPUs that the hypervisor gave to other virtual machines (steal).
    pub steal: Duration,
    /// Time for which CPU quotas throttled this process's cgroup or an ancestor: the longest of
    /// these times.
    pub throttled: Duration,
    /// Number of times that these CPUs were throttled because of heat.
    pub thermal_throttle_count: u64,
}

/// Minimum length of a window of time whose samples are judged together.
pub const MIN_WINDOW: Duration = Duration::from_millis(600);

/// Share of the available CPU time that other programs may use before they count as a disturbance.
pub const TOLERATED_SHARE: f64 = 0.05;

/// Length of a tick of the kernel's CPU accounting: the error of a reading for each CPU.
const TICK_LENGTH: Duration = Duration::from_millis(10);

/// The CPU time that other programs used between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Others {
    /// CPU time of other programs, plus the time stolen by the hypervisor.
    pub used: Duration,
    /// `used` as a share of the time of all CPUs; 0 if no time has passed.
    pub share: f64,
    /// Whether `used` exceeds the tolerated share by more than the error of the accounting.
    pub is_disturbance: bool,
}

impl Others {
    /// Returns the CPU time that other programs used between two readings of `cpus` CPUs, taken
    /// `time` apart.
    pub fn between(before: Reading, after: Reading, time: Duration, cpus: usize) -> Self {
        let busy = after.busy.saturating_sub(before.busy);
        let own = after.own.saturating_sub(before.own);
        let steal = after.steal.saturating_sub(before.steal);
        let used = busy.saturating_sub(own) + steal;
        let capacity = time.as_secs_f64() * cpus.max(1) as f64;
        let share = if capacity > 0.0 { used.as_secs_f64() / capacity } else { 0.0 };
        // The errors of several CPUs are independent.
        let allowance = TICK_LENGTH.as_secs_f64() * (cpus.max(1) as f64).sqrt();
        let is_disturbance = used.as_secs_f64() > TOLERATED_SHARE * capacity + allowance;
        Self { used, share, is_disturbance }
    }
}

/// Maximum ratio of two measurements of the distance between CPUs that have stayed where they were.
/// A virtual CPU that the hypervisor moves to another core changes the distance by more.
const MAX_DISTANCE_RATIO: f64 = 1.5;

/// Returns whether `before` and `after`, two measurements of a cache line's round-trip time, differ
/// by so large a factor that the hypervisor has probably moved a virtual CPU in the meantime.
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
    fn other_load_is_detected_beyond_the_error_of_ticks() {
        let others = Others::between(reading(100, 50), reading(600, 450), MS * 500, 2);
        assert!(others.is_disturbance && (others.share - 0.1).abs() < 1e-9, "{others:?}");
        let others = Others::between(reading(100, 50), reading(560, 450), MS * 500, 2);
        assert!(!others.is_disturbance, "{others:?}");
        let ours_alone = Others::between(reading(0, 0), reading(480, 500), MS * 500, 1);
        assert_eq!(ours_alone.used, Duration::ZERO);
    }

    #[test]
    fn steal_counts_as_used_by_others() {
        let after = Reading { steal: MS * 100, ..reading(400, 400) };
        assert!(Others::between(reading(0, 0), after, MS * 500, 1).is_disturbance);
    }

    #[test]
    fn a_moved_cpu_has_another_distance() {
        assert!(has_moved(60.0, 140.0) && has_moved(140.0, 60.0) && !has_moved(60.0, 80.0));
    }
}
