//! Tests of `contend doctor`: what it says about running programs and about commands.

mod checks;
mod robust;

use std::process::{Output, Stdio};

use contend_sys::{Pid, Signal};
use rustix::process::{kill_process, test_kill_process};
use serde_json::Value;

use crate::support::{Child, Command, contend, skip, text, wait_until};

/// A shell with a script, which is killed at the end.
struct Running(Child);

impl Running {
    fn start(script: &str) -> Self {
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("a shell"))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn id(&self) -> String {
        self.pid().as_raw_nonzero().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for pid in contend_sys::procfs::with_descendants(self.pid()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(contend());
    command.arg("doctor").args(arguments).stdin(Stdio::null());
    command.output().expect("contend starts")
}

/// Returns the record of `contend doctor --json -` with the arguments, whose report goes elsewhere. Checks
/// that its figures fit together.
fn record(arguments: &[&str]) -> Value {
    let output = doctor(&[&["--json", "-", "--output", "/dev/null"], arguments].concat());
    let json = text(&output.stdout);
    let record = serde_json::from_str(&json);
    let record = record.unwrap_or_else(|_| panic!("{json}{}", text(&output.stderr)));
    checks::check(&record);
    record
}

fn figure(record: &Value, pointer: &str) -> f64 {
    record.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Returns whether a source of information was used.
fn is_used(record: &Value, layer: &str) -> bool {
    let layers = record["observation"]["layers"].as_array().expect("a list");
    layers.iter().any(|known| known["id"] == layer && known["used"] == true)
}

fn symptoms(record: &Value) -> Vec<&str> {
    let findings = record["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["symptom"].as_str()).collect()
}

#[test]
fn an_idle_program_has_nothing_to_gain() {
    let idle = Running::start("while read -t 1000 line <> <(:); do :; done; sleep 1000");
    let record = record(&["--for", "500ms", &idle.id()]);
    assert_eq!(symptoms(&record), Vec::<&str>::new(), "{record:#}");
    assert!(figure(&record, "/cpu_seconds") < 0.1);
    assert!(test_kill_process(idle.pid()).is_ok(), "it still runs");
}

#[test]
fn a_single_busy_thread_is_not_a_fault() {
    let record = record(&["--", "bash", "-c", "for ((i = 0; i < 400000; i++)); do :; done"]);
    assert_eq!(symptoms(&record), Vec::<&str>::new(), "{record:#}");
    assert_eq!(record["exit_code"], 0);
    assert_eq!(record["started"], true);
    // Other tests may use the CPUs meanwhile.
    let states =
        ["running", "runnable"].map(|state| figure(&record, &format!("/state_seconds/{state}")));
    let busy: f64 = states.iter().sum();
    assert!(busy > 0.5 * figure(&record, "/observed_seconds"), "{record:#}");
}

#[test]
fn commands_started_for_each_item_are_found() {
    let script = "for i in {1..400}; do /bin/true; done";
    let record = record(&["--", "bash", "-c", script]);
    let layers = record["observation"]["layers"].as_array().expect("layers");
    let has_switches =
        layers.iter().any(|layer| layer["id"] == "switches" && layer["used"] == true);
    if has_switches {
        assert_eq!(symptoms(&record), ["fork-storm"], "{record:#}");
    }
}

/// Who wakes whom is recorded or inferred, and the report says which.
#[test]
fn the_source_of_wake_ups_is_named() {
    let command = ["--", "sh", "-c", "sleep 0.3"];
    let record = record(&command);
    let layers = record["observation"]["layers"].as_array().expect("layers");
    let layer = |id: &str| layers.iter().find(|layer| layer["id"] == id).expect("always named");
    let (switches, wakes) = (layer("switches"), layer("wakes"));
    let report = text(&doctor(&command).stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    if wakes["used"] == true {
        assert_eq!(switches["used"], true, "{switches}");
        assert_eq!(wakes["reason"], Value::Null);
        assert!(report.contains("context switches, wake-ups"), "{report}");
    } else {
        let reason = wakes["reason"].as_str().expect("a reason");
        assert!(report.contains(&format!("Not seen: wake-ups ({reason}).")), "{report}");
        let expected = if switches["used"] == true { "inferred" } else { "context switches" };
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    assert_eq!(doctor(&["--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(doctor(&["--", "no-such-command"]).status.code(), Some(127));
    let output = doctor(&["--", "sh", "-c", "echo out; echo err >&2; sleep 0.3"]);
    assert_eq!(text(&output.stdout), "out\n");
    let report = text(&output.stderr);
    assert!(report.starts_with("err\n"), "{report}");
    assert!(report.contains("Diagnosis: "), "{report}");
}

#[test]
fn mistakes_are_refused() {
    let refused = |arguments: &[&str], expected: &str| {
        let output = doctor(arguments);
        let report = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{report}");
        assert!(report.contains(expected), "{report}");
    };
    refused(&[], "required");
    refused(&["2147483647"], "there is no process 2147483647");
    if is_kernel_thread(2) {
        refused(&["2"], "process 2 is a thread of the kernel");
    }
    refused(&["x"], "whole number");
    refused(&["1", "--", "true"], "cannot be used with");
}

/// Returns whether the process is a thread of the kernel. In a container it may be anything.
fn is_kernel_thread(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() == "kthreadd"
}

#[test]
fn an_interrupt_ends_the_observation_with_a_report() {
    let idle = Running::start("sleep 1000");
    let mut command = Command::new(contend());
    command.args(["doctor", "--for", "100s", &idle.id()]).stdin(Stdio::null());
    let observer = command.stderr(Stdio::piped()).spawn().expect("contend starts");
    let pid = Pid::from_child(&observer);
    let has_files = || {
        let links = std::fs::read_dir(format!("/proc/{}/fd", observer.id()));
        let mut links = links.into_iter().flatten().flatten();
        links.any(|entry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|link| link.to_string_lossy().ends_with("/schedstat"))
        })
    };
    wait_until("contend observes the program", has_files);
    kill_process(pid, Signal::INT).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("Diagnosis: "), "{}", text(&output.stderr));
    assert!(test_kill_process(idle.pid()).is_ok(), "it still runs");
}

#[test]
fn a_terminated_observation_ends_the_command() {
    let mut command = Command::new(contend());
    command.args(["doctor", "--", "sleep", "1000"]).stdin(Stdio::null());
    let observer = command.stderr(Stdio::piped()).spawn().expect("contend starts");
    let pid = Pid::from_child(&observer);
    let mut started = None;
    wait_until("the command runs", || {
        started = contend_sys::procfs::children(pid).first().copied();
        started.is_some_and(|pid| {
            let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
            std::fs::read(path).unwrap_or_default().starts_with(b"sleep\0")
        })
    });
    kill_process(pid, Signal::TERM).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), None, "it ends by the signal");
    let command = started.expect("it was seen");
    assert!(test_kill_process(command).is_err(), "the command has ended");
}

#[test]
fn a_diagnosis_is_saved_and_shown_again_but_not_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let store = store.to_str().expect("UTF-8");
    let first = doctor(&["--label", "before", "--store", store, "--", "sleep", "0.3"]);
    let report = text(&first.stderr);
    assert!(report.ends_with("Saved as run 1 (before).\n"), "{report}");
    let history = |arguments: &[&str]| {
        let mut command = Command::new(contend());
        command.args(arguments).args(["--store", store]).stdin(Stdio::null());
        command.output().expect("contend starts")
    };
    let list = text(&history(&["history", "--kind", "doctor"]).stdout);
    assert!(list.contains("  doctor  ") && list.contains("sleep 0.3"), "{list}");
    let again = text(&history(&["history", "show", "1"]).stdout);
    assert!(report.starts_with(&again), "{report}\n{again}");
    let compared = history(&["compare", "1", "1"]);
    assert_eq!(compared.status.code(), Some(2));
    assert!(text(&compared.stderr).contains("cannot compare run 1: "), "{compared:?}");
    let unsaved = doctor(&["--no-store", "--", "sleep", "0.3"]);
    assert_eq!(unsaved.status.code(), Some(0));
    assert_eq!(text(&history(&["history"]).stdout).lines().count(), 2);
}

#[test]
fn stacks_of_busy_threads_are_exported_for_flame_graphs() {
    let test = "stacks_of_busy_threads_are_exported_for_flame_graphs";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stacks.txt");
    let file = file.to_str().expect("UTF-8");
    let export = |command: &[&str]| {
        let output = doctor(&[&["--export-folded", file, "--"], command].concat());
        (std::fs::read_to_string(file).expect("a file"), text(&output.stderr))
    };
    let busy = record(&["--", "bash", "-c", "for ((i = 0; i < 400000; i++)); do :; done"]);
    if !is_used(&busy, "switches") {
        return skip(test, "context switches cannot be recorded");
    }
    let (stacks, report) = export(&["bash", "-c", "for ((i = 0; i < 400000; i++)); do :; done"]);
    assert!(report.contains("Diagnosis: "), "{report}");
    let weights = stacks.lines().map(|line| {
        let (frames, weight) = line.rsplit_once(' ').expect("a weight");
        assert!(frames.starts_with("bash;") && !frames.ends_with(';'), "{line}");
        weight.parse::<u64>().expect("a number")
    });
    let micros: u64 = weights.sum();
    let running = figure(&busy, "/state_seconds/running") * 1e6;
    assert!((0.3..3.0).contains(&(micros as f64 / running)), "{micros} of {running}: {stacks}");
    let (none, report) = export(&["sleep", "0.3"]);
    assert_eq!(none, "");
    assert!(report.contains("there are no stacks"), "{report}");
    let same = doctor(&["--json", file, "--export-folded", file, "--", "true"]);
    assert_eq!(same.status.code(), Some(2));
    assert!(text(&same.stderr).contains("--export-folded and --json name the same file"));
}
