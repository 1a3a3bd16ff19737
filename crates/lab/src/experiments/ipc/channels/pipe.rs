//! Pipes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use super::stream::crossed;
use super::{ANY, Ends, Mechanism, Terms, Waiting, always_available, sysctl};

/// As shells make them: with room for 64 KiB.
pub const PIPE: Mechanism = Mechanism {
    name: "pipe",
    summary: "a pipe, with room for 64 KiB",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: always_available,
    make: |terms| ends(&terms, None),
};

/// As large as any user may have them by default.
pub const LARGE: Mechanism = Mechanism {
    name: "pipe-1m",
    summary: "a pipe with room for 1 MiB (F_SETPIPE_SZ)",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: |_| {
        let most = sysctl("fs/pipe-max-size").filter(|&most| most < ROOM)?;
        Some(format!("fs.pipe-max-size allows pipes of {most} bytes at most"))
    },
    make: |terms| ends(&terms, Some(ROOM)),
};

const ROOM: usize = 1 << 20;

fn ends(terms: &Terms, room: Option<usize>) -> io::Result<Ends> {
    Ok(crossed(terms, pipe(room)?, pipe(room)?))
}

/// A pipe with so much room, if that is said.
fn pipe(room: Option<usize>) -> io::Result<(OwnedFd, OwnedFd)> {
    let pipe = pipe_with(PipeFlags::CLOEXEC)?;
    if let Some(room) = room {
        fcntl_setpipe_size(&pipe.1, room)?;
        if fcntl_getpipe_size(&pipe.1)? < room {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
    }
    Ok(pipe)
}
