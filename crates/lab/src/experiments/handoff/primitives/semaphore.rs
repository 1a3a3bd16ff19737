//! Hand-offs with POSIX semaphores, unnamed or named.

use std::io;

use contend_sys::semaphore::Semaphore;

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `semaphore` mechanism: an unnamed POSIX semaphore in shared memory (`sem_init`).
pub const UNNAMED: Mechanism = Mechanism {
    name: "semaphore",
    summary: "POSIX semaphore in shared memory (sem_init)",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(Semaphore::unnamed().context("make a semaphore")?)),
};

/// The `named-semaphore` mechanism: a named POSIX semaphore (`sem_open`).
pub const NAMED: Mechanism = Mechanism {
    name: "named-semaphore",
    summary: "named POSIX semaphore (sem_open)",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(Semaphore::named().context("open a semaphore")?)),
};

impl SyncPrimitive for Semaphore {
    fn post(&self) -> io::Result<()> {
        Semaphore::post(self)
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        Semaphore::wait(self).map(|()| WaitOutcome::default())
    }
}
