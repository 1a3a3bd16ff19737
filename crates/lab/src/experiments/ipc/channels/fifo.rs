//! Pipes with a name in a file system.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, openat, unlinkat};

use super::stream::duplex_streams;
use super::{Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available};
use crate::support::files::name_in;

/// What `mkfifo` makes.
pub const MECHANISM: Mechanism = Mechanism {
    name: "fifo",
    summary: "a pipe with a name (mkfifo)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| Ok(duplex_streams(&config, fifo()?, fifo()?)),
};

/// One whose ends are open, and whose name is gone.
fn fifo() -> io::Result<(OwnedFd, OwnedFd)> {
    let path = name_in(&std::env::temp_dir());
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let open = |flags| openat(CWD, &path, flags | OFlags::CLOEXEC, Mode::empty());
    // To open the one end waits for somebody at the other one.
    let ends = open(OFlags::RDONLY | OFlags::NONBLOCK)
        .and_then(|read| open(OFlags::WRONLY).map(|write| (read, write)));
    unlinkat(CWD, &path, rustix::fs::AtFlags::empty())?;
    let (read, write) = ends?;
    fcntl_setfl(&read, OFlags::empty())?;
    Ok((read, write))
}
