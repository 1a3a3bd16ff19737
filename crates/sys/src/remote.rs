//! Writing into the memory of another process.

use std::io;

use crate::mapping::{Backing, Mapping};

/// Memory that another process writes into, piece by piece. Both tell each other by other means which
/// piece is whose.
#[derive(Debug)]
pub struct Landing {
    memory: Mapping,
    bytes: usize,
}

/// Another process than that which has made this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other(libc::pid_t);

impl Other {
    /// The process of this number, unless it is this one: what it looks at would change under its eyes.
    pub fn new(process: u32) -> Option<Self> {
        (process != std::process::id()).then_some(Self(process.cast_signed()))
    }
}

impl Landing {
    /// Whether the kernel lets this process write into a process's memory: tried with its own.
    ///
    /// # Errors
    /// `ENOSYS` or `EPERM` where not.
    pub fn try_it() -> io::Result<()> {
        let own = Self::new(1, 1)?; // nobody looks at it
        own.put(std::process::id().cast_signed(), 0, b"x")
    }

    /// Memory of this process and, as memory of its own, of those forked from it: so many pieces of so
    /// many bytes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(pieces: usize, bytes: usize) -> io::Result<Self> {
        Ok(Self { memory: Mapping::new(Backing::Private, pieces * bytes)?, bytes })
    }

    /// A piece, which nobody writes to now: its last writer has said that it is done, and no other one
    /// has been told that it may begin.
    ///
    /// # Panics
    /// Where there are not so many pieces.
    pub fn piece(&self, piece: usize) -> &[u8] {
        let offset = piece * self.bytes;
        assert!(offset + self.bytes <= self.memory.length(), "there are not so many pieces");
        // SAFETY: within the mapping.
        let start = unsafe { self.memory.start().add(offset) };
        // SAFETY: readable, initialised by the kernel, and written to by system calls alone, not while it
        // is looked at.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.bytes) }
    }

    /// Writes a piece of this memory as another process has it, one that was forked from this one or
    /// from which this one was forked (`process_vm_writev(2)`).
    ///
    /// # Errors
    /// `ESRCH` when it has ended; `EPERM` where a process may not be traced by that other one.
    ///
    /// # Panics
    /// Where there are not so many pieces, or they are shorter.
    pub fn write(&self, process: Other, piece: usize, bytes: &[u8]) -> io::Result<()> {
        self.put(process.0, piece, bytes)
    }

    fn put(&self, process: libc::pid_t, piece: usize, bytes: &[u8]) -> io::Result<()> {
        assert!(bytes.len() <= self.bytes, "it is longer than a piece");
        assert!((piece + 1) * self.bytes <= self.memory.length(), "there are not so many pieces");
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let local =
                libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
            // SAFETY: within the mapping.
            let to = unsafe { self.memory.start().add(piece * self.bytes + written) };
            let remote = libc::iovec { iov_base: to.as_ptr().cast(), iov_len: rest.len() };
            // SAFETY: the bytes are readable; what is written is the landing of another process, which is
            // at the same address there and is only looked at when it has been told to, or one that
            // nobody looks at.
            let moved = unsafe {
                libc::process_vm_writev(process, &raw const local, 1, &raw const remote, 1, 0)
            };
            written += usize::try_from(moved).map_err(|_| io::Error::last_os_error())?;
        }
        Ok(())
    }
}

/// Allows another process to write into the memory of this one, where only ancestors may by themselves
/// (`PR_SET_PTRACER`).
pub fn allow(process: u32) {
    // SAFETY: a call without pointers; kernels without that restriction refuse it.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(process), 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::process::fork;

    #[test]
    fn what_is_written_lands_in_the_other_process_alone() {
        let landing = Landing::new(2, 5000).expect("memory");
        let (waits, tell) = rustix::pipe::pipe().expect("a pipe");
        let child = fork(|| {
            let told = rustix::io::read(&waits, &mut [0_u8; 1]) == Ok(1);
            let landed = landing.piece(1).iter().all(|&byte| byte == 7);
            i32::from(!(told && landed && landing.piece(0)[0] == 0))
        });
        let child = child.expect("a child");
        let process = child.as_raw_nonzero().get().unsigned_abs();
        let process = Other::new(process).expect("a child is another one");
        assert_eq!(Other::new(std::process::id()), None);
        landing.write(process, 1, &[7; 5000]).expect("it may be written to");
        assert_eq!(landing.piece(1)[0], 0);
        rustix::io::write(&tell, b"x").expect("it reads");
        assert_eq!(reap(child).expect("it ends").status, ExitStatus::Exited(0));
        let error = landing.write(process, 0, b"x").expect_err("it has gone");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
