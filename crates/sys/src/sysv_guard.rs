//! A guard for System V objects, which the kernel does not remove when their last user ends.
//!
//! ```text
//! creator --fork--> keeper: setsid, then blocks in read(2) on a pipe
//!    |                 |
//!    | write end       | EOF: every process that inherited the write end has ended
//!    v                 v
//! drop: remove,      remove the object
//! kill the keeper
//! ```

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};

use crate::child::reap;
use crate::process::fork;

/// A System V object, shared with all processes forked after its creation.
#[derive(Debug)]
pub(crate) struct SysvGuard {
    id: i32,
    remove: fn(i32),
    creator: Pid,
    /// A child process that removes the object once the creator and all processes that inherited
    /// the guard have ended.
    keeper: Pid,
    /// Write end of the keeper's pipe, open as long as any process uses the object.
    gate: Option<OwnedFd>,
}

impl SysvGuard {
    /// Creates the object with `make`, which returns its identifier or a negative number. The
    /// object is removed when the creator drops this guard, or when the creator and all processes
    /// that inherited the guard have ended.
    ///
    /// # Errors
    /// The error of `make`, pipe(2) or fork(2).
    pub fn new(make: impl FnOnce() -> i32, remove: fn(i32)) -> io::Result<Self> {
        let (waits_at, gate) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let id = make();
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut gate = Some(gate);
        let keeper = fork(|| {
            gate = None;
            // A signal to the creator's process group must not end the keeper, which only waits.
            let _ = rustix::process::setsid();
            while matches!(rustix::io::read(&waits_at, &mut [0_u8; 1]), Err(Errno::INTR)) {}
            remove(id);
            0
        });
        match keeper {
            Ok(keeper) => Ok(Self { id, remove, creator: getpid(), keeper, gate }),
            Err(error) => {
                remove(id);
                Err(error)
            }
        }
    }

    /// Returns the object's identifier.
    pub fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for SysvGuard {
    fn drop(&mut self) {
        self.gate = None;
        if getpid() == self.creator {
            (self.remove)(self.id);
            // Keepers of later objects have inherited this write end, so this keeper would not see
            // EOF.
            let _ = rustix::process::kill_process(self.keeper, Signal::KILL);
            let _ = reap(self.keeper);
        }
    }
}
