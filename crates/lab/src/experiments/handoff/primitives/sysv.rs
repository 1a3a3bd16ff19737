//! Hand-offs with a System V semaphore.

use std::io;

use contend_sys::semaphore::SysvSemaphore;

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `sysv-semaphore` mechanism, in which every operation is a system call.
pub const MECHANISM: Mechanism = Mechanism {
    name: "sysv-semaphore",
    summary: "System V semaphore (semop)",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(SysvSemaphore::new().context("make a System V semaphore")?)),
};

impl SyncPrimitive for SysvSemaphore {
    fn post(&self) -> io::Result<()> {
        SysvSemaphore::post(self)
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        SysvSemaphore::wait(self).map(|()| WaitOutcome::default())
    }
}
