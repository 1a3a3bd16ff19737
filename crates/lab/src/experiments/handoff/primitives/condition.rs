//! Hand-offs with a mutex and a condition variable.

use std::io;

use contend_sys::condition::Condition;

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `condition` mechanism, the usual choice of multi-threaded programs.
pub const MECHANISM: Mechanism = Mechanism {
    name: "condition",
    summary: "mutex and condition variable in shared memory",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(Condition::new().context("make a condition variable")?)),
};

impl SyncPrimitive for Condition {
    fn post(&self) -> io::Result<()> {
        Condition::post(self)
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        Condition::wait(self).map(|()| WaitOutcome::default())
    }
}
