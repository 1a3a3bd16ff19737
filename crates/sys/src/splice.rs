//! Pages of memory put into a pipe without being copied.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

use crate::mapping::{Backing, Mapping};

/// Messages that are written in turn, each in pages of its own, and lent to one pipe. There are enough of
/// them for what is in the pipe not to be overwritten.
#[derive(Debug)]
pub struct Loans {
    memory: Mapping,
    bytes: usize,
    stride: usize,
    count: usize,
    current: usize,
}

const PAGE: usize = 4096;

impl Loans {
    /// For messages of so many bytes, and a pipe with so much room.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(bytes: usize, room: usize) -> io::Result<Self> {
        let stride = bytes.max(1).next_multiple_of(PAGE);
        // A page lent takes the place of a page in the pipe, however little of it is lent. So these are
        // in the pipe at most, and of one more some pages: the one after them has been read.
        let count = room / stride + 2;
        let memory = Mapping::new(Backing::Private, count * stride)?;
        Ok(Self { memory, bytes, stride, count, current: 0 })
    }

    /// Where the next message is to be written.
    pub fn draft(&mut self) -> &mut [u8] {
        // SAFETY: within the mapping.
        let start = unsafe { self.memory.start().add(self.current * self.stride) };
        // SAFETY: readable and writable for so long, zeroed, and borrowed for as long as the slice. That
        // the kernel may still read an earlier message there, if the pipe is another one, changes nothing
        // for this process.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.bytes) }
    }

    /// Puts the pages of the message into the pipe (`vmsplice(2)`) from this byte on, and waits for room.
    /// How many bytes of it went in.
    ///
    /// They are not copied: whoever reads them from the pipe gets what stands there then. The pages stay
    /// as long as the pipe has them, also when this process has unmapped them.
    ///
    /// # Errors
    /// `EPIPE`; `EINTR`.
    pub fn lend(&mut self, pipe: impl AsFd, from: usize) -> io::Result<usize> {
        let slice = IoSlice::new(&self.draft()[from..]);
        let pages = [IoSliceRaw::from_slice(&slice)];
        // SAFETY: the pages stay alive by the kernel's own count, and are not given away for good.
        Ok(unsafe { vmsplice(pipe, &pages, SpliceFlags::empty()) }?)
    }

    /// Goes on to the next message, when this one is in the pipe.
    pub fn advance(&mut self) {
        self.current = (self.current + 1) % self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_pipe_is_not_overwritten() {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let room = rustix::pipe::fcntl_getpipe_size(&write).expect("a size");
        let mut loans = Loans::new(5, room).expect("memory");
        let (mut written, mut bytes) = (0_u8, [0; 5]);
        for read_before in 0..100_u8 {
            while usize::from(written - read_before) < room / PAGE {
                loans.draft().fill(written);
                assert_eq!(loans.lend(&write, 0).expect("there is room"), 5);
                loans.advance();
                written += 1;
            }
            loans.draft().fill(255);
            assert_eq!(rustix::io::read(&read, &mut bytes), Ok(5));
            assert_eq!(bytes, [read_before; 5]);
        }
    }
}
