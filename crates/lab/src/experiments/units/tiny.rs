//! The smallest program, which exits with status 0 and does nothing else.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::MemfdFlags;

use crate::engine::experiment::{ErrorContext, SubjectError};

/// `exit(0)` as machine code; empty on architectures other than `x86_64` and `aarch64`.
#[cfg(target_arch = "x86_64")]
const MACHINE_CODE: &[u8] = &[
    0x31, 0xff, // xor edi, edi
    0xb8, 0x3c, 0x00, 0x00, 0x00, // mov eax, 60
    0x0f, 0x05, // syscall
];
#[cfg(target_arch = "aarch64")]
const MACHINE_CODE: &[u8] = &[
    0x00, 0x00, 0x80, 0xd2, // mov x0, #0
    0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93
    0x01, 0x00, 0x00, 0xd4, // svc #0
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE_CODE: &[u8] = &[];

const ELF_MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
const LOAD_ADDRESS: u64 = 0x40_0000;
const HEADER_BYTES: u64 = 64 + 56;

/// A static program without a C library, stored in a memfd and executed by its path.
#[derive(Debug)]
pub struct TinyProgram {
    _file: OwnedFd,
    path: CString,
}

/// Returns why there is no tiny program for this processor architecture, or `None` if there is one.
pub fn unavailable() -> Option<String> {
    MACHINE_CODE.is_empty().then(|| "no tiny program for this processor architecture".to_owned())
}

impl TinyProgram {
    /// Writes the program to a memfd. Must be called only if `unavailable` returns `None`:
    /// otherwise the program has no code.
    ///
    /// # Errors
    /// Returns an error if the memfd cannot be created or written.
    pub fn new() -> Result<Self, SubjectError> {
        let flags = MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("contend-tiny", flags).context("make a program")?;
        let mut left = elf_image();
        while !left.is_empty() {
            let written = rustix::io::write(&file, &left).context("write a program")?;
            left.drain(..written);
        }
        // Not `/proc/self`: the kernel would create and remove the `/proc` entry of every child,
        // which takes 14 of the 170 µs of fork and exec.
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let path =
            CString::new(path).map_err(|error| SubjectError::Unexpected(error.to_string()))?;
        Ok(Self { _file: file, path })
    }

    /// Returns the program's path, which this process and its children can execute as long as
    /// `self` exists.
    pub fn path(&self) -> &CString {
        &self.path
    }
}

/// Returns an ELF file: the header, one program header, and the code, in one loaded segment.
fn elf_image() -> Vec<u8> {
    let size = HEADER_BYTES + MACHINE_CODE.len() as u64;
    let mut image = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let put16 = |image: &mut Vec<u8>, value: u16| image.extend(value.to_le_bytes());
    let put32 = |image: &mut Vec<u8>, value: u32| image.extend(value.to_le_bytes());
    let put64 = |image: &mut Vec<u8>, value: u64| image.extend(value.to_le_bytes());
    put16(&mut image, 2); // ET_EXEC
    put16(&mut image, ELF_MACHINE);
    put32(&mut image, 1);
    put64(&mut image, LOAD_ADDRESS + HEADER_BYTES); // entry point
    put64(&mut image, 64); // offset of the program headers
    put64(&mut image, 0); // no section headers
    put32(&mut image, 0);
    for value in [64, 56, 1, 0, 0, 0] {
        put16(&mut image, value);
    }
    put32(&mut image, 1); // PT_LOAD
    put32(&mut image, 5); // readable and executable
    for value in [0, LOAD_ADDRESS, LOAD_ADDRESS, size, size, 0x1000] {
        put64(&mut image, value);
    }
    image.extend(MACHINE_CODE);
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_sys::child::{ExitStatus, reap};
    use contend_sys::process::posix_spawn;

    #[test]
    fn the_program_exits_with_status_0() {
        if unavailable().is_some() {
            return;
        }
        let program = TinyProgram::new().expect("files in memory");
        let pid = posix_spawn(program.path(), &[c"tiny"]).expect("it can be executed");
        assert_eq!(reap(pid).expect("a child").status, ExitStatus::Exited(0));
    }
}
