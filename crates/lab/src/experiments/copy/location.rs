//! Where files are copied: on a disk or in memory.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{fstatfs, statvfs};

use crate::support::limits;

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// One on a disk, or whatever is not memory alone.
    Disk,
    /// One in memory.
    Tmpfs,
}

/// What is behind a file system, as far as its kind tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Memory alone.
    Memory,
    /// A disk.
    Disk,
    /// A network, another file system, or what is not known here.
    Other,
}

impl Storage {
    /// What a copy that waits there waits for.
    pub fn waiting(self) -> &'static str {
        match self {
            Self::Memory => "waiting, though not for a disk",
            Self::Disk => "waiting for the disk",
            Self::Other => "waiting for the file system",
        }
    }
}

/// What `statfs(2)` says of a kind of file system, its name, and what is behind it.
const FILE_SYSTEMS: [(i64, &str, Storage); 13] = [
    (0x0102_1994, "tmpfs", Storage::Memory),
    (0x8584_58f6, "ramfs", Storage::Memory),
    (0xef53, "ext2, ext3 or ext4", Storage::Disk),
    (0x5846_5342, "xfs", Storage::Disk),
    (0x9123_683e, "btrfs", Storage::Disk),
    (0x2fc1_2fc1, "zfs", Storage::Disk),
    (0xf2f5_2010, "f2fs", Storage::Disk),
    (0xca45_1a4e, "bcachefs", Storage::Disk),
    (0x794c_7630, "overlay", Storage::Other),
    (0x6969, "nfs", Storage::Other),
    (0x0102_1997, "9p", Storage::Other),
    (0x6573_5546, "fuse", Storage::Other),
    (0xff53_4d42, "cifs", Storage::Other),
];

/// The kind of file system of a folder, if it is known here.
fn known_file_system(folder: &Path) -> Option<(&'static str, Storage)> {
    let magic = fstatfs(File::open(folder).ok()?).ok()?.f_type;
    FILE_SYSTEMS.iter().find(|kind| kind.0 == magic).map(|&(_, name, storage)| (name, storage))
}

impl Location {
    /// Those with a name.
    pub const NAMED: [(&'static str, Self); 2] = [("tmpfs", Self::Tmpfs), ("disk", Self::Disk)];

    /// The names.
    pub fn names() -> Vec<&'static str> {
        Self::NAMED.iter().map(|(name, _)| *name).collect()
    }

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, place)| place)
    }

    /// A folder there that can be written to.
    pub fn folder(self) -> Option<PathBuf> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let known = ["/dev/shm", "/run/shm", "/var/tmp"].map(PathBuf::from);
        let folders = std::iter::once(std::env::temp_dir()).chain(known).chain(home);
        folders.into_iter().find(|folder| self.contains(folder) && is_writable(folder))
    }

    fn contains(self, folder: &Path) -> bool {
        match self {
            Self::Disk => folder.is_dir() && storage_of(folder) != Storage::Memory,
            Self::Tmpfs => known_file_system(folder).is_some_and(|(name, _)| name == "tmpfs"),
        }
    }

    /// Why two files of so many bytes cannot be there, if so.
    pub fn unavailable(self, bytes: u64) -> Option<String> {
        /// For others to go on.
        const RESERVED_BYTES: u64 = 64 << 20;
        let Some(folder) = self.folder() else {
            return Some(match self {
                Self::Disk => "found no folder on a disk to write to: set TMPDIR to one".to_owned(),
                Self::Tmpfs => "found no folder in memory (tmpfs) to write to".to_owned(),
            });
        };
        let room = statvfs(&folder).ok()?;
        let free = room.f_bavail * room.f_frsize;
        let needed = 2 * bytes + RESERVED_BYTES;
        if free < needed {
            return Some(format!(
                "needs {needed} bytes in {}, and {free} are free",
                folder.display()
            ));
        }
        (self == Self::Tmpfs)
            .then(|| insufficient_memory(needed, limits::memory_available()))
            .flatten()
    }
}

/// Why two files that are in memory alone may not take so much of it, if so. A tmpfs may be larger than the
/// memory behind it.
fn insufficient_memory(needed: u64, available: u64) -> Option<String> {
    let free = available.saturating_sub(limits::memory_floor());
    (needed > free).then(|| format!("needs {needed} bytes of memory, and {free} may be used"))
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The name of the kind of file system of a folder, as far as it is known here.
pub fn file_system_name(folder: &Path) -> &'static str {
    known_file_system(folder).map_or("unknown", |(name, _)| name)
}

/// What is behind the file system of a folder.
pub fn storage_of(folder: &Path) -> Storage {
    known_file_system(folder).map_or(Storage::Other, |(_, storage)| storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_file_systems_are_not_classified_as_disks() {
        for place in [Location::Disk, Location::Tmpfs] {
            let Some(folder) = place.folder() else { continue };
            assert_eq!(
                storage_of(&folder) == Storage::Memory,
                place == Location::Tmpfs,
                "{folder:?}"
            );
        }
        let in_memory = |kind: &&(i64, &str, Storage)| kind.2 == Storage::Memory;
        let names: Vec<_> = FILE_SYSTEMS.iter().filter(in_memory).map(|kind| kind.1).collect();
        assert_eq!(names, ["tmpfs", "ramfs"]);
        assert_eq!(file_system_name(Path::new("/proc")), "unknown");
        assert_eq!(storage_of(Path::new("/proc")), Storage::Other);
    }

    #[test]
    fn tmpfs_files_leave_memory_free() {
        let floor = limits::memory_floor();
        assert_eq!(insufficient_memory(1000, floor + 1000), None);
        let reason = insufficient_memory(1001, floor + 1000).expect("too much");
        assert_eq!(reason, "needs 1001 bytes of memory, and 1000 may be used");
        let all = limits::memory_available();
        assert!(Location::Tmpfs.unavailable(all).is_some(), "two files of {all} bytes each");
    }
}
