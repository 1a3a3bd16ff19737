//! What a worker reports of an attempt.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::work::sync_directory;
use crate::execute::StageTally;

/// What a worker reports of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Default))]
pub struct PartReport {
    /// The index of the task: of a part, or of a combination.
    pub part: usize,
    /// The number of the attempt.
    pub attempt: u64,
    /// The name of the worker's machine.
    pub host: String,
    /// How it ended.
    pub end: End,
    /// Exit codes and costs of the stages, by index.
    pub stages: BTreeMap<usize, StageReport>,
    /// Wall time in seconds.
    pub wall_seconds: f64,
    /// Time of the end in seconds since 1970, by the clock of the worker's machine.
    pub ended_at: f64,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The output of the task is in a file.
    Complete(OutputFile),
    /// No record begins in the part, or in any part of a combination, so that there is no output.
    NoRecord,
    /// The part cannot run on its own, for the given reason: the group must run once over its whole input. Another
    /// attempt would end in the same way.
    Refused(String),
    /// A command failed, for the given reason. If it was not due to the machine, the part is to be refused.
    CommandFailed(String),
    /// The attempt failed, for the given reason. Another one, perhaps on another machine, may succeed.
    Failed(String),
    /// A combination failed because of one of its inputs, for the given reason. The task with that output must run again.
    BadInput {
        /// The name of the file with the output.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

/// The output of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// The name of the file in the work directory.
    pub file: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The checksum of the file: XXH3 with 128 bits, in hexadecimal digits.
    pub checksum: String,
}

#[cfg(test)]
impl Default for End {
    fn default() -> Self {
        Self::Failed(String::new())
    }
}

/// The exit code and costs of a stage in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// The exit code, as a shell reports it.
    pub exit_code: i32,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// Number of processes that were started.
    pub starts: u64,
}

impl From<StageTally> for StageReport {
    fn from(tally: StageTally) -> Self {
        let (cpu_seconds, starts) = (tally.cpu.as_secs_f64(), tally.starts);
        Self { exit_code: tally.status, cpu_seconds, starts }
    }
}

impl PartReport {
    /// Writes the report to a new file in a work directory, completely or not at all. Returns the name of the file.
    ///
    /// # Errors
    /// Returns an error if the file exists or cannot be written.
    pub fn write(&self, work: &Path) -> io::Result<String> {
        let mut file = tempfile::Builder::new().prefix(".report-").tempfile_in(work)?;
        serde_json::to_writer(&mut file, self)?;
        file.as_file().sync_all()?;
        let name = format!("{}.{}.json", self.part, self.attempt);
        file.persist_noclobber(work.join(&name)).map_err(|error| error.error)?;
        sync_directory(work)?;
        Ok(name)
    }

    /// Returns exit codes and costs of the stages.
    pub(super) fn tallies(&self) -> BTreeMap<usize, StageTally> {
        let tally = |report: &StageReport| {
            // A worker may report anything.
            let cpu = Duration::try_from_secs_f64(report.cpu_seconds).unwrap_or_default();
            StageTally::ended(report.exit_code, cpu, report.starts)
        };
        self.stages.iter().map(|(&stage, report)| (stage, tally(report))).collect()
    }
}
