//! Starts commands, and ends all running ones on request.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use contend_shell::environment::{Paths, in_path};
use contend_sys::child;
use contend_sys::signal::Mask;
use contend_sys::spawn::{ChildMemory, Prepared};
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use super::threads::{self, RetryLimit};
use crate::plan::ir::Command;

/// Upper bound on the time until a pending signal has been handled.
const SIGNAL_LATENCY: Duration = Duration::from_millis(100);

/// Time that helpers get to end after SIGTERM.
const HELPER_GRACE_PERIOD: Duration = Duration::from_secs(10);

/// A starter of commands, which knows the running ones and can end them.
#[derive(Debug)]
pub struct Launcher {
    /// The signal mask of commands.
    mask: Mask,
    /// Known paths of programs, by name.
    paths: Paths,
    /// Additional options for `sort`.
    sorting: Vec<String>,
    running: Mutex<Pids>,
    /// Whether the run is being ended.
    over: AtomicBool,
    /// Number of helpers and activities that the end of the run waits for, although no command is running.
    held: AtomicUsize,
}

/// Makes the end of the run wait until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold<'a>(&'a AtomicUsize);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The process IDs of running commands.
type Pids = Vec<Pid>;

impl Launcher {
    /// Creates a launcher. Commands run with the signal mask `mask`, and `sort` gets the additional
    /// options in `sorting`. Programs without a path in `paths` are looked up in PATH.
    pub fn new(mask: Mask, paths: Paths, sorting: Vec<String>) -> Self {
        let (running, over) = (Mutex::default(), AtomicBool::new(false));
        Self { mask, paths, sorting, running, over, held: AtomicUsize::new(0) }
    }

    /// Makes the end of the run wait for an activity that has to clean up, until the returned value is dropped.
    pub(crate) fn hold(&self) -> Hold<'_> {
        self.held.fetch_add(1, Ordering::Relaxed);
        Hold(&self.held)
    }

    /// Returns whether something has to clean up.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    /// Returns whether no command is running, and nothing has to clean up.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_held() && self.running().is_empty()
    }

    /// Returns whether `sort` gets additional options, which limit its memory.
    pub(super) fn limits_sort_memory(&self) -> bool {
        !self.sorting.is_empty()
    }

    /// Returns whether the run is being ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Starts a command. Standard streams that are `None` are inherited.
    ///
    /// # Errors
    /// Returns an error if a word of the command contains NUL, if no process can be created within
    /// the time for retries, or if the run is being ended. If the program cannot be executed, the
    /// new process reports that itself.
    pub(super) fn start(
        &self,
        command: &Command,
        streams: [Option<&File>; 3],
        limit: RetryLimit,
    ) -> io::Result<Pid> {
        let prepared = self.prepared(command)?;
        let memory = ChildMemory::Shared;
        threads::retried(limit, || self.start_prepared(&prepared, streams, memory))
    }

    /// Starts a program of contend's own, which is no command of the pipeline; see [`Self::start`].
    ///
    /// # Errors
    /// Returns an error if no process can be created within the time for retries, or if the run is being ended.
    pub(crate) fn start_helper(
        &self,
        command: &Command,
        streams: [Option<&File>; 3],
    ) -> io::Result<Pid> {
        self.start(command, streams, RetryLimit::Long)
    }

    /// Runs a helper to its end, even while the run is being ended, and returns how it ended. contend sends it no signals.
    ///
    /// # Errors
    /// Returns an error if no process can be created.
    pub(crate) fn run_helper(
        &self,
        command: &Command,
        streams: [Option<&File>; 3],
    ) -> io::Result<child::ExitStatus> {
        let _hold = self.hold();
        let streams = streams.map(|file| file.map(File::as_fd));
        let prepared = self.prepared(command)?;
        let start = || prepared.start(streams, self.mask, Signal::TERM, ChildMemory::Shared);
        let pid = threads::retried(RetryLimit::Long, start)?;
        child::wait_for_end(pid)?;
        child::reap(pid).map(|reaped| reaped.status)
    }

    /// Sends SIGTERM to helpers that still run, and waits for their end. Those that still run after
    /// [`HELPER_GRACE_PERIOD`] get SIGKILL.
    pub(crate) fn end_helpers(&self, pids: &[Pid]) {
        self.signal(pids, Signal::TERM);
        let begun = Instant::now();
        for &pid in pids {
            while let Ok(None) = self.try_wait(pid) {
                if begun.elapsed() > HELPER_GRACE_PERIOD {
                    self.signal(&[pid], Signal::KILL);
                }
                thread::sleep(SIGNAL_LATENCY / 10);
            }
        }
    }

    /// Prepares a command for [`Self::start_prepared`].
    ///
    /// # Errors
    /// Returns an error if a word of the command contains NUL.
    pub(super) fn prepared(&self, command: &Command) -> io::Result<Prepared> {
        let name = &command.program;
        let complaint = format!("contend: cannot start {name}\n");
        Prepared::new(&self.process(command), name, complaint)
    }

    /// Tries once to start a command. Standard streams that are `None` are inherited.
    ///
    /// # Errors
    /// Returns an error if no process can be created, or if the run is being ended. If the program
    /// cannot be executed, the new process reports that itself.
    pub(super) fn start_prepared(
        &self,
        prepared: &Prepared,
        streams: [Option<&File>; 3],
        memory: ChildMemory,
    ) -> io::Result<Pid> {
        let mut running = self.running();
        if self.is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let streams = streams.map(|file| file.map(File::as_fd));
        // On SIGTERM, sort removes its temporary files.
        let pid = prepared.start(streams, self.mask, Signal::TERM, memory)?;
        running.push(pid);
        Ok(pid)
    }

    /// Returns a command's program with its arguments and variables. If the program is not found,
    /// its path is empty.
    fn process(&self, command: &Command) -> Process {
        let name = &command.program;
        let path = self.paths.get(name).cloned().or_else(|| in_path(name));
        // An empty path starts nothing, whatever is in the current directory.
        let mut process = Process::new(path.unwrap_or_default());
        if command.sorts {
            process.args(&self.sorting);
        }
        process.args(&command.arguments);
        process.envs(command.variables.iter().map(|(name, value)| (name, value)));
        process
    }

    /// Waits until a command that this launcher started ends, and reaps it.
    pub(super) fn wait(&self, pid: Pid) -> io::Result<child::Reaped> {
        // The command stays a zombie until no signal can be sent to it any more.
        child::wait_for_end(pid)?;
        let mut running = self.running();
        running.retain(|&other| other != pid);
        child::reap(pid)
    }

    /// Reaps a command that this launcher started, if it has ended.
    pub(crate) fn try_wait(&self, pid: Pid) -> io::Result<Option<child::Reaped>> {
        match child::peek(child::Which::One(pid))? {
            Some((_, child::Change::Ended)) => self.wait(pid).map(Some),
            _ => Ok(None),
        }
    }

    /// Sends a signal to those of the given commands that are still running.
    pub(super) fn signal(&self, pids: &[Pid], signal: Signal) {
        for &pid in self.running().iter().filter(|pid| pids.contains(pid)) {
            let _ = kill_process(pid, signal); // the command may have ended
        }
    }

    /// Waits until a pending signal that ends the run has been handled, for at most
    /// [`SIGNAL_LATENCY`].
    pub(super) fn wait_for_signals(&self) {
        let begun = Instant::now();
        while !self.is_over() && begun.elapsed() < SIGNAL_LATENCY {
            thread::sleep(SIGNAL_LATENCY / 50);
        }
    }

    /// Returns the IDs of the running commands.
    pub fn pids(&self) -> Vec<Pid> {
        self.running().clone()
    }

    /// Prevents further starts, and waits for one in progress. The run counts as being ended from
    /// then on.
    pub fn forbid_starts(&self) {
        let _running = self.running(); // waits until no start is in progress
        self.over.store(true, Ordering::Relaxed);
    }

    /// Prevents further starts, then sends SIGTERM to all running commands.
    pub fn end_all(&self) {
        self.forbid_starts();
        let running = self.running();
        for &pid in running.iter() {
            let _ = kill_process(pid, Signal::TERM); // the command may have ended
        }
    }

    /// Sends SIGKILL to the commands that are still running.
    pub fn kill_all(&self) {
        for &pid in self.running().iter() {
            let _ = kill_process(pid, Signal::KILL); // the command may have ended
        }
    }

    fn running(&self) -> MutexGuard<'_, Pids> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
