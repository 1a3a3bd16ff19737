//! Channels of two files, one for each direction, which both sides read and write.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::{pread, pwrite};

use super::{
    ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available, duplex,
};
use crate::support::syscalls::{Call, Tally};
use crate::support::unnamed_file::unnamed_in;

/// A channel for programs that share only a file system: for each direction, a file is a ring of
/// messages, and each side polls the counter that the other one writes into the file.
pub const MECHANISM: Mechanism = Mechanism {
    name: "file",
    summary: "ring in a file (pwrite, pread), polled with sched_yield",
    waiting: WaitStrategy::Yield,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        let file = || unnamed_in(&std::env::temp_dir());
        let endpoint = |from: &Arc<File>, to: &Arc<File>| -> Box<dyn Endpoint> {
            Box::new(FileEndpoint {
                config: config.clone(),
                from: Arc::clone(from),
                to: Arc::clone(to),
                sent: 0,
                freed: 0,
                available: 0,
                received: 0,
                draft: vec![0; config.bytes],
                message: vec![0; config.bytes],
                tally: Tally::default(),
            })
        };
        duplex(file, endpoint)
    },
};

/// Offset in bytes of the 8-byte count of messages sent.
const SENT_OFFSET: u64 = 0;
/// Offset in bytes of the 8-byte count of messages that the receiver has freed.
const FREED_OFFSET: u64 = 4096;
/// Offset of the first slot, in bytes.
const SLOTS_OFFSET: u64 = 8192;
/// Capacity of the ring, in messages.
const SLOT_COUNT: u64 = 16;

struct FileEndpoint {
    config: ChannelConfig,
    from: Arc<File>,
    to: Arc<File>,
    /// Number of messages sent to the partner.
    sent: u64,
    /// Number of messages sent to the partner that it had freed when last polled.
    freed: u64,
    /// Number of messages that the partner had sent when last polled.
    available: u64,
    /// Number of messages received from the partner.
    received: u64,
    draft: Vec<u8>,
    message: Vec<u8>,
    tally: Tally,
}

impl FileEndpoint {
    fn slot_offset(&self, message: u64) -> u64 {
        SLOTS_OFFSET + message % SLOT_COUNT * self.config.bytes.next_multiple_of(64) as u64
    }

    /// Polls one of the partner's counters until it exceeds `above`, and returns it: the number of
    /// messages that the partner has freed (if `sender`) or sent (if not). Returns `BrokenPipe` if
    /// the partner has exited.
    fn wait(&mut self, sender: bool, above: u64) -> io::Result<u64> {
        let (file, offset) =
            if sender { (&self.to, FREED_OFFSET) } else { (&self.from, SENT_OFFSET) };
        loop {
            let mut number = [0; 8];
            let read = || Ok(pread(file, &mut number, offset)?);
            self.config.retry_interrupted(&mut self.tally, Call::Pread, read)?;
            let number = u64::from_ne_bytes(number);
            if number > above {
                return Ok(number);
            }
            if self.config.link.is_broken() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.tally.add(Call::SchedYield);
            rustix::thread::sched_yield();
        }
    }

    /// Writes one of this side's counters: the number of messages that it has sent (if `sender`) or
    /// freed (if not).
    fn publish(&mut self, sender: bool, number: u64) -> io::Result<()> {
        let (file, offset) =
            if sender { (&self.to, SENT_OFFSET) } else { (&self.from, FREED_OFFSET) };
        let write = || Ok(pwrite(file, &number.to_ne_bytes(), offset)?);
        self.config.retry_interrupted(&mut self.tally, Call::Pwrite, write).map(drop)
    }
}

impl Endpoint for FileEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        if self.sent - self.freed == SLOT_COUNT {
            self.freed = self.wait(true, self.sent - SLOT_COUNT)?;
        }
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        let (mut offset, mut rest) = (self.slot_offset(self.sent), self.draft.as_slice());
        while !rest.is_empty() {
            let write = || Ok(pwrite(&self.to, rest, offset)?);
            let bytes = self.config.retry_interrupted(&mut self.tally, Call::Pwrite, write)?;
            rest = &rest[bytes..];
            offset += bytes as u64;
        }
        self.sent += 1;
        self.publish(true, self.sent)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        if self.received > 0 && self.received.is_multiple_of(SLOT_COUNT / 4) {
            self.publish(false, self.received)?;
        }
        if self.available == self.received {
            self.available = self.wait(false, self.received)?;
        }
        let (mut offset, mut at) = (self.slot_offset(self.received), 0);
        while at < self.message.len() {
            let rest = &mut self.message[at..];
            let read = || Ok(pread(&self.from, &mut *rest, offset)?);
            match self.config.retry_interrupted(&mut self.tally, Call::Pread, read)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => (at, offset) = (at + bytes, offset + bytes as u64),
            }
        }
        self.received += 1;
        Ok(&self.message)
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
