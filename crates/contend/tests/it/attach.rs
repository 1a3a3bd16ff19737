//! Tests of `contend pipe --pid` and its relatives: observing a pipeline that is already running.

use std::path::Path;
use std::process::{Output, Stdio};

use contend_sys::{Pid, Signal};
use rustix::process::{kill_process, kill_process_group, test_kill_process};
use serde_json::Value;

use crate::support::{Child, Command, contend, number, text, wait_until};

/// A running pipeline in a process group of its own, which is killed at the end.
struct Running {
    shell: Child,
    group: Pid,
}

impl Running {
    /// Starts the pipeline, and waits until the given programs run: one process for each, whose
    /// command line begins with the text. Before, processes may still have the command line of the
    /// shell that started them.
    fn start(folder: &Path, pipeline: &str, programs: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", pipeline]).current_dir(folder).stdin(Stdio::null());
        let shell = command.stdout(Stdio::null()).spawn().expect("a shell");
        let running = Self { group: Pid::from_child(&shell), shell };
        wait_until("the programs run", || {
            programs.iter().all(|program| {
                let needed = programs.iter().filter(|other| *other == program).count();
                running.pids_of(program).len() >= needed
            })
        });
        running
    }

    /// Returns the IDs of the processes whose command line begins with `text`.
    fn pids_of(&self, text: &str) -> Vec<Pid> {
        let mut pids = contend_sys::procfs::with_descendants(self.group);
        pids.retain(|pid| {
            let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
            let line = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").starts_with(text)
        });
        pids
    }

    /// Returns the ID of the first of these processes.
    fn pid_of(&self, text: &str) -> Option<Pid> {
        self.pids_of(text).first().copied()
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

/// Waits until the given `contend pipe --pid` has opened the pipes between the stages, which it does
/// once it handles signals and observes the stages. Each pipe is opened for both of its stages.
fn wait_until_attached(observer: &Child, stages: usize) {
    let path = format!("/proc/{}/fd", observer.id());
    let pipes = || {
        let links = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("pipe:")).count()
    };
    // Two are its own output.
    wait_until("contend observes the pipes", || pipes() >= 2 + 2 * (stages - 1));
}

/// Starts `contend pipe` with the arguments in a folder, to which it writes `out.json`.
fn attach(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["pipe", "--json", "out.json"]).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Attaches to a pipeline of three stages whose first one waits for the file `go`, creates that file,
/// and returns the output of contend, which ends with the pipeline. `others` are the programs of the
/// two other stages.
fn observe_whole(folder: &Path, pipeline: &str, others: [&str; 2]) -> Output {
    let running = Running::start(folder, pipeline, &others);
    let [_, last] = others;
    let observer = attach(folder, &["--pid", &running.id_of(last)]).spawn().expect("it starts");
    wait_until_attached(&observer, 3);
    std::fs::write(folder.join("go"), "").expect("room");
    let output = observer.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", report(&output));
    output
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
    let running = Running::start(folder.path(), pipeline, &["yes", "sed", "gzip"]);
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
        "(until [ -e go ]; do sleep 0.01; done; seq 300000; sleep 3) | tac | tail -n 3 >out";
    let output = observe_whole(folder.path(), pipeline, ["tac", "tail"]);
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
    let running =
        Running::start(folder.path(), "yes | cat | cat >/dev/null", &["yes", "cat", "cat"]);
    let group = running.group.as_raw_nonzero().to_string();
    let observer = attach(folder.path(), &["--pgid", &group]).spawn().expect("it starts");
    wait_until_attached(&observer, 3);
    kill_process(Pid::from_child(&observer), Signal::INT).expect("it runs");
    let output = observer.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", report(&output));
    assert_eq!(commands(&record(folder.path())), ["yes", "cat", "cat"]);
    assert!(running.pid_of("yes").is_some(), "the pipeline continues");
}

#[test]
fn no_end_of_a_pipe_is_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Running::start(folder.path(), "yes | cat | sleep 100", &["yes", "cat", "sleep"]);
    let group = running.group.as_raw_nonzero().to_string();
    let observer = attach(folder.path(), &["--pgid", &group]).spawn().expect("it starts");
    wait_until_attached(&observer, 3);
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
        "set -m; yes | cat >/dev/null &
         until [ \"$(cat /proc/$(jobs -p)/comm /proc/$!/comm)\" = $'yes\\ncat' ]; do sleep 0.01; done
         {} pipe --job --for 200ms --json out.json; \
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
    let alone = refused(&["--for", "10s"]);
    assert!(alone.contains("--pid") && alone.contains("--job"), "{alone}");
    assert!(refused(&["--pid", "1", "--seed", "7"]).contains("cannot be used with"));
    let mut ended = Command::new("true").spawn().expect("true starts");
    let pid = Pid::from_child(&ended);
    wait_until("it is a zombie", || is_zombie(pid));
    let pid = pid.as_raw_nonzero().to_string();
    assert!(refused(&["--pid", &pid]).contains("has ended"));
    ended.wait().expect("it is a child");
}

#[test]
fn cpu_time_of_short_lived_children_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline = "yes | while read -r x; do expr 1 + 1; done | cat >/dev/null";
    let running = Running::start(folder.path(), pipeline, &["yes", "cat"]);
    let output = attach(folder.path(), &["--pid", &running.id_of("cat"), "--for", "1s"]).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", report(&output));
    let record = record(folder.path());
    let stage = &record["stages"][1];
    let children = number(&stage["children_cpu_seconds"]);
    let all = number(&stage["user_seconds"]) + number(&stage["system_seconds"]);
    // The loop itself hardly does more than start its children.
    assert!(children > 0.1 * all && children > 0.02 && all <= 2.2, "{children} s of {all} s");
}

#[test]
fn the_bytes_of_a_pipe_are_not_those_of_a_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Running::start(
        folder.path(),
        "yes | tee /dev/null | cat >/dev/null",
        &["yes", "tee", "cat"],
    );
    let pid = running.id_of("cat");
    let output = attach(folder.path(), &["--pid", &pid, "--for", "300ms"]).output();
    assert!(output.expect("it starts").status.success());
    let record = record(folder.path());
    let (before, after) = (&record["boundaries"][0]["bytes"], &record["boundaries"][1]["bytes"]);
    let ratio = number(after) / number(before);
    // `tee` writes everything twice.
    assert!((0.6..1.6).contains(&ratio), "{before} and {after} bytes");
}

#[test]
fn processes_that_are_not_observed_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let running =
        Running::start(folder.path(), "exec bash -c 'cat <(yes) >/dev/null'", &["yes", "cat"]);
    let pid = running.id_of("yes");
    let output = attach(folder.path(), &["--pid", &pid, "--for", "100ms"]).output();
    let output = output.expect("it starts");
    assert_eq!(commands(&record(folder.path())), ["yes"]);
    let warnings = record(folder.path())["warnings"].clone();
    let unobserved: Vec<_> = warnings
        .as_array()
        .expect("a list")
        .iter()
        .filter(|warning| warning["id"] == "unobserved")
        .map(|warning| warning["message"].as_str().expect("text"))
        .collect();
    assert_eq!(unobserved.len(), 1, "{warnings}");
    assert!(unobserved[0].contains("cat /dev/fd/"), "{unobserved:?}");
    assert!(unobserved[0].contains("the output of stage 1"), "{unobserved:?}");
    assert!(report(&output).contains("not observed"), "{}", report(&output));
}

#[test]
fn the_cpus_are_those_of_the_pipeline() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline = "taskset -cp $(taskset -cp $$ | sed 's/.*[ ]//; s/[-,].*//') $$ >/dev/null; \
                    yes | cat >/dev/null";
    let running = Running::start(folder.path(), pipeline, &["yes", "cat"]);
    let pid = running.id_of("cat");
    let output = attach(folder.path(), &["--pid", &pid, "--for", "100ms"]).output();
    assert!(output.expect("it starts").status.success());
    assert_eq!(record(folder.path())["host"]["cpus_allowed"], 1);
}

#[test]
fn contend_does_not_observe_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("{} pipe --pid $$ --for 200ms --json out.json; :", contend());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().expect("sh starts");
    assert!(output.status.success(), "{}", report(&output));
    assert_eq!(record(folder.path())["stages"][0]["children_seen"], 0);
}

#[test]
fn temporary_files_of_a_sort_are_not_its_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline =
        "(until [ -e go ]; do sleep 0.01; done; seq 1000000) | sort -S 1M -T . | tail -n 1";
    observe_whole(folder.path(), pipeline, ["sort", "tail"]);
    let record = record(folder.path());
    let sizes = [&record["stages"][1]["bytes_out"], &record["boundaries"][1]["bytes"]];
    // `seq` writes 6,888,896 bytes; the sort writes several times as many to its files.
    assert!(sizes.iter().all(|size| number(size) < 7e6), "{sizes:?}");
}

#[test]
fn a_shell_that_is_the_last_stage_does_not_include_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline = "exec bash -c 'shopt -s lastpipe; yes | { read -r x; sleep 1000; }'";
    let running = Running::start(folder.path(), pipeline, &["yes", "sleep"]);
    let output =
        attach(folder.path(), &["--pid", &running.id_of("yes"), "--for", "200ms"]).output();
    assert!(output.expect("it starts").status.success());
    let record = record(folder.path());
    assert_eq!(record["stages"].as_array().expect("a list").len(), 2);
    assert_eq!(record["stages"][1]["children_seen"], 1, "only `sleep` belongs to it");
}
