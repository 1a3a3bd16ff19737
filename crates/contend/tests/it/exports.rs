//! Tests of exports with the real executable. Other programs read them: pandas CSV, Python-Markdown Markdown,
//! and Prometheus's client library the formats of metrics.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::report::{records, report};
use crate::support::{Command, contend, output, run, skip, text};

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/exports.py");
/// The Python that has the modules of the distribution, unlike others in `PATH`.
const PYTHON: &str = "/usr/bin/python3";
/// Exit code of the reader if a module is missing.
const MODULE_IS_MISSING: i32 = 3;
/// A command with everything that has a meaning in one of the formats.
const HOSTILE: &str =
    "=1+1 \"a\", <script>b</script> | `c` *d* [e](f) \\ $g$ ~h~ &amp; # 漢字\u{202e}\n";

fn record(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a record")).expect("JSON")
}

/// Returns what other programs read from an export, or `None` after reporting that the test is skipped,
/// because they are not installed.
fn read_elsewhere(test: &str, format: &str, export: &str) -> Option<Value> {
    if !Path::new(PYTHON).exists() {
        skip(test, &format!("there is no {PYTHON}"));
        return None;
    }
    let output = run(Command::new(PYTHON).args([READER, format]), export);
    let errors = text(&output.stderr);
    if output.status.code() == Some(MODULE_IS_MISSING) {
        skip(test, errors.trim());
        return None;
    }
    assert!(output.status.success(), "{errors}\n{export}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Returns a record in a format.
fn exported(folder: &Path, names: &[&str], format: &str) -> String {
    let mut arguments = names.to_vec();
    arguments.extend(["--format", format]);
    let output = report(folder, &arguments);
    assert!(output.status.success(), "{names:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Writes the record of a pipeline with a hostile command to `hostile.json`.
fn write_hostile(folder: &Path) {
    let mut profile = record(&records()[0]);
    profile["command"] = HOSTILE.into();
    profile["stages"][0]["command"] = HOSTILE.into();
    profile["host"]["name"] = "host\"|\\".into();
    fs::write(folder.join("hostile.json"), profile.to_string()).expect("room");
}

/// Returns the values of a column.
fn column<'a>(frame: &'a Value, name: &str) -> Vec<&'a Value> {
    let columns = frame["columns"].as_array().expect("columns");
    let place = columns.iter().position(|column| column == name);
    let place = place.unwrap_or_else(|| panic!("no {name} in {columns:?}"));
    frame["rows"].as_array().expect("rows").iter().map(|row| &row[place]).collect()
}

#[test]
fn pandas_reads_csv() {
    const TEST: &str = "exports::pandas_reads_csv";
    let folder = tempfile::tempdir().expect("a folder");
    for path in records() {
        let csv = exported(folder.path(), &[&path], "csv");
        let Some(frame) = read_elsewhere(TEST, "csv", &csv) else { return };
        assert!(!frame["rows"].as_array().expect("rows").is_empty(), "{path}");
        let names = frame["columns"].as_array().expect("columns").iter();
        for (name, kind) in names.zip(frame["types"].as_array().expect("types")) {
            let is_number = name.as_str().is_some_and(|name| name.ends_with("_seconds"));
            assert!(!is_number || kind == "float64" || kind == "int64", "{path}: {name} is {kind}");
        }
    }
    let profile = record(&records()[0]);
    let csv = exported(folder.path(), &[&records()[0]], "csv");
    let Some(frame) = read_elsewhere(TEST, "csv", &csv) else { return };
    let stages = profile["stages"].as_array().expect("stages");
    for field in ["wall_seconds", "starved_seconds", "max_rss_bytes", "command"] {
        let expected: Vec<&Value> = stages.iter().map(|stage| &stage[field]).collect();
        for (found, expected) in column(&frame, field).into_iter().zip(expected) {
            let is_same = found.as_f64().is_some() && found.as_f64() == expected.as_f64();
            assert!(is_same || found == expected, "{field}: {found}, not {expected}");
        }
    }
    write_hostile(folder.path());
    let csv = exported(folder.path(), &["hostile.json"], "csv");
    let Some(frame) = read_elsewhere(TEST, "csv", &csv) else { return };
    // An apostrophe keeps spreadsheets from executing it, and the direction mark is visible.
    let expected = format!("'{}", HOSTILE.replace('\u{202e}', "\\u{202e}"));
    assert_eq!(column(&frame, "command")[0], &expected);
    assert!(column(&frame, "pipeline").iter().all(|found| **found == expected));
}

#[test]
fn a_renderer_reads_markdown() {
    const TEST: &str = "exports::a_renderer_reads_markdown";
    let folder = tempfile::tempdir().expect("a folder");
    for path in records() {
        let markdown = exported(folder.path(), &[&path], "markdown");
        let Some(page) = read_elsewhere(TEST, "markdown", &markdown) else { return };
        let tables = page["tables"].as_array().expect("tables");
        assert!(!tables.is_empty(), "{path}");
        for rows in tables.iter().map(|table| table.as_array().expect("rows")) {
            let length = rows[0].as_array().expect("headings").len();
            assert!(rows.iter().all(|row| row.as_array().is_some_and(|row| row.len() == length)));
        }
    }
    write_hostile(folder.path());
    let markdown = exported(folder.path(), &["hostile.json"], "markdown");
    let Some(page) = read_elsewhere(TEST, "markdown", &markdown) else { return };
    let expected = HOSTILE.replace('\u{202e}', "\\u{202e}");
    assert_eq!(page["tables"][0][1][1], expected.trim_end());
    let elements = ["h2", "li", "table", "tbody", "td", "th", "thead", "tr", "ul"];
    assert_eq!(page["elements"], json!(elements));
}

#[test]
fn prometheus_reads_metrics() {
    const TEST: &str = "exports::prometheus_reads_metrics";
    let folder = tempfile::tempdir().expect("a folder");
    write_hostile(folder.path());
    let mut names = records();
    names[0] = "hostile.json".to_owned();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let metrics = exported(folder.path(), &names, "openmetrics");
    let Some(found) = read_elsewhere(TEST, "openmetrics", &metrics) else { return };
    assert!(found["openmetrics"] == found["prometheus"], "{metrics}");
    let samples = found["openmetrics"].as_array().expect("samples");
    assert_eq!(samples.len(), metrics.lines().filter(|line| !line.starts_with('#')).count());
    let families = found["families"].as_object().expect("families");
    assert!(families.values().all(|family| family[0] == "gauge"), "{families:?}");
    assert_eq!(families["contend_pipe_stage_wall_seconds"][1], "seconds");

    let profile = record(&records()[0]);
    let of = |name: &str| samples.iter().filter(|one| one[0] == name).collect::<Vec<_>>();
    let whole = of("contend_pipe_wall_seconds");
    assert_eq!((whole.len(), &whole[0][2]), (1, &profile["wall_seconds"]));
    let stages = of("contend_pipe_stage_wall_seconds");
    assert_eq!(stages.len(), profile["stages"].as_array().expect("stages").len());
    let labels = &stages[0][1];
    assert_eq!((&labels["stage"], &labels["host"]), (&"1".into(), &"host\"|\\".into()));
    assert_eq!(labels["command"], HOSTILE.replace('\u{202e}', "\\u{202e}"));
    let started = of("contend_doctor_started_timestamp_seconds");
    assert!(started[0][2].as_f64().is_some_and(|time| time > 1.7e9), "{started:?}");
    assert!(!of("contend_lab_case_median_seconds").is_empty());
}

#[test]
fn records_are_written_one_on_each_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = records();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lines = exported(folder.path(), &names, "jsonl");
    let schemas = lines.lines().map(|line| {
        let record: Value = serde_json::from_str(line).expect("JSON on each line");
        record["schema"].as_str().expect("a schema").to_owned()
    });
    let expected =
        names.iter().map(|name| record(name)["schema"].as_str().expect("one").to_owned());
    assert!(schemas.eq(expected));
    let indented = exported(folder.path(), &names[..1], "json");
    let line = exported(folder.path(), &names[..1], "jsonl");
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert!(indented.lines().count() > 10 && parse(&indented) == parse(&line));
}

#[test]
fn a_file_of_metrics_is_complete_and_readable_by_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&records()[0], "--format", "openmetrics", "--output", "contend.prom"];
    for _ in 0..2 {
        let output = report(folder.path(), &arguments);
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        let file = folder.path().join("contend.prom");
        assert!(fs::read_to_string(&file).expect("a file").ends_with("# EOF\n"));
        let mode = fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o044, 0o044, "{mode:o}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}

/// Runs contend in `folder`, which must succeed.
fn succeeds(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(contend());
    let output = output(command.args(arguments).current_dir(folder));
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    output
}

/// Checks that the exports `out.csv`, `out.md` and `out.json` are there and begin as expected, and removes
/// them.
fn check_exports(folder: &Path, heading: &str, title: &str) {
    let take = |name: &str| {
        let path = folder.join(name);
        let content = fs::read_to_string(&path).expect(name);
        fs::remove_file(path).expect("it was there");
        content
    };
    let (csv, markdown, json) = (take("out.csv"), take("out.md"), take("out.json"));
    assert!(csv.starts_with(heading), "{csv}");
    assert!(markdown.starts_with(title), "{markdown}");
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
}

#[test]
fn verbs_write_exports() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let files =
        ["--export-csv", "out.csv", "--export-markdown", "out.md", "--export-json", "out.json"];
    let with = |words: &[&str], last: &[&str]| {
        let arguments: Vec<&str> = words.iter().chain(&files).chain(last).copied().collect();
        succeeds(folder, &arguments)
    };
    let pipe = ["pipe", "--discard", "--no-advice", "--store", "runs.db"];
    with(&pipe, &["seq 1000 | sort"]);
    check_exports(folder, "stage,command,wall_seconds,", "## contend pipe: seq 1000 &#124; sort\n");
    let versus = ["pipe", "--no-store", "--runs", "2", "--vs", "seq 3"];
    with(&versus, &["--stdin", "/dev/null", "seq 2"]);
    check_exports(folder, "variant,command,origin,", "## contend versus: seq 2 vs seq 3\n");
    with(&["run", "--no-store"], &["seq 1000 | grep 7"]);
    check_exports(folder, "stage,command,class,", "## contend run: seq 1000 &#124; grep 7\n");
    with(&["doctor", "--no-store"], &["--", "sleep", "0.2"]);
    check_exports(folder, "row,cause,time_seconds,share,", "## contend doctor: sleep 0.2\n");
    with(&["lab", "run", "engine/clock", "--quick", "--budget", "0.1", "--no-store"], &[]);
    check_exports(folder, "experiment,case,median_seconds,", "## contend lab: engine/clock\n");
    let lab = &records()[5];
    with(&["compare", lab, lab], &[]);
    check_exports(folder, "experiment,case,run,", "## contend compare: runs A, B\n");
    let list = with(&["history", "--store", "runs.db"], &[]);
    assert!(text(&list.stdout).contains("seq 1000 | sort"));
    check_exports(
        folder,
        "number,started_at,kind,ending,host,label,title\n",
        "## contend history: ",
    );
}

#[test]
fn an_export_has_the_label_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let files = ["--store", "runs.db", "--export-csv", "out.csv", "--export-markdown", "out.md"];
    let pipe: &[&str] = &["pipe", "--discard", "--no-advice", "seq 3"];
    let versus: &[&str] =
        &["pipe", "--runs", "2", "--stdin", "/dev/null", "--vs", "seq 3", "seq 2"];
    let run: &[&str] = &["run", "seq 1000 | grep 7"];
    let doctor: &[&str] = &["doctor", "--", "sleep", "0.2"];
    let lab: &[&str] = &["lab", "run", "engine/clock", "--quick", "--budget", "0.1"];
    for (number, words) in [pipe, versus, run, doctor, lab].into_iter().enumerate() {
        let label = format!("label-{number}");
        let options = files.iter().copied().chain(["--label", &label]);
        let (verb, rest) = words.split_at(if words[0] == "lab" { 3 } else { 1 });
        let arguments: Vec<&str> =
            verb.iter().copied().chain(options).chain(rest.to_vec()).collect();
        succeeds(folder, &arguments);
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
        let later = text(
            &succeeds(folder, &["report", &label, "--store", "runs.db", "--format", "csv"]).stdout,
        );
        assert_eq!(read("out.csv"), later, "{words:?}");
        assert!(later.lines().next().is_some_and(|heading| heading.ends_with(",label")), "{later}");
        assert!(read("out.md").contains(&format!("- label: {label}\n")), "{words:?}");
    }
}

#[test]
fn an_export_to_standard_output_replaces_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let lab = &records()[5];
    let compared = succeeds(folder.path(), &["compare", lab, lab, "--export-csv", "-"]);
    assert!(text(&compared.stdout).starts_with("experiment,case,run,"));
    let listed = succeeds(folder.path(), &["history", "--store", "none.db", "--export-json", "-"]);
    assert_eq!(text(&listed.stdout), "[]\n");
    let pipe = ["pipe", "--no-store", "--no-advice", "--discard", "--export-csv", "-", "seq 3"];
    let profiled = succeeds(folder.path(), &pipe);
    let lines = text(&profiled.stdout);
    assert!(lines.starts_with("stage,command,") && lines.lines().count() == 2, "{lines}");
    let explained =
        succeeds(folder.path(), &["run", "--explain", "--export-csv", "-", "seq 9 | grep 7"]);
    assert_eq!(text(&explained.stdout).lines().count(), 3);
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let fails = |arguments: &[&str], expected: &str| {
        let mut command = Command::new(contend());
        let output = output(command.args(arguments).current_dir(folder.path()));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(expected) && output.stdout.is_empty(), "{arguments:?}: {error}");
    };
    let records = records();
    let [pipe, doctor] = [&records[0], &records[1]];
    fails(&["report", pipe, doctor, "--html", "x"], "--html makes a page of one record");
    fails(&["report", pipe, doctor, "--format", "json"], "use --format jsonl for several");
    fails(
        &["report", pipe, doctor, "--format", "csv"],
        "records of pipe and doctor have different",
    );
    fails(&["report", pipe, pipe, "--format", "openmetrics"], "export only one of them");
    fails(&["report", pipe, "--output", "x"], "--format");
    fails(&["report", pipe, "--format", "pdf"], "invalid value 'pdf'");
    fails(&["report", pipe, "--format", "csv", "--html", "-"], "name the same file");
    fails(&["pipe", "--export-csv", "-", "seq 3"], "--export-csv -: the pipeline's output goes to");
    fails(&["run", "--export-markdown", "-", "seq 3"], "--export-markdown needs a file");
    let same = ["pipe", "--export-csv", "x", "--export-markdown", "x", "seq 3"];
    fails(&same, "--export-markdown and --export-csv name the same file");
    fails(&["history", "--export-csv", "x", "show", "1"], "is for the list of runs");
    fails(&["compare", pipe, pipe, "--export-csv", pipe], "--export-csv would overwrite");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
