//! Inspects a pipe between other processes without holding it open.
//!
//! A descriptor opened with `O_PATH` refers to the pipe but is neither a read end nor a write end,
//! so it delays neither EOF nor SIGPIPE. To count the bytes in the pipe, a read end is opened
//! without blocking and closed within a few microseconds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::process::Pid;

/// A reference to a pipe of other processes that does not hold it open.
#[derive(Debug)]
pub struct PipeProbe {
    handle: OwnedFd,
    inode: u64,
}

/// The fill level of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Bytes written and not yet read.
    pub bytes: u64,
    /// Number of bytes that fit if every page is filled.
    pub capacity: u64,
}

impl PipeProbe {
    /// Creates a probe of the pipe that process `pid` has open as descriptor `fd`.
    ///
    /// # Errors
    /// Returns an error if the process has ended or may not be inspected by this user, if it has no
    /// such descriptor, or if the descriptor is not a pipe.
    pub fn open(pid: Pid, fd: i32) -> io::Result<Self> {
        let path = format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero());
        let handle = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&handle)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { handle, inode: stat.st_ino })
    }

    /// Returns the inode number, which identifies the pipe, as in `pipe:[inode]`.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Reads the current fill level, for which it opens a read end of the pipe for a moment.
    ///
    /// # Errors
    /// Returns an error if this user may not open the pipe for reading, or this process has no free
    /// descriptor.
    pub fn fill(&self) -> io::Result<Fill> {
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let end = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Fill {
            bytes: rustix::io::ioctl_fionread(&end)?,
            capacity: rustix::pipe::fcntl_getpipe_size(&end)? as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn counts_without_keeping_the_pipe_open() {
        let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
        let probe = PipeProbe::open(rustix::process::getpid(), writer.as_raw_fd()).expect("own");
        writer.write_all(b"12345").expect("room");
        assert_eq!(probe.fill().expect("open").bytes, 5);
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("the end of the file comes");
        assert_eq!(text, "12345");
        drop(reader);
        assert_eq!(probe.fill().expect("open").bytes, 0);
    }

    #[test]
    fn the_reader_s_end_is_not_kept_either() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let probe = PipeProbe::open(rustix::process::getpid(), writer.as_raw_fd()).expect("own");
        probe.fill().expect("open");
        drop(reader);
        // A child that another test starts at the same time has a copy until it executes its program.
        let error = std::iter::repeat_with(|| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            writer.write_all(b"x").err()
        });
        let error = error.take(10_000).flatten().next().expect("no reader is left");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_file_is_no_pipe() {
        let file = tempfile::tempfile().expect("a file");
        assert!(PipeProbe::open(rustix::process::getpid(), file.as_raw_fd()).is_err());
    }
}
