//! The bytes of a chunk that have not been passed to commands, in memory or in a file.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

/// Maximum number of bytes copied from a file to a pipe at a time if the kernel cannot splice.
const COPY_BYTES: usize = 64 << 10;

/// The bytes of a chunk not yet passed to commands.
#[derive(Debug)]
pub(super) enum ChunkInput<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A range of a file.
    File(&'a File, Range<u64>),
}

impl ChunkInput<'_> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::File(_, range) => range.is_empty(),
        }
    }

    /// Takes a block of at most `most` bytes off the front of the chunk. The block is empty at the
    /// end of the chunk. If the file has been truncated, the chunk ends there. Bytes of a file are
    /// read into `buffer`.
    pub(super) fn take<'s>(
        &'s mut self,
        most: usize,
        buffer: &'s mut Vec<u8>,
    ) -> io::Result<&'s [u8]> {
        match self {
            Self::Bytes(bytes) => {
                let (block, rest) = bytes.split_at(bytes.len().min(most));
                *bytes = rest;
                Ok(block)
            }
            Self::File(file, range) => {
                let left = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                buffer.resize(most, 0);
                let read = file.read_at(&mut buffer[..left.min(most)], range.start)?;
                // A read of 0 bytes means that the file has been truncated.
                range.start = if read == 0 { range.end } else { range.start + read as u64 };
                Ok(&buffer[..read])
            }
        }
    }

    /// Tries once to move bytes from the front of the chunk into the pipe, and returns their
    /// number. It is 0 if the file has been truncated, which ends the chunk.
    pub(super) fn write(&mut self, mut pipe: &File) -> io::Result<usize> {
        match self {
            Self::Bytes(bytes) => {
                let written = pipe.write(bytes)?;
                *bytes = &bytes[written..];
                Ok(written)
            }
            Self::File(file, range) => {
                let moved = moved(file, range, pipe)?;
                // A transfer of 0 bytes means that the file has been truncated.
                range.start = if moved == 0 { range.end } else { range.start + moved as u64 };
                Ok(moved)
            }
        }
    }
}

/// Moves bytes at the start of a range of a file into a pipe, without a copy if the kernel can
/// splice. Returns their number, which is 0 if the file ends before the range.
fn moved(file: &File, range: &Range<u64>, mut pipe: &File) -> io::Result<usize> {
    let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    match splice(file, Some(&mut range.start.clone()), pipe, None, most, flags) {
        Err(Errno::INVAL) => {
            let mut bytes = vec![0; most.min(COPY_BYTES)];
            let read = file.read_at(&mut bytes, range.start)?;
            pipe.write(&bytes[..read])
        }
        result => Ok(result?),
    }
}
