//! Signal masks of threads.

use std::mem::MaybeUninit;

/// A thread's signal mask.
#[derive(Debug, Clone, Copy)]
pub struct Mask(pub(crate) libc::sigset_t);

impl Mask {
    /// Returns a mask that blocks all signals.
    pub fn all() -> Self {
        Self::of_bits(u64::MAX)
    }

    /// Returns the mask of the calling thread.
    pub(crate) fn current() -> Self {
        let mut mask = Self(empty_set());
        // SAFETY: with a null set, the call only writes the current mask into one that is
        // initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask.0) };
        mask
    }

    /// Creates a mask from bits: bit n - 1 is signal n.
    pub(crate) fn of_bits(bits: u64) -> Self {
        let mut mask = Self(empty_set());
        for signal in (1..=64).filter(|signal| bits >> (signal - 1) & 1 == 1) {
            // SAFETY: the set is initialised; the call refuses invalid signal numbers.
            unsafe { libc::sigaddset(&raw mut mask.0, signal) };
        }
        mask
    }

    /// Returns the blocked signals: bit n - 1 is signal n.
    pub(crate) fn bits(&self) -> u64 {
        (1..=64).filter(|&n| self.blocks(n)).fold(0, |bits, n| bits | 1 << (n - 1))
    }

    /// Returns whether the mask blocks `signal`.
    pub(crate) fn blocks(&self, signal: i32) -> bool {
        // SAFETY: the set is initialised; the call refuses invalid signal numbers.
        unsafe { libc::sigismember(&raw const self.0, signal) == 1 }
    }

    /// Returns the mask without `signal`.
    pub(crate) fn without(mut self, signal: i32) -> Self {
        // SAFETY: the set is initialised; the call refuses invalid signal numbers.
        unsafe { libc::sigdelset(&raw mut self.0, signal) };
        self
    }

    /// Returns whether the mask blocks no signal.
    pub fn is_empty(&self) -> bool {
        self.bits() == 0
    }

    /// Installs the mask for the calling thread. Safe to call between fork and exec.
    pub fn restore(self) {
        // SAFETY: the set is initialised; a null pointer discards the old mask.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

pub(crate) fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is valid for writes, and sigemptyset initialises it.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised above.
    unsafe { set.assume_init() }
}
