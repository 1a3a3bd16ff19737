//! Waiting for children: detecting state changes without reaping, and reaping with resource usage.
//!
//! ```text
//! running --exit--> zombie --peek: Ended--> read /proc/PID --reap--> gone
//!    '----stop----> stopped --peek: Stopped--> take_stop
//! ```
//!
//! A zombie's `/proc` entry holds counters that vanish when it is reaped, so callers [`peek`]
//! first, read the counters, and then [`reap`].

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::Pid;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// The process exited with this status, from 0 to 255.
    Exited(i32),
    /// The signal with this number killed the process.
    Signaled(i32),
}

impl ExitStatus {
    /// Returns the status as a shell reports it: 128 + the signal's number for a killed process.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }

    fn from_wait(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signaled(libc::WTERMSIG(status))
        } else {
            Self::Exited(libc::WEXITSTATUS(status))
        }
    }
}

/// A state change of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The child is a zombie that can be reaped.
    Ended,
    /// The child is in a ptrace-stop or a job-control stop: consume it with [`take_stop`].
    Stopped,
}

/// CPU time, memory, page faults and context switches of processes or of a thread, as
/// `getrusage(2)` reports them. The functions that return a value state what it covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode. The kernel splits user and system time by ticks; their sum is exact.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Largest resident set of any one of the processes, in bytes. A process starts with its
    /// parent's value, so a small value may be the parent's.
    pub max_rss: u64,
    /// Number of page faults that needed no I/O.
    pub minor_faults: u64,
    /// Number of page faults that needed I/O.
    pub major_faults: u64,
    /// Number of voluntary context switches: the process waited.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches: the scheduler preempted the process.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Returns the total CPU time: user plus system.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

impl Usage {
    /// Returns the usage since `before`, an earlier value for the same processes or thread.
    /// `max_rss` is not a difference but the value of `self`.
    ///
    /// # Panics
    /// May panic if a count in `before` is larger than in `self`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            max_rss: self.max_rss,
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
        }
    }
}

impl std::ops::AddAssign for Usage {
    /// Adds the usage of another process; `max_rss` becomes the larger of the two.
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
        self.max_rss = self.max_rss.max(other.max_rss);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// A reaped child.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// How the child ended.
    pub status: ExitStatus,
    /// Resources of the child and of the descendants that it waited for.
    pub usage: Usage,
}

/// Makes this process the subreaper of its descendants: orphans among them become its children.
///
/// # Errors
/// Returns an error if the kernel lacks `PR_SET_CHILD_SUBREAPER` (before Linux 3.4).
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The children to wait for, as the first two arguments of waitid(2) select them.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// The child with this PID.
    One(Pid),
    /// Any child.
    Any,
    /// Any child in this process group.
    Group(Pid),
}

/// Returns a child that has changed state, and the change, without consuming it (WNOHANG, WNOWAIT);
/// `None` if no child has changed state. Job-control stops are reported for [`Which::One`] only,
/// ptrace-stops of traced children in any case.
///
/// # Errors
/// `ECHILD` if there is no such child.
pub fn peek(which: Which) -> io::Result<Option<(Pid, Change)>> {
    let (id_type, id, flags) = match which {
        Which::One(pid) => (
            libc::P_PID,
            pid.as_raw_nonzero().get().cast_unsigned(),
            libc::WEXITED | libc::WSTOPPED,
        ),
        Which::Any => (libc::P_ALL, 0, libc::WEXITED),
        Which::Group(group) => {
            (libc::P_PGID, group.as_raw_nonzero().get().cast_unsigned(), libc::WEXITED)
        }
    };
    let info = wait_id(id_type, id, flags | libc::WNOHANG | libc::WNOWAIT)?;
    // SAFETY: after waitid the union holds the child fields; zero means that no child has changed
    // state.
    let pid = unsafe { info.si_pid() };
    let Some(pid) = Pid::from_raw(pid) else {
        return Ok(None);
    };
    let change = match info.si_code {
        libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => Change::Ended,
        _ => Change::Stopped,
    };
    Ok(Some((pid, change)))
}

/// Consumes a stop that [`peek`] has reported and returns its `si_status` (the signal, with a
/// ptrace event in the second byte), or `None` if the child is not (or no longer) stopped.
///
/// # Errors
/// `ECHILD` if there is no such child.
pub fn take_stop(pid: Pid) -> io::Result<Option<i32>> {
    let id = pid.as_raw_nonzero().get().cast_unsigned();
    let info = wait_id(libc::P_PID, id, libc::WSTOPPED | libc::WNOHANG)?;
    // SAFETY: after waitid the union holds the child fields; zero means that no child has changed
    // state.
    let found = unsafe { info.si_pid() };
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    Ok((found != 0).then_some(status))
}

fn wait_id(
    id_type: libc::idtype_t,
    id: libc::id_t,
    flags: libc::c_int,
) -> io::Result<libc::siginfo_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `info` is valid for writes for the whole call.
    let result = unsafe { libc::waitid(id_type, id, info.as_mut_ptr(), flags) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros is a valid siginfo_t, and waitid has only written valid ones over it.
    Ok(unsafe { info.assume_init() })
}

/// Blocks until the child `pid` has ended, without reaping it. The child must not be traced: a
/// ptrace-stop would end the wait, too.
///
/// # Errors
/// `ECHILD` if there is no such child.
pub fn wait_for_end(pid: Pid) -> io::Result<()> {
    let id = pid.as_raw_nonzero().get().cast_unsigned();
    loop {
        match wait_id(libc::P_PID, id, libc::WEXITED | libc::WNOWAIT) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// Reaps the child `pid`; blocks until it has ended. Returns its status and resource usage. A
/// traced child must have ended already: a ptrace-stop would be taken for its end.
///
/// # Errors
/// `ECHILD` if there is no such child.
pub fn reap(pid: Pid) -> io::Result<Reaped> {
    let mut status: libc::c_int = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are valid for writes for the whole call.
        let result = unsafe {
            libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr())
        };
        if result >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: all zeros is a valid rusage, and wait4 has only written valid ones over it.
    let usage = unsafe { usage.assume_init() };
    Ok(Reaped { status: ExitStatus::from_wait(status), usage: usage.into() })
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        Self {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            max_rss: count(usage.ru_maxrss) * 1024,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(count(time.tv_sec)) + Duration::from_micros(count(time.tv_usec))
}

/// Returns the resource usage of this process so far (`RUSAGE_SELF`). The `max_rss` may be the
/// parent's.
pub fn own_usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// Returns the resource usage of this process's reaped children and of the descendants that they
/// waited for (`RUSAGE_CHILDREN`).
pub fn children_usage() -> Usage {
    usage_of(libc::RUSAGE_CHILDREN)
}

/// Returns the resource usage of the calling thread so far (`RUSAGE_THREAD`); `max_rss` is that of
/// the process.
pub fn thread_usage() -> Usage {
    usage_of(libc::RUSAGE_THREAD)
}

fn usage_of(who: libc::c_int) -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writes; getrusage cannot fail for the values of `who` used here.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: all zeros is a valid rusage, and getrusage has only written a valid one over it.
    let usage = unsafe { usage.assume_init() };
    usage.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[expect(clippy::zombie_processes, reason = "the tests reap it themselves")]
    fn start(script: &str) -> Pid {
        let child = Command::new("sh").args(["-c", script]).spawn().expect("sh starts");
        Pid::from_child(&child)
    }

    #[test]
    fn peeking_leaves_the_zombie_for_reap() {
        let pid = start("exit 7");
        wait_for_end(pid).expect("child");
        assert_eq!(peek(Which::One(pid)).expect("child"), Some((pid, Change::Ended)));
        assert_eq!(reap(pid).expect("child").status, ExitStatus::Exited(7));
        assert!(peek(Which::One(pid)).is_err());
    }

    #[test]
    fn a_signal_is_distinguished_from_an_exit() {
        let pid = start("kill -TERM $$");
        let reaped = reap(pid).expect("child");
        assert_eq!(reaped.status, ExitStatus::Signaled(libc::SIGTERM));
        assert_eq!(reaped.status.shell_code(), 143);
    }

    #[test]
    fn cpu_time_of_waited_for_descendants_is_included() {
        let pid = start("sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; true");
        let usage = reap(pid).expect("child").usage;
        assert!(usage.user + usage.system > Duration::from_millis(1), "{usage:?}");
        assert!(usage.max_rss > 0);
    }
}
