//! Sessions without synchronisation, for comparison.

use std::io;

use super::sleep::pause;
use super::{Mechanism, SleepTiming, SyncPrimitive, WaitOutcome};

/// The `none` mechanism: neither partner waits.
pub const MECHANISM: Mechanism = Mechanism {
    name: "none",
    summary: "no synchronisation: neither partner waits",
    waits: false,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(NoSync)),
};

/// The `pause` mechanism: neither partner waits for the other, but each wait sleeps for a period,
/// as polling would.
pub const SLEEP_ONLY: Mechanism = Mechanism {
    name: "pause",
    summary: "no synchronisation, but a sleep for each wait",
    waits: false,
    sleeps: true,
    counts: true,
    make: |timing| Ok(Box::new(SleepOnly(timing))),
};

struct NoSync;

impl SyncPrimitive for NoSync {
    fn post(&self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        Ok(WaitOutcome::default())
    }
}

struct SleepOnly(SleepTiming);

impl SyncPrimitive for SleepOnly {
    fn post(&self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        pause(self.0).map(|()| WaitOutcome { failed_polls: 1 })
    }
}
