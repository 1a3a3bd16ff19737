//! `saturation/allocation`: workers that allocate and free memory.

use std::hint::black_box;

use contend_record::lab::View;

use super::workers::Workload;
use super::{about, experiment, saturation_subject};
use crate::engine::experiment::Experiment;

/// The definition of `saturation/allocation`.
pub const EXPERIMENT: Experiment = experiment(
    "saturation/allocation",
    "scaling of memory allocation: threads share kernel locks, processes do not",
    about!(
        "Workers allocate blocks of 16 bytes to 512 KiB with the allocator of the C library, write \
         to each page, and free them in a different order. Large blocks come from the kernel and \
         return to it, which maps and unmaps their pages. In a process with several threads, this \
         takes locks of the address space, and every other CPU that runs one of the threads has to \
         flush its TLB. One unit of `work` is 512 allocations."
    ),
    View::Saturation,
    |parameters| {
        Ok(saturation_subject(parameters, |work, _| AllocationChurn {
            allocations: work * ALLOCATIONS_PER_WORK_UNIT,
        }))
    },
);

/// Maximum number of blocks that a worker keeps allocated at a time.
const LIVE_ALLOCATIONS: usize = 64;
/// Number of allocations in one unit of `work`.
const ALLOCATIONS_PER_WORK_UNIT: u64 = 512;
/// Exponents of the block sizes, which are powers of two from 16 bytes to 512 KiB.
const SIZE_POWERS: std::ops::Range<u32> = 4..20;
const PAGE_BYTES: usize = 4096;

struct AllocationChurn {
    allocations: u64,
}

impl Workload for AllocationChurn {
    fn prepare(&self) -> Box<dyn FnOnce() + '_> {
        let mut allocations = Allocations::new();
        Box::new(move || allocations.churn(self.allocations))
    }
}

struct Allocations {
    slots: Vec<Vec<u8>>,
    random: fastrand::Rng,
}

impl Allocations {
    /// Creates a worker's blocks, all empty. The seed is fixed, so every worker allocates the same
    /// sizes in the same order.
    fn new() -> Self {
        Self { slots: vec![Vec::new(); LIVE_ALLOCATIONS], random: fastrand::Rng::with_seed(7) }
    }

    fn churn(&mut self, count: u64) {
        for _ in 0..count {
            let slot = self.random.usize(..LIVE_ALLOCATIONS);
            let size = 1_usize << self.random.u32(SIZE_POWERS);
            self.slots[slot] = Vec::new(); // free the old block first
            let mut block = Vec::with_capacity(size);
            block.resize(1, 1);
            for page in block.spare_capacity_mut().iter_mut().step_by(PAGE_BYTES) {
                page.write(1);
            }
            self.slots[slot] = black_box(block);
        }
    }
}
