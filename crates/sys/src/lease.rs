//! A file that others can open only once its holder lets them: a write lease (fcntl(2)).
//!
//! Whoever opens a leased file waits in open(2) until the holder gives the lease up, and
//! also when the holder dies, however it dies: the kernel then gives the lease up for it.
//! After `/proc/sys/fs/lease-break-time` (45 s) the kernel lets the others in by itself.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags};

/// From the kernel's `asm-generic/fcntl.h`; the libc crate does not have it.
const F_SETSIG: i32 = 10;

/// An empty file in memory, without a name, that this process has leased.
#[derive(Debug)]
pub struct LeasedFile {
    fd: OwnedFd,
}

impl LeasedFile {
    /// Makes one.
    ///
    /// # Errors
    /// `EINVAL` where the kernel knows no leases, `EACCES` where a security module forbids it.
    pub fn new() -> io::Result<Self> {
        let made = rustix::fs::memfd_create("contend-gate", MemfdFlags::CLOEXEC)?;
        // The kernel does not count the writer that comes with a new file in memory, and
        // then takes the holder for a stranger. One who opens it is counted.
        let path = format!("/proc/self/fd/{}", made.as_raw_fd());
        let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        drop(made);
        // When someone wants to open it the kernel sends SIGIO, which would end us: let it
        // be a signal that is ignored by default.
        fcntl(&fd, F_SETSIG, libc::SIGURG)?;
        fcntl(&fd, libc::F_SETLEASE, libc::F_WRLCK)?;
        Ok(Self { fd })
    }

    /// Gives the lease up: all who wait go on, and later ones need not wait.
    ///
    /// # Errors
    /// None is known while the file is ours.
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
    fn whoever_opens_it_waits_for_the_release() {
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
