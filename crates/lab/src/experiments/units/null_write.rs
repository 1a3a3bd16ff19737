//! The work of every created unit: one byte written to `/dev/null`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

static NULL_DEVICE: OnceLock<OwnedFd> = OnceLock::new();

/// Returns `/dev/null`, opened on the first call, outside of the measurement.
///
/// # Errors
/// Returns an error if it cannot be opened.
pub fn null_device() -> io::Result<&'static OwnedFd> {
    if let Some(null) = NULL_DEVICE.get() {
        return Ok(null);
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    Ok(NULL_DEVICE.get_or_init(|| opened))
}

/// Writes one byte to `/dev/null`, if [`null_device`] has been called; otherwise does nothing.
pub fn write_one_byte() {
    if let Some(null) = NULL_DEVICE.get() {
        let _ = rustix::io::write(null, b"x");
    }
}
