//! The result of a run, as returned to the caller.

use std::io;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use contend_record::run::{RunRecord, SCHEMA, WorkSpan};

use super::settings::Settings;

/// The end of a run, from which the caller derives contend's exit code.
#[derive(Debug)]
pub enum End {
    /// Nothing ran, since only the plan was requested.
    Explained(Box<Report>),
    /// Nothing ran, since the job was to be written into the directory with this path.
    Emitted(PathBuf),
    /// The pipeline or script ended.
    Finished {
        /// The exit code as a shell reports it; 1 if the original's output or exit code differs.
        exit_code: i32,
        /// The report on the run.
        report: Box<Report>,
    },
    /// The signal with this number asked contend to end, and contend has ended the commands or
    /// stopped waiting for them. The caller should die of the same signal.
    Interrupted(i32),
    /// The program that should have replaced this process could not be executed.
    NotExecuted {
        /// Name of the program, for a message.
        program: String,
        /// Why the program could not be executed.
        source: io::Error,
        /// The exit code to use: 127 if the program does not exist, else 126, as in a shell; always
        /// 126 if the program is the shell that should have started a stage's command.
        exit_code: u8,
    },
    /// Another process runs the stage of this process.
    TakenOver,
}

/// A report on what a run did or, if only the plan was requested, would do.
#[derive(Debug)]
pub struct Report {
    /// The record, without `contend`, `started_at` and `host`, which the caller adds.
    pub record: RunRecord,
    /// The time at which the run started, for `started_at`.
    pub started: SystemTime,
    /// The time at which the commands started; `None` if they have not.
    pub begun: Option<Instant>,
    /// The work of the run in more detail than the record has it, if the settings ask for a trace.
    pub work: Vec<WorkSpan>,
    /// Whether a shell ran the source. If so, the pipelines that contend took over have reported
    /// their own statistics.
    pub by_shell: bool,
}

impl Report {
    /// Creates a report on a run of `text` that starts now.
    pub(super) fn new(text: &str, settings: &Settings) -> Box<Self> {
        let mut report = Self::unwanted();
        report.record = RunRecord {
            schema: SCHEMA.to_owned(),
            command: text.to_owned(),
            jobs: settings.jobs(),
            memory_bytes: settings.memory(),
            ..RunRecord::default()
        };
        report
    }

    /// Creates a report that will not be used.
    pub(super) fn unwanted() -> Box<Self> {
        let (record, started) = (RunRecord::default(), SystemTime::now());
        Box::new(Self { record, started, begun: None, work: Vec::new(), by_shell: false })
    }
}
