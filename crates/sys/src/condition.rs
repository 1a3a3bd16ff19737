//! A counting semaphore made of a mutex and a condition variable that processes share.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::shared::Shared;

/// The mutex, the condition variable, and the count that they guard.
#[repr(C)]
struct Raw {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    condition: UnsafeCell<libc::pthread_cond_t>,
    /// Number of posts that no thread has consumed yet; accessed only with the mutex locked.
    count: UnsafeCell<u64>,
}

/// A counting semaphore built from a mutex and a condition variable. The mutex is robust: if its
/// owner dies, the next thread to lock it recovers it.
pub struct Condition {
    raw: Shared<Raw>,
}

// SAFETY: mutexes and condition variables are made for use by several threads; their address does
// not change; the count is accessed with the mutex locked.
unsafe impl Send for Condition {}
// SAFETY: as above.
unsafe impl Sync for Condition {}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Condition")
    }
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

impl Condition {
    /// Creates a semaphore with count 0.
    ///
    /// # Errors
    /// `ENOMEM`; `ENOTSUP` if the C library lacks robust mutexes or ones that processes share.
    pub fn new() -> io::Result<Self> {
        let at: NonNull<Raw> = Shared::map()?;
        // SAFETY: the mapping is new, and all zeros are a valid initial content.
        let raw = unsafe { Shared::from_mapping(at) };
        let made = Self { raw };
        made.make_mutex()?;
        made.make_condition()?;
        Ok(made)
    }

    fn make_mutex(&self) -> io::Result<()> {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are valid for writes, and this call initialises them.
        check(unsafe { libc::pthread_mutexattr_init(attributes) })?;
        // SAFETY: initialised above.
        check(unsafe {
            libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED)
        })?;
        // SAFETY: as above.
        check(unsafe {
            libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST)
        })?;
        // SAFETY: the mutex is not in use yet.
        let made = check(unsafe { libc::pthread_mutex_init(self.mutex(), attributes) });
        // SAFETY: initialised above, and not used again.
        unsafe { libc::pthread_mutexattr_destroy(attributes) };
        made
    }

    fn make_condition(&self) -> io::Result<()> {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are valid for writes, and this call initialises them.
        check(unsafe { libc::pthread_condattr_init(attributes) })?;
        // SAFETY: initialised above.
        check(unsafe {
            libc::pthread_condattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED)
        })?;
        // SAFETY: the condition is not in use yet.
        let made = check(unsafe { libc::pthread_cond_init(self.condition(), attributes) });
        // SAFETY: initialised above, and not used again.
        unsafe { libc::pthread_condattr_destroy(attributes) };
        made
    }

    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        // SAFETY: within the mapping, which lives as long as this value.
        UnsafeCell::raw_get(unsafe { &raw const (*self.raw.address().as_ptr()).mutex })
    }

    fn condition(&self) -> *mut libc::pthread_cond_t {
        // SAFETY: as above.
        UnsafeCell::raw_get(unsafe { &raw const (*self.raw.address().as_ptr()).condition })
    }

    fn count(&self) -> *mut u64 {
        // SAFETY: as above.
        UnsafeCell::raw_get(unsafe { &raw const (*self.raw.address().as_ptr()).count })
    }

    /// Increments the count, and wakes one waiter.
    ///
    /// # Errors
    /// None is known.
    pub fn post(&self) -> io::Result<()> {
        self.lock()?;
        // SAFETY: the mutex is locked.
        unsafe { *self.count() += 1 };
        // SAFETY: the condition is initialised.
        check(unsafe { libc::pthread_cond_signal(self.condition()) })?;
        self.unlock()
    }

    /// Blocks until the count is positive, and decrements it.
    ///
    /// # Errors
    /// None is known.
    pub fn wait(&self) -> io::Result<()> {
        self.lock()?;
        loop {
            // SAFETY: the mutex is locked.
            let count = unsafe { self.count().read() };
            if count > 0 {
                // SAFETY: as above.
                unsafe { self.count().write(count - 1) };
                return self.unlock();
            }
            // SAFETY: both are initialised, and the mutex is locked by this thread.
            let waited = unsafe { libc::pthread_cond_wait(self.condition(), self.mutex()) };
            self.locked(waited)?;
        }
    }

    fn lock(&self) -> io::Result<()> {
        // SAFETY: the mutex is initialised.
        let locked = unsafe { libc::pthread_mutex_lock(self.mutex()) };
        self.locked(locked)
    }

    /// Checks the result of an operation that locks the mutex, and recovers the mutex if its owner
    /// has died, which is sound because the count is always consistent.
    fn locked(&self, result: i32) -> io::Result<()> {
        if result == libc::EOWNERDEAD {
            // SAFETY: the mutex is locked by this thread.
            return check(unsafe { libc::pthread_mutex_consistent(self.mutex()) });
        }
        check(result)
    }

    fn unlock(&self) -> io::Result<()> {
        // SAFETY: the mutex is locked by this thread.
        check(unsafe { libc::pthread_mutex_unlock(self.mutex()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::process::fork;

    #[test]
    fn a_child_waits_for_posts_after_an_owner_of_the_mutex_has_died() {
        let condition = Condition::new().expect("one");
        let dies = fork(|| i32::from(condition.lock().is_err()));
        assert_eq!(reap(dies.expect("a child")).expect("it ends").status, ExitStatus::Exited(0));
        let waits = fork(|| i32::from((0..3).any(|_| condition.wait().is_err())));
        for _ in 0..3 {
            condition.post().expect("posted");
        }
        assert_eq!(reap(waits.expect("a child")).expect("it ends").status, ExitStatus::Exited(0));
    }
}
