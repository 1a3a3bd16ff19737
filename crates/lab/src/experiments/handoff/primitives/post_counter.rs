//! Counters of posts and of consumed posts in shared memory.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};

/// A pair of counters. Each is written by one partner only, on a cache line of its own, so that a
/// turn moves each line to the other CPU and back once. The counters wrap around.
#[derive(Debug)]
pub struct PostCounter(Shared<[Line<AtomicU32>; 2]>);

impl PostCounter {
    /// Creates counters without a post.
    ///
    /// # Errors
    /// Returns `ENOMEM` if there is not enough memory.
    pub fn new() -> io::Result<Self> {
        Shared::new([const { Line(AtomicU32::new(0)) }; 2]).map(Self)
    }

    /// Returns the number of posts, as a word that a futex can wait for.
    #[inline]
    pub fn posted(&self) -> &AtomicU32 {
        &self.0[0]
    }

    /// Adds a post. Called by the poster only.
    #[inline]
    pub fn post(&self) {
        let posted = self.posted().load(Ordering::Relaxed);
        self.posted().store(posted.wrapping_add(1), Ordering::Release);
    }

    /// Returns the number of consumed posts. Called by the waiter only.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.0[1].load(Ordering::Relaxed)
    }

    /// Consumes a post and returns whether there was one. Called by the waiter only.
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
