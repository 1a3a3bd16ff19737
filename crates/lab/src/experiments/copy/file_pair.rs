//! The source and target files of `copy/file`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use contend_sys::mapping::{Backing, Mapping};
use rustix::fs::{Advice, fadvise, fsync};

use super::location::Location;
use crate::support::unnamed_file::{path_of, unnamed_in};

/// A source and a target file, both without a name in the file system.
#[derive(Debug)]
pub struct FilePair {
    folder: PathBuf,
    source: File,
    target: File,
    bytes: u64,
}

impl FilePair {
    /// Creates an empty target, and a source of `bytes` pseudo-random bytes that are the same in
    /// every run.
    ///
    /// # Errors
    /// Returns an error if there is no writable folder at `location`, or a file cannot be created
    /// or written.
    pub fn new(location: Location, bytes: u64) -> io::Result<Self> {
        let folder = location.folder().ok_or(io::ErrorKind::NotFound)?;
        let (mut source, target) = (unnamed_in(&folder)?, unnamed_in(&folder)?);
        let mut random = fastrand::Rng::with_seed(bytes);
        let mut block = vec![0; BLOCK_BYTES];
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK_BYTES);
            random.fill(&mut block[..part]);
            source.write_all(&block[..part])?;
            left -= part as u64;
        }
        Ok(Self { folder, source, target, bytes })
    }

    /// Returns a path by which the source can be opened while this pair exists.
    pub fn source(&self) -> PathBuf {
        path_of(&self.source)
    }

    /// Returns a path by which the target can be opened until [`Self::verify_copy`] replaces it.
    pub fn target(&self) -> PathBuf {
        path_of(&self.target)
    }

    /// Returns the folder in which both files were created.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Evicts the source from the page cache, as far as the kernel permits, and returns the
    /// fraction of pages that are still cached.
    ///
    /// # Errors
    /// Returns the error of the failed system call.
    pub fn evict_source(&self) -> io::Result<f64> {
        fsync(&self.source)?; // dirty pages cannot be evicted
        fadvise(&self.source, 0, None, Advice::DontNeed)?;
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let mapping = Mapping::new(Backing::FileToRead(self.source.as_fd()), bytes)?;
        let (resident, all) = mapping.resident()?;
        Ok(resident as f64 / all.max(1) as f64)
    }

    /// Reads the whole source into the page cache.
    ///
    /// # Errors
    /// Returns the error of the failed system call.
    pub fn cache_source(&self) -> io::Result<()> {
        let (mut block, mut offset) = (vec![0; BLOCK_BYTES], 0);
        loop {
            match self.source.read_at(&mut block, offset)? {
                0 => return Ok(()),
                bytes => offset += bytes as u64,
            }
        }
    }

    /// Replaces the target by a new, empty file, and compares the previous target with the source.
    ///
    /// # Errors
    /// Returns an error if the files differ or a system call fails.
    pub fn verify_copy(&mut self) -> io::Result<()> {
        let target = std::mem::replace(&mut self.target, unnamed_in(&self.folder)?);
        if target.metadata()?.len() != self.bytes {
            return Err(io::Error::other("the copy and the source differ in length"));
        }
        let mut blocks = [vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]];
        let mut offset = 0;
        while offset < self.bytes {
            let part = usize::try_from(self.bytes - offset).unwrap_or(usize::MAX).min(BLOCK_BYTES);
            for (file, block) in [&self.source, &target].into_iter().zip(&mut blocks) {
                file.read_exact_at(&mut block[..part], offset)?;
            }
            if blocks[0][..part] != blocks[1][..part] {
                return Err(io::Error::other("the copy and the source differ in content"));
            }
            offset += part as u64;
        }
        Ok(())
    }
}

/// Length of the blocks in which the files are written, read and compared.
const BLOCK_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn differing_copies_are_detected() {
        let location =
            if Location::Disk.folder().is_some() { Location::Disk } else { Location::Tmpfs };
        let mut files = FilePair::new(location, 3_000_000).expect("room");
        assert_eq!(fs::metadata(files.source()).expect("it is there").len(), 3_000_000);
        let mut copy = |change: fn(&mut Vec<u8>)| {
            let mut bytes = fs::read(files.source()).expect("it is there");
            change(&mut bytes);
            fs::write(files.target(), bytes).expect("room");
            files.verify_copy().map_err(|error| error.to_string())
        };
        assert_eq!(copy(|_| ()), Ok(()));
        assert!(copy(|bytes| bytes[2_999_999] ^= 1).expect_err("one differs").contains("content"));
        assert!(copy(|bytes| bytes.push(0)).expect_err("it is longer").contains("length"));
        assert!(copy(|bytes| bytes.truncate(10)).is_err());
        files.cache_source().expect("it can be read");
        assert!((0.0..=1.0).contains(&files.evict_source().expect("it is known")));
    }
}
