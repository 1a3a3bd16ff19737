//! A thread-local mark on Workers' threads, which must not block.

use std::cell::Cell;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as a Worker's.
pub(crate) fn mark_worker_thread() {
    IS_WORKER.set(true);
}

/// Returns whether the calling thread is a Worker's, of any runtime. Such a thread must not wait
/// for a Worker, which could be itself or one that waits for it.
pub(crate) fn is_worker_thread() -> bool {
    IS_WORKER.get()
}

/// Panics if the calling thread is a Worker's. `what` is the name of the blocking function.
#[track_caller]
pub(crate) fn assert_may_wait(what: &str) {
    assert!(
        !is_worker_thread(),
        "{what} was called on a Worker's thread, which would block itself: call it outside of callbacks"
    );
}
