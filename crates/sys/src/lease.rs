//! A write lease (fcntl(2)): a file that cannot be opened until the holder of the lease permits it.
//!
//! A process that opens a leased file blocks in open(2) until the holder releases the lease or
//! dies, in which case the kernel releases the lease. After `/proc/sys/fs/lease-break-time` (by
//! default 45 s), the kernel breaks the lease without the holder.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags};

/// Command of fcntl(2) that sets the signal for lease breaks, from the kernel's
/// `asm-generic/fcntl.h`; the libc crate does not have it.
const F_SETSIG: i32 = 10;

/// An empty, unnamed file in memory on which this process holds a write lease.
#[derive(Debug)]
pub struct LeasedFile {
    fd: OwnedFd,
}

impl LeasedFile {
    /// Creates the file and takes the lease.
    ///
    /// # Errors
    /// `EINVAL` if the kernel does not support leases, `EACCES` if a security module forbids it.
    pub fn new() -> io::Result<Self> {
        let made = rustix::fs::memfd_create("contend-gate", MemfdFlags::CLOEXEC)?;
        // The kernel does not count the writer that memfd_create(2) returns, so it would see the
        // holder as another process with the file open. It counts a writer that opens the file.
        let path = format!("/proc/self/fd/{}", made.as_raw_fd());
        let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        drop(made);
        // When a process opens the file, the kernel sends the holder SIGIO, whose default action
        // would end it. Replace SIGIO with a signal that is ignored by default.
        fcntl(&fd, F_SETSIG, libc::SIGURG)?;
        fcntl(&fd, libc::F_SETLEASE, libc::F_WRLCK)?;
        Ok(Self { fd })
    }

    /// Releases the lease: processes that are blocked in open(2) continue, and later ones do not
    /// block.
    ///
    /// # Errors
    /// None is known while this process owns the file.
    pub fn release(&self) -> io::Result<()> {
        fcntl(&self.fd, libc::F_SETLEASE, libc::F_UNLCK)
    }
}

impl AsFd for LeasedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn fcntl(fd: &OwnedFd, command: i32, argument: i32) -> io::Result<()> {
    // SAFETY: these commands take an integer, and the descriptor is open.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), command, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn opening_blocks_until_the_lease_is_released() {
        let file = LeasedFile::new().expect("a kernel with leases");
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd());
        let (sender, opened) = mpsc::channel();
        let opener = std::thread::spawn(move || sender.send(File::open(path).is_ok()));
        let early = opened.recv_timeout(Duration::from_millis(50));
        assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "it did not wait");
        file.release().expect("held");
        assert_eq!(opened.recv(), Ok(true));
        opener.join().expect("no panic").expect("we listen");
    }
}
