//! Channels of two rings in shared memory, on which senders hand over many messages at a time.

use std::io;

use contend_sys::mapping::{Backing, Mapping};
use contend_sys::ring::{Receiver, Sender, ring};

use super::ring::{SPIN_THEN_SLEEP, ring_calls, shape};
use super::{ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available};
use crate::support::syscalls::Tally;

/// A ring in shared memory on which the sender hands over batches of messages. A batch is as many
/// messages as fit into a page (at least one), or fewer after a flush.
pub const MECHANISM: Mechanism = Mechanism {
    name: "ring-batches",
    summary: "ring in shared memory, handed over a page of messages at a time (spin, then futex)",
    waiting: WaitStrategy::SpinThenSleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        // Messages longer than half a page are handed over one at a time.
        let batch = (PAGE_BYTES / config.bytes).max(1);
        let shape = shape(COUNT_BYTES + batch * config.bytes);
        let make = || {
            let memory = Mapping::new(Backing::Shared, shape.length())?;
            ring(memory, shape, SPIN_THEN_SLEEP)
        };
        let (to_sub, to_main) = (make()?, make()?);
        let endpoint = |to, from| {
            let (config, filled, consumed) = (config.clone(), 0, 0);
            Box::new(BatchEndpoint { config, to, from, batch, filled, consumed })
                as Box<dyn Endpoint>
        };
        Ok([endpoint(to_sub.0, to_main.1), endpoint(to_main.0, to_sub.1)])
    },
};

const PAGE_BYTES: usize = 4096;
/// Length of the message count at the start of a batch, in bytes.
const COUNT_BYTES: usize = 8;

struct BatchEndpoint {
    config: ChannelConfig,
    to: Sender,
    from: Receiver,
    /// Maximum number of messages in a batch.
    batch: usize,
    /// Number of messages written into the next batch.
    filled: usize,
    /// Number of messages consumed from the last batch received.
    consumed: usize,
}

impl BatchEndpoint {
    /// Returns the number of messages in the last batch received, or 0 before the first.
    fn count(&self) -> usize {
        let count = self.from.last().first_chunk::<COUNT_BYTES>();
        count.map_or(0, |count| usize::from_le_bytes(*count))
    }
}

impl Endpoint for BatchEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        let batch = self.to.draft(&|| self.config.link.is_broken())?;
        Ok(&mut batch[COUNT_BYTES + self.filled * self.config.bytes..][..self.config.bytes])
    }

    fn send(&mut self) -> io::Result<()> {
        self.filled += 1;
        if self.filled == self.batch { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.filled > 0 {
            let batch = self.to.draft(&|| self.config.link.is_broken())?;
            batch[..COUNT_BYTES].copy_from_slice(&self.filled.to_le_bytes());
            self.to.send();
            self.filled = 0;
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        if self.consumed == self.count() {
            self.from.receive(&|| self.config.link.is_broken())?;
            self.consumed = 0;
        }
        let message = self.consumed;
        self.consumed += 1;
        Ok(&self.from.last()[COUNT_BYTES + message * self.config.bytes..][..self.config.bytes])
    }

    fn calls(&self) -> Tally {
        ring_calls(&self.to, &self.from)
    }
}
