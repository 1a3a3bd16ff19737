//! Small reads of another process's memory, such as the arguments of the system call that blocks
//! it.

use std::io;

use rustix::process::Pid;

/// Copies up to `buffer.len()` bytes from `address` in the memory of `pid`, and returns the number
/// of bytes copied, which is smaller if the memory after them is not mapped.
///
/// # Errors
/// `EPERM` if this user may not read the process's memory, `EFAULT` if nothing is mapped there,
/// `ESRCH` if the process has ended.
pub fn read(pid: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0)),
        iov_len: buffer.len(),
    };
    // SAFETY: `local` names `buffer`, valid for writes of its length; `remote` is an address
    // of the other process, which the kernel checks.
    let read = unsafe {
        libc::process_vm_readv(
            pid.as_raw_nonzero().get(),
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_memory_and_refuses_what_is_not_mapped() {
        let source = *b"contend";
        let mut copy = [0; 7];
        let address = source.as_ptr().addr() as u64;
        let own = rustix::process::getpid();
        assert_eq!(read(own, address, &mut copy).expect("own memory"), 7);
        assert_eq!(copy, source);
        assert!(read(own, 8, &mut copy).is_err());
    }
}
