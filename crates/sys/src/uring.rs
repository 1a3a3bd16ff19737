//! Reading and writing through `io_uring(7)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, types};

/// A ring with its buffers. A buffer belongs to the kernel from its submission until its
/// completion, and to the caller otherwise. Only the process that created the ring may use it.
pub struct Uring {
    ring: IoUring,
    buffers: Vec<Buffer>,
}

struct Buffer {
    bytes: Box<[u8]>,
    /// Whether the buffer is submitted and not yet completed.
    in_flight: bool,
}

/// What a submitted operation does with its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads from a file into the buffer.
    Read,
    /// Writes the buffer to a file.
    Write,
}

/// The file offset that stands for the current position. Use it for pipes.
pub const HERE: u64 = u64::MAX;

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("buffers", &self.buffers.len()).finish_non_exhaustive()
    }
}

impl Uring {
    /// Creates a ring with `buffers` buffers of `bytes` bytes, all of which can be in flight.
    ///
    /// # Errors
    /// `ENOSYS` if the kernel has no `io_uring`, `EPERM` if `kernel.io_uring_disabled` or a sandbox
    /// forbids it, `EINVAL` for too many buffers.
    pub fn new(buffers: u32, bytes: usize) -> io::Result<Self> {
        let ring = IoUring::new(buffers.next_power_of_two())?;
        let buffer = |_| Buffer { bytes: vec![0; bytes].into(), in_flight: false };
        Ok(Self { ring, buffers: (0..buffers).map(buffer).collect() })
    }

    /// Returns the buffer with index `buffer`.
    ///
    /// # Panics
    /// Panics if there is no such buffer, or if it is in flight.
    pub fn buffer(&mut self, buffer: usize) -> &mut [u8] {
        let buffer = &mut self.buffers[buffer];
        assert!(!buffer.in_flight, "the kernel has the buffer");
        &mut buffer.bytes
    }

    /// Queues a read into, or a write from, the bytes `from..to` of the buffer with index `buffer`,
    /// at the file offset `offset` (or at [`HERE`]). [`Uring::enter`] submits it.
    ///
    /// # Panics
    /// Panics if there is no such buffer, if it is in flight, or if `from..to` is not within it.
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
        self.buffers[buffer].in_flight = true;
        // SAFETY: the buffer is neither touched nor freed before its completion arrives. If the
        // file is closed in the meantime, the operation fails, or the kernel keeps the file open
        // for it.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring has an entry for each buffer");
    }

    /// Submits queued operations (`io_uring_enter(2)`), and blocks until at least one operation has
    /// completed. At least one must be queued or in flight.
    ///
    /// # Errors
    /// `EINTR`, in which case nothing was lost.
    pub fn enter(&mut self) -> io::Result<()> {
        self.ring.submit_and_wait(1).map(drop)
    }

    /// Returns the index of the next completed buffer, if any, with the number of bytes transferred
    /// or the error.
    pub fn done(&mut self) -> Option<(usize, io::Result<usize>)> {
        let entry = self.ring.completion().next()?;
        let buffer = usize::try_from(entry.user_data()).ok()?;
        self.buffers[buffer].in_flight = false;
        let result = usize::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some((buffer, result))
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel may still write into buffers in flight, so they are leaked.
        for buffer in &mut self.buffers {
            if buffer.in_flight {
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
            return; // `io_uring` is not allowed here
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
    fn buffers_in_flight_are_not_freed() {
        let Ok(mut uring) = Uring::new(1, 100) else {
            return; // `io_uring` is not allowed here
        };
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        uring.submit(Operation::Read, read.as_fd(), 0, [0, 100], HERE);
        drop(uring);
        rustix::io::write(&write, &[9; 100]).expect("there is room");
    }
}
