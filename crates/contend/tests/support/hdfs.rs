//! A Hadoop file system for tests, from the jars that `HADOOP_MINICLUSTER` and `SPARK_HOME` name.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};

use tempfile::TempDir;

use super::{Child, Command, has, skip};

/// The program that runs it.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/MiniHdfs.java");

/// A Hadoop file system. It ends when this is dropped.
pub struct Hdfs {
    /// Its URL.
    pub url: String,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _child: Child,
    _folder: TempDir,
}

impl Hdfs {
    /// Starts one, with copies of files in `/data`, or skips the test with a message.
    pub fn start(test: &str, files: &[PathBuf]) -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let (jar, spark) = (variable("HADOOP_MINICLUSTER"), variable("SPARK_HOME"));
        let (Some(jar), Some(spark), true) = (jar, spark, has("java") && has("javac")) else {
            skip(test, "HADOOP_MINICLUSTER or SPARK_HOME names no jars, or there is no JDK");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let jars = format!("{}:{}/jars/*", jar.display(), spark.display());
        let mut java = Command::new("java");
        java.args(["-cp", &jars, PROGRAM]).arg(folder.path().join("data")).args(files);
        java.current_dir(folder.path());
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = java.spawn().expect("it starts");
        let requests = child.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut url = String::new();
        while !url.starts_with("hdfs://") {
            url.clear();
            assert_ne!(answers.read_line(&mut url).expect("text"), 0, "it has started");
        }
        let url = url.trim_end().to_owned();
        Some(Self { url, requests, answers, _child: child, _folder: folder })
    }

    /// Returns the paths of all files and directories but `/data`, each with its permissions.
    pub fn paths(&mut self) -> Vec<String> {
        self.requests.write_all(b"\n").expect("it runs");
        let lines = (&mut self.answers).lines().map(|line| line.expect("text"));
        lines.take_while(|line| !line.is_empty()).collect()
    }

    /// Returns the name of a file.
    pub fn name_of(&self, file: &Path) -> String {
        let name = file.file_name().expect("a name").display();
        format!("{}/data/{name}", self.url)
    }
}
