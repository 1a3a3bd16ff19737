//! Memory mappings: private, shared with other processes, or of a file.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, unmapped when dropped. Forked processes inherit it: the same memory, or a copy if it
/// is private.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// Whether the mapping is writable (`PROT_WRITE`).
    writes: bool,
}

// SAFETY: the value is an address and a length; code that accesses the memory states why that is
// sound.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The contents of a mapping, and the processes that share them.
#[derive(Debug, Clone, Copy)]
pub enum Backing<'a> {
    /// Zeros, private to this process.
    Private,
    /// Zeros, shared with processes forked from this one.
    Shared,
    /// A file from its beginning, shared with every process that maps it, readable and writable.
    File(BorrowedFd<'a>),
    /// A file from its beginning, shared with every process that maps it, read-only.
    FileToRead(BorrowedFd<'a>),
}

impl Mapping {
    /// Maps `length` bytes (1 if that is 0), rounded up to the end of the last page. Accessing
    /// pages beyond the end of a file raises SIGBUS.
    ///
    /// # Errors
    /// `ENOMEM`; `EACCES` if the file is not open for the required access.
    pub fn new(backing: Backing<'_>, length: usize) -> io::Result<Self> {
        Self::with_flags(backing, length, 0)
    }

    /// Maps `length` bytes as [`Mapping::new`] does, and populates all pages at once
    /// (`MAP_POPULATE`).
    ///
    /// # Errors
    /// `ENOMEM`; `EACCES` if the file is not open for the required access.
    pub fn populated(backing: Backing<'_>, length: usize) -> io::Result<Self> {
        Self::with_flags(backing, length, libc::MAP_POPULATE)
    }

    fn with_flags(backing: Backing<'_>, length: usize, more: i32) -> io::Result<Self> {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let (protection, flags, file) = match backing {
            Backing::Private => (both, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
            Backing::Shared => (both, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
            Backing::File(file) => (both, libc::MAP_SHARED, file.as_raw_fd()),
            Backing::FileToRead(file) => (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd()),
        };
        let length = length.max(1);
        let flags = flags | more;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, file, 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, length, writes: protection == both }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Gives the kernel advice on the use of the mapping (madvise(2)).
    ///
    /// # Errors
    /// `EINVAL` if the kernel does not know the advice, or does not support it for this mapping.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        let advice = match advice {
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::HugePages => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range is this mapping, and both kinds of advice leave its contents alone.
        let advised = unsafe { libc::madvise(self.start.as_ptr().cast(), self.length, advice) };
        if advised == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns the address of the first byte, which is page-aligned.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the address of the byte at offset `place`, which must be less than the length.
    fn at(&self, place: usize) -> NonNull<u8> {
        assert!(place < self.length, "the mapping is shorter");
        // SAFETY: within the mapping.
        unsafe { self.start.add(place) }
    }

    /// Returns whether the mapping is writable.
    pub(crate) fn can_be_written(&self) -> bool {
        self.writes
    }

    /// Returns the length in bytes: as requested (but at least 1), not rounded up to pages.
    pub fn length(&self) -> usize {
        self.length
    }
}

/// Advice to the kernel on the use of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The mapping is read or written from the beginning to the end (`MADV_SEQUENTIAL`).
    Sequential,
    /// The mapping should be backed by huge pages where possible (`MADV_HUGEPAGE`).
    HugePages,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping; mappings of other processes are not affected.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Operations on the bytes of mappings.
impl Mapping {
    /// Copies the first `bytes` bytes of `from` into this mapping, byte by byte, like an
    /// unoptimised loop over pointers.
    ///
    /// # Panics
    /// Panics if a mapping is shorter than `bytes`, or if this one is not writable.
    pub fn copy_by_byte(&self, from: &Self, bytes: usize) {
        assert!(bytes <= self.length && bytes <= from.length, "a mapping is shorter");
        assert!(self.writes, "the mapping cannot be written to");
        for place in 0..bytes {
            let (from, to) = (from.at(place), self.at(place));
            // SAFETY: mapped and readable.
            let byte = unsafe { from.read_volatile() };
            // SAFETY: mapped and writable.
            unsafe { to.write_volatile(byte) };
        }
    }

    /// Copies the first `bytes` bytes of `from` into this mapping with the C library's
    /// `memmove(3)`.
    ///
    /// # Panics
    /// Panics if a mapping is shorter than `bytes`, or if this one is not writable.
    pub fn copy(&self, from: &Self, bytes: usize) {
        assert!(bytes <= self.length && bytes <= from.length, "a mapping is shorter");
        assert!(self.writes, "the mapping cannot be written to");
        // SAFETY: both mappings are at least this long, and this one is writable. They may be the
        // same.
        unsafe { self.start.copy_from(from.start, bytes) };
    }

    /// Writes a zero to the first byte of every 4 KiB page. Returns the number of pages.
    ///
    /// # Panics
    /// Panics if the mapping is not writable.
    pub fn touch(&self) -> usize {
        assert!(self.writes, "the mapping cannot be written to");
        for place in (0..self.length).step_by(4096) {
            // SAFETY: mapped and writable.
            unsafe { self.at(place).write_volatile(0) };
        }
        self.length.div_ceil(4096)
    }

    /// Writes `bytes` bytes of this mapping, from offset `from` on, to a file (`write(2)`). Returns
    /// the number of bytes written, which may be less than `bytes`.
    ///
    /// # Errors
    /// Returns the error of write(2); `EFAULT` if the mapped memory cannot be read.
    ///
    /// # Panics
    /// Panics if the range is not within the mapping, or `from` is the mapping's length.
    pub fn write_to(&self, file: BorrowedFd<'_>, from: usize, bytes: usize) -> io::Result<usize> {
        let end = from.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.length), "the mapping is shorter");
        let start = self.at(from).as_ptr().cast();
        // SAFETY: the range is mapped, as checked; the kernel only reads it.
        let written = unsafe { libc::write(file.as_raw_fd(), start, bytes) };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }

    /// Returns the number of resident 4 KiB pages (`mincore(2)`), and the number of all 4 KiB pages
    /// of the mapping.
    ///
    /// # Errors
    /// `ENOMEM` if part of the range is not mapped.
    pub fn resident(&self) -> io::Result<(usize, usize)> {
        let mut pages = vec![0_u8; self.length.div_ceil(4096)];
        let start = self.start.as_ptr().cast();
        // SAFETY: the kernel writes one byte for each page of the mapping.
        if unsafe { libc::mincore(start, self.length, pages.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((pages.iter().filter(|&&page| page & 1 == 1).count(), pages.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn mapped_files_are_copied() {
        let (mut from, mut to) = (tempfile::tempfile(), tempfile::tempfile());
        let (from, to) = (from.as_mut().expect("a file"), to.as_mut().expect("a file"));
        let text: Vec<u8> = (0..10_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        from.write_all(&text).expect("written");
        let source = Mapping::new(Backing::FileToRead(from.as_fd()), text.len()).expect("mapped");
        let copies: [fn(&Mapping, &Mapping, usize); 2] = [Mapping::copy_by_byte, Mapping::copy];
        for copy in copies {
            to.set_len(0).expect("emptied");
            to.set_len(text.len() as u64).expect("as long");
            let target = Mapping::populated(Backing::File(to.as_fd()), text.len()).expect("mapped");
            copy(&target, &source, text.len());
            to.rewind().expect("at its beginning");
            let mut copied = Vec::new();
            to.read_to_end(&mut copied).expect("read");
            assert_eq!(copied, text);
            assert_eq!(target.resident().expect("all is mapped"), (3, 3));
        }
        source.advise(Advice::Sequential).expect("it is known");
        assert_eq!(source.write_to(to.as_fd(), 9000, 1000).expect("written"), 1000);
    }

    #[test]
    #[should_panic(expected = "the mapping is shorter")]
    fn a_range_beyond_all_addresses_is_not_written() {
        let file = tempfile::tempfile().expect("a file");
        let mapping = Mapping::new(Backing::Private, 4096).expect("mapped");
        let _ = mapping.write_to(file.as_fd(), 1, usize::MAX);
    }
}
