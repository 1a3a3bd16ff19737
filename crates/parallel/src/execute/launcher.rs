//! Starting commands, and ending all that are running.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use contend_shell::environment::{Paths, in_path};
use contend_sys::child;
use contend_sys::signal::Mask;
use contend_sys::spawn::{ChildMemory, Prepared};
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use super::threads::{self, Patience};
use crate::plan::ir::Command;

/// Upper bound until a pending signal has been handled.
const SIGNAL_LATENCY: Duration = Duration::from_millis(100);

/// What every command is started with, and all that are running.
#[derive(Debug)]
pub struct Launcher {
    /// The signal mask of commands.
    mask: Mask,
    /// Where programs are.
    paths: Paths,
    /// Options for commands that sort.
    sorting: Vec<String>,
    running: Mutex<Pids>,
    over: AtomicBool,
}

/// The commands that are running.
type Pids = Vec<Pid>;

impl Launcher {
    /// A launcher whose commands get this signal mask, and those that sort these options. Programs
    /// whose paths are not given are looked for.
    pub fn new(mask: Mask, paths: Paths, sorting: Vec<String>) -> Self {
        Self { mask, paths, sorting, running: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// Whether commands that sort are told how much memory to take.
    pub(super) fn bounds_sorting(&self) -> bool {
        !self.sorting.is_empty()
    }

    /// Whether everything is being ended.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Starts a command. Of its standard input, output and error those that are not given are those
    /// of this process.
    ///
    /// # Errors
    /// When there cannot be one more process for as long as it is tried, or everything is being ended. If its program cannot be
    /// started the command says so itself.
    pub(super) fn start(
        &self,
        command: &Command,
        streams: [Option<&File>; 3],
        patience: Patience,
    ) -> io::Result<Pid> {
        let prepared = self.prepared(command)?;
        let memory = ChildMemory::Shared;
        threads::retried(patience, || self.start_prepared(&prepared, streams, memory))
    }

    /// A command, ready to be started.
    ///
    /// # Errors
    /// When there is a NUL in one of its words.
    pub(super) fn prepared(&self, command: &Command) -> io::Result<Prepared> {
        let name = &command.program;
        let complaint = format!("contend: cannot start {name}\n");
        Prepared::new(&self.process(command), name, complaint)
    }

    /// Tries once to start a command.
    ///
    /// # Errors
    /// As [`Self::start`].
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
        // sort removes its temporary files when it is asked to end.
        let pid = prepared.start(streams, self.mask, Signal::TERM, memory)?;
        running.push(pid);
        Ok(pid)
    }

    /// A command's program with its arguments and variables.
    fn process(&self, command: &Command) -> Process {
        let name = &command.program;
        let path = self.paths.get(name).cloned().or_else(|| in_path(name));
        // Without a path there is nothing to start, whatever lies in the current folder.
        let mut process = Process::new(path.unwrap_or_default());
        if command.sorts {
            process.args(&self.sorting);
        }
        process.args(&command.arguments);
        process.envs(command.variables.iter().map(|(name, value)| (name, value)));
        process
    }

    /// Waits for a command that was started here.
    pub(super) fn wait(&self, pid: Pid) -> io::Result<child::Reaped> {
        // It stays a zombie until nobody can send it a signal any more.
        child::wait_for_end(pid)?;
        let mut running = self.running();
        running.retain(|&other| other != pid);
        child::reap(pid)
    }

    /// Sends a signal to these, if they are still there.
    pub(super) fn signal(&self, pids: &[Pid], signal: Signal) {
        for &pid in self.running().iter().filter(|pid| pids.contains(pid)) {
            let _ = kill_process(pid, signal); // it may have ended
        }
    }

    /// Somebody may be ending everything: waits until that is known, or is not so.
    pub(super) fn let_signals_be_heard(&self) {
        let begun = Instant::now();
        while !self.is_over() && begun.elapsed() < SIGNAL_LATENCY {
            thread::sleep(SIGNAL_LATENCY / 50);
        }
    }

    /// The commands that are running.
    pub fn pids(&self) -> Vec<Pid> {
        self.running().clone()
    }

    /// Nothing can be started after it.
    pub fn start_nothing(&self) {
        let _running = self.running(); // nobody is starting anything now
        self.over.store(true, Ordering::Relaxed);
    }

    /// Ends everything that is running; nothing can be started after it.
    pub fn end_all(&self) {
        self.start_nothing();
        let running = self.running();
        for &pid in running.iter() {
            let _ = kill_process(pid, Signal::TERM); // it may have ended
        }
    }

    /// Ends those that did not do so when they were asked to.
    pub fn kill_all(&self) {
        for &pid in self.running().iter() {
            let _ = kill_process(pid, Signal::KILL); // it may have ended
        }
    }

    fn running(&self) -> MutexGuard<'_, Pids> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
