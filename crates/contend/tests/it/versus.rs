//! Tests of `contend pipe --vs` with the real executable.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{Command, contend, output, text};

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(contend());
    output(command.args(["pipe", "--json", "out.json"]).args(arguments).current_dir(folder))
}

/// Returns the record that a comparison has written.
fn record(folder: &Path) -> Value {
    let json = std::fs::read_to_string(folder.join("out.json")).expect("a record");
    let record: Value = serde_json::from_str(&json).expect("JSON");
    let schema = include_str!("../../../../schemas/contend.versus-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validate(&schema, &record).expect("the record follows its schema");
    record
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn pipelines_run_in_turn_and_their_outputs_are_compared() {
    let folder = folder();
    let log = "{ echo A >>order; seq 3; }";
    let other = "{ echo B >>order; printf '1\\n2\\n3\\n'; }";
    let arguments = ["--vs", other, "--runs", "3", "--warmup", "1", "--seed", "5", log];
    let output = compare(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "no output is shown");
    assert!(text(&output.stderr).contains("All outputs are the same, byte for byte."));
    let order = std::fs::read_to_string(folder.path().join("order")).expect("runs");
    let ran: Vec<_> = order.lines().map(|line| line == "B").collect();
    assert_eq!(ran.len(), 8, "two pipelines, four rounds");
    assert!(ran.chunks(2).all(|round| round[0] != round[1]), "each runs once a round: {order}");
    let record = record(folder.path());
    assert_eq!((&record["rounds"], &record["warmup_rounds"]), (&3.into(), &1.into()));
    let variants = record["variants"].as_array().expect("a list");
    assert_eq!(variants[1]["name"], "B");
    assert!(variants[0]["ratios"].is_null());
    assert_eq!(variants[1]["ratios"]["wall"]["samples"].as_array().map(Vec::len), Some(3));
    assert_eq!(variants[1]["profile"]["command"], other);
}

#[test]
fn a_slower_pipeline_fails_its_condition() {
    let folder = folder();
    let gate = |condition: &str, pipeline: &str| {
        let arguments = ["--fail-if", condition, "--vs", pipeline, "--runs", "6", "sleep 0.02"];
        let output = compare(folder.path(), &arguments);
        (output.status.code(), text(&output.stderr))
    };
    let (status, report) = gate("wall > 1.5x", "sleep 0.5");
    assert_eq!(status, Some(1), "{report}");
    assert!(report.contains("A is faster"), "{report}");
    assert!(report.contains("Failed: 'wall > 1.5x' holds for B."), "{report}");
    assert_eq!(record(folder.path())["conditions"][0]["holds_for"][0], "B");
    let (status, report) = gate("wall > 100x", "sleep 0.02");
    assert_eq!(status, Some(0), "{report}");
    assert!(report.contains("Passed: 'wall > 100x' does not hold."), "{report}");
}

#[test]
fn different_outputs_are_found() {
    let folder = folder();
    let arguments = ["--vs", "seq 3 | tac", "--runs", "2", "--fail-if", "output differs", "seq 3"];
    let output = compare(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stderr);
    assert!(
        report.contains("The output of B differs: line 1, byte 1: `3` instead of `1`."),
        "{report}"
    );
    let arguments = ["--vs", "{ seq 3; exit 4; }", "--runs", "2", "seq 3"];
    let output = compare(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "a difference alone is no failure");
    let report = text(&output.stderr);
    assert!(report.contains("status 4 instead of 0, with the same output"), "{report}");
    let arguments = ["--fail-if", "output differs", "--runs", "3", "echo $RANDOM$RANDOM$$"];
    let output = compare(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("The output of A changes from run to run"));
}

#[test]
fn values_are_scanned_and_every_run_is_prepared() {
    let folder = folder();
    let arguments = [
        "--scan",
        "n=2,3",
        "--prepare",
        "rm -f made-{n}; echo {n} >>prepared",
        "--runs",
        "2",
        "{ test ! -e made-{n} && seq {n} | tee made-{n}; } | wc -l",
    ];
    let output = compare(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record = record(folder.path());
    let variants = record["variants"].as_array().expect("a list");
    let values: Vec<_> = variants.iter().map(|one| one["parameters"]["n"].as_str()).collect();
    assert_eq!(values, [Some("2"), Some("3")]);
    assert!(variants.iter().all(|one| one["exit_code"] == 0), "files were removed each time");
    let prepared = std::fs::read_to_string(folder.path().join("prepared")).expect("runs");
    assert_eq!(prepared.lines().count(), 4);
    let output = compare(folder.path(), &["--prepare", "exit 3", "--vs", "true", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("--prepare ended with status 3 before a run of A"));
}

#[test]
fn the_input_is_read_by_every_run() {
    let folder = folder();
    std::fs::write(folder.path().join("in.txt"), "b\na\n").expect("room");
    let arguments = ["--stdin", "in.txt", "--runs", "2", "--vs", "sort | cat", "sort"];
    let output = compare(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("All outputs are the same"));
    assert_eq!(record(folder.path())["variants"][1]["profile"]["stages"][0]["bytes_in"], 4);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = folder();
    let mistakes: [(&[&str], &str); 6] = [
        (&["--vs", "a |", "true"], "--vs: syntax error"),
        (&["--warmup", "2", "true"], "add --vs, --scan or --fail-if"),
        (&["--scan", "n=1", "true"], "no pipeline contains {n}"),
        (&["--fail-if", "wall > 1.1x", "true"], "compares two pipelines"),
        (&["--fail-if", "wall > 2", "true"], "is not a limit for wall"),
        (&["--vs", "true", "--try", "true"], "--try and --what-if change one pipeline"),
    ];
    for (arguments, message) in mistakes {
        let output = compare(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}
