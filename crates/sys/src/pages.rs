//! Private anonymous mappings, with ordinary or huge pages.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

/// A private anonymous mapping, unmapped when dropped.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<libc::c_void>,
    length: usize,
}

// SAFETY: the mapping belongs to the owner of this value; access is through `&self` methods that
// are atomic, or through `&mut self`.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

/// Page sizes that the kernel may use for a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSize {
    /// Ordinary pages only.
    Base,
    /// Huge pages where available (`MADV_HUGEPAGE`).
    Huge,
}

impl Pages {
    /// Maps `length` bytes of zeros, which use no memory until they are accessed.
    ///
    /// # Errors
    /// `ENOMEM`, also if a limit on mappings or address space is reached; `EINVAL` if `length` is
    /// 0.
    pub fn map(length: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        match NonNull::new(start).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, length }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Maps `length` bytes in pages of `size`, and writes a 1 to the first byte of every 4 KiB, so
    /// that all pages are allocated.
    ///
    /// # Errors
    /// As for [`Pages::map`].
    pub fn touched(length: usize, size: PageSize) -> io::Result<Self> {
        let mut pages = Self::map(length)?;
        let advice = match size {
            PageSize::Base => libc::MADV_NOHUGEPAGE,
            PageSize::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range is this mapping. A kernel without huge pages returns an error, and
        // pages are of base size anyway.
        unsafe { libc::madvise(pages.start.as_ptr(), length, advice) };
        // Populating all pages at once is several times as fast as one fault for each page. Older
        // kernels return an error.
        // SAFETY: as above.
        unsafe { libc::madvise(pages.start.as_ptr(), length, libc::MADV_POPULATE_WRITE) };
        for byte in pages.bytes().iter_mut().step_by(4096) {
            *byte = 1;
        }
        Ok(pages)
    }

    /// Returns all bytes of the mapping.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is readable and writable for its length, zeroed, and borrowed
        // for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.length) }
    }

    /// Returns the first 8 bytes of the mapping as an atomic integer.
    pub fn number(&self) -> &AtomicI64 {
        // SAFETY: a mapping begins at a page, so it is aligned, and is longer than a number;
        // it was zeroed, and is unmapped only when no reference is left.
        unsafe { self.start.cast().as_ref() }
    }

    /// Returns the address of the first byte, for display.
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// Returns the address after the last byte.
    pub(crate) fn end(&self) -> *mut libc::c_void {
        // SAFETY: one past the end of the mapping.
        unsafe { self.start.as_ptr().byte_add(self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr(), self.length) };
    }
}

/// Increments `number` and returns the new value.
pub fn increment(number: &AtomicI64) -> i64 {
    number.fetch_add(1, Ordering::SeqCst) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_are_resident() {
        let mut pages = Pages::touched(64 * 1024, PageSize::Base).expect("memory");
        assert_eq!(pages.bytes().iter().map(|&byte| u32::from(byte)).sum::<u32>(), 16);
        assert_eq!(pages.address() % 4096, 0);
        let pages = Pages::map(4096).expect("memory");
        assert_eq!(increment(pages.number()), 1);
        assert!(Pages::map(usize::MAX / 2).is_err());
    }
}
