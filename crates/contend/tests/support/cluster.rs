//! A folder in which parts of a job run, for tests of `contend run --on`.

use std::fs;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use super::{Child, Command, contend, processes_with, wait_until, write_program};

/// Lines of input. Its last third has the line `wait`.
pub const INPUT: &str = "a\nb\nc\nd\ne\nf\ng\nwait\nh\n";

/// A command that copies its input. It notes each of its runs in the file `runs`. At the line `wait`, it creates the file
/// `waiting`, and waits until there is a file `go`.
const SLOW: &str = "#!/bin/sh\n\
                    echo run >>runs\n\
                    while read -r line; do\n  \
                      if [ \"$line\" = wait ]; then : >waiting; until [ -e go ]; do sleep 0.02; done; fi\n  \
                      echo \"$line\"\n\
                    done\n";

/// A folder with the file `in` and the command `slow`.
pub struct Setting(pub TempDir);

impl Setting {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("in"), INPUT).expect("room");
        write_program(&folder.path().join("slow"), SLOW);
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a command that runs contend in the folder.
    pub fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(contend());
        command.arg("run").args(arguments).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.run(arguments).output().expect("it starts")
    }

    /// Starts the slow command over three parts, one after the other, and waits until only the last one is left.
    pub fn start(&self) -> Child {
        let words =
            ["--on", "local", "--parts", "3", "-j", "1", "--map", "./slow", "cat in | ./slow"];
        let child = self.run(&words).spawn().expect("it starts");
        wait_until("the last part waits", || self.path("waiting").exists());
        child
    }

    pub fn go(&self) {
        fs::write(self.path("go"), "").expect("room");
    }

    /// Returns the work directories that there are.
    pub fn work(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_work = |path: &PathBuf| path.is_dir();
        paths.filter(is_work).collect()
    }

    pub fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).expect("it ran").lines().count()
    }

    /// Asserts that no process and no file of a job is left.
    pub fn assert_nothing_is_left(&self) {
        assert_eq!(self.work(), Vec::<PathBuf>::new());
        let name = self.0.path().display().to_string();
        wait_until("no process is left", || processes_with(&name).is_empty());
    }
}
