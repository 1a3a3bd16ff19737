//! Channels over file descriptors with `read(2)` and `write(2)`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{ChannelConfig, Endpoint};
use crate::support::syscalls::{Call, Tally};

/// An endpoint with one descriptor to read from and one to write to, which may be the same.
#[derive(Debug)]
pub struct StreamEndpoint<D> {
    config: ChannelConfig,
    from: D,
    to: D,
    draft: Vec<u8>,
    message: Vec<u8>,
    tally: Tally,
}

impl<D: AsFd> StreamEndpoint<D> {
    /// Creates an endpoint that receives from `from` and sends to `to`.
    pub fn new(config: &ChannelConfig, from: D, to: D) -> Self {
        let buffer = || vec![0; config.bytes];
        let (draft, message) = (buffer(), buffer());
        Self { config: config.clone(), from, to, draft, message, tally: Tally::default() }
    }
}

/// Reads bytes until they fill `message`, in as many calls as necessary.
///
/// # Errors
/// Returns the error of `read(2)`, or `UnexpectedEof` or `BrokenPipe` if the partner has exited.
pub fn read_whole(
    config: &ChannelConfig,
    tally: &mut Tally,
    from: impl AsFd,
    message: &mut [u8],
) -> io::Result<()> {
    let mut received = 0;
    while received < message.len() {
        let rest = &mut message[received..];
        let read = || Ok(rustix::io::read(&from, &mut *rest)?);
        received += match config.retry_interrupted(tally, Call::Read, read)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => bytes,
        };
    }
    Ok(())
}

/// Builds both endpoints of a channel from two one-way channels, `to_sub` and `to_main`. Each is a
/// pair of the descriptor to read from and the one to write to.
pub fn duplex_streams(
    config: &ChannelConfig,
    to_sub: (OwnedFd, OwnedFd),
    to_main: (OwnedFd, OwnedFd),
) -> super::Endpoints {
    let main = StreamEndpoint::new(config, to_main.0, to_sub.1);
    let sub = StreamEndpoint::new(config, to_sub.0, to_main.1);
    [Box::new(main), Box::new(sub)]
}

impl<D: AsFd + Send> Endpoint for StreamEndpoint<D> {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.draft.len() {
            let rest = &self.draft[sent..];
            let write = || Ok(rustix::io::write(&self.to, rest)?);
            sent += self.config.retry_interrupted(&mut self.tally, Call::Write, write)?;
        }
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
