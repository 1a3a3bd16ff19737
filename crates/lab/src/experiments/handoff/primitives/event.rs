//! Hand-offs with events as on Windows, built on a futex.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};
use rustix::io::Errno;
use rustix::thread::futex;

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// The `event` mechanism: the event resets itself when a wait returns.
pub const AUTO_RESET: Mechanism = Mechanism {
    name: "event",
    summary: "auto-reset event (futex)",
    waits: true,
    sleeps: false,
    counts: false,
    make: |_| make(Reset::Auto),
};

/// The `manual-event` mechanism: the event stays set until its waiter resets it.
pub const MANUAL_RESET: Mechanism = Mechanism {
    name: "manual-event",
    summary: "manual-reset event (futex)",
    waits: true,
    sleeps: false,
    counts: false,
    make: |_| make(Reset::Manual),
};

fn make(reset: Reset) -> Result<Box<dyn SyncPrimitive>, SubjectError> {
    let state = Shared::new(Line(AtomicU32::new(UNSET))).context("map shared memory")?;
    Ok(Box::new(Event { state, reset }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    Auto,
    Manual,
}

const UNSET: u32 = 0;
const SET: u32 = 1;
/// State of an event that is not set and on which a waiter may be asleep.
const UNSET_WITH_WAITERS: u32 = 2;

struct Event {
    state: Shared<Line<AtomicU32>>,
    reset: Reset,
}

impl SyncPrimitive for Event {
    fn post(&self) -> io::Result<()> {
        if self.state.swap(SET, Ordering::Release) == UNSET_WITH_WAITERS {
            // All waiters see a manual-reset event, but only one may consume an auto-reset event.
            let waiters = if self.reset == Reset::Auto { 1 } else { i32::MAX.cast_unsigned() };
            futex::wake(&self.state, futex::Flags::empty(), waiters)?;
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        loop {
            match self.state.load(Ordering::Acquire) {
                SET if self.reset == Reset::Manual => {
                    self.state.store(UNSET, Ordering::Relaxed); // the waiter resets it
                    return Ok(WaitOutcome::default());
                }
                SET => {
                    let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
                    if self.state.compare_exchange(SET, UNSET, order, failed).is_ok() {
                        return Ok(WaitOutcome::default());
                    }
                }
                UNSET => {
                    let order = Ordering::Relaxed;
                    let _ = self.state.compare_exchange(UNSET, UNSET_WITH_WAITERS, order, order);
                }
                _ => {
                    match futex::wait(&self.state, futex::Flags::empty(), UNSET_WITH_WAITERS, None)
                    {
                        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }
}
