//! Units that exist and wait, until they are released.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use contend_sys::child::Which;
use contend_sys::process::{exit_now, fork};
use contend_sys::thread::{Attributes, Job, Thread, start};
use contend_sys::{Pid, Signal, child};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;

use crate::experiment::{Attempt, SubjectError};

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
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).attempt("make a pipe");
        let (waits_at, gate) = pipe()?;
        Ok(Self { pids: Vec::new(), gate: Some(gate), waits_at, ready: pipe()?, heard: 0 })
    }

    /// Creates one more.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&mut self) -> io::Result<()> {
        let pid = fork(|| self.wait_at_gate())?;
        self.pids.push(pid);
        Ok(())
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

    /// Waits until all of them wait.
    ///
    /// # Errors
    /// When one has ended instead.
    pub fn await_all(&mut self) -> Result<(), SubjectError> {
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

    /// Whether one has told that it waits; not, after a moment without.
    fn someone_is_ready(&self) -> Result<bool, SubjectError> {
        let mut fds = [PollFd::new(&self.ready.0, PollFlags::IN)];
        let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        match poll(&mut fds, Some(&moment)) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            ready => Ok(ready.attempt("hear from a process")? > 0),
        }
    }

    /// Those that were created.
    pub fn pids(&self) -> &[Pid] {
        &self.pids
    }

    /// Lets all of them end, and reaps them.
    ///
    /// # Errors
    /// When one did not wait but ended otherwise.
    pub fn release(mut self) -> Result<(), SubjectError> {
        self.gate = None;
        let mut failed = 0;
        for pid in self.pids.drain(..) {
            let reaped = child::reap(pid).attempt("reap a process")?;
            failed += u64::from(reaped.status != child::ExitStatus::Exited(0));
        }
        match failed {
            0 => Ok(()),
            _ => Err(SubjectError::Wrong(format!("{failed} processes did not wait"))),
        }
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

/// Threads that wait.
#[derive(Debug)]
pub struct Threads {
    waiting: Vec<Thread>,
    attributes: Attributes,
    gate: Arc<Gate>,
    job: &'static Job,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    opened: Condvar,
    came: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    open: bool,
}

impl Gate {
    fn wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        self.came.notify_one();
        while !state.open {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Threads {
    /// None yet.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new() -> Result<Self, SubjectError> {
        let attributes = Attributes::new(None).attempt("choose the threads' attributes")?;
        let gate = Arc::new(Gate::default());
        let theirs = Arc::clone(&gate);
        let job = Job::leaked(move || theirs.wait());
        Ok(Self { waiting: Vec::new(), attributes, gate, job })
    }

    /// Address space of a thread's stack.
    pub fn stack_bytes(&self) -> usize {
        self.attributes.stack_bytes()
    }

    /// Creates one more.
    ///
    /// # Errors
    /// When the C library or the kernel refuses.
    pub fn add(&mut self) -> io::Result<()> {
        self.waiting.push(start(&self.attributes, self.job)?);
        Ok(())
    }

    /// Waits until all of them wait.
    pub fn await_all(&self) {
        let mut state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting < self.waiting.len() {
            state = self.gate.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets all of them end, and joins them. There may be others later.
    ///
    /// # Errors
    /// None is known.
    pub fn release(&mut self) -> Result<(), SubjectError> {
        {
            let mut state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.open = true;
            self.gate.opened.notify_all();
        }
        for thread in self.waiting.drain(..) {
            thread.join().attempt("join a thread")?;
        }
        *self.gate.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wait_and_are_released_again_and_again() {
        let mut threads = Threads::new().expect("memory");
        for _ in 0..2 {
            (0..5).for_each(|_| threads.add().expect("a thread"));
            threads.await_all();
            threads.release().expect("they end");
        }
    }

    #[test]
    fn processes_wait_and_are_released() {
        let mut processes = Processes::new().expect("pipes");
        (0..3).for_each(|_| processes.add().expect("a process"));
        processes.await_all().expect("they wait");
        let pids = processes.pids().to_vec();
        processes.release().expect("they end");
        assert!(pids.iter().all(|&pid| child::reap(pid).is_err()), "all were reaped");
    }
}
