//! Tests of signals to contend and its stages: all processes end, and the report is printed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};
use std::time::Duration;

use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use crate::support::{Child, Command, PublicFolder, contend, processes_with, text, wait_until};

/// Starts `contend pipe` with the given arguments, and waits until a `sleep` that it runs has
/// started. The `sleep` is recognized by `mark`, which must be among its arguments.
fn start(arguments: &[&str], mark: &str) -> Child {
    let child = Command::new(contend())
        .arg("pipe")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // The command lines of contend, and of shells that have not become stages yet, have the mark,
    // too.
    let runs = || processes_with(mark).iter().any(|line| line.starts_with("sleep"));
    wait_until(&format!("the stages of {arguments:?} run"), runs);
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

#[test]
fn an_interrupt_ends_the_stages_and_the_report_is_printed() {
    for (sent, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let mark = format!("30.{number:03}");
        let child = start(&[&format!("sleep {mark} | cat")], &mark);
        signal(&child, sent);
        let output = end(child);
        assert_eq!(output.status.signal(), Some(number), "it ends by the signal itself");
        let report = text(&output.stderr);
        assert!(report.contains(" wall | "), "{report}");
        assert!(report.contains("Interrupted: 2 stages were still running"), "{report}");
        assert!(processes_with(&format!("sleep {mark}")).is_empty());
    }
}

#[test]
fn stages_that_ignore_an_interrupt_are_ended_by_the_next_ones() {
    let stage = "sh -c 'trap \"\" INT TERM; sleep 3000.777; sleep 3000.778; sleep 3000.779'";
    let mut child = start(&[&format!("{stage} | cat")], "3000.777");
    // Signal repeatedly, because a busy machine may merge two pending signals.
    while child.try_wait().expect("it is ours").is_none() {
        signal(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = end(child);
    assert_eq!(output.status.signal(), Some(2));
    wait_until("nothing is left behind", || processes_with("sleep 3000.77").is_empty());
}

#[test]
fn an_interrupt_ends_the_setup() {
    let child = start(&["--setup", "sleep 30.555", "echo never"], "30.555");
    // Signal contend and the setup's `sleep`, as a terminal signals the whole group.
    signal(&child, Signal::TERM);
    let killed = Command::new("pkill").args(["-f", "^sleep 30.555"]).status();
    assert!(killed.is_ok());
    let output = end(child);
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    assert!(processes_with("sleep 30.555").is_empty(), "the setup has ended");
}

#[test]
fn completed_runs_are_reported_after_an_interrupt() {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = folder.path().join("begun");
    let pipeline = format!("echo run >>{}; sleep 0.2111 | cat", begun.display());
    let pipeline = format!("{{ {pipeline}; }} | cat");
    let child = start(&["--runs", "500", "--stdin", "/dev/null", &pipeline], "0.2111");
    let runs = || std::fs::read_to_string(&begun).unwrap_or_default().lines().count();
    wait_until("several runs are over", || runs() > 3);
    signal(&child, Signal::INT);
    let output = end(child);
    assert_eq!(output.status.signal(), Some(2));
    let report = text(&output.stderr);
    assert!(report.contains("median of ") && report.contains(" runs"), "{report}");
}

#[test]
fn a_stage_continues_after_it_was_stopped() {
    let folder = PublicFolder::new();
    let waits = folder.install("/bin/sh", "waits", 0o755); // the name identifies the process
    let [waits, over] = [waits, folder.path().join("over")].map(|path| path.display().to_string());
    let stage = format!("{waits} -c 'sleep 0.0333; until [ -e {over} ]; do sleep 0.0333; done'");
    let child = start(&["--discard", &format!("{stage} | cat")], "0.0333");
    let send = |signal: &str| {
        let pattern = format!("^{waits}");
        Command::new("pkill").args([signal, "-f", &pattern]).status().expect("procps").success()
    };
    assert!(send("-STOP"));
    std::fs::write(&over, "").expect("room");
    std::thread::sleep(Duration::from_millis(200));
    assert!(send("-CONT"), "it has not ended while it was stopped");
    let output = end(child);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_killed_contend_leaves_no_waiting_shell() {
    let child = start(&["sleep 5.0444 | cat"], "5.0444");
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it runs");
    end(child);
    wait_until("nothing is left behind", || processes_with("5.0444").is_empty());
}
