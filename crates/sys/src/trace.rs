//! Traces processes with ptrace(2) for one purpose: a single stop as a process exits, while its
//! counters can still be read.
//!
//! ```text
//! seize --> running --PTRACE_EVENT_EXIT--> Stop::Exit   --resume(0)--> zombie
//!              |-----signal-delivery-stop-> Stop::Signal --resume(signal)--> running
//!              '-----group-stop-----------> Stop::Group  --listen--> stopped until SIGCONT
//! ```
//!
//! Attaching with `PTRACE_SEIZE` does not stop the process, and forks are not followed. A traced
//! process that executes a set-user-ID program does not gain its privileges, so callers must know
//! that the process executes none.

use std::io;

use rustix::process::Pid;

/// Why a traced process has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// `PTRACE_EVENT_EXIT`: the process is about to end; its memory, descriptors and counters still
    /// exist.
    Exit,
    /// Signal-delivery-stop: a signal is about to be delivered; pass it on with [`resume`].
    Signal(i32),
    /// Group-stop: job control has stopped the process; keep it stopped with [`listen`].
    Group,
    /// Another ptrace event, for instance the end of a group-stop by SIGCONT.
    Other,
}

impl Stop {
    /// Decodes the `si_status` of a stop: the signal, with the event in the second byte.
    pub fn from_status(status: i32) -> Self {
        let signal = status & 0xff;
        match status >> 8 {
            0 => Self::Signal(signal),
            libc::PTRACE_EVENT_EXIT => Self::Exit,
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Self::Group,
            _ => Self::Other,
        }
    }
}

/// Starts tracing the process `pid`, which then stops as it exits, before each signal other than
/// SIGKILL is delivered to it, and when job control stops it.
///
/// # Errors
/// `EPERM` if this user may not trace the process, or if it is already traced or a zombie; `ESRCH`
/// if there is no such process.
pub fn seize(pid: Pid) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, pid, libc::PTRACE_O_TRACEEXIT as usize)
}

/// Restarts a process in a ptrace-stop (`PTRACE_CONT`), delivering `signal` unless it is 0.
///
/// # Errors
/// `ESRCH` if the process is not in such a stop, as when it has been killed in the meantime.
pub fn resume(pid: Pid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, pid, usize::try_from(signal).unwrap_or(0))
}

/// Keeps a process in group-stop until SIGCONT (`PTRACE_LISTEN`).
///
/// # Errors
/// `ESRCH` if the process has been killed in the meantime; `EIO` if it is in another ptrace-stop.
pub fn listen(pid: Pid) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, pid, 0)
}

#[cfg_attr(not(target_env = "musl"), allow(clippy::needless_pass_by_value))]
fn request(
    #[cfg(target_env = "musl")] request: libc::c_int,
    #[cfg(not(target_env = "musl"))] request: libc::c_uint,
    pid: Pid,
    data: usize,
) -> io::Result<()> {
    // SAFETY: these requests read `data` as a number and touch no memory of this process.
    let result = unsafe {
        libc::ptrace(request, pid.as_raw_nonzero().get(), std::ptr::null_mut::<u8>(), data)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_distinguished() {
        let event = |event: i32, signal: i32| Stop::from_status(event << 8 | signal);
        assert_eq!(Stop::from_status(libc::SIGTERM), Stop::Signal(libc::SIGTERM));
        assert_eq!(event(libc::PTRACE_EVENT_EXIT, libc::SIGTRAP), Stop::Exit);
        assert_eq!(event(libc::PTRACE_EVENT_STOP, libc::SIGTSTP), Stop::Group);
        assert_eq!(event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP), Stop::Other);
    }
}
