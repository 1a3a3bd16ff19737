//! Catches panics in code of the runtime's users: callbacks, blocking work and destructors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::reason::Reason;

/// Runs a closure and returns its result, or the [`Reason`] if it panicked.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let reason = Reason::of_panic(&*panic);
        drop_panic(panic);
        reason
    })
}

/// Runs a closure, usually one that drops a value, and catches its panic. The value is gone even
/// after a panic. Returns the number of panics, 0 or 1.
pub(crate) fn drop_quietly(drop: impl FnOnce()) -> u64 {
    match catch_unwind(AssertUnwindSafe(drop)) {
        Ok(()) => 0,
        Err(panic) => {
            drop_panic(panic);
            1
        }
    }
}

/// Drops the payload of a panic. If its destructor panics, too, leaks the second payload.
pub(crate) fn drop_panic(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}
