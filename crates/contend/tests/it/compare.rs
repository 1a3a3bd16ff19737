//! Tests of `contend compare` with the real executable.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Command, cases, contend, lab, output, run, text};

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    output(Command::new(contend()).arg("compare").args(arguments).current_dir(folder))
}

/// Returns the record of a lab run with the given cases.
fn record(cases: &[Value]) -> Value {
    json!({
        "schema": "contend.lab/1", "suite": null, "started_at": "2026-01-02T03:04:05Z",
        "wall_seconds": 1.5, "seed": 3, "quick": false, "budget_seconds": 1.0,
        "ending": "complete", "calibration": null, "fits": [], "warnings": [], "cases": cases,
        "host": {
            "cpu_model": "Quick 9", "cpus_online": 4, "cpus_allowed": 4, "cpu_quota": null,
            "memory_bytes": 8_000_000_000_u64, "kernel": "Linux 6.1 x86_64",
            "virtual_machine": false, "clocksource": "tsc", "governor": "performance",
        },
    })
}

/// Returns a case of `n` forks, with nine samples around the given number of nanoseconds.
fn fork(n: u64, nanoseconds: f64) -> Value {
    let samples: Vec<_> =
        (-4..=4).map(|step| nanoseconds * (1.0 + 0.01 * f64::from(step))).collect();
    json!({
        "experiment": "units/create", "parameters": {"kind": "fork", "n": n}, "unit": "ns",
        "samples": samples, "median": nanoseconds, "ci95": null, "min": null, "max": null,
        "outliers": [], "disturbed": [], "retaken": 0, "iterations": 1, "stopped": "count",
        "metrics": {"cpu_self": {"unit": "ns", "median": 7.0, "samples": [7.0]}}, "facts": {},
        "limit": null, "timeline": [], "warnings": [], "skipped": null,
    })
}

fn write(folder: &Path, name: &str, record: &Value) {
    std::fs::write(folder.join(name), record.to_string()).expect("room");
}

/// Creates a folder with the records of two runs, the second of which takes twice as long.
fn two_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "a.json", &record(&[fork(1, 1000.0), fork(10, 500.0)]));
    write(folder.path(), "b.json", &record(&[fork(10, 1000.0), fork(1, 2000.0)]));
    folder
}

fn as_json(output: &Output) -> Value {
    let record: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let schema = include_str!("../../../../schemas/contend.compare-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validate(&schema, &record).expect("the record follows its schema");
    record
}

#[test]
fn the_table_has_a_row_a_case_and_a_column_a_run() {
    let folder = two_runs();
    let output = compare(folder.path(), &["a.json", "b.json"]);
    let report = text(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty());
    let rows: Vec<Vec<&str>> = report
        .lines()
        .filter(|line| line.starts_with("kind") || line.starts_with("fork"))
        .map(|line| line.split_whitespace().take(5).collect())
        .collect();
    let expected = [
        ["kind", "n", "A", "B", "B/A"],
        ["fork", "1", "1.00µs", "2.00µs", "2.00"],
        ["fork", "10", "500ns", "1.00µs", "2.00"],
    ];
    assert_eq!(rows, expected, "{report}");
    assert!(report.contains("Quick 9, 4 of 4 CPUs"), "{report}");
    assert!(!report.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_record_has_the_ratios_of_all_metrics() {
    let folder = two_runs();
    let record = as_json(&compare(folder.path(), &["a.json", "b.json", "a.json", "--json", "-"]));
    assert_eq!(record["runs"][2]["name"], "C");
    for case in cases(&record) {
        let ratios = &case["value"]["ratios"];
        assert_eq!(ratios[0], Value::Null);
        assert_eq!([&ratios[1]["ratio"], &ratios[2]["ratio"]], [2.0, 1.0], "{case}");
        let [low, high] = [0, 1].map(|end| ratios[1]["ci95"][end].as_f64().expect("an end"));
        assert!(1.9 < low && low < 2.0 && 2.0 < high && high < 2.1, "{case}");
        assert_eq!(case["metrics"]["cpu_self"]["ratios"][1]["ratio"], 1.0, "{case}");
        assert_eq!(case["sides"][1]["samples"], 9);
    }
    let beside = compare(folder.path(), &["a.json", "b.json", "--json", "c.json"]);
    assert!(text(&beside.stdout).contains("B/A"), "the report is printed too");
    let written = std::fs::read_to_string(folder.path().join("c.json")).expect("it is written");
    assert!(written.contains("\"schema\": \"contend.compare/1\"") && written.ends_with("}\n"));
}

#[test]
fn standard_input_is_read_once() {
    let folder = two_runs();
    let mut command = Command::new(contend());
    command.args(["compare", "a.json", "-"]).current_dir(folder.path());
    let report = text(&run(&mut command, &record(&[fork(1, 3000.0)]).to_string()).stdout);
    assert!(report.contains("B  standard input (2026-01-02 03:04:05 UTC)"), "{report}");
    assert!(report.contains("3.00"), "{report}");
    let twice = compare(folder.path(), &["-", "-"]);
    assert_eq!(
        text(&twice.stderr),
        "contend: standard input can be read only once: give `-` once\n"
    );
    assert_eq!(twice.status.code(), Some(2));
}

#[test]
fn cases_missing_from_a_run_are_listed() {
    let folder = two_runs();
    let mut skipped = fork(1, 1.0);
    skipped["samples"] = json!([]);
    skipped["skipped"] = json!("no room");
    write(folder.path(), "c.json", &record(&[skipped, fork(7, 1.0)]));
    let output = compare(folder.path(), &["a.json", "c.json"]);
    let report = text(&output.stdout);
    assert!(report.contains("none was measured in both runs"), "{report}");
    for line in [
        "measured in A; not measured in B (no room):\n- units/create kind=fork n=1\n",
        "measured in A; not part of B:\n- units/create kind=fork n=10\n",
        "measured in B; not part of A:\n- units/create kind=fork n=7\n",
    ] {
        assert!(report.contains(line), "{report}");
    }
    assert!(output.status.success());
}

#[test]
fn a_file_takes_precedence_over_a_saved_run_in_comparisons() {
    let folder = two_runs();
    let path = folder.path();
    for _ in 0..2 {
        let arguments = ["run", "engine/clock", "--smallest", "--budget", "1", "--store"];
        let kept = output(lab(&arguments).arg(path.join("runs.db")));
        assert!(kept.status.success(), "{}", text(&kept.stderr));
    }
    let with = |runs: [&str; 2]| {
        as_json(&compare(path, &[runs[0], runs[1], "--store", "runs.db", "--json", "-"]))
    };
    let record = with(["1", "2"]);
    assert_eq!(record["runs"][1]["origin"], json!({"kind": "kept", "number": 2}));
    assert!(cases(&record)[0]["value"]["ratios"][1]["ratio"].as_f64().expect("a ratio") > 0.0);
    std::fs::rename(path.join("a.json"), path.join("1")).expect("room");
    let record = with(["1", "2"]);
    assert_eq!(record["runs"][0]["origin"], json!({"kind": "file", "path": "1"}));
    let missing = compare(path, &["2", "9", "--store", "runs.db"]);
    assert_eq!(text(&missing.stderr), "contend: no saved run 9; `contend history` lists them\n");
    let nowhere = compare(path, &["2", "9", "--store", "none.db"]);
    let message = "contend: no file '2', and no saved run 2: none.db does not exist\n";
    assert_eq!(text(&nowhere.stderr), message);
    assert_eq!([missing, nowhere].map(|output| output.status.code()), [Some(2); 2]);
    assert!(!path.join("none.db").exists(), "looking makes nothing");
}

#[test]
fn a_label_names_the_only_run_that_has_it() {
    let folder = two_runs();
    let path = folder.path();
    for label in ["before", "after", "twice", "twice"] {
        let arguments = ["run", "engine/clock", "--smallest", "--budget", "1", "--label", label];
        let kept = output(lab(&arguments).arg("--store").arg(path.join("runs.db")));
        assert!(kept.status.success(), "{}", text(&kept.stderr));
    }
    let with = |one: &str, other: &str| compare(path, &[one, other, "--store", "runs.db"]);
    let report = text(&with("before", "after").stdout);
    assert!(report.contains("A  run 1, before ("), "{report}");
    assert!(report.contains("B  run 2, after ("), "{report}");
    assert!(text(&with("1", "after").stdout).contains("A  run 1, before ("));
    assert_refused(
        &with("before", "twice"),
        "2 saved runs have the label 'twice': give one of their numbers, 3, 4",
    );
    assert_refused(&with("before", "afte"), "no file 'afte', and no saved run with this label");
    std::fs::rename(path.join("a.json"), path.join("before")).expect("room");
    let report = text(&with("before", "b.json").stdout);
    assert!(report.contains("A  before ("), "a file takes precedence: {report}");
    let record = as_json(&compare(path, &["after", "b.json", "--store", "runs.db", "--json", "-"]));
    let origin = json!({"kind": "kept", "number": 2, "label": "after"});
    assert_eq!(record["runs"][0]["origin"], origin);
}

#[test]
fn a_file_without_a_lab_run_is_reported() {
    let folder = two_runs();
    let path = folder.path();
    let whole = std::fs::read_to_string(path.join("a.json")).expect("it is there");
    let files: [(&str, &str, &str); 9] = [
        ("empty", "", "cannot compare empty: the file is empty"),
        ("cut", &whole[..200], "cannot compare cut: not valid JSON: EOF while parsing"),
        ("text", "median 5", "cannot compare text: not valid JSON: expected value"),
        ("other", "[1]", "cannot compare other: it is not a record of contend"),
        (
            "new",
            "{\"schema\": \"contend.pipe/99\"}",
            "cannot compare new: this version of contend does not know the schema contend.pipe/99",
        ),
        (
            "new",
            "{\"schema\": \"contend.lab/2\"}",
            "the schema is contend.lab/2, expected contend.lab/1",
        ),
        (
            "pipe",
            "{\"schema\": \"contend.pipe/1\"}",
            "cannot compare pipe: it is a record of the kind pipe, and the first one is of the kind lab",
        ),
        ("half", "{\"schema\": \"contend.lab/1\"}", "damaged record: missing field"),
        ("odd", &whole.replace("\"suite\":null", "\"suite\":5"), "damaged record"),
    ];
    for (name, content, message) in files {
        std::fs::write(path.join(name), content).expect("room");
        assert_refused(&compare(path, &["a.json", name]), message);
    }
    assert_refused(&compare(path, &["./missing", "a.json"]), "cannot read ./missing: No such file");
    let missing = compare(path, &["missing", "a.json", "--store", "none.db"]);
    let message = "no file 'missing', and no saved run with this label: give a file, or the number";
    assert_refused(&missing, message);
    assert_refused(&compare(path, &[".", "a.json"]), "cannot read .: it is a directory");
    let over = compare(path, &["a.json", "b.json", "--json", "./b.json"]);
    assert_refused(&over, "--json would overwrite b.json, one of the given records");
    assert_eq!(compare(path, &["a.json"]).status.code(), Some(2));
}

fn assert_refused(output: &Output, message: &str) {
    let error = text(&output.stderr);
    assert!(error.contains(message), "{error}");
    assert_eq!((error.lines().count(), output.status.code()), (1, Some(2)), "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_narrow_terminal_gets_more_tables() {
    let folder = two_runs();
    let with = |columns: &str| {
        let mut command = Command::new(contend());
        command.args(["compare", "a.json", "b.json", "a.json", "b.json"]);
        text(&output(command.current_dir(folder.path()).env("COLUMNS", columns)).stdout)
    };
    let report = with("50");
    let wide: Vec<_> = report.lines().filter(|line| line.chars().count() > 50).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let headings = |report: &str| report.lines().filter(|line| line.starts_with("kind")).count();
    assert!(headings(&report) > 1 && headings(&with("160")) == 1, "{report}");
}
