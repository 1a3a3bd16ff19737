//! `saturation/allocation`: work of the allocator and of the kernel's memory management.

use std::hint::black_box;

use contend_record::lab::View;

use super::workers::Workload;
use super::{about, row, saturation};
use crate::engine::experiment::Experiment;

/// The definition of `saturation/allocation`.
pub const EXPERIMENT: Experiment = row(
    "saturation/allocation",
    "allocating memory and giving it back: threads share an address space, processes do not",
    about!(
        "Workers allocate pieces of 16 bytes to 512 KiB with the C library's allocator, write to each of \
         their pages and give them back in another order. Large pieces come from the kernel and go back \
         to it: then the pages have to be put into the address space and taken out again, which the \
         threads of a process do under locks of that address space, and of which every other CPU that \
         runs a thread of it has to hear. One `work` is 512 allocations."
    ),
    View::Saturation,
    |parameters| {
        Ok(saturation(parameters, |work, _| AllocationChurn {
            allocations: work * ALLOCATIONS_PER_WORK_UNIT,
        }))
    },
);

/// Allocations that are there at the same time.
const LIVE_ALLOCATIONS: usize = 64;
/// Allocations for each unit of work.
const ALLOCATIONS_PER_WORK_UNIT: u64 = 512;
/// The smallest and largest piece, as powers of two.
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
    /// Every worker allocates the same sizes in the same order.
    fn new() -> Self {
        Self { slots: vec![Vec::new(); LIVE_ALLOCATIONS], random: fastrand::Rng::with_seed(7) }
    }

    fn churn(&mut self, count: u64) {
        for _ in 0..count {
            let slot = self.random.usize(..LIVE_ALLOCATIONS);
            let size = 1_usize << self.random.u32(SIZE_POWERS);
            self.slots[slot] = Vec::new(); // the old piece goes before the new one comes
            let mut piece = Vec::with_capacity(size);
            piece.resize(1, 1);
            for page in piece.spare_capacity_mut().iter_mut().step_by(PAGE_BYTES) {
                page.write(1);
            }
            self.slots[slot] = black_box(piece);
        }
    }
}
