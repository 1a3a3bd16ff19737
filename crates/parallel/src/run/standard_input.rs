//! Determines the kind of file that is standard input.

use std::io;

use rustix::fs::{FileType, OFlags, SeekFrom, Stat, fcntl_getfl, major, minor};

use crate::plan::flow::Amount;

/// The device numbers of /dev/null.
const NULL: (u32, u32) = (1, 3);

/// The kind of file that is standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file, with its size in bytes.
    File(u64),
    /// The null device, /dev/null.
    Nothing,
    /// Any other file, such as a pipe or a terminal.
    Stream,
}

impl Kind {
    /// Determines the kind of standard input.
    pub(super) fn of_standard_input() -> Self {
        let Ok(stat) = rustix::fs::fstat(io::stdin()) else { return Self::Stream };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File(u64::try_from(stat.st_size).unwrap_or(0)),
            _ if is_null(&stat) => Self::Nothing,
            _ => Self::Stream,
        }
    }

    /// Returns the amount of data to read, or `None` for a stream.
    pub(super) fn amount(self) -> Option<Amount> {
        match self {
            Self::File(bytes) => Some(Amount::of_rest(io::stdin(), bytes)),
            Self::Nothing => Some(Amount::of_bytes(&[])),
            Self::Stream => None,
        }
    }
}

/// Returns whether standard input is a file, a stream or a device that this process may read. For
/// any other kind, the command that reads it reports the error.
pub(super) fn can_be_read() -> bool {
    let stdin = io::stdin();
    let is_folder = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let may_read = |flags: OFlags| flags & OFlags::ACCMODE != OFlags::WRONLY;
    rustix::fs::fstat(&stdin).is_ok_and(|stat| !is_folder(stat))
        && fcntl_getfl(&stdin).is_ok_and(may_read)
}

/// Returns whether a file status is that of /dev/null.
pub(super) fn is_null(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL
}

/// Returns whether standard input, a regular file, has holes after the current position.
pub(super) fn has_holes() -> bool {
    let here = rustix::fs::tell(io::stdin()).unwrap_or(0);
    let hole = rustix::fs::seek(io::stdin(), SeekFrom::Hole(here));
    let end = rustix::fs::fstat(io::stdin()).map_or(0, |stat| stat.st_size.cast_unsigned());
    let _ = rustix::fs::seek(io::stdin(), SeekFrom::Start(here)); // restores the position
    hole.is_ok_and(|hole| hole < end)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_null_device_is_told_from_others() {
        let stat =
            |path: &str| rustix::fs::fstat(File::open(path).expect("a device")).expect("open");
        assert!(is_null(&stat("/dev/null")));
        assert!(!is_null(&stat("/dev/zero")));
        assert!(!is_null(&stat("/proc/self/exe")));
    }

    #[test]
    fn only_a_stream_is_of_unknown_size() {
        assert_eq!(Kind::Stream.amount().map(|amount| amount.bytes), None);
        assert_eq!(Kind::Nothing.amount().map(|amount| amount.bytes), Some(0));
    }
}
