//! A file that one side writes and the other one reads, again and again.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::{pread, pwrite};

use super::{ANY, End, Mechanism, Terms, Waiting, always_available, both_ways};
use crate::support::calls::{Call, Tally};
use crate::support::files::unnamed_in;

/// What programs do that have nothing but files: a file is a ring of messages, and each side looks
/// again and again at how far the other one is.
pub const MECHANISM: Mechanism = Mechanism {
    name: "file",
    summary: "a file, written and read (pwrite, pread), looked at again and again (sched_yield)",
    waiting: Waiting::Yielding,
    most: ANY,
    between_threads: true,
    unavailable: always_available,
    make: |terms| {
        let file = || unnamed_in(&std::env::temp_dir());
        let end = |from: &Arc<File>, to: &Arc<File>| -> Box<dyn End> {
            Box::new(Files {
                terms: terms.clone(),
                from: Arc::clone(from),
                to: Arc::clone(to),
                sent: 0,
                freed: 0,
                seen: 0,
                received: 0,
                draft: vec![0; terms.bytes],
                message: vec![0; terms.bytes],
                tally: Tally::default(),
            })
        };
        both_ways(file, end)
    },
};

/// How many messages were sent: 8 bytes at the beginning.
const SENT: u64 = 0;
/// How many the sender need not keep any more.
const FREED: u64 = 4096;
/// The messages.
const SLOTS: u64 = 8192;
/// How many messages there is room for.
const ROOM: u64 = 16;

struct Files {
    terms: Terms,
    from: Arc<File>,
    to: Arc<File>,
    /// Messages sent, and as many as were freed when that was looked at last.
    sent: u64,
    freed: u64,
    /// Messages that were there when that was looked at last, and those received.
    seen: u64,
    received: u64,
    draft: Vec<u8>,
    message: Vec<u8>,
    tally: Tally,
}

impl Files {
    fn slot(&self, message: u64) -> u64 {
        SLOTS + message % ROOM * self.terms.bytes.next_multiple_of(64) as u64
    }

    /// Looks at a number until it is above this.
    fn wait(&mut self, sender: bool, above: u64) -> io::Result<u64> {
        let (file, place) = if sender { (&self.to, FREED) } else { (&self.from, SENT) };
        loop {
            let mut number = [0; 8];
            let read = || Ok(pread(file, &mut number, place)?);
            self.terms.patiently(&mut self.tally, Call::Pread, read)?;
            let number = u64::from_ne_bytes(number);
            if number > above {
                return Ok(number);
            }
            if self.terms.link.is_broken() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.tally.add(Call::SchedYield);
            rustix::thread::sched_yield();
        }
    }

    fn tell(&mut self, sender: bool, number: u64) -> io::Result<()> {
        let (file, place) = if sender { (&self.to, SENT) } else { (&self.from, FREED) };
        let write = || Ok(pwrite(file, &number.to_ne_bytes(), place)?);
        self.terms.patiently(&mut self.tally, Call::Pwrite, write).map(drop)
    }
}

impl End for Files {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        if self.sent - self.freed == ROOM {
            self.freed = self.wait(true, self.sent - ROOM)?;
        }
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        let (mut place, mut rest) = (self.slot(self.sent), self.draft.as_slice());
        while !rest.is_empty() {
            let write = || Ok(pwrite(&self.to, rest, place)?);
            let bytes = self.terms.patiently(&mut self.tally, Call::Pwrite, write)?;
            rest = &rest[bytes..];
            place += bytes as u64;
        }
        self.sent += 1;
        self.tell(true, self.sent)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        if self.received > 0 && self.received.is_multiple_of(ROOM / 4) {
            self.tell(false, self.received)?;
        }
        if self.seen == self.received {
            self.seen = self.wait(false, self.received)?;
        }
        let (mut place, mut at) = (self.slot(self.received), 0);
        while at < self.message.len() {
            let rest = &mut self.message[at..];
            let read = || Ok(pread(&self.from, &mut *rest, place)?);
            match self.terms.patiently(&mut self.tally, Call::Pread, read)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => (at, place) = (at + bytes, place + bytes as u64),
            }
        }
        self.received += 1;
        Ok(&self.message)
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
