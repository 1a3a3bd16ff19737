//! The work of a created unit that executes no program: one byte written to `/dev/null`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

static NULL_DEVICE: OnceLock<OwnedFd> = OnceLock::new();

/// Returns `/dev/null`, open for writing. The first call in a process opens the device, and has to
/// precede the measurement.
///
/// # Errors
/// Returns an error if `/dev/null` cannot be opened.
pub fn null_device() -> io::Result<&'static OwnedFd> {
    if let Some(null) = NULL_DEVICE.get() {
        return Ok(null);
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    Ok(NULL_DEVICE.get_or_init(|| opened))
}

/// Writes one byte to `/dev/null`, if [`null_device`] has opened it; otherwise does nothing.
/// Ignores errors.
pub fn write_one_byte() {
    if let Some(null) = NULL_DEVICE.get() {
        let _ = rustix::io::write(null, b"x");
    }
}
