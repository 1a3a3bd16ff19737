//! A reservation of address space in which single pages are populated and released.

use std::io;
use std::ptr::NonNull;

/// Page size that callers use, in bytes. Memory is released in units of this size, or of the
/// kernel's page size if that is larger.
pub const PAGE: usize = 4096;

/// Private anonymous memory that takes up pages only where it has been written to. Unmapped when
/// dropped.
#[derive(Debug)]
pub struct Reserved {
    start: NonNull<u8>,
    length: usize,
    /// The kernel's page size in bytes, a multiple of [`PAGE`].
    page_size: usize,
}

// SAFETY: the mapping belongs to the owner of this value, and the value only hands out addresses.
unsafe impl Send for Reserved {}
// SAFETY: as above; `release` requires of its caller that the range is not in use.
unsafe impl Sync for Reserved {}

impl Reserved {
    /// Reserves `length` bytes, or `least` if that is more. Where limits (`RLIMIT_AS`, strict
    /// overcommit) do not allow that, halves the size until the reservation succeeds, down to
    /// `least`. `length` and `least` must be positive multiples of [`PAGE`].
    ///
    /// # Errors
    /// `ENOMEM` if not even `least` bytes can be reserved.
    pub fn at_most(length: usize, least: usize) -> io::Result<Self> {
        let mut length = length.max(least);
        loop {
            match Self::exactly(length) {
                Err(_) if length > least => length = (length / 2 / PAGE * PAGE).max(least),
                done => return done,
            }
        }
    }

    fn exactly(length: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start: NonNull<u8> = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // Pages are populated and released one at a time, also where huge pages are the default.
        // SAFETY: the range is the new mapping. A kernel without huge pages returns an error.
        unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_NOHUGEPAGE) };
        Ok(Self { start, length, page_size: rustix::param::page_size().max(PAGE) })
    }

    /// Returns the address of the first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the size of the reservation in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Populates the pages of the `length` bytes from `offset` on in one call, in a fraction of the
    /// time that a fault for each page takes. Has no effect before Linux 5.14, which introduced
    /// `MADV_POPULATE_WRITE`: there, each page is populated on first write.
    ///
    /// # Panics
    /// Panics if the range is not within the reservation.
    pub fn populate(&self, offset: usize, length: usize) {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        let begin = offset / self.page_size * self.page_size;
        // SAFETY: the range lies in the mapping, as checked.
        let at = unsafe { self.start.as_ptr().add(begin) };
        let length = offset + length - begin;
        // SAFETY: populating changes no content.
        unsafe { libc::madvise(at.cast(), length, libc::MADV_POPULATE_WRITE) };
    }

    /// Returns memory to the kernel: the whole pages, of the kernel's page size, within the
    /// `length` bytes from `offset` on. They then read as zeros. Incomplete pages and locked memory
    /// keep their contents.
    ///
    /// # Safety
    /// Nothing in the range may be borrowed, and its contents must no longer be needed.
    ///
    /// # Panics
    /// Panics if the range is not within the reservation.
    pub unsafe fn release(&self, offset: usize, length: usize) {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        let (begin, end) = whole_pages(offset, length, self.page_size);
        if begin >= end {
            return;
        }
        // SAFETY: the range lies in the mapping, as checked.
        let at = unsafe { self.start.as_ptr().add(begin) };
        // SAFETY: the caller needs nothing in the range. The call fails for locked memory, which
        // remains in place.
        unsafe { libc::madvise(at.cast(), end - begin, libc::MADV_DONTNEED) };
    }
}

/// Returns the offsets at which the whole pages of `page_size` bytes begin and end within the
/// `length` bytes from `offset` on. If the first is not less than the second, there are no whole
/// pages.
fn whole_pages(offset: usize, length: usize, page_size: usize) -> (usize, usize) {
    (offset.next_multiple_of(page_size), (offset + length) / page_size * page_size)
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no valid user of an address in it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_kernel_pages_are_released() {
        assert_eq!(whole_pages(PAGE, 2 * PAGE, PAGE), (PAGE, 3 * PAGE));
        let large = 4 * PAGE;
        assert_eq!(whole_pages(PAGE, 8 * PAGE, large), (large, 2 * large));
        let (begin, end) = whole_pages(large, PAGE, large);
        assert!(begin >= end, "its neighbours live on");
    }

    #[test]
    fn released_pages_read_as_zeros() {
        let reserved = Reserved::at_most(1 << 40, PAGE).expect("some");
        assert!(reserved.length() >= PAGE && reserved.length().is_multiple_of(PAGE));
        let first = reserved.start();
        // SAFETY: the first byte is mapped, and has no other user.
        unsafe { first.write(7) };
        reserved.populate(0, PAGE);
        // SAFETY: as above.
        assert_eq!(unsafe { first.read() }, 7);
        // SAFETY: nothing in the page is borrowed.
        unsafe { reserved.release(0, PAGE) };
        // SAFETY: as above.
        assert_eq!(unsafe { first.read() }, 0);
    }
}
