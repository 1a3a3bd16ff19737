//! Channels of two pipes that are read and written through `io_uring`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use contend_sys::uring::{HERE, Operation, Uring};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy};
use crate::support::syscalls::{Call, Tally};

/// Pipes with one submission and one system call for each read or write.
pub const MECHANISM: Mechanism = Mechanism {
    name: "io-uring",
    summary: "pipe, read and written through io_uring, one submission at a time",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |_| {
        let error = Uring::new(1, 1).err()?;
        let disabled = super::sysctl("kernel/io_uring_disabled").filter(|&disabled| disabled > 0);
        Some(match disabled {
            Some(level) => format!("io_uring is disabled (kernel.io_uring_disabled = {level})"),
            None => format!("the kernel refuses io_uring: {error}"),
        })
    },
    make: |config| {
        let (to_sub, to_main) = (pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?);
        let endpoint = |from, to| {
            let (config, tally) = (config.clone(), Tally::default());
            Box::new(UringEndpoint { config, from, to, uring: None, tally }) as Box<dyn Endpoint>
        };
        Ok([endpoint(to_main.0, to_sub.1), endpoint(to_sub.0, to_main.1)])
    },
};

/// Index of the buffer for messages to send.
const SEND_BUFFER: usize = 0;
/// Index of the buffer for received messages.
const RECEIVE_BUFFER: usize = 1;

struct UringEndpoint {
    config: ChannelConfig,
    from: OwnedFd,
    to: OwnedFd,
    /// The `io_uring` and its buffers; `None` until the endpoint is bound to a thread.
    uring: Option<Uring>,
    tally: Tally,
}

impl UringEndpoint {
    fn uring(&mut self) -> io::Result<&mut Uring> {
        self.uring.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Reads a whole message into the buffer with index `buffer`, or writes one from it, in as many
    /// operations as necessary.
    fn transfer(&mut self, operation: Operation, buffer: usize) -> io::Result<()> {
        let Self { config, from, to, uring: Some(uring), tally } = self else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let file = if operation == Operation::Read { from.as_fd() } else { to.as_fd() };
        let mut done = 0;
        while done < config.bytes {
            uring.submit(operation, file, buffer, [done, config.bytes], HERE);
            let bytes = loop {
                config.retry_interrupted(tally, Call::IoUringEnter, || uring.enter())?;
                if let Some((_, bytes)) = uring.done() {
                    break bytes?;
                }
            };
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            done += bytes;
        }
        Ok(())
    }
}

impl Endpoint for UringEndpoint {
    fn bind_to_thread(&mut self) -> io::Result<()> {
        self.uring = Some(Uring::new(2, self.config.bytes)?);
        Ok(())
    }

    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(self.uring()?.buffer(SEND_BUFFER))
    }

    fn send(&mut self) -> io::Result<()> {
        self.transfer(Operation::Write, SEND_BUFFER)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        self.transfer(Operation::Read, RECEIVE_BUFFER)?;
        Ok(self.uring()?.buffer(RECEIVE_BUFFER))
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
