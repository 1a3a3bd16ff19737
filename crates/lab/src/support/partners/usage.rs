//! Resource usage of a partner.

use std::time::Duration;

use contend_sys::{child, cpu};

use crate::engine::timing::nanoseconds;

/// Number of values that represent a [`ResourceUsage`].
pub const USAGE_VALUES: usize = 5;

/// Resource usage of a thread, in total or between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// CPU time, in user and kernel mode.
    pub cpu: Duration,
    /// CPU time in kernel mode, which the kernel estimates by sampling at timer ticks.
    pub system: Duration,
    /// Number of context switches caused by waiting.
    pub voluntary_switches: u64,
    /// Number of context switches caused by preemption.
    pub involuntary_switches: u64,
    /// Number of minor page faults.
    pub faults: u64,
}

impl ResourceUsage {
    /// Returns the usage of the calling thread so far.
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

    /// Returns the usage of the calling thread since `self`, which has to be an earlier reading of
    /// the same thread.
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

    /// Returns the number of all context switches.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    /// Returns the values in the order of the fields, with times in nanoseconds.
    pub fn to_values(self) -> [u64; USAGE_VALUES] {
        [
            nanoseconds(self.cpu),
            nanoseconds(self.system),
            self.voluntary_switches,
            self.involuntary_switches,
            self.faults,
        ]
    }

    /// Creates the usage from values in the order of the fields, with times in nanoseconds.
    pub fn from_values([cpu, system, voluntary, involuntary, faults]: [u64; USAGE_VALUES]) -> Self {
        Self {
            cpu: Duration::from_nanos(cpu),
            system: Duration::from_nanos(system),
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            faults,
        }
    }
}
