//! Hand-offs by spinning for a bounded number of polls, then sleeping on a futex.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use contend_sys::shared::{Line, Shared};
use rustix::thread::futex;

use super::post_counter::PostCounter;
use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `spin-futex` mechanism, the strategy of adaptive mutexes.
pub const MECHANISM: Mechanism = Mechanism {
    name: "spin-futex",
    summary: "spin 2,000 times, then sleep on a futex",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        let posts = PostCounter::new().context("map shared memory")?;
        let asleep = Shared::new(Line(AtomicBool::new(false))).context("map shared memory")?;
        Ok(Box::new(SpinThenFutex { posts, asleep }))
    },
};

/// Maximum number of polls before the waiter sleeps, about 50 µs if a pause instruction takes 25
/// ns.
const MAX_SPINS: u32 = 2000;

struct SpinThenFutex {
    posts: PostCounter,
    /// Whether the waiter sleeps or is about to sleep.
    asleep: Shared<Line<AtomicBool>>,
}

impl SyncPrimitive for SpinThenFutex {
    fn post(&self) -> io::Result<()> {
        self.posts.post();
        // Either the waiter sees the post before it sleeps, or this load sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            futex::wake(self.posts.posted(), futex::Flags::empty(), 1)?;
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        for failed_polls in 0..MAX_SPINS {
            if self.posts.try_take() {
                return Ok(WaitOutcome { failed_polls: failed_polls.into() });
            }
            std::hint::spin_loop();
        }
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !self.posts.try_take() {
            super::futex::wait_for_post(&self.posts)?;
        }
        self.asleep.store(false, Ordering::Relaxed);
        Ok(WaitOutcome { failed_polls: MAX_SPINS.into() })
    }
}
