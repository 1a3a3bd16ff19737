//! Address space in which single pages come and go.

use std::io;
use std::ptr::NonNull;

/// Bytes of a page here. Memory is given back in these; where the kernel's pages are larger, in
/// whole ones of its own.
pub const PAGE: usize = 4096;

/// Private anonymous memory that is there as far as it has been written to. Unmapped when
/// dropped.
#[derive(Debug)]
pub struct Reserved {
    start: NonNull<u8>,
    length: usize,
    /// Bytes of a page as the kernel has them, a multiple of [`PAGE`].
    granule: usize,
}

// SAFETY: the mapping belongs to whoever owns this value, and the value only hands out addresses.
unsafe impl Send for Reserved {}
// SAFETY: as above; `give_back` leaves it to its caller that nobody uses the range.
unsafe impl Sync for Reserved {}

impl Reserved {
    /// Reserves at most `length` bytes and at least `least`, both multiples of [`PAGE`]: half as
    /// much, and half of that, where limits (`RLIMIT_AS`, strict overcommit) do not allow more.
    ///
    /// # Errors
    /// `ENOMEM` where not even `least` is to be had.
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
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing there is.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start: NonNull<u8> = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // One page at a time is to come and go, also where huge pages are the rule.
        // SAFETY: the range is the new mapping. Where the kernel knows no huge pages it refuses.
        unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_NOHUGEPAGE) };
        Ok(Self { start, length, granule: rustix::param::page_size().max(PAGE) })
    }

    /// Where it begins.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes there are addresses for.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Makes the kernel find memory for a range at once, which takes a fraction of the time of a
    /// fault for each page. Older kernels refuse, and the pages come one by one.
    ///
    /// # Panics
    /// If it is not within the reservation.
    pub fn populate(&self, offset: usize, length: usize) {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        let begin = offset / self.granule * self.granule;
        // SAFETY: the range lies in the mapping, as checked.
        let at = unsafe { self.start.as_ptr().add(begin) };
        let length = offset + length - begin;
        // SAFETY: populating changes no content.
        unsafe { libc::madvise(at.cast(), length, libc::MADV_POPULATE_WRITE) };
    }

    /// Gives a range back to the kernel, as far as whole pages of its own lie in it. Read again, it
    /// is zeros, or what it was.
    ///
    /// # Safety
    /// Nothing of the range is borrowed or needed any more.
    ///
    /// # Panics
    /// If it is not within the reservation.
    pub unsafe fn give_back(&self, offset: usize, length: usize) {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        let (begin, end) = whole_pages(offset, length, self.granule);
        if begin >= end {
            return;
        }
        // SAFETY: the range lies in the mapping, as checked.
        let at = unsafe { self.start.as_ptr().add(begin) };
        // SAFETY: the caller needs nothing of it. It fails for memory that is locked, which then
        // stays.
        unsafe { libc::madvise(at.cast(), end - begin, libc::MADV_DONTNEED) };
    }
}

/// Beginning and end of the pages of this size that lie in a range.
fn whole_pages(offset: usize, length: usize, granule: usize) -> (usize, usize) {
    (offset.next_multiple_of(granule), (offset + length) / granule * granule)
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nobody can have an address of it by right.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_pages_are_larger_whole_ones_are_given_back() {
        assert_eq!(whole_pages(PAGE, 2 * PAGE, PAGE), (PAGE, 3 * PAGE));
        let large = 4 * PAGE;
        assert_eq!(whole_pages(PAGE, 8 * PAGE, large), (large, 2 * large));
        let (begin, end) = whole_pages(large, PAGE, large);
        assert!(begin >= end, "its neighbours live on");
    }

    #[test]
    fn what_was_given_back_is_zeros() {
        let reserved = Reserved::at_most(1 << 40, PAGE).expect("some");
        assert!(reserved.length() >= PAGE && reserved.length().is_multiple_of(PAGE));
        let first = reserved.start();
        // SAFETY: the first byte is mapped, and nobody else has it.
        unsafe { first.write(7) };
        reserved.populate(0, PAGE);
        // SAFETY: as above.
        assert_eq!(unsafe { first.read() }, 7);
        // SAFETY: nothing of it is borrowed.
        unsafe { reserved.give_back(0, PAGE) };
        // SAFETY: as above.
        assert_eq!(unsafe { first.read() }, 0);
    }
}
