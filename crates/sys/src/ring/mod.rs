//! A ring buffer of messages in memory that two processes or threads share: one sends, one
//! receives.
//!
//! `slots` has the ring and its memory protocol, `layout` the positions of control words and slots,
//! `bell` sleeping and waking, which is model-checked with loom, and `sync` the atomics.

#[cfg_attr(all(loom, not(test)), expect(dead_code, reason = "only the models use it there"))]
mod bell;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod slots;
mod sync;

#[cfg(not(loom))]
pub use layout::Shape;
#[cfg(not(loom))]
pub use slots::{Receiver, Sender, WaitPolicy, pair, ring};
