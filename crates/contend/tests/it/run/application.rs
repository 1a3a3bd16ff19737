//! An application of Apache Spark for tests with many jobs.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::spark::{MASTER, set_variables, spark};
use crate::support::{Child, Command, contend};

/// Longest time for which an application runs.
const LIFETIME: Duration = Duration::from_hours(4);

/// An application with two executors that runs many jobs in sequence. Dropping it ends it.
pub struct Application {
    home: PathBuf,
    /// The folder of its `spark-submit`.
    folder: TempDir,
    _server: Child,
}

impl Application {
    /// Starts an application, or skips the test with a message.
    pub fn start(test: &str) -> Option<Self> {
        let home = spark(test)?;
        let folder = tempfile::tempdir().expect("a folder");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark_submit.py");
        symlink(&program, folder.path().join("spark-submit")).expect("room");
        let mut command = Command::new("python3");
        command.arg(&program).arg("--serve").arg(folder.path().join("spark.socket"));
        command.args([MASTER, contend()]).current_dir(folder.path());
        set_variables(&mut command, &home, &home.join("bin"));
        let log = File::create(folder.path().join("log")).expect("room");
        command.deadline(LIFETIME);
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = server.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("text");
        let log = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        assert_eq!(line, "ready\n", "{}", log());
        Some(Self { home, folder, _server: server })
    }

    /// Makes a command use this application for its jobs.
    pub fn set_variables(&self, command: &mut Command) {
        set_variables(command, &self.home, self.folder.path());
    }
}
