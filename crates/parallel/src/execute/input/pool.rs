//! Buffers of chunks, kept for reuse.

use std::sync::{Mutex, PoisonError};

/// Maximum number of buffers kept.
const MAX_BUFFERS: usize = 4;

/// A pool of unused buffers.
#[derive(Debug, Default)]
pub(super) struct BufferPool(Mutex<Vec<Vec<u8>>>);

impl BufferPool {
    /// Returns a buffer of `length` bytes with arbitrary contents.
    pub(super) fn get(&self, length: usize) -> Vec<u8> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A far larger buffer is left for larger chunks.
        let fitting = kept.iter().position(|bytes| bytes.capacity() / 4 <= length);
        let mut bytes = fitting.map(|place| kept.swap_remove(place)).unwrap_or_default();
        drop(kept);
        bytes.resize(length, 0);
        bytes
    }

    /// Keeps a buffer, unless the pool is full.
    pub(super) fn put(&self, bytes: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_BUFFERS {
            kept.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_unless_it_is_far_too_large() {
        let pool = BufferPool::default();
        let large = pool.get(1 << 20);
        let address = large.as_ptr();
        pool.put(large);
        assert_eq!(pool.get(10).len(), 10);
        let again = pool.get(1 << 19);
        assert_eq!((again.as_ptr(), again.len()), (address, 1 << 19));
    }

    #[test]
    fn the_number_of_kept_buffers_is_limited() {
        let pool = BufferPool::default();
        for _ in 0..2 * MAX_BUFFERS {
            pool.put(vec![0; 8]);
        }
        assert_eq!(pool.0.lock().expect("unused").len(), MAX_BUFFERS);
    }
}
