//! Where files are copied: on a disk or in memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use contend_sys::mapping::{Backing, Mapping};
use rustix::fs::{Advice, fadvise, fstatfs, fsync, statvfs};

use crate::support::files::{path_of, unnamed_in};
use crate::support::limits;

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
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
const KINDS: [(i64, &str, Storage); 13] = [
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
fn kind_of(folder: &Path) -> Option<(&'static str, Storage)> {
    let magic = fstatfs(File::open(folder).ok()?).ok()?.f_type;
    KINDS.iter().find(|kind| kind.0 == magic).map(|&(_, name, storage)| (name, storage))
}

impl Place {
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
        folders.into_iter().find(|folder| self.is_at(folder) && is_writable(folder))
    }

    fn is_at(self, folder: &Path) -> bool {
        match self {
            Self::Disk => folder.is_dir() && storage(folder) != Storage::Memory,
            Self::Tmpfs => kind_of(folder).is_some_and(|(name, _)| name == "tmpfs"),
        }
    }

    /// Why two files of so many bytes cannot be there, if so.
    pub fn unavailable(self, bytes: u64) -> Option<String> {
        /// For others to go on.
        const SPARE: u64 = 64 << 20;
        let Some(folder) = self.folder() else {
            return Some(match self {
                Self::Disk => "found no folder on a disk to write to: set TMPDIR to one".to_owned(),
                Self::Tmpfs => "found no folder in memory (tmpfs) to write to".to_owned(),
            });
        };
        let room = statvfs(&folder).ok()?;
        let free = room.f_bavail * room.f_frsize;
        let needed = 2 * bytes + SPARE;
        if free < needed {
            return Some(format!(
                "needs {needed} bytes in {}, and {free} are free",
                folder.display()
            ));
        }
        (self == Self::Tmpfs).then(|| no_memory_for(needed, limits::memory_available())).flatten()
    }
}

/// Why two files that are in memory alone may not take so much of it, if so. A tmpfs may be larger than the
/// memory behind it.
fn no_memory_for(needed: u64, available: u64) -> Option<String> {
    let free = available.saturating_sub(limits::memory_floor());
    (needed > free).then(|| format!("needs {needed} bytes of memory, and {free} may be used"))
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The name of the kind of file system of a folder, as far as it is known here.
pub fn file_system(folder: &Path) -> &'static str {
    kind_of(folder).map_or("unknown", |(name, _)| name)
}

/// What is behind the file system of a folder.
pub fn storage(folder: &Path) -> Storage {
    kind_of(folder).map_or(Storage::Other, |(_, storage)| storage)
}

/// A file that is to be copied, and the one that it is copied to. Neither has a name.
#[derive(Debug)]
pub struct Bench {
    folder: PathBuf,
    source: File,
    target: File,
    bytes: u64,
}

impl Bench {
    /// Makes both, with bytes in the one that look random and are the same everywhere.
    ///
    /// # Errors
    /// What the kernel says of making them.
    pub fn new(place: Place, bytes: u64) -> io::Result<Self> {
        let folder = place.folder().ok_or(io::ErrorKind::NotFound)?;
        let (mut source, target) = (unnamed_in(&folder)?, unnamed_in(&folder)?);
        let mut random = fastrand::Rng::with_seed(bytes);
        let mut block = vec![0; BLOCK];
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK);
            random.fill(&mut block[..part]);
            source.write_all(&block[..part])?;
            left -= part as u64;
        }
        Ok(Self { folder, source, target, bytes })
    }

    /// What is to be copied.
    pub fn source(&self) -> PathBuf {
        path_of(&self.source)
    }

    /// What it is to be copied to: empty.
    pub fn target(&self) -> PathBuf {
        path_of(&self.target)
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the source out of memory, as far as the kernel does that: what part of it is still there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn chill(&self) -> io::Result<f64> {
        fsync(&self.source)?; // what is not on the disk cannot be taken out
        fadvise(&self.source, 0, None, Advice::DontNeed)?;
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let mapping = Mapping::new(Backing::FileToRead(self.source.as_fd()), bytes)?;
        let (resident, all) = mapping.resident()?;
        Ok(resident as f64 / all.max(1) as f64)
    }

    /// Has all of the source in memory.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn warm(&self) -> io::Result<()> {
        let (mut block, mut place) = (vec![0; BLOCK], 0);
        loop {
            match self.source.read_at(&mut block, place)? {
                0 => return Ok(()),
                bytes => place += bytes as u64,
            }
        }
    }

    /// Whether the target has the same bytes as the source. It is another one, empty, from then on.
    ///
    /// # Errors
    /// What the kernel says; that they differ.
    pub fn check(&mut self) -> io::Result<()> {
        let target = std::mem::replace(&mut self.target, unnamed_in(&self.folder)?);
        if target.metadata()?.len() != self.bytes {
            return Err(io::Error::other("the copy is not as long as what was copied"));
        }
        let mut blocks = [vec![0; BLOCK], vec![0; BLOCK]];
        let mut place = 0;
        while place < self.bytes {
            let part = usize::try_from(self.bytes - place).unwrap_or(usize::MAX).min(BLOCK);
            for (file, block) in [&self.source, &target].into_iter().zip(&mut blocks) {
                file.read_exact_at(&mut block[..part], place)?;
            }
            if blocks[0][..part] != blocks[1][..part] {
                return Err(io::Error::other("the copy differs from what was copied"));
            }
            place += part as u64;
        }
        Ok(())
    }
}

/// How much is made or compared at a time.
const BLOCK: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_file_system_in_memory_is_taken_for_a_disk() {
        for place in [Place::Disk, Place::Tmpfs] {
            let Some(folder) = place.folder() else { continue };
            assert_eq!(storage(&folder) == Storage::Memory, place == Place::Tmpfs, "{folder:?}");
        }
        let in_memory = |kind: &&(i64, &str, Storage)| kind.2 == Storage::Memory;
        let names: Vec<_> = KINDS.iter().filter(in_memory).map(|kind| kind.1).collect();
        assert_eq!(names, ["tmpfs", "ramfs"]);
        assert_eq!(file_system(Path::new("/proc")), "unknown");
        assert_eq!(storage(Path::new("/proc")), Storage::Other);
    }

    #[test]
    fn files_in_memory_leave_memory_for_others() {
        let floor = limits::memory_floor();
        assert_eq!(no_memory_for(1000, floor + 1000), None);
        let reason = no_memory_for(1001, floor + 1000).expect("too much");
        assert_eq!(reason, "needs 1001 bytes of memory, and 1000 may be used");
        let all = limits::memory_available();
        assert!(Place::Tmpfs.unavailable(all).is_some(), "two files of {all} bytes each");
    }

    #[test]
    fn copies_are_compared() {
        let place = if Place::Disk.folder().is_some() { Place::Disk } else { Place::Tmpfs };
        let mut bench = Bench::new(place, 3_000_000).expect("room");
        assert_eq!(fs::metadata(bench.source()).expect("it is there").len(), 3_000_000);
        let mut copy = |change: fn(&mut Vec<u8>)| {
            let mut bytes = fs::read(bench.source()).expect("it is there");
            change(&mut bytes);
            fs::write(bench.target(), bytes).expect("room");
            bench.check().map_err(|error| error.to_string())
        };
        assert_eq!(copy(|_| ()), Ok(()));
        assert!(copy(|bytes| bytes[2_999_999] ^= 1).expect_err("one differs").contains("differs"));
        assert!(copy(|bytes| bytes.push(0)).expect_err("it is longer").contains("as long"));
        assert!(copy(|bytes| bytes.truncate(10)).is_err());
        bench.warm().expect("it can be read");
        assert!((0.0..=1.0).contains(&bench.chill().expect("it is known")));
    }
}
