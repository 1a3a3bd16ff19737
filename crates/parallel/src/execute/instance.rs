//! Commands over one part of the input, or over several: as operators inside contend where there is one for each of
//! them, else as processes.

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
use super::threads::Patience;
use crate::plan::ir::Command;

/// Commands at work.
pub(super) enum Instance<'a> {
    /// Inside contend.
    Chain(Chain),
    /// As processes.
    Processes(Processes<'a>),
}

impl<'a> Instance<'a> {
    /// Starts commands, each taking what the one before it writes. What processes write to standard error is kept,
    /// and counts as a failure.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(super) fn start(
        launcher: &'a Launcher,
        commands: &[Command],
        patience: Patience,
    ) -> io::Result<Self> {
        match Chain::start(commands) {
            Some(chain) => Ok(Self::Chain(chain)),
            None => Processes::start(launcher, commands, patience).map(Self::Processes),
        }
    }

    /// Starts commands as processes, whose standard error is contend's.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(super) fn start_aloud(launcher: &'a Launcher, commands: &[Command]) -> io::Result<Self> {
        Processes::start_aloud(launcher, commands).map(Self::Processes)
    }

    /// It is fed with pieces of so many bytes; see [`Processes::in_pieces`].
    pub(super) fn in_pieces(self, piece: usize) -> Self {
        match self {
            Self::Chain(chain) => Self::Chain(chain),
            Self::Processes(processes) => Self::Processes(processes.in_pieces(piece)),
        }
    }

    /// Feeds it, and passes on what it writes meanwhile. `Break` if nobody wants its output.
    ///
    /// # Errors
    /// When reading or writing fails.
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

    /// Whether it still takes input.
    pub(super) fn is_reading(&self) -> bool {
        match self {
            Self::Chain(_) => true,
            Self::Processes(processes) => processes.is_reading(),
        }
    }

    /// Ends its input, and passes on the rest of what it writes.
    ///
    /// # Errors
    /// As [`Self::feed`].
    pub(super) fn drain(
        &mut self,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        match self {
            Self::Chain(chain) => chain.drain(output),
            Self::Processes(processes) => processes.drain(output),
        }
    }

    /// Ends its input. What operators still write is added to `early`; what processes still write can be read from
    /// the pipe that is returned, and is not waited for.
    ///
    /// # Errors
    /// When there cannot be a pipe.
    pub(super) fn hand_over(&mut self, early: &mut Vec<u8>) -> Result<File, GroupError> {
        match self {
            Self::Chain(chain) => {
                let mut keep = |bytes: &[u8]| {
                    early.extend_from_slice(bytes);
                    Ok(ControlFlow::Continue(()))
                };
                let _ = chain.drain(&mut keep)?; // all is wanted
                let (nothing, _) = io::pipe()?;
                Ok(File::from(OwnedFd::from(nothing)))
            }
            Self::Processes(processes) => Ok(processes.hand_over()?),
        }
    }

    /// Waits for the end of its first commands, after [`Self::hand_over`]; whether all of them ended as they should.
    ///
    /// # Errors
    /// When they cannot be waited for.
    pub(super) fn wait_for_first(&mut self, commands: usize) -> io::Result<bool> {
        match self {
            Self::Chain(chain) => Ok(chain.wait_for_first(commands)),
            Self::Processes(processes) => processes.wait_for_first(commands),
        }
    }

    /// Waits for the end of its commands, whose output has been taken or handed over.
    ///
    /// # Errors
    /// When they cannot be waited for.
    pub(super) fn end(self) -> io::Result<Ended> {
        match self {
            Self::Chain(chain) => Ok(chain.end()),
            Self::Processes(processes) => processes.end(),
        }
    }
}
