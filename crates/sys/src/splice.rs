//! Moves memory pages into a pipe without copying (`vmsplice(2)`).

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

use crate::mapping::{Backing, Mapping};

/// Message buffers that one pipe borrows in rotation, each in pages of its own. There are enough
/// buffers that no message in the pipe is overwritten.
#[derive(Debug)]
pub struct LentBuffers {
    memory: Mapping,
    bytes: usize,
    stride: usize,
    count: usize,
    current: usize,
}

const PAGE_BYTES: usize = 4096;

impl LentBuffers {
    /// Creates buffers of `bytes` bytes each, as many as a pipe with a capacity of `room` bytes
    /// requires.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(bytes: usize, room: usize) -> io::Result<Self> {
        let stride = bytes.max(1).next_multiple_of(PAGE_BYTES);
        // A lent page takes up a page of the pipe, however little of it is lent. So the pipe holds
        // at most `room / stride` whole messages and the rest of one that is being read. One more
        // buffer is free for the next message.
        let count = room / stride + 2;
        let memory = Mapping::new(Backing::Private, count * stride)?;
        Ok(Self { memory, bytes, stride, count, current: 0 })
    }

    /// Returns the buffer of the next message; it may still hold an earlier one.
    pub fn draft(&mut self) -> &mut [u8] {
        // SAFETY: within the mapping.
        let start = unsafe { self.memory.start().add(self.current * self.stride) };
        // SAFETY: readable and writable for this length, zeroed, and borrowed for as long as the
        // slice. If the caller lends to pipes other than the one that `count` is for, the kernel
        // may still read an earlier message there, but it never writes to the buffer.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.bytes) }
    }

    /// Moves the pages of the message, from byte `from` on, into the pipe; blocks while the pipe is
    /// full. Returns the number of bytes moved, which may be less than the rest of the message.
    ///
    /// The bytes are not copied: a reader gets what the pages contain at the time of reading. The
    /// pipe keeps the pages alive even after this process has unmapped them.
    ///
    /// # Errors
    /// `EPIPE`; `EINTR`.
    ///
    /// # Panics
    /// Panics if `from` is more than the length of a message.
    pub fn lend(&mut self, pipe: impl AsFd, from: usize) -> io::Result<usize> {
        let slice = IoSlice::new(&self.draft()[from..]);
        let pages = [IoSliceRaw::from_slice(&slice)];
        // SAFETY: the kernel's reference count keeps the pages alive, and they are not gifted.
        Ok(unsafe { vmsplice(pipe, &pages, SpliceFlags::empty()) }?)
    }

    /// Moves on to the next buffer. Must be called once the whole message is in the pipe.
    pub fn advance(&mut self) {
        self.current = (self.current + 1) % self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_the_pipe_are_not_overwritten() {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let room = rustix::pipe::fcntl_getpipe_size(&write).expect("a size");
        let mut buffers = LentBuffers::new(5, room).expect("memory");
        let (mut written, mut bytes) = (0_u8, [0; 5]);
        for read_before in 0..100_u8 {
            while usize::from(written - read_before) < room / PAGE_BYTES {
                buffers.draft().fill(written);
                assert_eq!(buffers.lend(&write, 0).expect("there is room"), 5);
                buffers.advance();
                written += 1;
            }
            buffers.draft().fill(255);
            assert_eq!(rustix::io::read(&read, &mut bytes), Ok(5));
            assert_eq!(bytes, [read_before; 5]);
        }
    }
}
