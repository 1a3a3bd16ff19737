//! Channels of two pipes to which the sender lends its pages (`vmsplice(2)`).

use std::io;
use std::os::fd::OwnedFd;

use contend_sys::splice::LentBuffers;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use super::stream::read_whole;
use super::{ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available};
use crate::support::syscalls::{Call, Tally};

/// A pipe that refers to the sender's pages, so bytes are copied once instead of twice.
pub const MECHANISM: Mechanism = Mechanism {
    name: "vmsplice",
    summary: "pipe that refers to the sender's pages (vmsplice), then read",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        let (to_sub, to_main) = (pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?);
        let main = VmspliceEndpoint::new(&config, to_main.0, to_sub.1)?;
        let sub = VmspliceEndpoint::new(&config, to_sub.0, to_main.1)?;
        Ok([Box::new(main), Box::new(sub)])
    },
};

struct VmspliceEndpoint {
    config: ChannelConfig,
    from: OwnedFd,
    to: OwnedFd,
    buffers: LentBuffers,
    message: Vec<u8>,
    tally: Tally,
}

impl VmspliceEndpoint {
    fn new(config: &ChannelConfig, from: OwnedFd, to: OwnedFd) -> io::Result<Self> {
        let buffers = LentBuffers::new(config.bytes, fcntl_getpipe_size(&to)?)?;
        let message = vec![0; config.bytes];
        Ok(Self { config: config.clone(), from, to, buffers, message, tally: Tally::default() })
    }
}

impl Endpoint for VmspliceEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(self.buffers.draft())
    }

    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.config.bytes {
            let lend = || self.buffers.lend(&self.to, sent);
            sent += self.config.retry_interrupted(&mut self.tally, Call::Vmsplice, lend)?;
        }
        self.buffers.advance();
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        read_whole(&self.config, &mut self.tally, &self.from, &mut self.message)?;
        Ok(&self.message)
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
