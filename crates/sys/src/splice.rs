//! Pages of memory put into a pipe without being copied.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

/// Puts the pages of these bytes into a pipe (`vmsplice(2)`), and waits for room. How many bytes of
/// them went in.
///
/// They are not copied: whoever reads them from the pipe gets what stands there then. The pages stay as
/// long as the pipe has them, also when this process has unmapped them.
///
/// # Errors
/// `EPIPE`; `EINTR`.
pub fn lend(pipe: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let slice = IoSlice::new(bytes);
    let pages = [IoSliceRaw::from_slice(&slice)];
    // SAFETY: the pages stay alive by the kernel's own count, and are not given away for good.
    Ok(unsafe { vmsplice(pipe, &pages, SpliceFlags::empty()) }?)
}
