//! Tests of `contend run --on`: parts that run elsewhere, and what happens when something fails there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use contend_sys::procfs::{Stat, children, with_descendants};
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;
use tempfile::TempDir;

use crate::support::{Child, Command, contend, has, processes_with, skip, text, wait_until};

/// Lines of input. Its last third has the line `wait`.
const INPUT: &str = "a\nb\nc\nd\ne\nf\ng\nwait\nh\n";

/// A command that copies its input. It notes each of its runs in the file `runs`. At the line `wait`, it creates the file
/// `waiting`, and waits until there is a file `go`.
const SLOW: &str = "#!/bin/sh\n\
                    echo run >>runs\n\
                    while read -r line; do\n  \
                      if [ \"$line\" = wait ]; then : >waiting; until [ -e go ]; do sleep 0.02; done; fi\n  \
                      echo \"$line\"\n\
                    done\n";

/// A folder with the file `in` and the command `slow`.
struct Setting(TempDir);

impl Setting {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("in"), INPUT).expect("room");
        let slow = folder.path().join("slow");
        fs::write(&slow, SLOW).expect("room");
        fs::set_permissions(&slow, Permissions::from_mode(0o755)).expect("own file");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a command that runs contend in the folder.
    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(contend());
        command.arg("run").args(arguments).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.run(arguments).output().expect("it starts")
    }

    /// Starts the slow command over three parts, one after the other, and waits until only the last one is left.
    fn start(&self) -> Child {
        let words =
            ["--on", "local", "--parts", "3", "-j", "1", "--map", "./slow", "cat in | ./slow"];
        let child = self.run(&words).spawn().expect("it starts");
        wait_until("the last part waits", || self.path("waiting").exists());
        child
    }

    fn go(&self) {
        fs::write(self.path("go"), "").expect("room");
    }

    /// Returns the work directories that there are.
    fn work(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_work = |path: &PathBuf| path.is_dir();
        paths.filter(is_work).collect()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).expect("it ran").lines().count()
    }

    /// Asserts that no process and no file of a job is left.
    fn assert_nothing_is_left(&self) {
        assert_eq!(self.work(), Vec::<PathBuf>::new());
        let name = self.0.path().display().to_string();
        wait_until("no process is left", || processes_with(&name).is_empty());
    }
}

fn kill(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("it runs");
}

#[test]
fn an_attempt_that_is_killed_runs_again() {
    let setting = Setting::new();
    let child = setting.start();
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    let [slow] = children(part)[..] else { panic!("one command at a time") };
    kill(part, Signal::KILL);
    wait_until("its command ends, too", || Stat::of(slow).is_err());
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(setting.runs(), 4);
    setting.assert_nothing_is_left();
}

#[test]
fn a_job_whose_driver_was_killed_is_continued() {
    let setting = Setting::new();
    let mut child = setting.start();
    kill(Pid::from_child(&child), Signal::KILL);
    child.wait().expect("a child");
    let name = setting.0.path().display().to_string();
    wait_until("no process is left", || processes_with(&name).is_empty());
    let [work] = &setting.work()[..] else { panic!("the work directory is left") };
    let work = work.display().to_string();
    setting.go();
    let elsewhere = Command::new(contend()).args(["run", "--resume", &work]).output();
    let elsewhere = elsewhere.expect("it starts");
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(text(&elsewhere.stderr).contains("change to it first"), "{}", text(&elsewhere.stderr));
    let other = setting.run(&["--resume", &work]).env("TZ", "Asia/Tokyo").output();
    let message = text(&other.expect("it starts").stderr);
    assert!(message.contains("unset TZ first") || message.contains("set TZ to"), "{message}");
    let output = setting.output(&["--resume", &work]);
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(setting.runs(), 4, "only the last part runs again");
    setting.assert_nothing_is_left();
}

#[test]
fn a_signal_ends_the_job_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let setting = Setting::new();
        let child = setting.start();
        kill(Pid::from_child(&child), signal);
        let output = child.wait_with_output().expect("a child");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{}", text(&output.stderr));
        setting.assert_nothing_is_left();
    }
}

#[test]
fn a_part_that_always_fails_is_an_error_with_its_reason() {
    let setting = Setting::new();
    let child = setting.start();
    // The attempt at the part that waits has opened the file; the next one does not find it.
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    fs::rename(setting.path("in"), setting.path("moved")).expect("own file");
    kill(part, Signal::KILL);
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains("part 3 of 3 (bytes "), "{message}");
    assert!(message.contains("cannot read in: No such file or directory"), "{message}");
    setting.assert_nothing_is_left();
}

#[test]
fn exit_codes_are_those_of_bash() {
    let setting = Setting::new();
    for pipeline in ["grep zzz in", "grep a in", "! grep a in", "grep zzz in | sort", "./slow <no"]
    {
        let output = setting.output(&["--on", "local", "--parts", "2", pipeline]);
        let mut bash = Command::new("bash");
        let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
        let bash = bash.expect("bash starts");
        let found = (output.status.code(), text(&output.stdout));
        assert_eq!(found, (bash.status.code(), text(&bash.stdout)), "{pipeline}");
        setting.assert_nothing_is_left();
    }
    let pipefail = ["--on", "local", "--parts", "2", "--pipefail", "grep -c zzz in | tr 0 1"];
    assert_eq!(setting.output(&pipefail).status.code(), Some(1));
}

#[test]
fn what_cannot_be_divided_runs_here_and_says_why() {
    let setting = Setting::new();
    fs::write(setting.path("empty"), "").expect("room");
    for (pipeline, expected, why) in [
        ("tac in | head -n 1", "h\n", ""),
        ("cat empty | wc -l", "0\n", "its first stages run once"),
        ("cat | wc -l", "0\n", "its input is not named files"),
        ("for i in 1 2; do echo $i; done", "1\n2\n", ""),
    ] {
        let output = setting.output(&["--on", "local", "--parts", "2", pipeline]);
        let message = text(&output.stderr);
        assert_eq!(text(&output.stdout), expected, "{message}");
        assert!(
            message.starts_with("contend: runs on this machine only: "),
            "{pipeline}: {message}"
        );
        assert!(message.contains(why), "{pipeline}: {message}");
        setting.assert_nothing_is_left();
    }
}

#[test]
fn mistakes_are_refused() {
    let setting = Setting::new();
    for (arguments, expected) in [
        (&["--parts", "2", "cat in"][..], "--on <ENGINE>"),
        (&["--on", "none", "cat in"], "invalid value 'none'"),
        (&["--on", "local", "--parts", "0", "cat in"], "invalid value '0'"),
        (&["--on", "local", "--work", "in", "cat in"], "--work: in is not a directory"),
        (&["--resume", "."], "cannot read or write the job in ./job.json"),
        (&["--resume", ".", "cat in"], "cannot be used with"),
    ] {
        let output = setting.output(arguments);
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_ne!(output.status.code(), Some(0));
        setting.assert_nothing_is_left();
    }
}

/// Returns the folder of a Spark installation, or skips the test with a message.
fn spark(test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("SPARK_HOME").map(PathBuf::from);
    match home.filter(|home| home.join("bin/spark-submit").exists()) {
        Some(home) if has("java") && has("python3") => Some(home),
        _ => {
            skip(test, "SPARK_HOME does not name an Apache Spark, or there is no Java or Python");
            None
        }
    }
}

/// Returns the command that runs a pipeline on a Spark cluster with two executors on this machine.
fn on_spark(setting: &Setting, home: &Path, parts: &str, more: &[&str], pipeline: &str) -> Command {
    let words = ["--on", "spark", "--master", "local-cluster[2,1,1024]", "--parts", parts];
    let mut command = setting.run(&[&words, more, &[pipeline]].concat());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", home.join("bin").display()));
    command.env("SPARK_HOME", home).env("SPARK_LOCAL_IP", "127.0.0.1");
    command.env("PYTHONPATH", home.parent().expect("a folder of packages"));
    command
}

#[test]
fn spark_changes_no_byte_and_no_exit_code() {
    let test = "spark_changes_no_byte_and_no_exit_code";
    let Some(home) = spark(test) else { return };
    let setting = Setting::new();
    fs::write(setting.path("bytes"), b"b\r\n\xff\xfe\n\n a\tc \nb\r\nlast").expect("room");
    for (pipeline, code) in
        [("cat bytes | LC_ALL=C tr a-c x-z", 0), ("cat bytes in | grep -a zzz", 1)]
    {
        let mut bash = Command::new("bash");
        let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
        let bash = bash.expect("bash starts");
        let output = on_spark(&setting, &home, "4", &[], pipeline).output().expect("it starts");
        let message = text(&output.stderr);
        assert_eq!(output.stdout, bash.stdout, "{pipeline}: {message}");
        assert_eq!(output.status.code(), Some(code), "{pipeline}: {message}");
        assert!(!message.contains("this machine only"), "{message}");
        setting.assert_nothing_is_left();
    }
}

#[test]
fn spark_repeats_what_was_lost_with_an_executor() {
    let test = "spark_repeats_what_was_lost_with_an_executor";
    let Some(home) = spark(test) else { return };
    let setting = Setting::new();
    let child = on_spark(&setting, &home, "3", &["--map", "./slow"], "cat in | ./slow").spawn();
    let child = child.expect("it starts");
    wait_until("the last part waits", || setting.path("waiting").exists());
    let of_job = with_descendants(Pid::from_child(&child));
    let executors: Vec<Pid> = of_job
        .into_iter()
        .filter(|pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            let line = line.unwrap_or_default();
            String::from_utf8_lossy(&line).contains("CoarseGrainedExecutorBackend")
        })
        .collect();
    assert!(!executors.is_empty(), "there are executors");
    for executor in executors {
        let _ = kill_process(executor, Signal::KILL); // a wrapper may have ended with it
    }
    std::thread::sleep(Duration::from_millis(500));
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(setting.runs() > 3, "a part ran again");
    setting.assert_nothing_is_left();
}
