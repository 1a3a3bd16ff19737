//! The result of a run, for its caller.

use std::io;
use std::time::SystemTime;

use contend_record::run::{RunRecord, SCHEMA};

use super::settings::Settings;

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// Nothing was run, since only the plan was requested.
    Explained(Box<Report>),
    /// The pipeline ended.
    Finished {
        /// The exit code as a shell reports it; 1 if a comparison with the original failed.
        exit_code: i32,
        /// What the run did.
        report: Box<Report>,
    },
    /// This signal asked contend to end, and its commands have been ended. The caller should die of
    /// the same signal.
    Interrupted(i32),
    /// The program that should have replaced this process could not be executed.
    NotExecuted {
        /// The program, for a message.
        program: String,
        /// Why it could not be executed.
        source: io::Error,
        /// The exit code of a shell in this case: 127 if there is no such program, else 126.
        exit_code: u8,
    },
    /// Another process carries out this stage.
    TakenOver,
}

/// What a run did, or would do.
#[derive(Debug)]
pub struct Report {
    /// The record. The caller adds `contend`, `started_at` and `host`, which only it knows.
    pub record: RunRecord,
    /// When the run started, for `started_at`.
    pub started: SystemTime,
    /// A shell ran the text; the pipelines in it that contend took over have reported their own
    /// figures.
    pub by_shell: bool,
}

impl Report {
    /// Starts a report on this text, now.
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

    /// Starts a report that will not be used.
    pub(super) fn unwanted() -> Box<Self> {
        let (record, started) = (RunRecord::default(), SystemTime::now());
        Box::new(Self { record, started, by_shell: false })
    }
}
