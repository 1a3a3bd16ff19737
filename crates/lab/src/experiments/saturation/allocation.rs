//! `saturation/allocation`: work of the allocator and of the kernel's memory management.

use std::hint::black_box;

use contend_record::lab::View;

use super::crew::Job;
use super::{about, row, saturation};
use crate::engine::experiment::Experiment;

/// The row of the table.
pub const EXPERIMENT: Experiment = row(
    "saturation/allocation",
    "allocating memory and giving it back: threads share an address space, processes do not",
    about!(
        "Workers allocate pieces of 16 bytes to 512 KiB with the C library's allocator, write to each of \
         their pages and give them back in another order. Large pieces come from the kernel and go back \
         to it: then the pages have to be put into the address space and taken out again, which the \
         threads of a process do under locks of that address space, and of which every other CPU that \
         runs a thread of it has to hear. One `work` is 512 pieces."
    ),
    View::Saturation,
    |parameters| Ok(saturation(parameters, |work, _| Churn { pieces: work * PIECES })),
);

/// Pieces that are there at the same time.
const SLOTS: usize = 64;
/// Pieces for each unit of work.
const PIECES: u64 = 512;
/// The smallest and largest piece, as powers of two.
const SIZES: std::ops::Range<u32> = 4..20;
const PAGE: usize = 4096;

struct Churn {
    pieces: u64,
}

impl Job for Churn {
    fn prepare(&self) -> Box<dyn FnOnce() + '_> {
        let mut pieces = Pieces::new();
        Box::new(move || pieces.churn(self.pieces))
    }
}

struct Pieces {
    slots: Vec<Vec<u8>>,
    random: fastrand::Rng,
}

impl Pieces {
    /// Every worker allocates the same sizes in the same order.
    fn new() -> Self {
        Self { slots: vec![Vec::new(); SLOTS], random: fastrand::Rng::with_seed(7) }
    }

    fn churn(&mut self, count: u64) {
        for _ in 0..count {
            let slot = self.random.usize(..SLOTS);
            let size = 1_usize << self.random.u32(SIZES);
            self.slots[slot] = Vec::new(); // the old piece goes before the new one comes
            let mut piece = Vec::with_capacity(size);
            piece.resize(1, 1);
            for page in piece.spare_capacity_mut().iter_mut().step_by(PAGE) {
                page.write(1);
            }
            self.slots[slot] = black_box(piece);
        }
    }
}
