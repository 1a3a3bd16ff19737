//! Standard output as contend inherited it.
//!
//! The standard library hides a closed standard output: it opens `/dev/null` in its place, and
//! treats EBADF as success. Everything that writes to standard output therefore uses this module,
//! so that no output is lost silently.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use contend_sys::inherited;
use rustix::io::Errno;

/// Number of the file descriptor of standard output.
const STDOUT: u8 = 1;

/// Unbuffered standard output, for data in large blocks.
///
/// If it was closed, or open only for reading, every write of at least one byte fails with EBADF.
#[derive(Debug)]
pub struct Stdout(Option<File>);

impl Stdout {
    /// Returns standard output as inherited. If it cannot be written, writes fail, but not this
    /// function.
    ///
    /// # Errors
    /// Returns an error if no descriptor is free.
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
        Ok(()) // there is no buffer
    }
}

/// Checks that standard output was open for writing when contend started.
///
/// # Errors
/// Returns EBADF if standard output was closed, or open only for reading, or the error of reading
/// its access mode.
pub fn check() -> io::Result<()> {
    if inherited::is_writable(STDOUT)? { Ok(()) } else { Err(Errno::BADF.into()) }
}

/// Returns whether the path is a usual name of a standard descriptor, such as `/dev/stdout`, that
/// was closed when contend started. The path now leads to the `/dev/null` that the standard library
/// opened.
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
    fn a_closed_output_accepts_only_empty_writes() {
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
