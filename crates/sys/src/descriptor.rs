//! The kinds of objects that descriptors refer to.

use std::os::unix::fs::FileTypeExt;

use rustix::process::Pid;

use crate::memory;

/// The kind of object that a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal.
    Terminal,
    /// A file or directory of a file system that stores data, or a block device.
    File,
    /// A timer (`timerfd`).
    Timer,
    /// A counter by which threads wake each other (`eventfd`).
    Counter,
    /// Another device, a file that the kernel generates, or another kernel object.
    Other,
    /// An object that could not be examined.
    Unknown,
}

/// `f_type` of file systems whose files the kernel generates without accessing a disk.
const VIRTUAL_FILE_SYSTEMS: [i64; 4] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
];

impl Kind {
    /// Returns the kind of the object that descriptor `fd` of the process refers to, or
    /// [`Kind::Unknown`] if it cannot be examined.
    pub fn of_descriptor(pid: Pid, fd: i32) -> Self {
        let path = format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero());
        let link = std::fs::read_link(&path);
        link.map_or(Self::Unknown, |link| Self::of(&path, &link.to_string_lossy()))
    }

    /// Returns the kind of object that a descriptor refers to. `path` is the descriptor's link in
    /// `/proc`, and `link` is the target of that link.
    pub fn of(path: &str, link: &str) -> Self {
        if link.starts_with("pipe:") {
            Self::Pipe
        } else if link.starts_with("socket:") {
            Self::Socket
        } else if let Some(name) = link.strip_prefix("anon_inode:") {
            Self::of_anonymous(name)
        } else if is_terminal(link) {
            Self::Terminal
        } else {
            Self::of_file(path)
        }
    }

    fn of_anonymous(name: &str) -> Self {
        match name {
            "[timerfd]" => Self::Timer,
            "[eventfd]" => Self::Counter,
            _ => Self::Other,
        }
    }

    /// Returns the kind of the file that a call of `process` opens: opening a FIFO waits for its other
    /// end. The path is at `address` in the memory of the process. A relative path starts at the
    /// directory with descriptor `folder`, or at the working directory if `folder` is `None`. Returns
    /// `None` if the path cannot be read, and [`Kind::Unknown`] if the file cannot be examined: it does
    /// not exist yet, or its path cannot be resolved from this process.
    pub fn opened_by(process: Pid, folder: Option<i32>, address: u64) -> Option<Self> {
        let mut buffer = [0; 4096];
        let read = memory::read(process, address, &mut buffer).unwrap_or(0);
        let end = buffer[..read].iter().position(|&byte| byte == 0)?;
        let path = std::str::from_utf8(&buffer[..end]).ok()?;
        let process = process.as_raw_nonzero();
        Some(Self::of_file(&match (path.strip_prefix('/'), folder) {
            (Some(path), _) => format!("/proc/{process}/root/{path}"),
            (None, None) => format!("/proc/{process}/cwd/{path}"),
            (None, Some(folder)) => format!("/proc/{process}/fd/{folder}/{path}"),
        }))
    }

    /// Returns the kind of the file at `path`, or [`Kind::Unknown`] if its metadata cannot be read.
    pub fn of_file(path: &str) -> Self {
        let Ok(kind) = std::fs::metadata(path).map(|data| data.file_type()) else {
            return Self::Unknown;
        };
        if kind.is_fifo() {
            Self::Pipe
        } else if kind.is_socket() {
            Self::Socket
        } else if kind.is_char_device() || is_virtual(path) {
            Self::Other
        } else {
            Self::File
        }
    }
}

fn is_virtual(path: &str) -> bool {
    rustix::fs::statfs(path).is_ok_and(|system| VIRTUAL_FILE_SYSTEMS.contains(&system.f_type))
}

/// Returns whether `link`, the target of a descriptor's link in `/proc`, is the path of a terminal.
pub fn is_terminal(link: &str) -> bool {
    link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") || link == "/dev/console"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_store_data_count_as_disk() {
        let of = |path: &str| Kind::of(path, path);
        assert_eq!(of("/proc/self/status"), Kind::Other);
        assert_eq!(of("/dev/null"), Kind::Other);
        assert_eq!(of("/dev/pts/99"), Kind::Terminal);
        assert_eq!(of("anon_inode:[timerfd]"), Kind::Timer);
        assert_eq!(of("anon_inode:inotify"), Kind::Other);
        assert_eq!(of("/no/such/file"), Kind::Unknown);
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(of(file.path().to_str().expect("UTF-8")), Kind::File);
    }
}
