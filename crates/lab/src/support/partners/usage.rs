//! What a thread has used.

use std::time::Duration;

use contend_sys::{child, cpu};

use crate::engine::timing::nanoseconds;

/// How many numbers that is.
pub const USED: usize = 5;

/// What one of two has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time.
    pub cpu: Duration,
    /// The part of it in the kernel, as the kernel samples it by ticks.
    pub system: Duration,
    /// How often it has waited.
    pub voluntary_switches: u64,
    /// How often it was made to wait.
    pub involuntary_switches: u64,
    /// How often it touched a page that was not there, or not its own.
    pub faults: u64,
}

impl Used {
    /// What the calling thread has used so far.
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

    /// What it has used since it had used this.
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

    /// How often it was switched from.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    /// As numbers: times in nanoseconds, switches, faults.
    pub fn to_figures(self) -> [u64; USED] {
        [
            nanoseconds(self.cpu),
            nanoseconds(self.system),
            self.voluntary_switches,
            self.involuntary_switches,
            self.faults,
        ]
    }

    /// From what it is as numbers.
    pub fn from_figures([cpu, system, voluntary, involuntary, faults]: [u64; USED]) -> Self {
        Self {
            cpu: Duration::from_nanos(cpu),
            system: Duration::from_nanos(system),
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            faults,
        }
    }
}
