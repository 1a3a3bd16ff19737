//! Runs a pipeline once, as the shell would run it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use contend_sys::child::{self, Change, ExitStatus, Which};
use contend_sys::spawn::{ChildMemory, Prepared};
use contend_sys::{Pid, Signal};

use super::ended::Cost;
use super::launcher::Launcher;
use super::threads::{self, RetryLimit, is_scarcity};
use super::{StartError, Tally};
use crate::plan::ir::Command;

/// A running pipeline. Dropping it terminates its commands and waits for them.
#[derive(Debug)]
pub struct Plain<'a> {
    launcher: &'a Launcher,
    tally: &'a Tally,
    running: Vec<(Pid, &'a Command)>,
    ended: Vec<ExitStatus>,
}

impl<'a> Plain<'a> {
    /// Starts the commands. The first one reads `stdin` and the last one writes to `stdout`; if one
    /// of these is `None`, the command inherits contend's stream. A command whose input file cannot
    /// be opened is recorded in `tally` and not started.
    ///
    /// # Errors
    /// Returns an error if a command cannot be started or a pipe cannot be created.
    pub fn start(
        launcher: &'a Launcher,
        tally: &'a Tally,
        commands: &'a [Command],
        mut stdin: Option<File>,
        mut stdout: Option<File>,
    ) -> Result<Self, StartError> {
        let mut plain = Self { launcher, tally, running: Vec::new(), ended: Vec::new() };
        for (index, command) in commands.iter().enumerate() {
            let failed = |source| StartError { program: command.program.clone(), source };
            let is_last = index + 1 == commands.len();
            let pipe = if is_last { None } else { Some(plain.retried(io::pipe).map_err(failed)?) };
            let (next, writer) = pipe.unzip();
            let output = writer.map(|end| File::from(OwnedFd::from(end))).or_else(|| stdout.take());
            let before = std::mem::replace(&mut stdin, next.map(|end| OwnedFd::from(end).into()));
            let input = match command.input.as_ref().map(|name| (name, File::open(name))) {
                None => before,
                Some((_, Ok(file))) => Some(file),
                Some((name, Err(error))) => {
                    // The command is not started; the next one reads an empty input.
                    tally.missing(command, name, &error);
                    continue;
                }
            };
            let prepared = launcher.prepared(command).map_err(failed)?;
            let streams = [input.as_ref(), output.as_ref(), None];
            let pid = plain.start_one(&prepared, streams, is_last);
            plain.running.push((pid.map_err(failed)?, command));
        }
        Ok(plain)
    }

    /// Starts a command, and retries for a while if processes, open files or memory have run out.
    ///
    /// All commands but the last get a copy of this process's memory, so that contend need not wait
    /// for their execve(2). If it waited, the kernel would often keep the command and the next one
    /// on the same CPU for their first milliseconds. The last command shares the memory, which is
    /// cheaper, and so do others if there is no memory for a copy.
    fn start_one(
        &mut self,
        prepared: &Prepared,
        streams: [Option<&File>; 3],
        is_last: bool,
    ) -> io::Result<Pid> {
        let launcher = self.launcher;
        let start = |memory| launcher.start_prepared(prepared, streams, memory);
        self.retried(|| {
            match start(if is_last { ChildMemory::Shared } else { ChildMemory::Copied }) {
                // There may not be enough memory for a copy of the process.
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory && !is_last => {
                    start(ChildMemory::Shared)
                }
                started => started,
            }
        })
    }

    /// Repeats an attempt that fails because processes, open files or memory have run out, as a
    /// shell does. Ended commands are reaped before a retry, which makes room.
    fn retried<T>(&mut self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        threads::retried(RetryLimit::Long, || {
            attempt().or_else(|error| {
                if is_scarcity(&error) && self.reap_ended()? { attempt() } else { Err(error) }
            })
        })
    }

    /// Reaps commands that have ended, and returns whether there were any.
    fn reap_ended(&mut self) -> io::Result<bool> {
        let mut has_reaped = false;
        let mut place = 0;
        while let Some(&(pid, _)) = self.running.get(place) {
            if let Some((_, Change::Ended)) = child::peek(Which::One(pid))? {
                self.reap(place)?;
                has_reaped = true;
            } else {
                place += 1;
            }
        }
        Ok(has_reaped)
    }

    /// Reaps commands in order, up to the first one that still runs. Returns whether all commands
    /// have ended.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub fn try_wait(&mut self) -> io::Result<bool> {
        while let Some(&(pid, _)) = self.running.first() {
            let Some((_, Change::Ended)) = child::peek(Which::One(pid))? else { return Ok(false) };
            self.reap(0)?;
        }
        Ok(true)
    }

    /// Returns whether the given signal terminated the last command that was started. All commands
    /// must have been reaped. As in a shell, it does not matter how the other commands ended.
    pub fn died_of(&self, signal: i32) -> bool {
        self.ended.last() == Some(&ExitStatus::Signaled(signal))
    }

    /// Waits until all commands have ended.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub fn wait(mut self) -> io::Result<()> {
        while !self.running.is_empty() {
            self.reap(0)?;
        }
        Ok(())
    }

    /// Waits for the command at index `place` of the running ones, and records its cost and exit
    /// status.
    fn reap(&mut self, place: usize) -> io::Result<()> {
        let (pid, command) = self.running.remove(place);
        let reaped = self.launcher.wait(pid)?;
        self.tally.used(command.stage, Cost::of_process(reaped.usage.cpu()));
        self.tally.status(command, reaped.status);
        self.ended.push(reaped.status);
        Ok(())
    }
}

impl Drop for Plain<'_> {
    fn drop(&mut self) {
        let pids: Vec<Pid> = self.running.iter().map(|(pid, _)| *pid).collect();
        self.launcher.signal(&pids, Signal::TERM);
        for pid in pids {
            let _ = self.launcher.wait(pid); // a destructor cannot report errors
        }
    }
}
