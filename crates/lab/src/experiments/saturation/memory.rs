//! `saturation/memory`: workers limited by memory bandwidth.

use std::hint::black_box;

use contend_record::lab::View;

use super::workers::Workload;
use super::{about, experiment, saturation_subject};
use crate::engine::experiment::{Experiment, Facts};
use crate::support::limits;

/// The definition of `saturation/memory`.
pub const EXPERIMENT: Experiment = experiment(
    "saturation/memory",
    "scaling of memory copies: workers share the memory bandwidth",
    about!(
        "Each worker repeatedly copies one buffer of its own to another; together they are larger \
         than most CPU caches (`bytes`). If a single worker uses most of the memory bandwidth, \
         more workers do not copy faster. One unit of `work` is 8 MiB."
    ),
    View::Saturation,
    |parameters| Ok(saturation_subject(parameters, MemoryCopy::new)),
);

/// Maximum length of a buffer in bytes. Larger CPU caches are rare.
const MAX_BUFFER_BYTES: u64 = 64 << 20;
/// Minimum length of a buffer in bytes, even if memory is short.
const MIN_BUFFER_BYTES: u64 = 64 << 10;
/// Number of bytes copied in one unit of `work`.
const BYTES_PER_WORK_UNIT: u64 = 8 << 20;

struct MemoryCopy {
    /// Length of each buffer in bytes.
    bytes: usize,
    /// Number of bytes that each worker copies.
    work: u64,
}

impl MemoryCopy {
    /// Creates a workload of `work` units for each of `workers` workers. The buffers, two for each
    /// worker, take at most half of the available memory, but have at least `MIN_BUFFER_BYTES`
    /// each.
    fn new(work: u64, workers: u64) -> Self {
        let available = limits::memory_available() / 2 / workers.max(1) / 2;
        let bytes = MAX_BUFFER_BYTES.min(available).max(MIN_BUFFER_BYTES);
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
