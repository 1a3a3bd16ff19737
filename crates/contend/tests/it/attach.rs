//! Tests of `contend pipe --pid` and its relatives: observing a pipeline that is already running.

use std::path::Path;
use std::process::{Output, Stdio};

use contend_sys::{Pid, Signal};
use rustix::process::{kill_process, kill_process_group, test_kill_process};
use serde_json::Value;

use crate::support::{Child, Command, contend, number, processes_with, text, wait_until};

/// A running pipeline in a process group of its own, which is killed at the end.
struct Running {
    shell: Child,
    group: Pid,
}

impl Running {
    /// Starts the pipeline, and waits until its last stage, whose command line begins with `last`,
    /// runs.
    fn start(folder: &Path, pipeline: &str, last: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", pipeline]).current_dir(folder).stdin(Stdio::null());
        let shell = command.stdout(Stdio::null()).spawn().expect("a shell");
        let running = Self { group: Pid::from_child(&shell), shell };
        wait_until("the last stage runs", || running.pid_of(last).is_some());
        running
    }

    /// Returns the ID of the stage whose command line begins with `text`.
    fn pid_of(&self, text: &str) -> Option<Pid> {
        let children = contend_sys::procfs::with_descendants(self.group);
        children.into_iter().find(|pid| {
            let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
            let line = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").starts_with(text)
        })
    }

    fn id_of(&self, text: &str) -> String {
        self.pid_of(text).expect("the stage runs").as_raw_nonzero().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.shell.wait();
    }
}

/// Starts `contend pipe` with the arguments in a folder, to which it writes `out.json`.
fn attach(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["pipe", "--json", "out.json"]).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn record(folder: &Path) -> Value {
    let json = std::fs::read_to_string(folder.join("out.json")).expect("a record");
    let record: Value = serde_json::from_str(&json).expect("JSON");
    let schema = include_str!("../../../../schemas/contend.pipe-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validate(&schema, &record).expect("the record follows its schema");
    record
}

fn commands(record: &Value) -> Vec<&str> {
    let stages = record["stages"].as_array().expect("a list");
    stages.iter().map(|stage| stage["command"].as_str().expect("text")).collect()
}

fn report(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn a_running_pipeline_is_observed_for_a_time_and_continues() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline = "yes contend | sed s/o/0/ | (sleep 0.01; exec gzip -1) >out.gz";
    let running = Running::start(folder.path(), pipeline, "gzip");
    for stage in ["yes", "sed", "gzip"] {
        let pid = running.id_of(stage);
        let output = attach(folder.path(), &["--pid", &pid, "--for", "300ms"]).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", report(&output));
        assert!(
            report(&output).contains("observed |") && report(&output).contains("still running")
        );
    }
    let record = record(folder.path());
    assert_eq!(commands(&record), ["yes contend", "sed s/o/0/", "gzip -1"]);
    assert_eq!(record["attached"]["has_ended"], false);
    let wall = number(&record["wall_seconds"]);
    assert!((0.3..5.0).contains(&wall), "{wall} s");
    for stage in record["stages"].as_array().expect("a list") {
        let cpu = number(&stage["user_seconds"]) + number(&stage["system_seconds"]);
        assert!(cpu <= 1.1 * wall, "only the CPU time since the beginning counts: {stage:#}");
        assert_eq!(stage["outcome"]["kind"], "running");
        assert!(number(&stage["bytes_in"]) > 0.0 || stage["index"] == 1, "{stage:#}");
    }
    assert!(running.pid_of("gzip").is_some(), "the pipeline continues");
}

#[test]
fn the_observation_ends_with_the_pipeline_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline =
        "(until [ -e go ]; do sleep 0.01; done; seq 300000; sleep 0.4) | tac | tail -n 3 >out";
    let running = Running::start(folder.path(), pipeline, "tail");
    let mut command = attach(folder.path(), &["--pid", &running.id_of("tac")]);
    let observer = command.spawn().expect("it starts");
    let name = format!("pipe --json out.json --pid {}", running.id_of("tac"));
    wait_until("contend runs", || !processes_with(&name).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(200)); // it finds the stages
    std::fs::write(folder.path().join("go"), "").expect("room");
    let output = observer.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", report(&output));
    assert!(report(&output).contains("ended, exit status unknown"), "{}", report(&output));
    let written = std::fs::read_to_string(folder.path().join("out")).expect("the output");
    assert_eq!(written, "3\n2\n1\n");
    let record = record(folder.path());
    assert_eq!(record["attached"]["has_ended"], true);
    // Bytes after the last sample are not seen.
    let read = number(&record["stages"][1]["bytes_in"]);
    assert!((1.0..=1_988_895.0).contains(&read), "{read}");
    let approximate = record["stages"][1]["approximate"].as_array().expect("a list");
    assert!(approximate.contains(&"bytes_in".into()), "{approximate:?}");
}

#[test]
fn ctrl_c_ends_only_the_observation() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Running::start(folder.path(), "yes | cat | cat >/dev/null", "cat");
    let group = running.group.as_raw_nonzero().to_string();
    let observer = attach(folder.path(), &["--pgid", &group]).spawn().expect("it starts");
    let name = format!("pipe --json out.json --pgid {group}");
    wait_until("contend runs", || !processes_with(&name).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(200)); // it handles signals
    kill_process(Pid::from_child(&observer), Signal::INT).expect("it runs");
    let output = observer.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", report(&output));
    assert_eq!(commands(&record(folder.path())), ["yes", "cat", "cat"]);
    assert!(running.pid_of("yes").is_some(), "the pipeline continues");
}

#[test]
fn no_end_of_a_pipe_is_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Running::start(folder.path(), "yes | cat | sleep 100", "sleep");
    let group = running.group.as_raw_nonzero().to_string();
    let observer = attach(folder.path(), &["--pgid", &group]).spawn().expect("it starts");
    let own = Pid::from_child(&observer);
    let pipes = || {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", own.as_raw_nonzero()));
        let links = entries.into_iter().flatten().flatten();
        let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("pipe:")).count()
    };
    // Two are its own output; each pipe between the stages has two sides.
    wait_until("contend observes the pipes", || pipes() >= 6);
    let (yes, cat) = (running.pid_of("yes").expect("runs"), running.pid_of("cat").expect("runs"));
    kill_process(running.pid_of("sleep").expect("runs"), Signal::KILL).expect("it runs");
    wait_until("writers get SIGPIPE", || {
        let ended = |pid| test_kill_process(pid).is_err() || is_zombie(pid);
        ended(yes) && ended(cat)
    });
    let output = observer.wait_with_output().expect("it ends with the pipeline");
    assert!(output.status.success(), "{}", report(&output));
}

fn is_zombie(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    std::fs::read_to_string(path).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn the_last_job_of_a_shell_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "set -m; yes | cat >/dev/null & sleep 0.1; {} pipe --job --for 200ms --json out.json; \
         kill -KILL %1",
        contend()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().expect("bash starts");
    assert_eq!(commands(&record(folder.path())), ["yes", "cat"], "{}", report(&output));
}

#[test]
fn mistakes_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str]| {
        let output = attach(folder.path(), arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", report(&output));
        report(&output)
    };
    assert!(refused(&["--pid", "999999999"]).contains("there is no process 999999999"));
    assert!(refused(&["--pgid", "999999999"]).contains("there is no process group"));
    assert!(refused(&["--pid", "1", "seq 3"]).contains("cannot be used with"));
    assert!(refused(&["--pid", "1", "--for", "soon"]).contains("a time such as 10s"));
    assert!(refused(&["--for", "10s", "seq 3"]).contains("--for"));
}
