//! A gate at which processes wait: opening its file blocks until contend opens the gate.
//!
//! ```text
//! stage:    open(/proc/PID/fd/N) ── blocks ─────────────────┐ returns: the stage runs
//! contend:  Gate::new ───────────── Gate::open ── OpenGate ─┘
//! ```
//!
//! The file has no name, so nothing is left on disk, however contend ends; processes reach it as
//! `/proc/PID/fd/N`. The file has a lease, so no process waits forever: the kernel releases the
//! lease if contend dies, and breaks it 45 seconds after a process has reached the gate
//! (`/proc/sys/fs/lease-break-time`). Without kernel support for leases, the gate is a FIFO:
//! contend's descriptor is opened with `O_PATH` and therefore is neither a reader nor a writer, and
//! opening the FIFO for reading blocks until contend opens it as a writer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use contend_sys::lease::LeasedFile;
use rustix::fs::{CWD, FileType, Mode, OFlags};

/// A closed gate.
#[derive(Debug)]
pub enum Gate {
    /// A file with a lease, if the kernel supports leases.
    Leased(LeasedFile),
    /// A FIFO, otherwise.
    Fifo(OwnedFd),
}

/// An open gate. Once it is dropped, processes that have not reached the gate yet can no longer
/// open its file.
#[derive(Debug)]
pub struct OpenGate {
    _gate: Gate,
    _writer: Option<OwnedFd>,
}

impl Gate {
    /// Creates a closed gate.
    ///
    /// # Errors
    /// Returns an error if no file with a lease can be created, and no directory for temporary
    /// files can hold a FIFO.
    pub fn new() -> io::Result<Self> {
        LeasedFile::new().map(Self::Leased).or_else(|_| Self::fifo())
    }

    fn fifo() -> io::Result<Self> {
        let folders = [std::env::temp_dir(), "/tmp".into(), "/dev/shm".into(), "/var/tmp".into()];
        let mut last_error = io::Error::from(io::ErrorKind::NotFound);
        for folder in folders {
            match fifo_in(&folder) {
                Ok(handle) => return Ok(Self::Fifo(handle)),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Returns the path under which other processes of this user can open the gate's file.
    pub fn path(&self) -> String {
        match self {
            Self::Leased(file) => proc_path(file),
            Self::Fifo(handle) => proc_path(handle),
        }
    }

    /// Opens the gate for waiting processes, and for those that arrive during the lifetime of the
    /// result.
    ///
    /// # Errors
    /// Returns an error if the lease cannot be released, or no descriptor is free for a FIFO's
    /// writer.
    pub fn open(self) -> io::Result<OpenGate> {
        let writer = match &self {
            Self::Leased(file) => {
                file.release()?;
                None
            }
            Self::Fifo(_) => {
                let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
                Some(rustix::fs::openat(CWD, self.path(), flags, Mode::empty())?)
            }
        };
        Ok(OpenGate { _gate: self, _writer: writer })
    }
}

/// Returns the path under which other processes of this user can open one of contend's descriptors.
pub fn proc_path(fd: &impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_fd().as_raw_fd())
}

fn fifo_in(folder: &Path) -> io::Result<OwnedFd> {
    let path = unused_name(folder);
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let handle = rustix::fs::openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    rustix::fs::unlink(&path)?;
    Ok(handle?)
}

fn unused_name(folder: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos());
    folder.join(format!("contend-gate.{}.{count}.{now}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn wait_at(gate: Gate) {
        let script = format!(": <{}", gate.path());
        let mut child = Command::new("sh").args(["-c", &script]).spawn().expect("sh");
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(child.try_wait().expect("child").is_none(), "it did not wait");
        let open = gate.open().expect("a descriptor");
        assert!(child.wait().expect("child").success());
        drop(open);
    }

    #[test]
    fn a_process_waits_until_the_gate_opens() {
        wait_at(Gate::new().expect("leases or a folder for temporary files"));
        wait_at(Gate::fifo().expect("a folder for temporary files"));
    }

    #[test]
    fn the_fifo_file_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let handle = fifo_in(folder.path()).expect("a FIFO");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0);
        assert!(proc_path(&handle).starts_with("/proc/"));
    }
}
