//! Channels of two cells in shared memory, each of which holds one byte or is empty.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};

use super::{ChannelConfig, Endpoint, Mechanism, WaitStrategy, always_available, duplex};
use crate::support::syscalls::{Call, Tally};

/// A cell with the minimal correct protocol: the sender waits until the cell is empty, the receiver
/// until it is full.
pub const MECHANISM: Mechanism = Mechanism {
    name: "cell",
    summary: "one byte in shared memory with a full/empty flag (spin, with sched_yield)",
    waiting: WaitStrategy::Yield,
    max_message_bytes: 1,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        let cell = || Shared::new(Line(AtomicU32::new(EMPTY)));
        let endpoint = |from: &Cell, to: &Cell| -> Box<dyn Endpoint> {
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            let (config, tally) = (config.clone(), Tally::default());
            Box::new(CellEndpoint { config, from, to, draft: [0], message: [0], tally })
        };
        duplex(cell, endpoint)
    },
};

/// A cell: [`EMPTY`], or a byte with the flag [`FULL`].
type Cell = Arc<Shared<Line<AtomicU32>>>;
const EMPTY: u32 = 0;
const FULL: u32 = 1 << 8;

/// Number of polls before each yield of the CPU.
const SPINS_BEFORE_YIELD: u32 = 100;

struct CellEndpoint {
    config: ChannelConfig,
    from: Cell,
    to: Cell,
    draft: [u8; 1],
    message: [u8; 1],
    tally: Tally,
}

/// Polls until the cell is empty (if `until_empty`) or full (if not), and returns its value.
/// Returns `BrokenPipe` if the partner has exited.
fn wait(
    config: &ChannelConfig,
    tally: &mut Tally,
    cell: &AtomicU32,
    until_empty: bool,
) -> io::Result<u32> {
    loop {
        for _ in 0..SPINS_BEFORE_YIELD {
            let byte = cell.load(Ordering::Acquire);
            if (byte == EMPTY) == until_empty {
                return Ok(byte);
            }
            std::hint::spin_loop();
        }
        if config.link.is_broken() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        tally.add(Call::SchedYield);
        rustix::thread::sched_yield();
    }
}

impl Endpoint for CellEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        wait(&self.config, &mut self.tally, &self.to, true)?;
        self.to.store(FULL | u32::from(self.draft[0]), Ordering::Release);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let byte = wait(&self.config, &mut self.tally, &self.from, false)?;
        self.from.store(EMPTY, Ordering::Release);
        self.message = [byte.to_le_bytes()[0]];
        Ok(&self.message)
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
