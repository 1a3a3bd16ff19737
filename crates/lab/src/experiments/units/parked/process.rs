//! Parked processes, created by fork.

use std::io;
use std::os::fd::OwnedFd;

use contend_sys::child::{self, Which};
use contend_sys::process::{exit_now, fork};
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;

use super::{ParkedUnits, check_all_ended};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// A set of waiting processes. They exit when they are released, and the kernel kills them if their
/// creator dies.
#[derive(Debug)]
pub struct ParkedProcesses {
    pids: Vec<Pid>,
    /// Write end of a pipe that the processes read; closing it releases them. `None` once closed.
    gate: Option<OwnedFd>,
    gate_reader: OwnedFd,
    /// Read end and write end of a pipe into which each process writes a byte before it waits.
    ready: (OwnedFd, OwnedFd),
    /// Number of processes that have announced that they wait.
    ready_count: usize,
}

impl ParkedProcesses {
    /// Creates an empty set.
    ///
    /// # Errors
    /// Returns an error if no pipe can be created.
    pub fn new() -> Result<Self, SubjectError> {
        let (gate_reader, gate) = pipe()?;
        Ok(Self { pids: Vec::new(), gate: Some(gate), gate_reader, ready: pipe()?, ready_count: 0 })
    }

    fn wait_at_gate(&mut self) -> i32 {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        self.gate = None;
        if !matches!(rustix::io::write(&self.ready.1, b"x"), Ok(1)) {
            exit_now(1);
        }
        match rustix::io::read(&self.gate_reader, &mut [0; 1]) {
            Ok(0) => 0,
            _ => 1,
        }
    }

    /// Waits up to 100 ms for a process to announce that it waits. Returns whether there is an
    /// announcement to read.
    fn wait_for_ready(&self) -> Result<bool, SubjectError> {
        let mut fds = [PollFd::new(&self.ready.0, PollFlags::IN)];
        let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        match poll(&mut fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            ready => Ok(ready.context("read from a process")? > 0),
        }
    }
}

impl ParkedUnits for ParkedProcesses {
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
        while self.ready_count < self.pids.len() {
            if !self.wait_for_ready()? {
                if let Ok(Some((pid, _))) = child::peek(Which::Any) {
                    let message = format!("process {pid} ended instead of waiting");
                    return Err(SubjectError::Unexpected(message));
                }
                continue;
            }
            let wanted = (self.pids.len() - self.ready_count).min(buffer.len());
            let read = rustix::io::read(&self.ready.0, &mut buffer[..wanted]);
            self.ready_count += read.context("read from a process")?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), SubjectError> {
        self.gate = None;
        let (created, mut ended) = (self.count(), 0);
        for pid in self.pids.drain(..) {
            let reaped = child::reap(pid).context("reap a process")?;
            ended += u64::from(reaped.status == child::ExitStatus::Exited(0));
        }
        self.ready_count = 0;
        let (gate_reader, gate) = pipe()?;
        (self.gate_reader, self.gate) = (gate_reader, Some(gate));
        check_all_ended(created, ended)
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.pids.shrink_to_fit();
        Ok(())
    }

    fn pids(&self) -> &[Pid] {
        &self.pids
    }
}

impl Drop for ParkedProcesses {
    fn drop(&mut self) {
        self.gate = None;
        for pid in self.pids.drain(..) {
            let _ = child::reap(pid);
        }
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SubjectError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).context("make a pipe")
}
