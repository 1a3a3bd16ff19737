//! Runs the commands of a group over one chunk or several: as operators inside contend if there is
//! one for each command, as processes otherwise.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use super::chain::Chain;
use super::chunk_input::ChunkInput;
use super::ended::Ended;
use super::error::GroupError;
use super::launcher::Launcher;
use super::processes::Processes;
use super::sink::OutputSink;
use super::threads::RetryLimit;
use crate::plan::ir::Command;

/// The running commands of a group.
pub(super) enum Instance<'a> {
    /// Operators inside contend.
    Chain(Chain),
    /// Processes connected by pipes.
    Processes(Processes<'a>),
}

impl<'a> Instance<'a> {
    /// Starts a pipeline of commands, as operators if all of them have one. Standard error of
    /// processes is captured, and counts as a failure if it is not empty.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or a command cannot be started.
    pub(super) fn start(
        launcher: &'a Launcher,
        commands: &[Command],
        limit: RetryLimit,
    ) -> io::Result<Self> {
        match Chain::start(commands) {
            Some(chain) => Ok(Self::Chain(chain)),
            None => Processes::start(launcher, commands, limit).map(Self::Processes),
        }
    }

    /// Starts commands as processes that inherit contend's standard error.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or a command cannot be started.
    pub(super) fn start_with_inherited_stderr(
        launcher: &'a Launcher,
        commands: &[Command],
    ) -> io::Result<Self> {
        Processes::start_with_inherited_stderr(launcher, commands).map(Self::Processes)
    }

    /// Limits the capacity of the input pipe of processes to about `piece` bytes; see
    /// [`Processes::in_pieces`]. Operators are not affected.
    pub(super) fn in_pieces(self, piece: usize) -> Self {
        match self {
            Self::Chain(chain) => Self::Chain(chain),
            Self::Processes(processes) => Self::Processes(processes.in_pieces(piece)),
        }
    }

    /// Writes `left` to the commands while they accept input, and forwards their output. Returns
    /// `Break` if the reader wants no more output.
    ///
    /// # Errors
    /// Returns an error if reading `left`, writing to the commands, or forwarding their output
    /// fails.
    pub(super) fn feed(
        &mut self,
        left: &mut ChunkInput<'_>,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        match self {
            Self::Chain(chain) => chain.feed(left, output),
            Self::Processes(processes) => processes.feed(left, output),
        }
    }

    /// Returns whether the commands still accept input. Operators always do.
    pub(super) fn is_reading(&self) -> bool {
        match self {
            Self::Chain(_) => true,
            Self::Processes(processes) => processes.is_reading(),
        }
    }

    /// Closes the input, and forwards the remaining output. Returns `Break` if the reader wants no
    /// more output.
    ///
    /// # Errors
    /// Returns an error if the output cannot be read or forwarded.
    pub(super) fn drain(
        &mut self,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        match self {
            Self::Chain(chain) => chain.drain(output),
            Self::Processes(processes) => processes.drain(output),
        }
    }

    /// Closes the input without waiting. Operators append their remaining output to `early`, and
    /// the returned pipe is empty. The remaining output of processes can be read from the returned
    /// pipe.
    ///
    /// # Errors
    /// Returns an error if the pipe for the output cannot be created or configured.
    pub(super) fn hand_over(&mut self, early: &mut Vec<u8>) -> Result<File, GroupError> {
        match self {
            Self::Chain(chain) => {
                let mut keep = |bytes: &[u8]| {
                    early.extend_from_slice(bytes);
                    Ok(ControlFlow::Continue(()))
                };
                let _ = chain.drain(&mut keep)?; // `keep` never returns `Break`
                let (nothing, _) = io::pipe()?;
                Ok(File::from(OwnedFd::from(nothing)))
            }
            Self::Processes(processes) => Ok(processes.hand_over()?),
        }
    }

    /// Waits until the first `commands` commands end. Must be called after [`Self::hand_over`].
    /// Returns whether these commands succeeded, and no command of the instance has written to the
    /// captured standard error so far.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub(super) fn wait_for_first(&mut self, commands: usize) -> io::Result<bool> {
        match self {
            Self::Chain(chain) => Ok(chain.wait_for_first(commands)),
            Self::Processes(processes) => processes.wait_for_first(commands),
        }
    }

    /// Waits until the commands end, and returns how they ended. Their output must have been
    /// drained or handed over.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub(super) fn end(self) -> io::Result<Ended> {
        match self {
            Self::Chain(chain) => Ok(chain.end()),
            Self::Processes(processes) => processes.end(),
        }
    }
}
