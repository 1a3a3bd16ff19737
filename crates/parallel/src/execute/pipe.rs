//! Pipes between commands, and their capacities.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// The capacity of contend's pipes in bytes, if the kernel allows it.
const MAX_PIPE_BYTES: usize = 1 << 20;

/// Creates a pipe, with a large capacity if the kernel allows it, and returns its read and write
/// ends.
pub(super) fn wide() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    let _ = fcntl_setpipe_size(&writer, MAX_PIPE_BYTES); // fails if the user's pipes hold too much already
    Ok((File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer))))
}

/// Sets the capacity of an empty pipe to about `bytes`, but at most [`MAX_PIPE_BYTES`], if the
/// kernel allows it. Returns the actual capacity, or 0 if it is unknown.
pub(super) fn narrow(pipe: &File, bytes: usize) -> usize {
    let _ = fcntl_setpipe_size(pipe, bytes.min(MAX_PIPE_BYTES)); // on failure the capacity stays
    capacity(pipe)
}

/// Returns the capacity of a pipe in bytes, or 0 if it is unknown.
pub(super) fn capacity(pipe: &File) -> usize {
    fcntl_getpipe_size(pipe).unwrap_or(0)
}
