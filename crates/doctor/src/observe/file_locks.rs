//! Who holds file locks, while threads sleep for short times.

use std::collections::{BTreeMap, BTreeSet};

use super::Observer;

/// Number of intervals between two readings of the machine's file locks.
const LOCK_TICKS: u64 = 3;
/// Number of intervals after a short sleep in which a program may be polling.
const POLLING_TICKS: u64 = 100;
/// Share of the readings from which a process always holds a file lock.
const ALWAYS: f64 = 0.8;

/// Readings of the machine's file locks.
#[derive(Debug, Clone, Default)]
pub struct FileLocks {
    /// Number of readings.
    pub readings: u64,
    /// Number of readings in which each observed process held a lock, by PID.
    pub holders: BTreeMap<i32, u64>,
}

impl FileLocks {
    /// Returns the share of the readings in which a process held a lock, without processes that always do.
    pub fn share(&self) -> f64 {
        let readings = self.readings.max(1) as f64;
        let shares = self.holders.values().map(|&count| count as f64 / readings);
        // A process that always holds a lock marks its presence; no process retries for that one.
        shares.filter(|share| *share < ALWAYS).sum::<f64>().min(1.0)
    }

    /// Returns the readings since `earlier`, a previous state of these.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut increase = self.clone();
        increase.readings -= earlier.readings.min(self.readings);
        for (pid, count) in &mut increase.holders {
            *count -= earlier.holders.get(pid).copied().unwrap_or(0).min(*count);
        }
        increase
    }
}

impl Observer<'_> {
    /// Reads who holds file locks now, if threads sleep for short times, as when they retry.
    pub(super) fn read_file_locks(&mut self) {
        if self.timeline.has_short_sleepers() {
            self.last_sleep = Some(self.tick);
        }
        let is_polling = self.last_sleep.is_some_and(|last| self.tick - last < POLLING_TICKS);
        if !is_polling || !self.tick.is_multiple_of(LOCK_TICKS) {
            return;
        }
        let holders = contend_sys::procfs::lock_holders();
        self.file_locks.readings += 1;
        let observed: BTreeSet<i32> =
            holders.into_iter().filter(|pid| self.processes.contains_key(pid)).collect();
        for pid in observed {
            *self.file_locks.holders.entry(pid).or_default() += 1;
        }
    }
}
