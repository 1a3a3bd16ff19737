//! Standard output as contend was started with it.
//!
//! The standard library hides that it cannot be written to: it opens `/dev/null` in the place of a
//! closed descriptor, and takes EBADF for success. Whatever writes to standard output asks here, so
//! that no output is lost in silence.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use contend_sys::inherited;
use rustix::io::Errno;

/// Its descriptor.
const STDOUT: u8 = 1;

/// Standard output without a buffer, for data that comes in large pieces.
///
/// Where it was closed, or open for reading alone, every write of something fails with EBADF.
#[derive(Debug)]
pub struct Stdout(Option<File>);

impl Stdout {
    /// Returns standard output, even if nothing can be written to it.
    ///
    /// # Errors
    /// When no descriptor is free.
    pub fn open() -> io::Result<Self> {
        inherited::writable_copy(STDOUT).map(Self)
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(file) => file.write(bytes),
            None if bytes.is_empty() => Ok(0),
            None => Err(Errno::BADF.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // nothing is kept back
    }
}

/// Checks that standard output was open for writing when contend was started.
///
/// # Errors
/// EBADF when it was not.
pub fn check() -> io::Result<()> {
    if inherited::is_writable(STDOUT)? { Ok(()) } else { Err(Errno::BADF.into()) }
}

/// Whether the path names a standard descriptor that was closed when contend was started. It now
/// leads to the standard library's `/dev/null`.
pub fn names_closed_descriptor(path: &Path) -> bool {
    let fd = match path.to_str() {
        Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => 0,
        Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => STDOUT,
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => 2,
        _ => return false,
    };
    !inherited::was_open(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_cannot_be_written_to_a_closed_output_but_nothing_can() {
        let mut closed = Stdout(None);
        let error = closed.write_all(b"x").expect_err("it is closed");
        assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
        closed.write_all(b"").and_then(|()| closed.flush()).expect("nothing to write");
    }

    #[test]
    fn the_harness_has_its_standard_descriptors_open() {
        check().expect("the output of a test can be written");
        assert!(!names_closed_descriptor(Path::new("/dev/stdout")));
        assert!(!names_closed_descriptor(Path::new("/dev/null")));
    }
}
