//! The engine that has Apache Spark run attempts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use contend_shell::environment::in_path;
use contend_sys::Pid;
use contend_sys::child::ExitStatus;
use rustix::io::Errno;

use super::engine::{Engine, EngineError, State};
use super::processes::{Share, command};
use super::work::{Work, end_of_file};
use crate::execute::Launcher;

/// The program that starts an application.
pub const SUBMIT: &str = "spark-submit";
/// The program that Spark runs as its driver.
const PROGRAM: &str = include_str!("spark.py");
/// Name of that program's file in the work directory.
const PROGRAM_FILE: &str = "spark.py";
/// Name of the file in the work directory with what Spark says.
const LOG_FILE: &str = "spark.log";
/// Settings of the application, which the user's options override: a part that fails twice on a machine is tried on others.
const SPARK_SETTINGS: &[&str] = &[
    "spark.task.maxFailures=4",
    "spark.excludeOnFailure.enabled=true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor=2",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode=2",
];
/// Number of bytes from the end of that file in which an error is looked for.
const READ_LOG_BYTES: usize = 100_000;
/// Largest number of lines of that file that an error shows.
const SHOWN_LINES: usize = 8;

/// An engine that has Apache Spark run attempts, as tasks of an application that `spark-submit` starts. Spark repeats
/// tasks that fail.
#[derive(Debug)]
pub struct Spark<'a> {
    launcher: &'a Launcher,
    /// The path of contend, which Spark copies to its workers.
    program: PathBuf,
    /// The URL of the master; `None` for the one that Spark is configured with.
    master: Option<String>,
    /// More options for `spark-submit`.
    options: Vec<String>,
    share: Share,
    running: Option<Pid>,
    log: PathBuf,
}

impl<'a> Spark<'a> {
    /// Creates an engine.
    pub fn new(
        launcher: &'a Launcher,
        program: PathBuf,
        master: Option<String>,
        options: Vec<String>,
        share: Share,
    ) -> Self {
        Self { launcher, program, master, options, share, running: None, log: PathBuf::new() }
    }

    /// Returns the command that starts the application.
    fn command(&self, work: &Work, batch: u32) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        let mut words = vec![SUBMIT.to_owned()];
        if let Some(master) = &self.master {
            words.extend(["--master".to_owned(), master.clone()]);
        }
        words.extend(SPARK_SETTINGS.iter().flat_map(|it| ["--conf".to_owned(), (*it).to_owned()]));
        words.extend(self.options.iter().cloned());
        words.extend(["--files".to_owned(), text(&self.program)]);
        words.extend([text(&work.path().join(PROGRAM_FILE)), text(&work.job_file())]);
        let name = self.program.file_name().unwrap_or_default();
        words.extend([name.display().to_string(), batch.to_string()]);
        words.extend([self.share.jobs.to_string(), self.share.memory.to_string()]);
        words.push(if work.store().is_some() { "store" } else { "directory" }.to_owned());
        words
    }
}

/// Returns the last lines of a log of Spark about errors. If there are none, returns the last ones that are neither routine messages nor
/// places in its source.
fn complaints(log: &str) -> String {
    let is_routine = |line: &str| {
        let words = line.trim_start();
        let is_place = words.starts_with("at ") || words.starts_with("... ");
        words.is_empty() || is_place || words.contains(" INFO ") || words.contains("File \"")
    };
    let is_error = |line: &&str| {
        line.contains("rror") || line.contains("Exception") || line.contains(" ERROR ")
    };
    let lines: Vec<&str> = log.lines().filter(|line| !is_routine(line)).collect();
    let errors: Vec<&str> = lines.iter().copied().filter(is_error).collect();
    let lines = if errors.is_empty() { lines } else { errors };
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

impl Engine for Spark<'_> {
    fn prepare(
        &self,
        work: &Work,
        parts: &[usize],
        batch: u32,
    ) -> Result<Vec<String>, EngineError> {
        fs::write(work.path().join(PROGRAM_FILE), PROGRAM)?;
        work.write_todo(parts, batch)?;
        Ok(self.command(work, batch))
    }

    fn submit(&mut self, work: &Work, parts: &[usize], batch: u32) -> Result<(), EngineError> {
        if in_path(SUBMIT).is_none() {
            let source = Errno::NOENT.into();
            return Err(EngineError::Start { program: SUBMIT.to_owned(), source });
        }
        let words = self.prepare(work, parts, batch)?;
        self.log = work.path().join(LOG_FILE);
        let (null, log) = (File::open("/dev/null")?, File::create(&self.log)?);
        let command = command(words);
        let pid = self.launcher.start_helper(&command, [Some(&null), Some(&log), Some(&log)]);
        let cannot = |source| EngineError::Start { program: command.program.clone(), source };
        self.running = Some(pid.map_err(cannot)?);
        Ok(())
    }

    fn poll(&mut self) -> Result<State, EngineError> {
        let Some(pid) = self.running else { return Ok(State::Over(String::new())) };
        let Some(reaped) = self.launcher.try_wait(pid)? else { return Ok(State::Running) };
        self.running = None;
        Ok(State::Over(match reaped.status {
            ExitStatus::Exited(0) => String::new(),
            status => {
                let log = end_of_file(&self.log, READ_LOG_BYTES).unwrap_or_default();
                format!("{SUBMIT} ended with status {}: {}", status.shell_code(), complaints(&log))
            }
        }))
    }

    fn waiting(&self, has_begun: bool) -> Option<String> {
        let log = self.log.display();
        (!has_begun).then(|| format!("Spark has not started a task; its log is {log}"))
    }

    fn cancel(&mut self) {
        self.launcher.end_helpers(self.running.take().as_slice());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_found_among_the_messages_of_spark() {
        let log = "26/11/28 23:58:25 INFO Executor: starting\n\
                   26/11/28 23:58:25 ERROR Backend: All masters are unresponsive! Giving up.\n\
                   Caused by: java.io.IOException: refused\n\tat java.base/Thread.run(Thread.java:840)\n\
                   \t... 4 more\n\n26/11/28 23:58:26 INFO SparkContext: stopped\n";
        let expected = "26/11/28 23:58:25 ERROR Backend: All masters are unresponsive! Giving up.\n\
                        Caused by: java.io.IOException: refused";
        assert_eq!(complaints(log), expected);
        let many = "26/11/28 23:58:25 WARN Executor: again\n".repeat(20);
        assert_eq!(complaints(&many).lines().count(), SHOWN_LINES);
        assert_eq!(
            complaints("Error: Unrecognized option: --x\n\nUsage:\n"),
            "Error: Unrecognized option: --x"
        );
        assert_eq!(complaints(""), "");
    }
}
