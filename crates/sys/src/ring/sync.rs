//! Atomics of the ring, from the standard library or from loom, which explores interleavings.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};
