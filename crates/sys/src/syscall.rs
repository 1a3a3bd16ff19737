//! Classifies the system call that a task is blocked in, by its number and arguments.
//!
//! Numbers are those of the architecture that this program is built for.

use std::time::Duration;

use libc::c_long;
use rustix::process::Pid;

/// The event that a task blocked in a system call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Data to read from this descriptor.
    Read(i32),
    /// Room to write to this descriptor.
    Write(i32),
    /// Data from the first descriptor or room in the second, moved inside the kernel.
    Move(i32, i32),
    /// One of `count` descriptors in the array of `pollfd` at `address`.
    Poll {
        /// Address of the array in the waiting process.
        address: u64,
        /// Number of entries in the array.
        count: u64,
    },
    /// One of the first `count` descriptors, in bit sets for reading and for writing.
    Select {
        /// One more than the largest descriptor.
        count: u64,
        /// Address of the set for reading, or 0.
        readable: u64,
        /// Address of the set for writing, or 0.
        writable: u64,
    },
    /// An event of this epoll descriptor.
    Epoll(i32),
    /// A point in time.
    Sleep,
    /// A lock, a condition variable or another thread (futex, file lock, System V semaphore).
    Lock,
    /// The end of a child or, if the child shares the task's memory, its execution of a program.
    Child,
    /// A signal.
    Signal,
    /// The establishment or the arrival of a connection.
    Network,
    /// A file system, which looks up or changes a file or directory, or writes data to disk.
    Disk,
    /// The opening of a file: a FIFO waits for its other end, other files for the file system.
    Open {
        /// Descriptor of the directory that a relative path starts from; `None` is the current one.
        folder: Option<i32>,
        /// Address of the path in the waiting process.
        path: u64,
    },
    /// The event of an earlier call, now restarted after a signal; that call is not known.
    Restarted,
    /// An event of any other system call, given by the call's number.
    Other(c_long),
}

/// Returns whether the system call `number` opens a file. Opening a FIFO blocks until its other end
/// is open.
pub fn is_open(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_open {
        return true;
    }
    number == libc::SYS_openat || number == libc::SYS_openat2
}

impl Waiting {
    /// Classifies the system call `number` by its arguments.
    pub fn from_call(number: c_long, arguments: &[u64; 6]) -> Self {
        let fd = |index: usize| descriptor(arguments[index]);
        match number {
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_pread64
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg => Self::Read(fd(0)),
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_pwrite64
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_vmsplice => Self::Write(fd(0)),
            libc::SYS_splice | libc::SYS_copy_file_range => Self::Move(fd(0), fd(2)),
            libc::SYS_tee => Self::Move(fd(0), fd(1)),
            libc::SYS_sendfile => Self::Move(fd(1), fd(0)),
            libc::SYS_ppoll => Self::Poll { address: arguments[0], count: arguments[1] },
            libc::SYS_pselect6 => {
                Self::Select { count: arguments[0], readable: arguments[1], writable: arguments[2] }
            }
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Self::Epoll(fd(0)),
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Self::Sleep,
            libc::SYS_restart_syscall => Self::Restarted,
            libc::SYS_fcntl if is_lock(arguments[1]) => Self::Lock,
            libc::SYS_futex
            | libc::SYS_flock
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | SYS_FUTEX_WAITV
            | SYS_FUTEX_WAIT => Self::Lock,
            // A parent that shares its memory is suspended in the call itself until its child
            // executes a program or ends.
            libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_clone | libc::SYS_clone3 => Self::Child,
            libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => Self::Signal,
            libc::SYS_connect | libc::SYS_accept | libc::SYS_accept4 => Self::Network,
            libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_sync
            | libc::SYS_syncfs
            | libc::SYS_sync_file_range
            | libc::SYS_msync
            | libc::SYS_newfstatat
            | libc::SYS_fstat
            | libc::SYS_statx
            | libc::SYS_getdents64
            | libc::SYS_readlinkat
            | libc::SYS_faccessat
            | libc::SYS_unlinkat
            | libc::SYS_mkdirat
            | libc::SYS_renameat2
            | libc::SYS_ftruncate
            | libc::SYS_fallocate
            | libc::SYS_execve
            | libc::SYS_execveat => Self::Disk,
            libc::SYS_openat | libc::SYS_openat2 => {
                let folder = Some(fd(0)).filter(|&fd| fd != libc::AT_FDCWD);
                Self::Open { folder, path: arguments[1] }
            }
            _ => Self::from_legacy(number, arguments),
        }
    }

    /// Classifies calls that newer architectures lack.
    #[cfg(target_arch = "x86_64")]
    fn from_legacy(number: c_long, arguments: &[u64; 6]) -> Self {
        match number {
            libc::SYS_poll => Self::Poll { address: arguments[0], count: arguments[1] },
            libc::SYS_select => {
                Self::Select { count: arguments[0], readable: arguments[1], writable: arguments[2] }
            }
            libc::SYS_epoll_wait => Self::Epoll(descriptor(arguments[0])),
            libc::SYS_pause => Self::Signal,
            libc::SYS_vfork => Self::Child,
            libc::SYS_open => Self::Open { folder: None, path: arguments[0] },
            libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_access
            | libc::SYS_getdents
            | libc::SYS_readlink
            | libc::SYS_unlink
            | libc::SYS_mkdir
            | libc::SYS_rename => Self::Disk,
            other => Self::Other(other),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn from_legacy(number: c_long, _arguments: &[u64; 6]) -> Self {
        Self::Other(number)
    }
}

// The same on every architecture, and newer than some libcs.
const SYS_FUTEX_WAITV: c_long = 449;
const SYS_FUTEX_WAIT: c_long = 455;

/// Returns whether the system call `number` waits on a word of memory (`futex(2)`).
pub fn is_futex(number: c_long) -> bool {
    number == libc::SYS_futex
}

/// Returns the time after which a wait in the system call `number` of the process ends by itself.
/// Returns `None` if there is no such limit, if it is a point in time, or if the process's memory may
/// not be read.
pub fn time_limit(process: Pid, number: c_long, arguments: &[u64; 6]) -> Option<Duration> {
    const ABSOLUTE: u64 = libc::TIMER_ABSTIME as u64;
    let at = |index: usize| time_at(process, arguments[index]);
    match number {
        libc::SYS_nanosleep => at(0),
        libc::SYS_clock_nanosleep if arguments[1] & ABSOLUTE == 0 => at(2),
        libc::SYS_ppoll => at(2),
        libc::SYS_epoll_pwait2 => at(3),
        libc::SYS_pselect6 => at(4),
        libc::SYS_epoll_pwait => milliseconds(arguments[3]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => milliseconds(arguments[2]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => milliseconds(arguments[3]),
        _ => None,
    }
}

/// Returns a time limit in milliseconds; `None` if it is negative, which means no limit.
fn milliseconds(argument: u64) -> Option<Duration> {
    u64::try_from(descriptor(argument)).ok().map(Duration::from_millis)
}

/// Returns the `timespec` at `address` in the memory of the process; `None` if the address is 0, the
/// time is negative, or the memory may not be read.
pub fn time_at(process: Pid, address: u64) -> Option<Duration> {
    let mut bytes = [0; 16];
    if address == 0 || crate::memory::read(process, address, &mut bytes).ok()? < bytes.len() {
        return None;
    }
    let number = |bytes: &[u8]| Some(i64::from_ne_bytes(bytes.try_into().ok()?));
    let seconds = u64::try_from(number(&bytes[..8])?).ok()?;
    Some(Duration::new(seconds, u32::try_from(number(&bytes[8..])?).ok()?))
}

/// Returns whether the `fcntl(2)` command `command` waits for a file lock.
fn is_lock(command: u64) -> bool {
    [libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&descriptor(command))
}

/// Converts an argument of type `int`, such as a descriptor: the lower half, as a signed number.
fn descriptor(argument: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel reads it as an int too")]
    let low = argument as u32;
    low.cast_signed()
}

/// Returns the descriptors in the bytes of a `pollfd` array, each with whether it is polled for
/// reading (`POLLIN`) and for writing (`POLLOUT`). Skips an incomplete entry at the end.
pub fn pollfds(array: &[u8]) -> impl Iterator<Item = (i32, bool, bool)> + '_ {
    array.chunks_exact(8).map(|entry| {
        let number = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        let events = i16::from_ne_bytes([entry[4], entry[5]]);
        (number, events & libc::POLLIN != 0, events & libc::POLLOUT != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_classified_by_what_they_wait_for() {
        let of = |number: c_long, arguments| Waiting::from_call(number, &arguments);
        assert_eq!(of(libc::SYS_read, [3, 0, 0, 0, 0, 0]), Waiting::Read(3));
        assert_eq!(of(libc::SYS_splice, [4, 0, 5, 0, 0, 0]), Waiting::Move(4, 5));
        assert_eq!(of(libc::SYS_sendfile, [1, 0, 0, 0, 0, 0]), Waiting::Move(0, 1));
        assert_eq!(of(libc::SYS_wait4, [u64::MAX, 0, 0, 0, 0, 0]), Waiting::Child);
        assert_eq!(of(libc::SYS_clone, [0x4111, 0, 0, 0, 0, 0]), Waiting::Child);
        assert_eq!(of(libc::SYS_restart_syscall, [0; 6]), Waiting::Restarted);
        let here = u64::from(libc::AT_FDCWD.cast_unsigned());
        let open = Waiting::Open { folder: None, path: 0x1000 };
        assert_eq!(of(libc::SYS_openat, [here, 0x1000, 0, 0, 0, 0]), open);
        assert_eq!(of(libc::SYS_fcntl, [3, 7, 0, 0, 0, 0]), Waiting::Lock);
        assert_eq!(of(libc::SYS_fcntl, [3, 3, 0, 0, 0, 0]), Waiting::Other(libc::SYS_fcntl));
        assert_eq!(of(9999, [0; 6]), Waiting::Other(9999));
    }

    #[test]
    fn pollfds_are_read_as_the_kernel_lays_them_out() {
        let mut array = Vec::new();
        for (fd, events) in [(0_i32, libc::POLLIN), (1, libc::POLLOUT)] {
            array.extend(fd.to_ne_bytes());
            array.extend(events.to_ne_bytes());
            array.extend(0_i16.to_ne_bytes());
        }
        let read: Vec<_> = pollfds(&array).collect();
        assert_eq!(read, [(0, true, false), (1, false, true)]);
    }

    #[test]
    fn time_limits_are_read() {
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let of = |number, arguments| time_limit(own, number, &arguments);
        let time = [0_i64, 1_500_000];
        let address = time.as_ptr().addr() as u64;
        let expected = Some(Duration::from_micros(1500));
        assert_eq!(of(libc::SYS_nanosleep, [address, 0, 0, 0, 0, 0]), expected);
        assert_eq!(of(libc::SYS_clock_nanosleep, [1, 0, address, 0, 0, 0]), expected);
        assert_eq!(of(libc::SYS_clock_nanosleep, [1, 1, address, 0, 0, 0]), None, "absolute");
        assert_eq!(of(libc::SYS_ppoll, [0, 0, address, 0, 0, 0]), expected);
        assert_eq!(of(libc::SYS_ppoll, [0, 0, 0, 0, 0, 0]), None);
        let in_milliseconds = of(libc::SYS_epoll_pwait, [5, 0, 1, 20, 0, 0]);
        assert_eq!(in_milliseconds, Some(Duration::from_millis(20)));
        assert_eq!(of(libc::SYS_epoll_pwait, [5, 0, 1, 0xffff_ffff, 0, 0]), None, "no limit");
        assert_eq!(of(libc::SYS_read, [address; 6]), None);
        let negative = [-1_i64, 0];
        assert_eq!(of(libc::SYS_nanosleep, [negative.as_ptr().addr() as u64; 6]), None);
    }
}
