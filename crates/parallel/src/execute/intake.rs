//! Counts the bytes and chunks of a run's input.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters for the bytes and chunks of an input that have been handed out.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    bytes: AtomicU64,
    chunks: AtomicU64,
    /// The size of the input in bytes; 0 if unknown.
    size: AtomicU64,
}

impl Intake {
    /// Sets the size of the input in bytes, or `None` if it is unknown.
    pub(crate) fn set_size(&self, size: Option<u64>) {
        self.size.store(size.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts a chunk that was handed out.
    pub(super) fn count_chunk(&self) {
        self.chunks.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `bytes` to the number of bytes handed out.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts `bytes`, which were given back, from the number of bytes handed out.
    pub(super) fn subtract_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Sets the number of bytes to 0, because the whole input will be read again.
    pub(super) fn start_again(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Sets all counters to 0, because what was counted is not used.
    pub(crate) fn forget(&self) {
        self.start_again();
        self.chunks.store(0, Ordering::Relaxed);
    }

    /// Returns how many bytes were handed out and not given back.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns how many chunks were handed out.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// Returns the size of the input in bytes, or `None` if it is unknown or the input is empty.
    pub(super) fn size(&self) -> Option<u64> {
        Some(self.size.load(Ordering::Relaxed)).filter(|&size| size > 0)
    }
}
