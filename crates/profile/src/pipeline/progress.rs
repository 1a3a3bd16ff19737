//! Progress reports of a running pipeline, for a live view.

use std::time::Duration;

use crate::observe::State;
use crate::observe::tree::SampledTime;

/// A progress report.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The run continues. Sent about ten times a second.
    Running {
        /// Time since the gate opened.
        elapsed: Duration,
        /// The stages, first to last.
        stages: &'a [ProgressStage],
    },
    /// contend is about to stop (Ctrl-Z), and another process gets the terminal.
    Pause,
}

/// A stage of a running pipeline.
#[derive(Debug, Clone, Copy)]
pub struct ProgressStage {
    /// The state at the last sample; `None` after the stage's end.
    pub state: Option<State>,
    /// Bytes read so far, if known.
    pub bytes_in: Option<u64>,
    /// Bytes written so far, if known.
    pub bytes_out: Option<u64>,
    /// How its time so far was spent.
    pub time: SampledTime,
    /// Time that its tasks waited for a CPU so far, summed over the tasks.
    pub run_queue: Duration,
    /// The share of its input files that it has read, if known.
    pub input: Option<InputProgress>,
    /// Whether its standard output is a terminal, or may be one.
    pub may_write_to_terminal: bool,
}

/// The share of its input files that a stage has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputProgress {
    /// Bytes read so far.
    pub read: u64,
    /// Size of the files in bytes.
    pub size: u64,
}
