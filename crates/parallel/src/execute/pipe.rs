//! Pipes between commands, and how much they hold.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// How much a pipe of ours holds, where the kernel allows it, in bytes.
const MAX_PIPE_BYTES: usize = 1 << 20;

/// A pipe that holds much.
pub(super) fn wide() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    let _ = fcntl_setpipe_size(&writer, MAX_PIPE_BYTES); // a user's pipes may be many already
    Ok((File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer))))
}

/// Has an empty pipe hold no more than about so many bytes; returns how many it holds.
pub(super) fn narrow(pipe: &File, bytes: usize) -> usize {
    let _ = fcntl_setpipe_size(pipe, bytes.min(MAX_PIPE_BYTES)); // else it holds what it holds
    capacity(pipe)
}

/// How much a pipe holds, in bytes.
pub(super) fn capacity(pipe: &File) -> usize {
    fcntl_getpipe_size(pipe).unwrap_or(0)
}
