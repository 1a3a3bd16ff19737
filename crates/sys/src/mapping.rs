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
            Some(start) => Ok(Self { start, length }),
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
