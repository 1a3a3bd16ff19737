//! System V objects, which the kernel keeps when their users have gone, and what takes them away then.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};

use crate::child::reap;
use crate::process::fork;

/// A System V object that processes forked from now on share.
#[derive(Debug)]
pub(crate) struct Kept {
    id: i32,
    remove: fn(i32),
    creator: Pid,
    /// Removes it when the creator and all who have it from there have gone: the kernel does not.
    keeper: Pid,
    /// Open as long as somebody has it.
    gate: Option<OwnedFd>,
}

impl Kept {
    /// Makes one, which is removed when its creator drops it, or when all who have it have ended.
    ///
    /// # Errors
    /// What the kernel says when it cannot be made.
    pub fn new(make: impl FnOnce() -> i32, remove: fn(i32)) -> io::Result<Self> {
        let (waits_at, gate) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let id = make();
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut gate = Some(gate);
        let keeper = fork(|| {
            gate = None;
            // Whoever ends its group does not mean it, and it has nothing else to do.
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

    /// Its number.
    pub fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.gate = None;
        if getpid() == self.creator {
            (self.remove)(self.id);
            // Keepers of later ones have this gate open, too, so that it would not see its end.
            let _ = rustix::process::kill_process(self.keeper, Signal::KILL);
            let _ = reap(self.keeper);
        }
    }
}
