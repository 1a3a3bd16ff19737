//! Writing into the memory of another process (`process_vm_writev(2)`).

use std::io;

use crate::mapping::{Backing, Mapping};

/// Memory, divided into pieces of equal size, that another process writes into. The processes agree
/// by other means on who may use which piece.
#[derive(Debug)]
pub struct RemoteBuffer {
    memory: Mapping,
    pieces: usize,
    /// Length of a piece, in bytes.
    bytes: usize,
}

/// The PID of a process other than this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherProcess(libc::pid_t);

impl OtherProcess {
    /// Returns the process with this PID, or `None` if it is this one: a write into this process
    /// would change memory behind a shared reference.
    pub fn new(process: u32) -> Option<Self> {
        (process != std::process::id()).then_some(Self(process.cast_signed()))
    }
}

impl RemoteBuffer {
    /// Checks that the kernel has `process_vm_writev(2)` and that no sandbox forbids it, by writing
    /// into this process's own memory. Writing to another process may still be forbidden.
    ///
    /// # Errors
    /// `ENOSYS` or `EPERM` if the call is not available; `ENOMEM`.
    pub fn check_permission() -> io::Result<()> {
        let own = Self::new(1, 1)?; // never read
        own.put(std::process::id().cast_signed(), 0, b"x")
    }

    /// Maps `pieces` pieces of `bytes` bytes each, private to this process; processes forked from
    /// it get copies of their own at the same address.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(pieces: usize, bytes: usize) -> io::Result<Self> {
        let length = pieces.checked_mul(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory: Mapping::new(Backing::Private, length)?, pieces, bytes })
    }

    /// Returns the offset in the memory, in bytes, of the piece with index `piece`.
    ///
    /// # Panics
    /// Panics if there is no such piece.
    fn offset(&self, piece: usize) -> usize {
        assert!(piece < self.pieces, "there is no piece {piece}");
        piece * self.bytes // at most the length, which did not overflow
    }

    /// Returns the piece with index `piece`. The caller must know that no process is writing to it:
    /// its last writer has reported that it is done, and no other writer may begin while the piece
    /// is borrowed.
    ///
    /// # Panics
    /// Panics if there is no such piece.
    pub fn piece(&self, piece: usize) -> &[u8] {
        let offset = self.offset(piece);
        // SAFETY: within the mapping.
        let start = unsafe { self.memory.start().add(offset) };
        // SAFETY: readable, initialised by the kernel, and written to by system calls only, not
        // while it is borrowed.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.bytes) }
    }

    /// Writes `bytes` to the beginning of a piece in another process's copy of this memory. One of
    /// the two processes must have forked the other after the memory was mapped.
    ///
    /// # Errors
    /// `ESRCH` if that process has ended; `EPERM` if this process may not trace it.
    ///
    /// # Panics
    /// Panics if there is no such piece, or `bytes` is longer than a piece.
    pub fn write(&self, process: OtherProcess, piece: usize, bytes: &[u8]) -> io::Result<()> {
        self.put(process.0, piece, bytes)
    }

    fn put(&self, process: libc::pid_t, piece: usize, bytes: &[u8]) -> io::Result<()> {
        assert!(bytes.len() <= self.bytes, "the bytes are longer than a piece");
        let offset = self.offset(piece);
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let local =
                libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
            // SAFETY: within the mapping.
            let to = unsafe { self.memory.start().add(offset + written) };
            let remote = libc::iovec { iov_base: to.as_ptr().cast(), iov_len: rest.len() };
            // SAFETY: the bytes are readable. The target is at the same address in the other
            // process, which reads a piece only after it was told that it may, or it is memory that
            // nothing reads.
            let moved = unsafe {
                libc::process_vm_writev(process, &raw const local, 1, &raw const remote, 1, 0)
            };
            written += usize::try_from(moved).map_err(|_| io::Error::last_os_error())?;
        }
        Ok(())
    }
}

/// Allows the process with the PID `process` to write into the memory of this one
/// (`PR_SET_PTRACER`), and withdraws the permission of any process allowed earlier. Needed where
/// Yama restricts such writes to ancestors; has no effect elsewhere.
pub fn allow(process: u32) {
    // SAFETY: a call without pointers; kernels without that restriction (Yama) return an error.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(process), 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::process::fork;

    #[test]
    fn bytes_are_written_only_in_the_other_process() {
        let buffer = RemoteBuffer::new(2, 5000).expect("memory");
        let (waits, tell) = rustix::pipe::pipe().expect("a pipe");
        let child = fork(|| {
            let told = rustix::io::read(&waits, &mut [0_u8; 1]) == Ok(1);
            let arrived = buffer.piece(1).iter().all(|&byte| byte == 7);
            i32::from(!(told && arrived && buffer.piece(0)[0] == 0))
        });
        let child = child.expect("a child");
        let process = child.as_raw_nonzero().get().unsigned_abs();
        let process = OtherProcess::new(process).expect("a child is another one");
        assert_eq!(OtherProcess::new(std::process::id()), None);
        buffer.write(process, 1, &[7; 5000]).expect("it may be written to");
        assert_eq!(buffer.piece(1)[0], 0);
        rustix::io::write(&tell, b"x").expect("it reads");
        assert_eq!(reap(child).expect("it ends").status, ExitStatus::Exited(0));
        let error = buffer.write(process, 0, b"x").expect_err("it has gone");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    #[should_panic(expected = "there is no piece")]
    fn a_piece_whose_offset_overflows_is_refused() {
        let buffer = RemoteBuffer::new(2, 1 << 12).expect("memory");
        buffer.piece(1 << 52);
    }

    #[test]
    fn a_length_that_overflows_is_refused() {
        let error = RemoteBuffer::new(usize::MAX, 2).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
