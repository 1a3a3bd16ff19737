//! A ring of messages in memory that two processes or threads share: one sends, one receives.

mod bell;
#[cfg(not(loom))]
mod slots;
mod sync;

#[cfg(not(loom))]
pub use slots::{Patience, Receiver, Sender, Shape, pair, ring};
