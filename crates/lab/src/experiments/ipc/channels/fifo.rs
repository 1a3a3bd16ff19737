//! Pipes with a name in a file system.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, openat, unlinkat};

use super::stream::crossed;
use super::{ANY, Mechanism, Waiting, always_available};

/// What `mkfifo` makes.
pub const MECHANISM: Mechanism = Mechanism {
    name: "fifo",
    summary: "a pipe with a name (mkfifo)",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: always_available,
    make: |terms| Ok(crossed(&terms, fifo()?, fifo()?)),
};

/// One whose ends are open, and whose name is gone.
fn fifo() -> io::Result<(OwnedFd, OwnedFd)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("contend-{}-{number}.fifo", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let open = |flags| openat(CWD, &path, flags | OFlags::CLOEXEC, Mode::empty());
    // To open the one end waits for somebody at the other one.
    let read = open(OFlags::RDONLY | OFlags::NONBLOCK);
    let write = open(OFlags::WRONLY);
    unlinkat(CWD, &path, rustix::fs::AtFlags::empty())?;
    let (read, write) = (read?, write?);
    fcntl_setfl(&read, OFlags::empty())?;
    Ok((read, write))
}
