//! Pipes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use super::stream::duplex_streams;
use super::{
    ChannelConfig, Endpoints, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available, sysctl,
};

/// As shells make them: with room for 64 KiB.
pub const PIPE: Mechanism = Mechanism {
    name: "pipe",
    summary: "a pipe, with room for 64 KiB",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| ends(&config, None),
};

/// As large as any user may have them by default.
pub const LARGE: Mechanism = Mechanism {
    name: "pipe-1m",
    summary: "a pipe with room for 1 MiB (F_SETPIPE_SZ)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |_| {
        let most = sysctl("fs/pipe-max-size").filter(|&most| most < LARGE_PIPE_BYTES)?;
        Some(format!("fs.pipe-max-size allows pipes of {most} bytes at most"))
    },
    make: |config| ends(&config, Some(LARGE_PIPE_BYTES)),
};

const LARGE_PIPE_BYTES: usize = 1 << 20;

fn ends(config: &ChannelConfig, capacity: Option<usize>) -> io::Result<Endpoints> {
    Ok(duplex_streams(config, pipe(capacity)?, pipe(capacity)?))
}

/// A pipe with so much room, if that is said.
fn pipe(capacity: Option<usize>) -> io::Result<(OwnedFd, OwnedFd)> {
    let pipe = pipe_with(PipeFlags::CLOEXEC)?;
    if let Some(capacity) = capacity {
        fcntl_setpipe_size(&pipe.1, capacity)?;
        if fcntl_getpipe_size(&pipe.1)? < capacity {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
    }
    Ok(pipe)
}
