//! Tests of wrong input and adverse environments, which must give one clear message and the right
//! exit status.

use std::process::Stdio;

use crate::support::{Command, contend, finding_ids, pipe, record, run, text};

/// Runs `contend pipe` with arguments that it must refuse, asserts that it prints nothing to
/// standard output, and returns its exit status and messages.
fn refusal(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(contend());
    let output = command.arg("pipe").args(arguments).stdin(Stdio::null()).output().expect("starts");
    assert!(output.stdout.is_empty());
    (output.status.code(), text(&output.stderr))
}

#[test]
fn text_other_than_one_pipeline_is_refused_with_its_position() {
    let said = |pipeline: &str| {
        let (status, error) = refusal(&[pipeline]);
        assert_eq!(status, Some(2), "{pipeline}: {error}");
        error
    };
    insta::assert_snapshot!(said("a | b; c"), @r"
    contend: more than one pipeline: give one at a time
      a | b; c
             ^
    ");
    insta::assert_snapshot!(said("seq 9 | | sort"), @r"
    contend: syntax error
      seq 9 | | sort
              ^
    ");
    insta::assert_snapshot!(said("a | 'b"), @r"
    contend: syntax error: unterminated single quote
      a | 'b
          ^
    ");
    insta::assert_snapshot!(said("a |"), @r"
    contend: syntax error: unexpected end of the pipeline
      a |
         ^
    ");
    insta::assert_snapshot!(said("a && b"), @r"
    contend: `&&` and `||` join pipelines: give one at a time, or put braces around a stage: `{ a && b; } | c`
      a && b
        ^
    ");
    insta::assert_snapshot!(said("sleep 1 | cat &"), @r"
    contend: a background pipeline is not supported: remove `&`
      sleep 1 | cat &
                    ^
    ");
    assert_eq!(said("").trim_end(), "contend: the pipeline is empty");
}

#[test]
fn wrong_arguments_are_refused_before_anything_runs() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "<PIPELINE>"),
        (&["--no-such-flag", "echo x"], "--no-such-flag"),
        (&["echo x", "echo y"], "echo y"),
        (&["--runs", "0", "echo x"], "0"),
        (&["--stdin", "/no/such/file", "cat"], "/no/such/file"),
        (&["--stdin", "/", "cat"], "it is a directory"),
        (&["--json", "/no/such/folder/x", "touch made"], "/no/such/folder/x"),
        (&["--output", "/", "touch made"], "cannot write to /"),
        (&["--shell", "zsh", "echo x"], "zsh"),
    ];
    for (arguments, expected) in cases {
        let (status, error) = refusal(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(!std::path::Path::new("made").exists());
    }
}

#[test]
fn a_missing_shell_gives_status_127() {
    let (status, error) = refusal(&["--shell", "/no/such/shell", "echo x"]);
    assert_eq!(status, Some(127));
    assert!(error.contains("cannot start the shell '/no/such/shell'"), "{error}");
    let (status, error) = refusal(&["--shell", "bsah", "echo x"]);
    assert_eq!(status, Some(127));
    assert!(error.ends_with("; did you mean 'bash'?\n"), "{error}");
    // Text that only a shell can run.
    for pipeline in ["echo x", "f() { cat; }; echo x | f"] {
        let output =
            Command::new(contend()).args(["run", "--shell", "/no/such/shell", pipeline]).output();
        assert_eq!(output.expect("it starts").status.code(), Some(127), "{pipeline}");
    }
}

#[test]
fn several_runs_need_rereadable_input() {
    let output = run(&mut pipe(&["--runs", "2", "cat"]), "text");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--stdin"));

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input");
    std::fs::write(&file, "line\n").expect("room");
    let input = std::fs::File::open(&file).expect("there");
    let output = pipe(&["--runs", "3", "cat | cat"]).stdin(input).output().expect("starts");
    assert_eq!(text(&output.stdout), "line\nline\nline\n");
    let path = file.to_str().expect("UTF-8");
    let output = pipe(&["--runs", "2", "--stdin", path, "cat"]).output().expect("starts");
    assert_eq!(text(&output.stdout), "line\nline\n");
}

#[test]
fn each_kind_of_exit_has_its_finding() {
    let cases = [
        ("echo x | nosuchcommand-x", "stage-not-found", 127),
        ("echo x | /etc/passwd", "stage-not-executable", 126),
        ("echo x | sh -c 'kill -9 $$'", "stage-killed", 137),
        ("echo x | grep y", "stage-failed", 1),
        ("sleep 2 | true", "outlived-reader", 0),
    ];
    for (pipeline, finding, status) in cases {
        let record = record(&[pipeline]);
        assert!(finding_ids(&record).contains(&finding.to_owned()), "{pipeline}: {record}");
        assert_eq!(record["exit_code"], status, "{pipeline}");
    }
    // A writer that ends because its reader has ended is not a failure.
    let ids = finding_ids(&record(&["yes | head -n 1"]));
    assert!(!ids.iter().any(|id| id == "stage-killed"), "{ids:?}");
}

#[test]
fn a_full_disk_is_reported_and_the_other_report_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("x.json");
    let mut command = Command::new(contend());
    command.args(["pipe", "--output", "/dev/full", "--json"]).arg(&json).arg("echo x | cat");
    let output = run(&mut command, "");
    assert_eq!(text(&output.stdout), "x\n");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("cannot write to /dev/full"));
    assert!(json.is_file());
}

#[test]
fn an_existing_report_is_replaced_without_leftovers() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.txt");
    std::fs::write(&report, "x".repeat(1 << 16)).expect("room");
    let mut command = Command::new(contend());
    command.args(["pipe", "--output"]).arg(&report).arg("echo x | cat >/dev/null");
    assert!(run(&mut command, "").status.success());
    let text = std::fs::read_to_string(&report).expect("there");
    assert!(text.contains(" wall | ") && !text.contains("xxx") && !text.contains('\u{1b}'));
    assert_eq!(folder.path().read_dir().expect("folder").count(), 1, "nothing else is left");
}

#[test]
fn no_temporary_files_are_left() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["pipe", "true | true"][..], &["demo", "--lines", "1000"][..]] {
        let mut command = Command::new(contend());
        command.args(arguments).env("TMPDIR", folder.path());
        assert!(run(&mut command, "").status.success());
        assert_eq!(folder.path().read_dir().expect("folder").count(), 0);
    }
    // If the folder in TMPDIR does not exist, contend uses another one.
    let mut command = pipe(&["echo x | cat"]);
    assert!(run(command.env("TMPDIR", "/no/such/folder"), "").status.success());
}

#[test]
fn a_report_to_an_open_file_is_written_at_its_offset() {
    let folder = tempfile::tempdir().expect("a folder");
    let after = |line: &str| {
        let script = format!("cd '{}'; C='{}'; {line}", folder.path().display(), contend());
        let output = run(Command::new("sh").args(["-c", &script]), "");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        std::fs::read_to_string(folder.path().join("log")).expect("there")
    };
    let log = after("echo first >log; $C pipe --output /dev/stderr 'echo x >&2' 2>>log");
    assert!(log.starts_with("first\nx\n") && log.contains(" wall | "), "{log}");
    // The output is discarded, because contend refuses to write the record to the same stream.
    let json = "$C pipe --discard --json /dev/stdout --output /dev/null 'echo x'";
    let log = after(&format!("{{ echo x; {json}; echo end; }} >log"));
    assert!(log.starts_with("x\n{") && log.ends_with("}\nend\n"), "{log}");
    let log = after("exec 5>log; echo first >&5; $C pipe --output /dev/fd/5 'echo x'");
    assert!(log.starts_with("first\n") && log.contains(" wall | "), "{log}");
}

#[test]
fn one_file_for_both_report_and_record_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("both");
    let file = file.to_str().expect("UTF-8");
    let (status, error) = refusal(&["--output", file, "--json", file, "echo x"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("same file"), "{error}");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
}

#[test]
fn a_report_that_cannot_be_written_does_not_hide_the_pipeline_s_failure() {
    for (pipeline, expected) in [("exit 7", 7), ("true", 125)] {
        let mut command = Command::new(contend());
        let output = run(command.args(["pipe", "--output", "/dev/full", pipeline]), "");
        assert_eq!(output.status.code(), Some(expected), "{pipeline}");
        assert!(text(&output.stderr).contains("/dev/full"));
    }
}

#[test]
fn words_after_the_pipeline_give_a_hint_to_quote_it() {
    let (status, error) = refusal(&["cat", "file"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("quote the whole pipeline"), "{error}");
    assert!(!refusal(&["--no-such-flag"]).1.contains("tip"));
    let output = run(Command::new(contend()).args(["run", "cat", "file"]), "");
    let error = text(&output.stderr);
    assert!(error.contains("quote the whole pipeline: contend run 'A"), "{error}");
}
