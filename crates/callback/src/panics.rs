//! Panics of what is not ours: callbacks, and what is dropped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::reason::Reason;

/// Does something that may panic.
pub(crate) fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let reason = Reason::of_panic(&*panic);
        drop_panic(panic);
        reason
    })
}

/// Drops something, or does what leads to that. What is dropped is gone also if that panics.
/// Returns how often it did.
pub(crate) fn drop_quietly(drop: impl FnOnce()) -> u64 {
    match catch_unwind(AssertUnwindSafe(drop)) {
        Ok(()) => 0,
        Err(panic) => {
            drop_panic(panic);
            1
        }
    }
}

/// Drops what a panic carries, which may panic itself.
pub(crate) fn drop_panic(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}
