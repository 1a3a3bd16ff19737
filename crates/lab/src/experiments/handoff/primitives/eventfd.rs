//! Hand-offs with an eventfd in semaphore mode.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `eventfd` mechanism: a counter in the kernel, accessed through a file descriptor.
pub const MECHANISM: Mechanism = Mechanism {
    name: "eventfd",
    summary: "eventfd: write to post, read to wait",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
        Ok(Box::new(Counter(eventfd(0, flags).context("make an eventfd")?)))
    },
};

struct Counter(OwnedFd);

impl SyncPrimitive for Counter {
    fn post(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        rustix::io::read(&self.0, &mut [0_u8; 8])?;
        Ok(WaitOutcome::default())
    }
}
