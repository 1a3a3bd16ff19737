//! Counting what is taken of an input.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was taken of an input.
#[derive(Debug, Default)]
pub(super) struct Intake {
    bytes: AtomicU64,
    chunks: AtomicU64,
    /// The size of all of it, in bytes; 0 if it is not known.
    size: AtomicU64,
}

impl Intake {
    /// Sets the size of the input, in bytes; `None` if it is not known.
    pub(super) fn set_size(&self, size: Option<u64>) {
        self.size.store(size.unwrap_or(0), Ordering::Relaxed);
    }

    /// A part was taken.
    pub(super) fn count_chunk(&self) {
        self.chunks.fetch_add(1, Ordering::Relaxed);
    }

    /// So much was taken.
    pub(super) fn took(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So much was given back.
    pub(super) fn returned(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// All of it will be read again.
    pub(super) fn start_again(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Bytes that were taken and not given back.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many parts were taken.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// The size of the input in bytes, if it is known.
    pub(super) fn size(&self) -> Option<u64> {
        Some(self.size.load(Ordering::Relaxed)).filter(|&size| size > 0)
    }
}
