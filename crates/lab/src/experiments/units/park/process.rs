//! Processes, by fork.

use std::io;
use std::os::fd::OwnedFd;

use contend_sys::child::{self, Which};
use contend_sys::process::{exit_now, fork};
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;

use super::{Park, all_have_ended};
use crate::engine::experiment::{Attempt, SubjectError};

/// Processes that wait. They end when they are released, and the kernel kills them should
/// their creator die.
#[derive(Debug)]
pub struct Processes {
    pids: Vec<Pid>,
    /// They read from the other end, and find its end when this one is closed.
    gate: Option<OwnedFd>,
    waits_at: OwnedFd,
    ready: (OwnedFd, OwnedFd),
    /// How many have told that they wait.
    heard: usize,
}

impl Processes {
    /// None yet.
    ///
    /// # Errors
    /// When there are no descriptors.
    pub fn new() -> Result<Self, SubjectError> {
        let (waits_at, gate) = pipe()?;
        Ok(Self { pids: Vec::new(), gate: Some(gate), waits_at, ready: pipe()?, heard: 0 })
    }

    fn wait_at_gate(&mut self) -> i32 {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        self.gate = None;
        if !matches!(rustix::io::write(&self.ready.1, b"x"), Ok(1)) {
            exit_now(1);
        }
        match rustix::io::read(&self.waits_at, &mut [0; 1]) {
            Ok(0) => 0,
            _ => 1,
        }
    }

    /// Whether one has told that it waits; not, after a moment without.
    fn someone_is_ready(&self) -> Result<bool, SubjectError> {
        let mut fds = [PollFd::new(&self.ready.0, PollFlags::IN)];
        let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        match poll(&mut fds, Some(&moment)) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            ready => Ok(ready.attempt("hear from a process")? > 0),
        }
    }
}

impl Park for Processes {
    fn add(&mut self, more: u64) -> io::Result<()> {
        for _ in 0..more {
            let pid = fork(|| self.wait_at_gate())?;
            self.pids.push(pid);
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        self.pids.len() as u64
    }

    fn await_all(&mut self) -> Result<(), SubjectError> {
        let mut buffer = [0; 4096];
        while self.heard < self.pids.len() {
            if !self.someone_is_ready()? {
                if let Ok(Some((pid, _))) = child::peek(Which::Any) {
                    let message = format!("process {pid} ended instead of waiting");
                    return Err(SubjectError::Wrong(message));
                }
                continue;
            }
            let wanted = (self.pids.len() - self.heard).min(buffer.len());
            let read = rustix::io::read(&self.ready.0, &mut buffer[..wanted]);
            self.heard += read.attempt("hear from a process")?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), SubjectError> {
        self.gate = None;
        let (created, mut ended) = (self.count(), 0);
        for pid in self.pids.drain(..) {
            let reaped = child::reap(pid).attempt("reap a process")?;
            ended += u64::from(reaped.status == child::ExitStatus::Exited(0));
        }
        self.heard = 0;
        let (waits_at, gate) = pipe()?;
        (self.waits_at, self.gate) = (waits_at, Some(gate));
        all_have_ended(created, ended)
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.pids.shrink_to_fit();
        Ok(())
    }

    fn pids(&self) -> &[Pid] {
        &self.pids
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.gate = None;
        for pid in self.pids.drain(..) {
            let _ = child::reap(pid);
        }
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SubjectError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).attempt("make a pipe")
}
