//! The one use of ptrace: to stop a process once, as it exits, while its figures can be read.
//!
//! A seized process is not stopped until it exits or a signal is delivered to it. Forks
//! are never followed. A traced process that executes a set-user-id program would lose
//! its privileges: callers must know that the process does not.

use std::io;

use rustix::process::Pid;

/// Why a traced process has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is about to end; its memory, files and counters are still there.
    Exit,
    /// A signal is about to be delivered: pass it on with [`resume`].
    Signal(i32),
    /// Job control has stopped it: leave it so with [`listen`].
    Group,
    /// Another event of tracing, for instance that job control lets it go on.
    Other,
}

impl Stop {
    /// Reads the `si_status` of a stop: the signal, with the event in the second byte.
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

/// Starts tracing: the process will stop once as it exits.
///
/// # Errors
/// `EPERM` when this kernel or user may not trace it, `ESRCH` when it has ended.
pub fn seize(pid: Pid) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, pid, libc::PTRACE_O_TRACEEXIT as usize)
}

/// Lets a stopped process go on, delivering `signal` unless it is 0.
///
/// # Errors
/// `ESRCH` when it has been killed meanwhile.
pub fn resume(pid: Pid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, pid, usize::try_from(signal).unwrap_or(0))
}

/// Leaves a process stopped by job control as it is, until SIGCONT.
///
/// # Errors
/// `ESRCH` when it has been killed meanwhile.
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
    // SAFETY: these requests read `data` as a number and touch no memory of ours.
    let result = unsafe {
        libc::ptrace(request, pid.as_raw_nonzero().get(), std::ptr::null_mut::<u8>(), data)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_told_apart() {
        let event = |event: i32, signal: i32| Stop::from_status(event << 8 | signal);
        assert_eq!(Stop::from_status(libc::SIGTERM), Stop::Signal(libc::SIGTERM));
        assert_eq!(event(libc::PTRACE_EVENT_EXIT, libc::SIGTRAP), Stop::Exit);
        assert_eq!(event(libc::PTRACE_EVENT_STOP, libc::SIGTSTP), Stop::Group);
        assert_eq!(event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP), Stop::Other);
    }
}
