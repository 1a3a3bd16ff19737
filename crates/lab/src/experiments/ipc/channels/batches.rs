//! Messages that go through a ring many at a time.

use std::io;

use contend_sys::mapping::{Backing, Mapping};
use contend_sys::ring::{Receiver, Sender, ring};

use super::ring::{SPIN_THEN_SLEEP, calls, shape};
use super::{ANY, End, Mechanism, Terms, Waiting, always_available};
use crate::support::calls::Tally;

/// What a sender does that has many messages at once: it hands them over a page full at a time.
pub const MECHANISM: Mechanism = Mechanism {
    name: "ring-batches",
    summary: "a ring in shared memory, messages handed over many at a time, then slept on",
    waiting: Waiting::SpinningFirst,
    most: ANY,
    between_threads: true,
    unavailable: always_available,
    make: |terms| {
        // Where messages are long, one at a time.
        let batch = (PAGE / terms.bytes).max(1);
        let shape = shape(COUNT + batch * terms.bytes);
        let make = || {
            let memory = Mapping::new(Backing::Shared, shape.length())?;
            ring(memory, shape, SPIN_THEN_SLEEP)
        };
        let (to_sub, to_main) = (make()?, make()?);
        let end = |to, from| {
            let (terms, filled, taken) = (terms.clone(), 0, 0);
            Box::new(Batches { terms, to, from, batch, filled, taken }) as Box<dyn End>
        };
        Ok([end(to_sub.0, to_main.1), end(to_main.0, to_sub.1)])
    },
};

const PAGE: usize = 4096;
/// Before the messages: how many they are.
const COUNT: usize = 8;

struct Batches {
    terms: Terms,
    to: Sender,
    from: Receiver,
    /// Messages of a batch, at most.
    batch: usize,
    /// Messages written into the next one.
    filled: usize,
    /// Messages taken of the last one.
    taken: usize,
}

impl Batches {
    /// Messages in the last batch.
    fn count(&self) -> usize {
        let count = self.from.last().first_chunk::<COUNT>();
        count.map_or(0, |count| usize::from_le_bytes(*count))
    }
}

impl End for Batches {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        let batch = self.to.draft(&|| self.terms.link.is_broken())?;
        Ok(&mut batch[COUNT + self.filled * self.terms.bytes..][..self.terms.bytes])
    }

    fn send(&mut self) -> io::Result<()> {
        self.filled += 1;
        if self.filled == self.batch { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.filled > 0 {
            let batch = self.to.draft(&|| self.terms.link.is_broken())?;
            batch[..COUNT].copy_from_slice(&self.filled.to_le_bytes());
            self.to.send();
            self.filled = 0;
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.count() {
            self.from.receive(&|| self.terms.link.is_broken())?;
            self.taken = 0;
        }
        let message = self.taken;
        self.taken += 1;
        Ok(&self.from.last()[COUNT + message * self.terms.bytes..][..self.terms.bytes])
    }

    fn calls(&self) -> Tally {
        calls(&self.to, &self.from)
    }
}
