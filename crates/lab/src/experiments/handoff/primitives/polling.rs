//! Hand-offs by polling, with an action between two polls.

use std::io;

use super::post_counter::PostCounter;
use super::{SyncPrimitive, WaitOutcome};
use crate::engine::experiment::{ErrorContext, SubjectError};

struct Polling<P> {
    posts: PostCounter,
    /// Action after a failed poll.
    between: P,
}

/// Creates a primitive whose waiter polls and calls `between` after each failed poll.
///
/// # Errors
/// Returns an error if shared memory cannot be mapped.
pub fn polling<P>(between: P) -> Result<Box<dyn SyncPrimitive>, SubjectError>
where
    P: Fn() -> io::Result<()> + Sync + 'static,
{
    let posts = PostCounter::new().context("map shared memory")?;
    Ok(Box::new(Polling { posts, between }))
}

impl<P: Fn() -> io::Result<()> + Sync> SyncPrimitive for Polling<P> {
    fn post(&self) -> io::Result<()> {
        self.posts.post();
        Ok(())
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        let mut failed_polls = 0;
        while !self.posts.try_take() {
            failed_polls += 1;
            (self.between)()?;
        }
        Ok(WaitOutcome { failed_polls })
    }
}
