//! Two numbers in memory that partners share: what was posted, and what was taken.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};

/// Each of the two is written by one partner alone, so that its cache line goes to the other one and
/// back once for each turn. They wrap around.
#[derive(Debug)]
pub struct PostCounter(Shared<[Line<AtomicU32>; 2]>);

impl PostCounter {
    /// Nothing posted.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        Shared::new([const { Line(AtomicU32::new(0)) }; 2]).map(Self)
    }

    /// What was posted, as it stands in memory.
    #[inline]
    pub fn posted(&self) -> &AtomicU32 {
        &self.0[0]
    }

    /// The poster's.
    #[inline]
    pub fn post(&self) {
        let posted = self.posted().load(Ordering::Relaxed);
        self.posted().store(posted.wrapping_add(1), Ordering::Release);
    }

    /// What has been taken. The waiter's.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.0[1].load(Ordering::Relaxed)
    }

    /// Takes one, if there is one. The waiter's.
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
