//! No synchronisation at all.

use std::io;

use super::sleep::pause;
use super::{Mechanism, SleepTiming, SyncPrimitive, WaitOutcome};

/// Nobody waits for anybody.
pub const MECHANISM: Mechanism = Mechanism {
    name: "none",
    summary: "nothing: both go on",
    waits: false,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(NoSync)),
};

/// Nobody waits for anybody, but sleeps: what is left of polling when nothing is looked at.
pub const PAUSE: Mechanism = Mechanism {
    name: "pause",
    summary: "nothing but a sleep of a period",
    waits: false,
    sleeps: true,
    counts: true,
    make: |timing| Ok(Box::new(Pause(timing))),
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

struct Pause(SleepTiming);

impl SyncPrimitive for Pause {
    fn post(&self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        pause(self.0).map(|()| WaitOutcome { failed_polls: 1 })
    }
}
