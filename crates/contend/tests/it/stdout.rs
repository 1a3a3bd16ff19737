//! Tests of standard output and standard error that are closed, not writable or full.

use std::fs::OpenOptions;
use std::process::{Output, Stdio};

use crate::support::{Command, contend, output, text};

/// Runs contend in a shell that applies `redirection` to it. `folder` has a store with one run, and
/// a file with JSON.
fn redirected(folder: &tempfile::TempDir, arguments: &[&str], redirection: &str) -> Output {
    let mut command = Command::new("sh");
    let script = format!("exec \"$0\" \"$@\" {redirection}");
    command.args(["-c", &script, contend()]).args(arguments);
    output(command.current_dir(folder.path()).stdin(Stdio::null()))
}

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in.json"), "[1,2,3]").expect("room");
    let mut command = Command::new(contend());
    command.args(["lab", "run", "engine/empty", "--smallest", "--store", "runs.db"]);
    let kept = command.current_dir(folder.path()).stdin(Stdio::null()).output().expect("it starts");
    assert!(kept.status.success(), "{}", text(&kept.stderr));
    folder
}

/// Command lines with which contend prints to standard output.
const PRINTING: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["pipe", "-h"],
    &["json", ".[]", "in.json"],
    &["lab", "list"],
    &["lab", "run", "engine/empty", "--dry-run"],
    &["lab", "run", "engine/empty", "--smallest", "--no-store"],
    &["history", "--store", "runs.db"],
    &["history", "show", "1", "--store", "runs.db"],
    &["history", "show", "1", "--json", "-", "--store", "runs.db"],
    &["compare", "1", "1", "--store", "runs.db"],
    &["run", "--explain", "sort in.json"],
    &["pipe", "--discard", "--json", "-", "echo x"],
    &["generate", "experiments"],
    &["generate", "json-array", "9"],
];

#[test]
fn a_demonstration_fails_if_output_is_closed() {
    let ended = redirected(&prepared(), &["demo"], ">&-");
    let message = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(125), "{message}");
    assert!(message.contains("cannot write standard output: Bad file descriptor"), "{message}");
}

#[test]
fn output_that_cannot_be_written_is_an_error_with_a_message() {
    let folder = prepared();
    let redirections = [
        (">&-", "Bad file descriptor"),
        // Open, but read-only.
        ("1<in.json", "Bad file descriptor"),
        (">/dev/full", "No space left on device"),
    ];
    for arguments in PRINTING {
        for (redirection, reason) in redirections {
            let ended = redirected(&folder, arguments, redirection);
            let message = text(&ended.stderr);
            let wanted = format!("contend: cannot write standard output: {reason}");
            let what = format!("{arguments:?} {redirection}: {message}");
            assert_eq!(ended.status.code(), Some(125), "{what}");
            assert_eq!(message.matches(&wanted).count(), 1, "{what}");
        }
    }
}

#[test]
fn a_closed_output_without_data_is_not_an_error() {
    let folder = prepared();
    for arguments in [&["json", ".nothing", "in.json"][..], &["pipe", "--no-advice", "true"]] {
        let ended = redirected(&folder, arguments, ">&-");
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {}", text(&ended.stderr));
    }
}

#[test]
fn contend_reports_no_write_errors_of_commands() {
    let folder = prepared();
    for verb in ["pipe", "run"] {
        let closed = redirected(&folder, &[verb, "true"], ">&-");
        assert_eq!(closed.status.code(), Some(0), "{verb}: {}", text(&closed.stderr));
        let message = text(&redirected(&folder, &[verb, "echo x"], ">&-").stderr);
        assert!(!message.contains("contend: cannot write"), "{verb}: {message}");
    }
}

#[test]
fn a_report_to_a_closed_descriptor_is_an_error() {
    let folder = prepared();
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let arguments = ["pipe", "--no-advice", "--output", path, "touch ran"];
        let ended = redirected(&folder, &arguments, ">&-");
        let message = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{path}: {message}");
        assert!(message.contains(&format!("cannot write to {path}: the descriptor is closed")));
        assert!(!folder.path().join("ran").exists(), "nothing has run");
    }
}

#[test]
fn a_closed_standard_error_takes_no_report_and_changes_no_status() {
    let folder = prepared();
    let ended = redirected(&folder, &["pipe", "--no-advice", "exit 3"], "2>&-");
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(3), ""));
}

#[test]
fn unwritable_usage_message_fails_with_status_125() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let mut command = Command::new(contend());
    let ended = command.arg("no-such-verb").stderr(full).stdout(Stdio::piped()).output();
    assert_eq!(ended.expect("it starts").status.code(), Some(125));
}
