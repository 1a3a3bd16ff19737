//! Memory by the page, shared with other processes or not, of a file or of none.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, unmapped when it is dropped. Processes forked from this one have it, too: the same
/// memory, unless it is private.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// It can be written to.
    writes: bool,
}

// SAFETY: it is an address and a length; whoever reads or writes there says why that is sound.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// What stands behind a mapping.
#[derive(Debug, Clone, Copy)]
pub enum Backing<'a> {
    /// Zeros, for this process alone.
    Private,
    /// Zeros, for this process and those that are forked from it.
    Shared,
    /// A file from its beginning, for everybody who maps it: to read and write.
    File(BorrowedFd<'a>),
    /// A file from its beginning, to read.
    FileToRead(BorrowedFd<'a>),
}

impl Mapping {
    /// Maps so many bytes, and more up to the end of the last page.
    ///
    /// # Errors
    /// `ENOMEM`; `EACCES` where the file is not open for that.
    pub fn new(backing: Backing<'_>, length: usize) -> io::Result<Self> {
        Self::with_flags(backing, length, 0)
    }

    /// The same, and has all of its pages ready at once (`MAP_POPULATE`).
    ///
    /// # Errors
    /// As [`Mapping::new`].
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
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing there is.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, file, 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, length, writes: protection == both }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Tells the kernel how it will be used.
    ///
    /// # Errors
    /// `EINVAL` where the kernel does not know the advice, or not for such a mapping.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        let advice = match advice {
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::HugePages => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range is this mapping, and these advices leave its contents alone.
        let advised = unsafe { libc::madvise(self.start.as_ptr().cast(), self.length, advice) };
        if advised == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Where it begins: at a page.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// A place in it.
    fn at(&self, place: usize) -> NonNull<u8> {
        assert!(place < self.length, "the mapping is shorter");
        // SAFETY: within the mapping.
        unsafe { self.start.add(place) }
    }

    /// Whether it can be written to.
    pub(crate) fn can_be_written(&self) -> bool {
        self.writes
    }

    /// How many bytes it has.
    pub fn length(&self) -> usize {
        self.length
    }
}

/// What the kernel is told of the use of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// From the beginning to the end (`MADV_SEQUENTIAL`).
    Sequential,
    /// By huge pages, where there can be some (`MADV_HUGEPAGE`).
    HugePages,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's; what others have of it stays.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// What is done with whole mappings; both have to be so long.
impl Mapping {
    /// Copies bytes of another mapping into this one, a byte at a time, as a loop over pointers does that
    /// nobody optimises.
    ///
    /// # Panics
    /// Where one of them is shorter, or this one cannot be written to.
    pub fn copy_by_byte(&self, from: &Self, bytes: usize) {
        assert!(bytes <= self.length && bytes <= from.length, "a mapping is shorter");
        assert!(self.writes, "the mapping cannot be written to");
        for place in 0..bytes {
            let (from, to) = (from.at(place), self.at(place));
            // SAFETY: mapped, and can be read.
            let byte = unsafe { from.read_volatile() };
            // SAFETY: mapped, and can be written to.
            unsafe { to.write_volatile(byte) };
        }
    }

    /// Copies bytes of another mapping into this one, as fast as the library can (`memmove(3)`, which
    /// is `memcpy(3)` with a look at where both are).
    ///
    /// # Panics
    /// Where one of them is shorter, or this one cannot be written to.
    pub fn copy(&self, from: &Self, bytes: usize) {
        assert!(bytes <= self.length && bytes <= from.length, "a mapping is shorter");
        assert!(self.writes, "the mapping cannot be written to");
        // SAFETY: both are so long, and this one can be written to. They may be one and the same.
        unsafe { self.start.copy_from(from.start, bytes) };
    }

    /// Writes a zero to the beginning of every page. How many pages.
    ///
    /// # Panics
    /// Where it cannot be written to.
    pub fn touch(&self) -> usize {
        assert!(self.writes, "the mapping cannot be written to");
        for place in (0..self.length).step_by(4096) {
            // SAFETY: mapped, and can be written to.
            unsafe { self.at(place).write_volatile(0) };
        }
        self.length.div_ceil(4096)
    }

    /// Writes bytes of this mapping to a file (`write(2)`), from a place on. How many.
    ///
    /// # Errors
    /// As write(2); `EFAULT` where what is mapped cannot be read.
    ///
    /// # Panics
    /// Where it is shorter.
    pub fn write_to(&self, file: BorrowedFd<'_>, from: usize, bytes: usize) -> io::Result<usize> {
        assert!(from + bytes <= self.length, "the mapping is shorter");
        let start = self.at(from).as_ptr().cast();
        // SAFETY: so many bytes are mapped there; the kernel alone reads them.
        let written = unsafe { libc::write(file.as_raw_fd(), start, bytes) };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }

    /// How many of its pages are in memory (`mincore(2)`), and how many it has.
    ///
    /// # Errors
    /// `ENOMEM` where a part is not mapped.
    pub fn resident(&self) -> io::Result<(usize, usize)> {
        let mut pages = vec![0_u8; self.length.div_ceil(4096)];
        let start = self.start.as_ptr().cast();
        // SAFETY: a byte for each page of the mapping is written.
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
}
