//! A single byte in shared memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};

use super::{End, Mechanism, Terms, Waiting, always_available, both_ways};
use crate::support::calls::{Call, Tally};

/// The least that works: the sender waits until the byte has been taken, the receiver until there is one.
pub const MECHANISM: Mechanism = Mechanism {
    name: "cell",
    summary: "one byte in shared memory, with a mark that it is there (handshake), looked at again and \
              again (sched_yield)",
    waiting: Waiting::Yielding,
    most: 1,
    between_threads: true,
    unavailable: always_available,
    make: |terms| {
        let cell = || Shared::new(Line(AtomicU32::new(EMPTY)));
        let end = |from: &Cell, to: &Cell| -> Box<dyn End> {
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            let (terms, tally) = (terms.clone(), Tally::default());
            Box::new(Cells { terms, from, to, draft: [0], message: [0], tally })
        };
        both_ways(cell, end)
    },
};

/// A byte with [`FULL`], or empty.
type Cell = Arc<Shared<Line<AtomicU32>>>;
const EMPTY: u32 = 0;
const FULL: u32 = 1 << 8;

/// Looks before the CPU is given to others.
const LOOKS: u32 = 100;

struct Cells {
    terms: Terms,
    from: Cell,
    to: Cell,
    draft: [u8; 1],
    message: [u8; 1],
    tally: Tally,
}

/// Looks until it is empty, or is not.
fn wait(terms: &Terms, tally: &mut Tally, cell: &AtomicU32, empty: bool) -> io::Result<u32> {
    loop {
        for _ in 0..LOOKS {
            let byte = cell.load(Ordering::Acquire);
            if (byte == EMPTY) == empty {
                return Ok(byte);
            }
            std::hint::spin_loop();
        }
        if terms.link.is_broken() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        tally.add(Call::SchedYield);
        rustix::thread::sched_yield();
    }
}

impl End for Cells {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        wait(&self.terms, &mut self.tally, &self.to, true)?;
        self.to.store(FULL | u32::from(self.draft[0]), Ordering::Release);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let byte = wait(&self.terms, &mut self.tally, &self.from, false)?;
        self.from.store(EMPTY, Ordering::Release);
        self.message = [byte.to_le_bytes()[0]];
        Ok(&self.message)
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
