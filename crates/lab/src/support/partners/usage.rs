//! Resource usage of a partner.

use std::time::Duration;

use contend_sys::{child, cpu};

use crate::engine::timing::nanoseconds;

/// Number of figures of [`ResourceUsage`].
pub const USAGE_FIGURES: usize = 5;

/// The resources that a partner has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// CPU time.
    pub cpu: Duration,
    /// CPU time in the kernel, which the kernel samples by ticks.
    pub system: Duration,
    /// Number of context switches because it waited.
    pub voluntary_switches: u64,
    /// Number of context switches because it was preempted.
    pub involuntary_switches: u64,
    /// Number of minor page faults.
    pub faults: u64,
}

impl ResourceUsage {
    /// Returns what the calling thread has used so far.
    pub fn so_far() -> Self {
        let usage = child::thread_usage();
        Self {
            cpu: cpu::own_thread_time(),
            system: usage.system,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            faults: usage.minor_faults,
        }
    }

    /// Returns what the calling thread has used since an earlier reading.
    #[must_use]
    pub fn since(self) -> Self {
        let now = Self::so_far();
        Self {
            cpu: now.cpu.saturating_sub(self.cpu),
            system: now.system.saturating_sub(self.system),
            voluntary_switches: now.voluntary_switches - self.voluntary_switches,
            involuntary_switches: now.involuntary_switches - self.involuntary_switches,
            faults: now.faults - self.faults,
        }
    }

    /// Returns the number of context switches.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    /// Returns the figures: times in nanoseconds, switches, faults.
    pub fn to_figures(self) -> [u64; USAGE_FIGURES] {
        [
            nanoseconds(self.cpu),
            nanoseconds(self.system),
            self.voluntary_switches,
            self.involuntary_switches,
            self.faults,
        ]
    }

    /// Creates the usage from its figures.
    pub fn from_figures(
        [cpu, system, voluntary, involuntary, faults]: [u64; USAGE_FIGURES],
    ) -> Self {
        Self {
            cpu: Duration::from_nanos(cpu),
            system: Duration::from_nanos(system),
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            faults,
        }
    }
}
