//! A gate that processes wait at: a FIFO whose opening for reading blocks until we open it.
//!
//! Its name is removed as soon as it is made, so nothing is left behind whatever happens;
//! processes reach it as `/proc/PID/fd/N`. Our handle is made with `O_PATH` and therefore
//! is neither a reader nor a writer.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};

/// A closed gate.
#[derive(Debug)]
pub struct Gate {
    handle: OwnedFd,
}

/// A gate held open; dropping it closes it for those who have not come yet.
#[derive(Debug)]
pub struct OpenGate {
    _gate: Gate,
    end: OwnedFd,
}

impl OpenGate {
    /// Leaves a line for one who comes through and reads.
    ///
    /// # Errors
    /// When it does not fit into a pipe.
    pub fn leave(&self, line: &str) -> io::Result<()> {
        rustix::io::write(&self.end, line.as_bytes())?;
        Ok(())
    }
}

impl Gate {
    /// Makes a gate in the first folder that can hold a FIFO.
    ///
    /// # Errors
    /// When none of the folders for temporary files can.
    pub fn new() -> io::Result<Self> {
        let folders = [std::env::temp_dir(), "/tmp".into(), "/dev/shm".into(), "/var/tmp".into()];
        let mut last_error = io::Error::from(io::ErrorKind::NotFound);
        for folder in folders {
            match Self::new_in(&folder) {
                Ok(gate) => return Ok(gate),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    fn new_in(folder: &Path) -> io::Result<Self> {
        let path = unused_name(folder);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let handle = rustix::fs::openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        rustix::fs::unlink(&path)?;
        Ok(Self { handle: handle? })
    }

    /// The path under which other processes of this user can open it.
    pub fn path(&self) -> String {
        proc_path(&self.handle)
    }

    /// Lets everyone through who waits, and everyone who comes while the result lives.
    ///
    /// # Errors
    /// When no descriptor is free.
    pub fn open(self) -> io::Result<OpenGate> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let end = rustix::fs::openat(CWD, self.path(), flags, Mode::empty())?;
        Ok(OpenGate { _gate: self, end })
    }
}

/// The path under which other processes of this user reach one of our descriptors.
pub fn proc_path(fd: &impl AsRawFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd())
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

    #[test]
    fn a_process_waits_until_the_gate_opens() {
        let gate = Gate::new().expect("a folder for temporary files");
        let script = format!(": <{}", gate.path());
        let mut child = Command::new("sh").args(["-c", &script]).spawn().expect("sh");
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(child.try_wait().expect("child").is_none(), "it did not wait");
        let open = gate.open().expect("a descriptor");
        assert!(child.wait().expect("child").success());
        drop(open);
    }

    #[test]
    fn no_file_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = Gate::new_in(folder.path()).expect("a FIFO");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0);
        assert!(gate.path().starts_with("/proc/"));
    }
}
