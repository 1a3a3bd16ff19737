//! Unnamed temporary files, which the kernel removes once nothing has them open.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};

/// Returns a path in `folder` for a new file, without creating the file. No other call returns the
/// same path, not even in another running process.
pub fn unique_path_in(folder: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("contend-{}-{number}.tmp", std::process::id()))
}

/// Creates an empty, unnamed file in `folder`, open for reading and writing.
///
/// # Errors
/// Returns an error if the file cannot be created.
pub fn unnamed_in(folder: &Path) -> io::Result<File> {
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    let file = openat(CWD, folder, flags | OFlags::TMPFILE, mode).or_else(|_| {
        // Not every file system supports O_TMPFILE.
        let path = unique_path_in(folder);
        let file = openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
        unlinkat(CWD, &path, AtFlags::empty())?;
        Ok::<_, rustix::io::Errno>(file)
    })?;
    Ok(File::from(file))
}

/// Returns the path through which other processes can open `file` while this process has it open.
pub fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}
