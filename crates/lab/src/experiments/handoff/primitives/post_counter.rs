//! Counters of posts and consumed posts in shared memory.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};

/// A counter of posts and a counter of consumed posts. Each counter has its own cache line. The
/// poster never reads the counter of consumed posts, so a turn moves only the other line between
/// the CPUs. The counters wrap around.
#[derive(Debug)]
pub struct PostCounter(Shared<[Line<AtomicU32>; 2]>);

impl PostCounter {
    /// Creates both counters, starting at 0.
    ///
    /// # Errors
    /// Returns `ENOMEM` if there is not enough memory.
    pub fn new() -> io::Result<Self> {
        Shared::new([const { Line(AtomicU32::new(0)) }; 2]).map(Self)
    }

    /// Returns the counter of posts, on which a waiter can sleep with `futex(2)`.
    #[inline]
    pub fn posted(&self) -> &AtomicU32 {
        &self.0[0]
    }

    /// Adds a post. Only the poster may call it.
    #[inline]
    pub fn post(&self) {
        let posted = self.posted().load(Ordering::Relaxed);
        self.posted().store(posted.wrapping_add(1), Ordering::Release);
    }

    /// Returns the number of consumed posts. Only the waiter may call it.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.0[1].load(Ordering::Relaxed)
    }

    /// Consumes a post, if there is one, and returns whether there was. Only the waiter may call
    /// it.
    #[inline]
    pub fn try_take(&self) -> bool {
        let taken = self.taken();
        let is_there = self.posted().load(Ordering::Acquire) != taken;
        if is_there {
            self.0[1].store(taken.wrapping_add(1), Ordering::Relaxed);
        }
        is_there
    }
}
