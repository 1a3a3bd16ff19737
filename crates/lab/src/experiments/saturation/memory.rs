//! `saturation/memory`: work that memory keeps waiting.

use std::hint::black_box;

use contend_record::lab::View;

use super::workers::Workload;
use super::{about, row, saturation};
use crate::engine::experiment::{Experiment, Facts};
use crate::support::limits;

/// The definition of `saturation/memory`.
pub const EXPERIMENT: Experiment = row(
    "saturation/memory",
    "copying memory: all workers share its bandwidth",
    about!(
        "Workers copy a buffer of their own to another one, again and again; both together are larger \
         than most caches (`bytes`). One worker alone may use most of what memory can deliver, and \
         then more of them do not do more. One `work` is 8 MiB."
    ),
    View::Saturation,
    |parameters| Ok(saturation(parameters, MemoryCopy::new)),
);

/// Bytes of a buffer: caches of more are rare.
const MAX_BUFFER_BYTES: u64 = 64 << 20;
/// Bytes of one, at least.
const MIN_BUFFER_BYTES: u64 = 64 << 10;
/// Bytes that are copied for each unit of work.
const BYTES_PER_WORK_UNIT: u64 = 8 << 20;

struct MemoryCopy {
    /// Of a buffer.
    bytes: usize,
    /// To be copied.
    work: u64,
}

impl MemoryCopy {
    /// So much work, with buffers of which so many workers can have two each.
    fn new(work: u64, workers: u64) -> Self {
        let room = limits::memory_available() / 2 / workers.max(1) / 2;
        let bytes = MAX_BUFFER_BYTES.min(room).max(MIN_BUFFER_BYTES);
        Self {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            work: work * BYTES_PER_WORK_UNIT,
        }
    }
}

fn copy([from, to]: &mut [Vec<u8>; 2], work: u64) {
    let mut left = work;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(from.len());
        to[..length].copy_from_slice(&from[..length]);
        black_box(&mut *to);
        left -= length as u64;
    }
}

impl Workload for MemoryCopy {
    fn prepare(&self) -> Box<dyn FnOnce() + '_> {
        let mut buffers = [vec![1_u8; self.bytes], vec![2_u8; self.bytes]];
        Box::new(move || copy(&mut buffers, self.work))
    }

    fn facts(&self) -> Facts {
        let buffers = 2 * self.bytes as u64;
        Facts::from([
            ("bytes".to_owned(), buffers.into()),
            ("bytes_copied_by_each".to_owned(), self.work.into()),
        ])
    }
}
