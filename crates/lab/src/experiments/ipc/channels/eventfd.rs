//! Channels of two eventfd counters, one for each direction. The value of a counter carries up to 7
//! bytes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use super::{ChannelConfig, Endpoint, Mechanism, WaitStrategy, always_available, duplex};
use crate::support::syscalls::{Call, Tally};

/// An eventfd. The sender adds a number that is more than half of the counter's capacity and has
/// the message in its lower bytes. So a second write blocks until the receiver has read the first
/// number.
pub const MECHANISM: Mechanism = Mechanism {
    name: "eventfd",
    summary: "eventfd whose value is the message, one at a time",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: 7,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        let counter = || Ok(eventfd(0, EventfdFlags::CLOEXEC)?);
        let endpoint = |from: &Arc<OwnedFd>, to: &Arc<OwnedFd>| -> Box<dyn Endpoint> {
            Box::new(EventfdEndpoint {
                config: config.clone(),
                from: Arc::clone(from),
                to: Arc::clone(to),
                draft: HALF_CAPACITY.to_le_bytes(),
                message: [0; 8],
                tally: Tally::default(),
            })
        };
        duplex(counter, endpoint)
    },
};

/// Number that carries the message 0: a little more than half of a counter's capacity. Other
/// messages replace its lower bytes.
const HALF_CAPACITY: u64 = 1 << 63;

struct EventfdEndpoint {
    config: ChannelConfig,
    from: Arc<OwnedFd>,
    to: Arc<OwnedFd>,
    draft: [u8; 8],
    message: [u8; 8],
    tally: Tally,
}

impl Endpoint for EventfdEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(&mut self.draft[..self.config.bytes])
    }

    fn send(&mut self) -> io::Result<()> {
        let number = u64::from_le_bytes(self.draft).to_ne_bytes();
        let write = || Ok(rustix::io::write(&self.to, &number)?);
        self.config.retry_interrupted(&mut self.tally, Call::Write, write).map(drop)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let mut number = [0; 8];
        let read = || Ok(rustix::io::read(&self.from, &mut number)?);
        self.config.retry_interrupted(&mut self.tally, Call::Read, read)?;
        self.message = u64::from_ne_bytes(number).to_le_bytes();
        Ok(&self.message[..self.config.bytes])
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
