//! Progress reports of a running pipeline, for a live view.

use std::time::Duration;

use crate::observe::State;
use crate::observe::tree::SampledTime;

/// A progress report of a running pipeline.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The state of the run, reported about ten times a second.
    Running {
        /// Time since the gate opened.
        elapsed: Duration,
        /// The stages, first to last.
        stages: &'a [ProgressStage],
    },
    /// contend is about to be stopped (Ctrl-Z), and another process gets the terminal.
    Pause,
}

/// The state of one stage of a running pipeline.
#[derive(Debug, Clone, Copy)]
pub struct ProgressStage {
    /// The state at the last sample; `None` after the end of the stage.
    pub state: Option<State>,
    /// Bytes read so far from all descriptors, including libraries; `None` if unknown.
    pub bytes_in: Option<u64>,
    /// Bytes written so far to all descriptors; `None` if unknown.
    pub bytes_out: Option<u64>,
    /// The stage's time so far, by state.
    pub time: SampledTime,
    /// Time for which the stage's tasks have been queued for a CPU so far, summed over the tasks.
    pub run_queue: Duration,
    /// The share of the stage's input files read so far; `None` if there are no such files or the
    /// share is unknown.
    pub input: Option<InputProgress>,
    /// Whether the stage's standard output is, or may be, a terminal.
    pub may_write_to_terminal: bool,
}

/// The share of a stage's input files that the stage has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputProgress {
    /// Bytes read so far.
    pub read: u64,
    /// Size of the files in bytes.
    pub size: u64,
}
