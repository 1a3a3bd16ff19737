//! Channels of two pipes, one for each direction.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use super::stream::duplex_streams;
use super::{
    ChannelConfig, Endpoints, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available, sysctl,
};

/// Pipes with the default capacity, as in shell pipelines.
pub const PIPE: Mechanism = Mechanism {
    name: "pipe",
    summary: "pipe with a capacity of 64 KiB",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| endpoints(&config, None),
};

/// Pipes with a capacity of 1 MiB, the largest that any user may set unless `fs.pipe-max-size` was
/// changed.
pub const LARGE: Mechanism = Mechanism {
    name: "pipe-1m",
    summary: "pipe with a capacity of 1 MiB (F_SETPIPE_SZ)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |_| {
        let max = sysctl("fs/pipe-max-size").filter(|&max| max < LARGE_PIPE_BYTES)?;
        Some(format!("fs.pipe-max-size limits pipes to {max} bytes"))
    },
    make: |config| endpoints(&config, Some(LARGE_PIPE_BYTES)),
};

const LARGE_PIPE_BYTES: usize = 1 << 20;

fn endpoints(config: &ChannelConfig, capacity: Option<usize>) -> io::Result<Endpoints> {
    Ok(duplex_streams(config, pipe(capacity)?, pipe(capacity)?))
}

/// Creates a pipe with at least the given capacity in bytes, or with the default one if `None`.
/// Returns the end to read from and the one to write to.
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
