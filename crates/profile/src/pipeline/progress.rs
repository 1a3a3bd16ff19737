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
    /// What it did at the last sample; `None` after its end.
    pub state: Option<State>,
    /// Bytes read so far, if known.
    pub bytes_in: Option<u64>,
    /// Bytes written so far, if known.
    pub bytes_out: Option<u64>,
    /// Where its time went so far.
    pub time: SampledTime,
    /// Time that its tasks waited for a CPU so far, summed over the tasks.
    pub run_queue: Duration,
    /// How much of its input files it has read, if known.
    pub input: Option<InputProgress>,
    /// Whether its standard output is a terminal, or not known.
    pub may_write_to_terminal: bool,
}

/// How much of its input files a stage has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputProgress {
    /// Bytes read so far.
    pub read: u64,
    /// Size of the files in bytes.
    pub size: u64,
}
