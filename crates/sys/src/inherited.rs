//! What this process was started with and Rust's runtime changes before `main`: it ignores
//! SIGPIPE, and opens `/dev/null` in place of closed standard descriptors. Children of ours
//! are to find things as whoever started us left them, so both are noted before that.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bit 3: SIGPIPE was ignored. Bits 0 to 2: this descriptor was closed.
static NOTED: AtomicU8 = AtomicU8::new(0);
const SIGPIPE_IGNORED: u8 = 1 << 3;

#[used]
// SAFETY: the section holds pointers to functions that the C runtime calls once, before main.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = {
    extern "C" fn note() {
        let closed = (0..3).filter(|&fd| is_closed(fd)).fold(0, |bits, fd| bits | 1 << fd);
        let sigpipe = if is_sigpipe_ignored() { SIGPIPE_IGNORED } else { 0 };
        NOTED.store(closed | sigpipe, Ordering::Relaxed);
    }
    note
};

fn is_closed(fd: libc::c_int) -> bool {
    // SAFETY: asking for the flags of any number changes nothing.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags < 0
}

fn is_sigpipe_ignored() -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null action only reads the old one into `old`, which is valid for writes.
    let result = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), old.as_mut_ptr()) };
    // SAFETY: all zeros is a valid sigaction, and the call has at most replaced it by one.
    let old = unsafe { old.assume_init() };
    result == 0 && old.sa_sigaction == libc::SIG_IGN
}

/// Whether whoever started this process ignores SIGPIPE.
pub fn sigpipe_ignored() -> bool {
    NOTED.load(Ordering::Relaxed) & SIGPIPE_IGNORED != 0
}

/// Whether standard descriptor `fd` (0 to 2) was closed when this process started.
pub fn was_closed(fd: u8) -> bool {
    NOTED.load(Ordering::Relaxed) & (1 << fd) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_has_its_standard_output_open() {
        assert!(!was_closed(1));
        assert!(!is_closed(1));
        assert!(is_closed(1_000_000));
    }
}
