//! Copies a file character by character with the C library's buffered streams.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::ptr::NonNull;

/// A stream (`FILE *`) that owns a duplicate of a descriptor.
struct Stream(NonNull<libc::FILE>);

impl Stream {
    fn over(file: BorrowedFd<'_>, mode: &std::ffi::CStr) -> io::Result<Self> {
        let own = file.try_clone_to_owned()?;
        // SAFETY: the descriptor is open, and the mode ends with a NUL.
        let stream = unsafe { libc::fdopen(own.as_raw_fd(), mode.as_ptr()) };
        let stream = NonNull::new(stream).ok_or_else(io::Error::last_os_error)?;
        let _ = own.into_raw_fd(); // the stream closes it
        Ok(Self(stream))
    }

    /// Flushes the buffer and closes the stream.
    fn close(self) -> io::Result<()> {
        let stream = self.0.as_ptr();
        std::mem::forget(self);
        // SAFETY: the stream is open, and not used again.
        if unsafe { libc::fclose(stream) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open, and not used again.
        unsafe { libc::fclose(self.0.as_ptr()) };
    }
}

/// Copies the rest of `from`, from its current offset on, to the current offset of `to` with
/// `fgetc(3)` and `fputc(3)`. Returns the number of bytes copied.
///
/// # Errors
/// The error of duplicating a descriptor, or of opening, reading or writing a stream.
pub fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<u64> {
    let (from, to) = (Stream::over(from, c"r")?, Stream::over(to, c"w")?);
    let mut copied = 0;
    loop {
        // SAFETY: the stream is open.
        let character = unsafe { libc::fgetc(from.0.as_ptr()) };
        if character == libc::EOF {
            break;
        }
        // SAFETY: as above.
        if unsafe { libc::fputc(character, to.0.as_ptr()) } == libc::EOF {
            return Err(io::Error::last_os_error());
        }
        copied += 1;
    }
    // SAFETY: as above.
    if unsafe { libc::ferror(from.0.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    to.close()?;
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn every_character_is_copied() {
        let (mut from, mut to) = (tempfile::tempfile(), tempfile::tempfile());
        let (from, to) = (from.as_mut().expect("a file"), to.as_mut().expect("a file"));
        let text: Vec<u8> = (0..10_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        from.write_all(&text).expect("written");
        from.rewind().expect("at its beginning");
        assert_eq!(copy(from.as_fd(), to.as_fd()).expect("copied"), 10_000);
        to.rewind().expect("at its beginning");
        let mut copied = Vec::new();
        to.read_to_end(&mut copied).expect("read");
        assert_eq!(copied, text);
    }
}
