//! Sleeping until somebody has something for a Worker.
//!
//! # Protocol
//! Before it sleeps, the Worker says so, then looks once more whether there is something. Who has
//! something writes it first, then looks whether the Worker sleeps. Between the two steps of each
//! stands a full fence, so that at least one of them sees the other: either the Worker does not
//! sleep, or it is woken.

use std::time::Duration;

use crate::sync::{AtomicBool, Ordering, fence};

/// How a Worker sleeps and is woken.
pub(crate) trait Bed {
    /// Sleeps until [`Bed::wake`] has been called since it slept last, for so long at most.
    fn sleep(&self, most: Option<Duration>);
    /// Wakes whoever sleeps, or will sleep next.
    fn wake(&self);
}

/// The Worker's side and that of the others.
#[derive(Debug)]
pub(crate) struct Parker<B> {
    asleep: AtomicBool,
    bed: B,
}

impl<B: Bed> Parker<B> {
    pub fn new(bed: B) -> Self {
        Self { asleep: AtomicBool::new(false), bed }
    }

    /// Sleeps, unless there is something to do.
    pub fn park(&self, most: Option<Duration>, has_something: impl FnOnce() -> bool) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_something() {
            self.bed.sleep(most);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the Worker if it sleeps, after something was put where it looks.
    pub fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.bed.wake();
        }
    }
}
