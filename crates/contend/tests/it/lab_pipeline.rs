//! Tests of the experiments about pipelines, and of their suite.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{descendants, groups_of, is_group_alive};
use crate::support::{Command, cases, contend, has, lab, output, skip, text};

/// Tests the record and the report of the suite in its smallest form.
#[test]
fn the_pipeline_suite_reports_every_stage_and_judges_every_conclusion() {
    if !["mawk", "gawk", "busybox", "original-awk"].into_iter().all(has) {
        let reason = "not every awk is installed";
        return skip("the_pipeline_suite_reports_every_stage_and_judges_every_conclusion", reason);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let mut command = lab(&["suite", "pipeline", "--smallest", "--budget", "1", "--no-progress"]);
    let output = output(command.arg("--store").arg(&store).env("COLUMNS", "60"));
    let report = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let wide: Vec<_> = report.lines().filter(|line| line.chars().count() > 76).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let part = report.split_once("Which conclusions hold here").expect("the part").1;
    for letter in "ABCDEFGHI".chars() {
        let said = ["confirmed", "not confirmed", "inconclusive"]
            .map(|verdict| format!("{letter}. {verdict}"));
        assert!(
            part.lines().any(|line| said.iter().any(|s| line.starts_with(s))),
            "{letter}: {part}"
        );
    }
    let mut show = Command::new(contend());
    show.args(["history", "show", "1", "--json", "-", "--store"]).arg(&store);
    let shown = show.output().expect("it starts");
    let record: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    check_stages(&record);
    check_barriers(&record);
}

/// Asserts that every stage has measurements, that the CPU times of the stages add up to that of
/// the pipeline, and that no stage takes longer than the pipeline.
fn check_stages(record: &Value) {
    let json = cases(record).iter().filter(|case| case["experiment"] == "pipeline/json");
    let mut seen = 0;
    for case in json {
        let stages = case["stages"].as_array().expect("stages");
        let one = case["parameters"]["tokenizer"] == "one";
        assert_eq!(stages.len(), if one { 2 } else { 5 }, "{case}");
        assert_eq!(stages[stages.len() - 1]["stage"], "parser");
        let copies = case["parameters"]["copies"].as_f64().expect("a number");
        let sample = |metric: &Value| metric["samples"][0].as_f64().expect("a number");
        for (of_stage, of_all) in [("user", "user"), ("system", "system")] {
            let sum: f64 = stages.iter().map(|stage| sample(&stage[of_stage])).sum();
            let all = sample(&case["metrics"][of_all]);
            assert!((sum * copies - all).abs() <= 1e-6 * all + 1.0, "{case}");
        }
        let real = case["samples"][0].as_f64().expect("a number");
        assert!(stages.iter().all(|stage| sample(&stage["real"]) <= real), "{case}");
        seen += 1;
    }
    assert_eq!(seen, 16);
}

/// Asserts that a barrier writes nothing before the last line has been produced, but that `cat`
/// does.
fn check_barriers(record: &Value) {
    for case in cases(record).iter().filter(|case| case["experiment"] == "pipeline/hold") {
        let steps = case["timeline"].as_array().expect("steps");
        assert_eq!(steps.len(), 10, "{case}");
        let place = |what: &str| steps.iter().position(|step| step["what"] == what);
        let stage = case["parameters"]["stage"].as_str().expect("a name");
        let holds = stage == "sort" || stage == "xargs echo";
        let late = place("line 1 arrives") > place("line 5 is produced");
        assert!(late || !holds, "{case}");
        assert!(!late || stage != "cat", "{case}");
    }
}

#[test]
fn a_missing_awk_is_skipped_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = lab(&["run", "pipeline/json", "--smallest", "--no-store", "--json", "-"]);
    let output = output(command.env("PATH", folder.path()));
    assert!(!output.status.success(), "there is nothing to measure");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for case in cases(&record) {
        let awk = case["parameters"]["awk"].as_str().expect("a name");
        assert_eq!(case["skipped"], format!("{awk} is not installed"), "{case}");
    }
}

#[test]
fn an_interrupt_leaves_no_stage_behind() {
    let child =
        lab(&["run", "pipeline/json", "--no-store", "--no-progress", "--only", "copies=10"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
    let began = Instant::now();
    while descendants(child.id()) < 10 && began.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let helpers = groups_of(child.id());
    assert!(!helpers.is_empty(), "it has processes of cases");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    child.wait_with_output().expect("it ends");
    assert!(!helpers.iter().any(|&group| is_group_alive(group)), "something is left running");
}
