//! Hand-offs with a bare futex, without a lock.

use std::io;

use rustix::io::Errno;
use rustix::thread::futex;

use super::post_counter::PostCounter;
use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `futex` mechanism: the system call on which the C library's semaphores and mutexes are
/// built.
pub const MECHANISM: Mechanism = Mechanism {
    name: "futex",
    summary: "futex, woken for every turn",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(Futex(PostCounter::new().context("map shared memory")?))),
};

struct Futex(PostCounter);

impl SyncPrimitive for Futex {
    fn post(&self) -> io::Result<()> {
        self.0.post();
        futex::wake(self.0.posted(), futex::Flags::empty(), 1)?;
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        while !self.0.try_take() {
            wait_for_post(&self.0)?;
        }
        Ok(WaitOutcome::default())
    }
}

/// Sleeps until a post is available. May return early. Only the waiter may call it.
pub(super) fn wait_for_post(posts: &PostCounter) -> io::Result<()> {
    match futex::wait(posts.posted(), futex::Flags::empty(), posts.taken(), None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
