//! Memory that a process shares with the processes that it forks.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

/// A type whose values can be in memory that several processes share.
///
/// # Safety
/// The type must contain no pointers, so that a value means the same in every process. It must be
/// changed only in ways that work between processes: by atomic operations, or by calls made for
/// that purpose. It must need no drop.
pub unsafe trait Shareable: Sync {}

// SAFETY: atomics of a machine word or less are lock-free, and contain no pointers.
unsafe impl Shareable for AtomicBool {}
// SAFETY: as above.
unsafe impl Shareable for AtomicU32 {}
// SAFETY: as above.
unsafe impl Shareable for AtomicU64 {}
// SAFETY: as above.
unsafe impl Shareable for AtomicI64 {}
// SAFETY: as each element.
unsafe impl<T: Shareable, const N: usize> Shareable for [T; N] {}
// SAFETY: as its content.
unsafe impl<T: Shareable> Shareable for Line<T> {}

/// A value alone on its cache lines and on those that the CPU prefetches with them.
#[derive(Debug, Default)]
#[repr(C, align(256))]
pub struct Line<T>(pub T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A value that this process shares with all processes forked after its creation. Each process
/// unmaps its own mapping when it drops the value.
#[derive(Debug)]
pub struct Shared<T> {
    at: NonNull<T>,
}

// SAFETY: only shared references are given out, to a value that is `Sync`, as every `Shareable` is.
unsafe impl<T: Shareable> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Maps zeroed shared memory for a value of type `T`, and returns its address.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn map() -> io::Result<NonNull<T>> {
        const { assert!(align_of::<T>() <= 4096 && !std::mem::needs_drop::<T>()) };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let length = size_of::<T>().max(1);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(start),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Takes ownership of a mapping that holds a value.
    ///
    /// # Safety
    /// The mapping must come from [`Shared::map`] and hold a valid value, and no other owner may
    /// unmap it.
    pub(crate) unsafe fn from_mapping(at: NonNull<T>) -> Self {
        Self { at }
    }

    /// Returns the address of the value.
    pub(crate) fn address(&self) -> NonNull<T> {
        self.at
    }
}

impl<T: Shareable> Shared<T> {
    /// Moves a value into new shared memory.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(value: T) -> io::Result<Self> {
        let at = Self::map()?;
        // SAFETY: the mapping is new, long enough and aligned.
        unsafe { at.write(value) };
        // SAFETY: as above, and the mapping has no other owner.
        Ok(unsafe { Self::from_mapping(at) })
    }
}

impl<T: Shareable> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping has a value as long as this process has not unmapped it, and the
        // value is only changed in ways that shared references allow.
        unsafe { self.at.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping; mappings of other processes are not affected.
        unsafe { libc::munmap(self.at.as_ptr().cast(), size_of::<T>().max(1)) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::process::fork;

    #[test]
    fn writes_of_a_child_are_visible() {
        let shared = Shared::new([const { Line(AtomicU64::new(1)) }; 2]).expect("memory");
        let child = fork(|| {
            shared[1].fetch_add(41, Ordering::SeqCst);
            0
        });
        assert_eq!(reap(child.expect("a child")).expect("it ends").status, ExitStatus::Exited(0));
        assert_eq!(shared.each_ref().map(|line| line.load(Ordering::SeqCst)), [1, 42]);
    }
}
