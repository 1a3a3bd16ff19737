//! State inherited across execve(2) that this process changes afterwards.
//!
//! Rust's runtime ignores SIGPIPE and opens `/dev/null` in place of closed standard descriptors.
//! This module resets SIGCHLD to its default action, because the kernel would otherwise reap
//! children itself. Children must start with the state that contend's own parent set up, so a
//! function in `.init_array` records it before the runtime starts: which of the descriptors 0 to 9
//! are open, whether those two signals are ignored, and which signals are blocked.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::OFlags;

use crate::mask::Mask;

/// The recorded state: bit n, from 0 to 9, is set if descriptor n was open, and bits 16 and 17 if
/// SIGPIPE and SIGCHLD were ignored.
static RECORDED: AtomicU32 = AtomicU32::new(0);
const DESCRIPTORS: u8 = 10;
/// Signals that were blocked at the start: bit n - 1 is signal n.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Numbers of the descriptors whose state is recorded: those that every shell can name.
pub const RECORDED_DESCRIPTORS: std::ops::Range<u8> = 0..DESCRIPTORS;

const SIGPIPE_IGNORED: u32 = 1 << 16;
const SIGCHLD_IGNORED: u32 = 1 << 17;

#[used]
// SAFETY: the section holds pointers to functions that the C runtime calls once, before main.
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn() = {
    extern "C" fn record() {
        let open = (0..DESCRIPTORS).filter(|&fd| is_open(fd)).fold(0, |bits, fd| bits | 1 << fd);
        let ignored = |signal, bit| if is_ignored(signal) { bit } else { 0 };
        let signals =
            ignored(libc::SIGPIPE, SIGPIPE_IGNORED) | ignored(libc::SIGCHLD, SIGCHLD_IGNORED);
        RECORDED.store(open | signals, Ordering::Relaxed);
        BLOCKED.store(Mask::current().bits(), Ordering::Relaxed);
        // The kernel reaps children itself while SIGCHLD is ignored, so waiting for them would
        // fail.
        // SAFETY: SIG_DFL is a valid disposition.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    record
};

fn is_open(fd: u8) -> bool {
    // SAFETY: F_GETFD accepts any number and changes nothing.
    let flags = unsafe { libc::fcntl(fd.into(), libc::F_GETFD) };
    flags >= 0
}

/// Returns whether this process currently ignores `signal`.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null action, the call only reads the current one into `action`, which is valid
    // for writes.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros is a valid sigaction, and the call can only have replaced it with another
    // valid one.
    let action = unsafe { action.assume_init() };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

fn is_recorded(bit: u32) -> bool {
    RECORDED.load(Ordering::Relaxed) & bit != 0
}

/// Returns whether this process was started with SIGPIPE ignored.
pub fn sigpipe_ignored() -> bool {
    is_recorded(SIGPIPE_IGNORED)
}

/// Returns whether this process was started with SIGCHLD ignored.
pub fn sigchld_ignored() -> bool {
    is_recorded(SIGCHLD_IGNORED)
}

/// Returns whether `signal`, a number from 1 to 64, was blocked when this process started.
///
/// # Panics
/// May panic for other numbers.
pub fn is_blocked(signal: libc::c_int) -> bool {
    BLOCKED.load(Ordering::Relaxed) >> (signal - 1) & 1 == 1
}

/// Returns whether SIGPIPE cannot end this process's children, because it was ignored or blocked
/// when this process started.
pub fn children_survive_sigpipe() -> bool {
    sigpipe_ignored() || is_blocked(libc::SIGPIPE)
}

/// Returns whether descriptor `fd` (0 to 9) was open when this process started; `false` for larger
/// numbers, which are not recorded.
pub fn was_open(fd: u8) -> bool {
    fd < DESCRIPTORS && is_recorded(1 << fd)
}

/// Returns descriptor `fd`, or `None` if it was not open when this process started.
fn given(fd: u8) -> Option<BorrowedFd<'static>> {
    // SAFETY: the descriptor was open when the process started, and nothing closes those
    // descriptors.
    was_open(fd).then(|| unsafe { BorrowedFd::borrow_raw(fd.into()) })
}

/// Returns whether this process was started with descriptor `fd` (0 to 9) open for writing.
///
/// # Errors
/// Returns the error of fcntl(2), which reads the descriptor's access mode.
pub fn is_writable(fd: u8) -> io::Result<bool> {
    let Some(given) = given(fd) else { return Ok(false) };
    Ok(rustix::fs::fcntl_getfl(given)? & OFlags::RWMODE != OFlags::RDONLY)
}

/// Duplicates descriptor `fd` if this process was started with it open for writing; returns `None`
/// otherwise.
///
/// # Errors
/// Returns an error if the descriptor's access mode cannot be read or no descriptor is free.
pub fn writable_copy(fd: u8) -> io::Result<Option<File>> {
    match given(fd) {
        Some(given) if is_writable(fd)? => Ok(Some(given.try_clone_to_owned()?.into())),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_has_its_standard_output_open() {
        assert!(was_open(1) && is_open(1));
        assert!(!was_open(200));
        assert!(!is_ignored(libc::SIGUSR2));
    }
}
