//! What a thread waits for: classified by its system call and the arguments of the call or, where
//! these may not be read, by the name of the kernel function in which it sleeps.

use std::ffi::c_long;
use std::time::Duration;

use contend_record::doctor::{Runtime, ThreadState};
use contend_sys::Pid;
use contend_sys::descriptor::Kind;
use contend_sys::procfs::InKernel;
use contend_sys::syscall::{self, Waiting};

use crate::futex::{Futex, Primitive};

/// A wait of a thread. Two waits are equal if the thread waits for the same object in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The state of the thread while it waits.
    pub state: ThreadState,
    /// The object; `Unknown` if it cannot be determined.
    pub object: Object,
}

/// The object that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    /// A word of memory (futex).
    Futex(Futex),
    /// A descriptor, to read from or to write to.
    Descriptor(i32),
    /// A point in time after this duration; `None` if the duration is unknown.
    Time(Option<Duration>),
    /// Any of several descriptors, at most for this duration; `None` if there is no limit, or it is
    /// unknown.
    Descriptors(Option<Duration>),
    /// None of these, or unknown.
    Unknown,
}

impl Wait {
    /// A wait about which nothing is known.
    pub const UNKNOWN: Self = Self { state: ThreadState::Unknown, object: Object::Unknown };

    const fn of(state: ThreadState) -> Self {
        Self { state, object: Object::Unknown }
    }

    /// Classifies a wait in the system call `number` of a thread of `process`, whose runtime is
    /// `runtime` if it was recognised.
    pub fn in_call(
        process: Pid,
        runtime: Option<Runtime>,
        number: c_long,
        arguments: &[u64; 6],
    ) -> Self {
        if syscall::is_futex(number) {
            let futex = Futex::of(process, arguments, runtime);
            return Self { state: futex.state(), object: Object::Futex(futex) };
        }
        let descriptor = |fd: i32| Self {
            state: state_at(Kind::of_descriptor(process, fd)),
            object: Object::Descriptor(fd),
        };
        let limit = || syscall::time_limit(process, number, arguments);
        match Waiting::from_call(number, arguments) {
            Waiting::Read(fd) | Waiting::Write(fd) | Waiting::Move(fd, _) => descriptor(fd),
            Waiting::Sleep | Waiting::Poll { count: 0, .. } | Waiting::Select { count: 0, .. } => {
                Self { state: ThreadState::Sleep, object: Object::Time(limit()) }
            }
            Waiting::Poll { .. } | Waiting::Select { .. } | Waiting::Epoll(_) => {
                Self { state: ThreadState::Poll, object: Object::Descriptors(limit()) }
            }
            Waiting::Lock => Self::of(ThreadState::Lock),
            Waiting::Child => Self::of(ThreadState::Child),
            Waiting::Network => Self::of(ThreadState::Socket),
            Waiting::Open { folder, path } => Self::of(in_open(process, folder, path)),
            Waiting::Disk => Self::of(ThreadState::Disk),
            Waiting::Signal | Waiting::Other(_) => Self::of(ThreadState::Other),
            Waiting::Restarted => Self::UNKNOWN,
        }
    }

    /// Classifies a wait by `wchan`, the name of the kernel function in which the thread sleeps. The
    /// names differ between versions of the kernel; a family of functions shares a part of the name.
    /// `0` means that the name may not be read, or that the thread does not sleep.
    pub fn in_function(wchan: &str) -> Self {
        let has = |part: &str| wchan.contains(part);
        Self::of(match wchan {
            "" | "0" => ThreadState::Unknown,
            _ if has("futex") => ThreadState::Condition,
            _ if has("nanosleep") => ThreadState::Sleep,
            _ if has("poll") || has("do_select") => ThreadState::Poll,
            _ if has("pipe_read") || has("pipe_write") || has("pipe_wait") => ThreadState::Pipe,
            _ if has("do_wait") || has("kernel_wait") => ThreadState::Child,
            _ if has("tty") || has("n_read") => ThreadState::Terminal,
            _ if has("sk_wait") || has("unix_") || has("inet_") || has("tcp_") || has("recv") => {
                ThreadState::Socket
            }
            _ if has("flock") || has("posix_lock") || has("locks_") || has("semtimedop") => {
                ThreadState::Lock
            }
            _ if has("io_schedule")
                || has("folio")
                || has("jbd2")
                || has("xfs")
                || has("bit_wait") =>
            {
                ThreadState::Disk
            }
            _ if has("signal") || has("ptrace") => ThreadState::Stopped,
            _ => ThreadState::Other,
        })
    }

    /// Returns the time limit of the wait; `None` if there is no limit, or it is unknown.
    pub fn timeout(&self) -> Option<Duration> {
        match self.object {
            Object::Time(time) | Object::Descriptors(time) => time,
            _ => None,
        }
    }

    /// Returns whether the wait ends by a timer of the program: a sleep or, in runtimes that implement
    /// sleeps and timers by other calls, one of these with a time limit.
    pub fn is_timer(&self, runtime: Option<Runtime>) -> bool {
        match self.object {
            // In Go, only the monitor thread of the runtime calls nanosleep.
            Object::Time(_) => runtime != Some(Runtime::Go),
            Object::Descriptors(Some(_)) => {
                matches!(runtime, Some(Runtime::Go | Runtime::Node))
            }
            Object::Futex(futex) => {
                futex.is_timed
                    && futex.primitive == Primitive::Condition
                    && matches!(runtime, Some(Runtime::Go | Runtime::Java))
            }
            _ => self.state == ThreadState::Sleep,
        }
    }

    /// Returns whether the thread waits in the same way, and for the same lock if it waits for one. The
    /// address of a condition variable may alternate, and time limits may vary.
    pub fn is_like(&self, other: &Self) -> bool {
        self.state == other.state && (!self.is_for_lock() || self.object == other.object)
    }

    /// Returns whether the wait is for a lock, as far as the operation tells.
    pub fn is_for_lock(&self) -> bool {
        match self.object {
            Object::Futex(futex) => futex.primitive == Primitive::Lock,
            _ => self.state == ThreadState::Lock,
        }
    }
}

/// The wait of a stopped thread.
pub const STOPPED: Wait = Wait::of(ThreadState::Stopped);

/// Returns the wait of a thread that sleeps outside of system calls, or of one whose calls may not
/// be read: `state` is the letter in its `stat`.
pub fn outside_calls(state: u8) -> Wait {
    Wait::of(match state {
        b'D' => ThreadState::PageFault,
        b'T' | b't' => ThreadState::Stopped,
        _ => ThreadState::Unknown,
    })
}

/// Returns the wait in a call, or `None` if the thread is not in one.
pub fn wait_of(process: Pid, runtime: Option<Runtime>, kernel: &InKernel) -> Option<Wait> {
    match kernel {
        InKernel::Call { number, arguments } => {
            Some(Wait::in_call(process, runtime, *number, arguments))
        }
        InKernel::Running | InKernel::Outside => None,
    }
}

/// Returns the state of a thread in a call that opens a file.
fn in_open(process: Pid, folder: Option<i32>, path: u64) -> ThreadState {
    match Kind::opened_by(process, folder, path) {
        None => ThreadState::Unknown,
        Some(Kind::Unknown) => ThreadState::Disk,
        Some(kind) => state_at(kind),
    }
}

fn state_at(kind: Kind) -> ThreadState {
    match kind {
        Kind::Pipe => ThreadState::Pipe,
        Kind::Socket => ThreadState::Socket,
        Kind::Terminal => ThreadState::Terminal,
        Kind::File => ThreadState::Disk,
        Kind::Timer => ThreadState::Sleep,
        Kind::Counter => ThreadState::Condition,
        Kind::Other => ThreadState::Other,
        Kind::Unknown => ThreadState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_functions_of_several_versions_are_classified() {
        let cases = [
            ("futex_wait_queue_me", ThreadState::Condition),
            ("futex_do_wait", ThreadState::Condition),
            ("hrtimer_nanosleep", ThreadState::Sleep),
            ("do_epoll_wait", ThreadState::Poll),
            ("ep_poll", ThreadState::Poll),
            ("poll_schedule_timeout.constprop.0", ThreadState::Poll),
            ("anon_pipe_read", ThreadState::Pipe),
            ("pipe_write", ThreadState::Pipe),
            ("do_wait", ThreadState::Child),
            ("unix_stream_read_generic", ThreadState::Socket),
            ("inet_csk_accept", ThreadState::Socket),
            ("n_tty_read", ThreadState::Terminal),
            ("0", ThreadState::Unknown),
        ];
        for (name, state) in cases {
            assert_eq!(Wait::in_function(name).state, state, "{name}");
        }
    }
}
