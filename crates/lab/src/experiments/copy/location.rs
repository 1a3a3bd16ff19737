//! Locations of copied files, on a disk or in memory (tmpfs), and the file systems there.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{fstatfs, statvfs};

use crate::support::limits;

/// The kind of file system that holds the source and target of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// A file system on a disk, or any other that is not purely in memory.
    Disk,
    /// A tmpfs, which is in memory.
    Tmpfs,
}

/// The storage medium of a file system, derived from its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Memory only.
    Memory,
    /// A local disk.
    Disk,
    /// A network, another file system, or an unknown medium.
    Other,
}

impl Storage {
    /// Returns the value of the `limit` fact for a copy on this storage that spends the largest
    /// share of its time waiting for anything but a CPU.
    pub fn waiting_limit(self) -> &'static str {
        match self {
            Self::Memory => "waiting, but not for a disk",
            Self::Disk => "waiting for the disk",
            Self::Other => "waiting for the file system",
        }
    }
}

/// Known file system types: magic number in `statfs(2)`, name, and storage medium.
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

/// Returns the name and storage medium of the folder's file system, or `None` if its type cannot be
/// read or is not in [`FILE_SYSTEMS`].
fn known_file_system(folder: &Path) -> Option<(&'static str, Storage)> {
    let magic = fstatfs(File::open(folder).ok()?).ok()?.f_type;
    FILE_SYSTEMS.iter().find(|kind| kind.0 == magic).map(|&(_, name, storage)| (name, storage))
}

impl Location {
    /// Values of the `place` parameter, by name.
    pub const NAMED: [(&'static str, Self); 2] = [("tmpfs", Self::Tmpfs), ("disk", Self::Disk)];

    /// Returns the names of all locations.
    pub fn names() -> Vec<&'static str> {
        Self::NAMED.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the location with the given name, or `None` if there is none.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, location)| location)
    }

    /// Returns a writable folder at this location, or `None` if there is none among the folder for
    /// temporary files, `/dev/shm`, `/run/shm`, `/var/tmp` and the home directory.
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

    /// Returns why two files of `bytes` bytes each may not be stored at this location, or `None` if
    /// they may or the free space is unknown. Some space, and on a tmpfs some memory, has to stay
    /// free for other programs.
    pub fn unavailable(self, bytes: u64) -> Option<String> {
        /// Number of bytes to leave free for other programs.
        const RESERVED_BYTES: u64 = 64 << 20;
        let Some(folder) = self.folder() else {
            return Some(match self {
                Self::Disk => "no writable folder on a disk found; set TMPDIR to one".to_owned(),
                Self::Tmpfs => "no writable folder in a tmpfs found".to_owned(),
            });
        };
        let stats = statvfs(&folder).ok()?;
        let free = stats.f_bavail * stats.f_frsize;
        let needed = 2 * bytes + RESERVED_BYTES;
        if free < needed {
            return Some(format!(
                "needs {needed} bytes in {}, but only {free} are free",
                folder.display()
            ));
        }
        (self == Self::Tmpfs)
            .then(|| insufficient_memory(needed, limits::memory_available()))
            .flatten()
    }
}

/// Returns why files in a tmpfs may not use `needed` of the `available` bytes of memory, or `None`
/// if they may. `limits::memory_floor` bytes have to stay free. Checking the free space of the
/// tmpfs is not enough, because it can exceed the machine's memory.
fn insufficient_memory(needed: u64, available: u64) -> Option<String> {
    let free = available.saturating_sub(limits::memory_floor());
    (needed > free).then(|| format!("needs {needed} bytes of memory, but only {free} may be used"))
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Returns the name of the folder's file system type, or `unknown` if it is not in [`FILE_SYSTEMS`]
/// or cannot be read.
pub fn file_system_name(folder: &Path) -> &'static str {
    known_file_system(folder).map_or("unknown", |(name, _)| name)
}

/// Returns the storage medium of the folder's file system; [`Storage::Other`] if its type is not
/// known.
pub fn storage_of(folder: &Path) -> Storage {
    known_file_system(folder).map_or(Storage::Other, |(_, storage)| storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_file_systems_are_not_classified_as_disks() {
        for location in [Location::Disk, Location::Tmpfs] {
            let Some(folder) = location.folder() else { continue };
            assert_eq!(
                storage_of(&folder) == Storage::Memory,
                location == Location::Tmpfs,
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
        assert_eq!(reason, "needs 1001 bytes of memory, but only 1000 may be used");
        let all = limits::memory_available();
        assert!(Location::Tmpfs.unavailable(all).is_some(), "two files of {all} bytes each");
    }
}
