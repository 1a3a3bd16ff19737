//! contend and its stages under signals: everything ends, and the report is printed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use crate::support::{contend, processes_with, text};

/// Starts a pipeline and waits until its stages run; `mark` stands in their command line.
fn start(arguments: &[&str], mark: &str) -> Child {
    let mut child = Command::new(contend())
        .arg("pipe")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    for _ in 0..1000 {
        // contend itself has the text too, and so have shells that are not yet stages.
        if processes_with(mark).iter().any(|line| line.starts_with("sleep")) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("the stages of {arguments:?} never ran");
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

/// Whether this process, and so all that it starts, ignores a signal.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("hexadecimal");
    mask >> (number - 1) & 1 == 1
}

#[test]
fn an_interrupt_ends_the_stages_and_the_report_is_printed() {
    for (sent, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        if is_ignored(number) {
            continue; // these tests were themselves started that way, by nohup perhaps
        }
        let mark = format!("30.{number:03}");
        let child = start(&[&format!("sleep {mark} | cat")], &mark);
        signal(&child, sent);
        let output = end(child);
        assert_eq!(output.status.signal(), Some(number), "it ends by the signal itself");
        let report = text(&output.stderr);
        assert!(report.contains("real "), "{report}");
        assert!(report.contains("still running when contend was told to end"), "{report}");
        assert!(processes_with(&format!("sleep {mark}")).is_empty());
    }
}

#[test]
fn stages_that_ignore_an_interrupt_are_ended_by_the_next_ones() {
    let stage = "sh -c 'trap \"\" INT TERM; sleep 30.777; sleep 30.778; sleep 30.779'";
    let child = start(&[&format!("{stage} | cat")], "30.777");
    for _ in 0..3 {
        signal(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = end(child);
    assert_eq!(output.status.signal(), Some(2));
    for _ in 0..100 {
        if processes_with("sleep 30.77").is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("left behind: {:?}", processes_with("sleep 30.77"));
}

#[test]
fn an_interrupt_during_the_set_up_ends_it() {
    let child = start(&["--setup", "sleep 30.555", "echo never"], "30.555");
    // To the whole group, as a terminal does; here the child and its shell.
    signal(&child, Signal::TERM);
    for line in processes_with("sleep 30.555") {
        assert!(!line.is_empty());
    }
    let killed = Command::new("pkill").args(["-f", "^sleep 30.555"]).status();
    assert!(killed.is_ok());
    let output = end(child);
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
}

#[test]
fn runs_that_were_completed_are_reported_after_an_interrupt() {
    let child = start(&["--runs", "50", "--stdin", "/dev/null", "sleep 0.2111 | cat"], "0.2111");
    std::thread::sleep(Duration::from_millis(700));
    signal(&child, Signal::INT);
    let output = end(child);
    assert_eq!(output.status.signal(), Some(2));
    let report = text(&output.stderr);
    assert!(report.contains(" runs") && report.contains("median"), "{report}");
}

#[test]
fn a_stopped_and_continued_stage_goes_on() {
    let child = start(&["--discard", "sleep 1.0333 | cat"], "1.0333");
    let stop = |signal: &str| {
        let pattern = "^sleep 1.0333";
        Command::new("pkill").args([signal, "-f", pattern]).status().expect("procps").success()
    };
    assert!(stop("-STOP"));
    std::thread::sleep(Duration::from_millis(200));
    assert!(stop("-CONT"));
    let output = end(child);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn when_contend_is_killed_its_shell_does_not_wait_for_ever() {
    let child = start(&["sleep 1.0444 | cat"], "1.0444");
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it runs");
    end(child);
    for _ in 0..500 {
        if processes_with("1.0444").is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("left behind: {:?}", processes_with("1.0444"));
}

/// The kernel reaps the children of one who ignores SIGCHLD: their status would be lost.
#[test]
fn a_parent_that_ignores_sigchld_changes_nothing() {
    let run = Command::new("env")
        .args(["--ignore-signal=CHLD"])
        .arg(contend())
        .args(["pipe", "--output", "/dev/null", "echo a | sh -c 'cat; exit 3'"])
        .stdin(Stdio::null())
        .output()
        .expect("coreutils");
    assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
    assert_eq!(text(&run.stdout), "a\n");
}
