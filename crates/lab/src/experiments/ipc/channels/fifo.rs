//! Channels of two named pipes, one for each direction.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, openat, unlinkat};

use super::stream::duplex_streams;
use super::{Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available};
use crate::support::unnamed_file::unique_path_in;

/// Named pipes, as `mkfifo(3)` creates them.
pub const MECHANISM: Mechanism = Mechanism {
    name: "fifo",
    summary: "named pipe (mkfifo)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| Ok(duplex_streams(&config, fifo()?, fifo()?)),
};

/// Creates a named pipe, opens both ends and removes the name. Returns the end to read from and the
/// one to write to.
fn fifo() -> io::Result<(OwnedFd, OwnedFd)> {
    let path = unique_path_in(&std::env::temp_dir());
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let open = |flags| openat(CWD, &path, flags | OFlags::CLOEXEC, Mode::empty());
    // Opening one end blocks until the other end is open, except with `O_NONBLOCK`.
    let ends = open(OFlags::RDONLY | OFlags::NONBLOCK)
        .and_then(|read| open(OFlags::WRONLY).map(|write| (read, write)));
    unlinkat(CWD, &path, rustix::fs::AtFlags::empty())?;
    let (read, write) = ends?;
    fcntl_setfl(&read, OFlags::empty())?;
    Ok((read, write))
}
