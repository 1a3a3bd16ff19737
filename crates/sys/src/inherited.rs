//! What this process was started with and what changes before `main` or because of us: Rust's
//! runtime ignores SIGPIPE and opens `/dev/null` in place of closed standard descriptors; we
//! need SIGCHLD, which is reset here. Children are to find things as whoever started us left them,
//! so all of it is noted before the runtime starts, with the signals that were blocked.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::OFlags;

use crate::mask::Mask;

/// Bits 0 to 9: this descriptor was open. Then the ignored signals.
static NOTED: AtomicU32 = AtomicU32::new(0);
const DESCRIPTORS: u8 = 10;
/// The signals that were blocked: bit n - 1 stands for signal n.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// The descriptors that are noted: those that every shell can name.
pub const NAMEABLE: std::ops::Range<u8> = 0..DESCRIPTORS;

const SIGPIPE_IGNORED: u32 = 1 << 16;
const SIGCHLD_IGNORED: u32 = 1 << 17;

#[used]
// SAFETY: the section holds pointers to functions that the C runtime calls once, before main.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = {
    extern "C" fn note() {
        let open = (0..DESCRIPTORS).filter(|&fd| is_open(fd)).fold(0, |bits, fd| bits | 1 << fd);
        let ignored = |signal, bit| if is_ignored(signal) { bit } else { 0 };
        let signals =
            ignored(libc::SIGPIPE, SIGPIPE_IGNORED) | ignored(libc::SIGCHLD, SIGCHLD_IGNORED);
        NOTED.store(open | signals, Ordering::Relaxed);
        BLOCKED.store(Mask::current().bits(), Ordering::Relaxed);
        // Where it is ignored the kernel reaps children itself, and they cannot be waited for.
        // SAFETY: SIG_DFL is a valid disposition.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    note
};

fn is_open(fd: u8) -> bool {
    // SAFETY: asking for the flags of any number changes nothing.
    let flags = unsafe { libc::fcntl(fd.into(), libc::F_GETFD) };
    flags >= 0
}

/// Whether this process ignores the signal now.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null action only reads the present one into `action`, valid for writes.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros is a valid sigaction, and the call has at most replaced it by one.
    let action = unsafe { action.assume_init() };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

fn noted(bit: u32) -> bool {
    NOTED.load(Ordering::Relaxed) & bit != 0
}

/// Whether whoever started this process ignores SIGPIPE.
pub fn sigpipe_ignored() -> bool {
    noted(SIGPIPE_IGNORED)
}

/// Whether whoever started this process ignores SIGCHLD.
pub fn sigchld_ignored() -> bool {
    noted(SIGCHLD_IGNORED)
}

/// Whether this signal was blocked when this process started.
pub fn is_blocked(signal: libc::c_int) -> bool {
    BLOCKED.load(Ordering::Relaxed) >> (signal - 1) & 1 == 1
}

/// Whether this process was started so that SIGPIPE, ignored or blocked, ends none of its children.
pub fn sigpipe_ends_nothing() -> bool {
    sigpipe_ignored() || is_blocked(libc::SIGPIPE)
}

/// Whether descriptor `fd` (0 to 9) was open when this process started.
pub fn was_open(fd: u8) -> bool {
    fd < DESCRIPTORS && noted(1 << fd)
}

/// A descriptor that this process was started with.
fn given(fd: u8) -> Option<BorrowedFd<'static>> {
    // SAFETY: it was open when the process started, and nothing closes those descriptors.
    was_open(fd).then(|| unsafe { BorrowedFd::borrow_raw(fd.into()) })
}

/// Whether this process was started with this descriptor (0 to 9) open for writing.
///
/// # Errors
/// When the kernel does not say how it is open.
pub fn is_writable(fd: u8) -> io::Result<bool> {
    let Some(given) = given(fd) else { return Ok(false) };
    Ok(rustix::fs::fcntl_getfl(given)? & OFlags::RWMODE != OFlags::RDONLY)
}

/// A copy of a descriptor that this process was started with, if it can be written to.
///
/// # Errors
/// When no descriptor is free.
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
