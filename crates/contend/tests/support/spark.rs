//! An Apache Spark for tests, from the folder that `SPARK_HOME` names.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;

use super::{Child, Command, contend, has, skip, wait_until};

/// The master of a cluster with two executors on this machine.
pub const MASTER: &str = "local-cluster[2,1,1024]";
/// Longest time for which an application runs.
const LIFETIME: Duration = Duration::from_hours(4);

/// Returns the folder of a Spark installation, or skips the test with a message.
pub fn spark(test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("SPARK_HOME").map(PathBuf::from);
    match home.filter(|home| home.join("bin/spark-submit").exists()) {
        Some(home) if has("java") && has("python3") => Some(home),
        _ => {
            skip(test, "SPARK_HOME does not name an Apache Spark, or there is no Java or Python");
            None
        }
    }
}

/// Sets the variables that Spark needs. `programs` is the folder of `spark-submit`.
pub fn set_variables(command: &mut Command, home: &Path, programs: &Path) {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.env("SPARK_HOME", home).env("SPARK_LOCAL_IP", "127.0.0.1");
    command.env("PYTHONPATH", home.parent().expect("a folder of packages"));
}

/// A cluster of a master and two workers, whose hosts have different names. It ends when this is dropped.
pub struct Standalone {
    /// The URL of the master.
    pub url: String,
    _folder: TempDir,
    _daemons: [Child; 3],
}

impl Standalone {
    /// Starts a cluster with the Spark in a folder.
    pub fn start(home: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let url = format!("spark://127.0.0.1:{port}");
        let log = folder.path().join("master");
        let daemon = |class: &str, host: &str, log: &Path, words: &[&str]| {
            let mut command = Command::new(home.join("bin/spark-class"));
            command.arg(format!("org.apache.spark.deploy.{class}"));
            command.args(["--host", host, "--webui-port", "0"]).args(words);
            set_variables(&mut command, home, &home.join("bin"));
            let log = File::create(log).expect("room");
            command.env("SPARK_LOCAL_IP", host).stdin(Stdio::null()).stdout(Stdio::null());
            command.current_dir(folder.path()).stderr(log).spawn().expect("it starts")
        };
        let master = daemon("master.Master", "127.0.0.1", &log, &["--port", &port.to_string()]);
        let workers = ["127.0.0.2", "127.0.0.3"].map(|host| {
            let work = folder.path().join(host).display().to_string();
            let words = ["--cores", "1", "--memory", "1g", "--work-dir", &work, &url];
            daemon("worker.Worker", host, &folder.path().join(format!("log.{host}")), &words)
        });
        wait_until("two workers are registered", || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            log.matches("Registering worker").count() == 2
        });
        let [one, two] = workers;
        Self { url, _folder: folder, _daemons: [master, one, two] }
    }
}

/// An application with two executors, in which many jobs run one after the other. It ends when this is dropped.
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
        let log = fs::File::create(folder.path().join("log")).expect("room");
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
