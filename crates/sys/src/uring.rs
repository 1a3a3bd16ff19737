//! Reading and writing through a ring of submissions (`io_uring(7)`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, types};

/// A ring, and the buffers that are read into and written from: they belong to the kernel while a
/// submission for them is on its way, and to the caller otherwise. To be used by the process alone that
/// has made it.
pub struct Uring {
    ring: IoUring,
    buffers: Vec<Buffer>,
}

struct Buffer {
    bytes: Box<[u8]>,
    /// The kernel has it.
    is_away: bool,
}

/// What is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads into a buffer.
    Read,
    /// Writes from a buffer.
    Write,
}

/// Where in a file: behind what was read or written last, for pipes.
pub const HERE: u64 = u64::MAX;

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("buffers", &self.buffers.len()).finish_non_exhaustive()
    }
}

impl Uring {
    /// One with so many buffers of so many bytes, each of which can be on its way.
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has none, `EPERM` where `kernel.io_uring_disabled` or a sandbox forbids it.
    pub fn new(buffers: u32, bytes: usize) -> io::Result<Self> {
        let ring = IoUring::new(buffers.next_power_of_two())?;
        let buffer = |_| Buffer { bytes: vec![0; bytes].into(), is_away: false };
        Ok(Self { ring, buffers: (0..buffers).map(buffer).collect() })
    }

    /// A buffer.
    ///
    /// # Panics
    /// When it is on its way.
    pub fn buffer(&mut self, buffer: usize) -> &mut [u8] {
        let buffer = &mut self.buffers[buffer];
        assert!(!buffer.is_away, "the kernel has the buffer");
        &mut buffer.bytes
    }

    /// Has the kernel read or write a part of a buffer, from `from` to `to`, when it is entered next.
    ///
    /// # Panics
    /// When it is on its way, or not so long.
    pub fn submit(
        &mut self,
        operation: Operation,
        file: BorrowedFd<'_>,
        buffer: usize,
        [from, to]: [usize; 2],
        offset: u64,
    ) {
        let bytes = &mut self.buffer(buffer)[from..to];
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let file = types::Fd(file.as_raw_fd());
        let entry = match operation {
            Operation::Read => {
                opcode::Read::new(file, bytes.as_mut_ptr(), length).offset(offset).build()
            }
            Operation::Write => {
                opcode::Write::new(file, bytes.as_ptr(), length).offset(offset).build()
            }
        };
        let entry = entry.user_data(buffer as u64);
        self.buffers[buffer].is_away = true;
        // SAFETY: the buffer is neither touched nor given back before its completion has come; a file
        // that is closed meanwhile is an error, or stays open for this.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "there are as many places as buffers");
    }

    /// Enters the kernel (`io_uring_enter(2)`), and waits until something has been done.
    ///
    /// # Errors
    /// `EINTR`, when nothing was lost.
    pub fn enter(&mut self) -> io::Result<()> {
        self.ring.submit_and_wait(1).map(drop)
    }

    /// Which buffer has come back, if any, with how many bytes.
    pub fn done(&mut self) -> Option<(usize, io::Result<usize>)> {
        let entry = self.ring.completion().next()?;
        let buffer = usize::try_from(entry.user_data()).ok()?;
        self.buffers[buffer].is_away = false;
        let result = usize::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some((buffer, result))
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel may still write into those that it has.
        for buffer in &mut self.buffers {
            if buffer.is_away {
                std::mem::forget(std::mem::take(&mut buffer.bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn bytes_go_through_a_pipe() {
        let Ok(mut uring) = Uring::new(2, 100) else {
            return; // not allowed here
        };
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        uring.buffer(0).fill(7);
        uring.submit(Operation::Read, read.as_fd(), 1, [0, 100], HERE);
        uring.submit(Operation::Write, write.as_fd(), 0, [0, 90], HERE);
        let mut done = Vec::new();
        while done.len() < 2 {
            uring.enter().expect("entered");
            while let Some((buffer, bytes)) = uring.done() {
                done.push((buffer, bytes.expect("no error")));
            }
        }
        done.sort_unstable();
        assert_eq!(done, [(0, 90), (1, 90)]);
        assert_eq!(uring.buffer(1)[..90], [7; 90]);
    }

    #[test]
    fn what_is_on_its_way_is_not_given_back() {
        let Ok(mut uring) = Uring::new(1, 100) else {
            return; // not allowed here
        };
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        uring.submit(Operation::Read, read.as_fd(), 0, [0, 100], HERE);
        drop(uring);
        rustix::io::write(&write, &[9; 100]).expect("there is room");
    }
}
