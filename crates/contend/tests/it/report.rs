//! Tests of `contend report` with the real executable.

use std::path::Path;
use std::process::Output;

use crate::support::{Command, contend, output, run, text, wait_until, with_opener};

const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

/// Runs `contend report` in a folder.
pub fn report(folder: &Path, arguments: &[&str]) -> Output {
    output(Command::new(contend()).arg("report").args(arguments).current_dir(folder))
}

/// Returns the paths of records of every kind.
pub fn records() -> Vec<String> {
    let kinds =
        ["pipe", "doctor", "run", "versus", "compare"].map(|kind| format!("records/{kind}-1.json"));
    let names = kinds.into_iter().chain(["lab/process-thread.json".to_owned()]);
    names.map(|name| format!("{RECORDS}/{name}")).collect()
}

#[test]
fn every_kind_of_record_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    for record in records() {
        let output = report(folder.path(), &[&record, "--html", "page.html"]);
        assert!(output.status.success(), "{record}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
        let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{record}");

        // The page contains the record, and may take its place.
        let again = report(folder.path(), &["page.html", "--html", "again.html"]);
        assert!(again.status.success(), "{record}: {}", text(&again.stderr));
        let again = std::fs::read_to_string(folder.path().join("again.html")).expect("a page");
        assert!(again == page, "{record}");
    }
}

#[test]
fn a_page_can_be_read_from_and_written_to_standard_streams() {
    let record = std::fs::read_to_string(&records()[0]).expect("a record");
    let output = run(Command::new(contend()).args(["report", "-", "--html", "-"]), &record);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("<figcaption>Time of each stage by activity"));
}

#[test]
fn pages_can_be_compared_like_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = &records()[5];
    assert!(report(folder.path(), &[record, "--html", "page.html"]).status.success());
    let compared = output(
        Command::new(contend()).args(["compare", record, "page.html"]).current_dir(folder.path()),
    );
    assert!(compared.status.success(), "{}", text(&compared.stderr));
    assert!(text(&compared.stdout).contains("page.html"), "{}", text(&compared.stdout));
}

#[test]
fn a_run_of_the_history_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db").display().to_string();
    let mut pipe = Command::new(contend());
    pipe.args(["pipe", "--no-advice", "--label", "first", "--store", &store, "--discard"]);
    let saved = output(pipe.arg("seq 1000 | wc -l").current_dir(folder.path()));
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    for name in ["1", "first"] {
        let output = report(folder.path(), &[name, "--store", &store, "--html", "page.html"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
        assert!(page.contains("seq 1000 | wc -l"));
    }
}

#[test]
fn mistakes_are_named_and_write_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("text", "no record").expect("room");
    write("other.json", r#"{"schema": "contend.none/1"}"#).expect("room");
    write("damaged.json", r#"{"schema": "contend.pipe/1", "command": 3}"#).expect("room");
    let fails = |arguments: &[&str], expected: &str| {
        let output = report(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(!folder.path().join("page.html").exists(), "{arguments:?}");
    };
    fails(&["text", "--html", "page.html"], "cannot make a report of text: not valid JSON: ");
    fails(&["other.json", "--html", "page.html"], "does not know the schema contend.none/1");
    fails(&["damaged.json", "--html", "page.html"], "damaged record");
    fails(&["missing", "--html", "page.html"], "no file 'missing', and no saved run");
    fails(&["text", "--html", "none/page.html"], "its directory does not exist");
    fails(&["text", "--html", "./text"], "--html would overwrite text");
    fails(&["text"], "--html");
    assert_eq!(std::fs::read_to_string(folder.path().join("text")).expect("there"), "no record");
}

#[test]
fn several_runs_of_the_lab_have_one_page_with_the_report_s_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = format!("{RECORDS}/lab/synchronisation.json");
    let record = std::fs::read_to_string(record).expect("a record");
    let mut names = Vec::new();
    // The records of the other machines are that of one, with other hosts.
    for (host, cpus) in [("one", 1), ("two", 2), ("four", 4)] {
        let mut value: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        value["host"]["name"] = host.into();
        // Faster machines run more turns in the time of the budget.
        for case in value["cases"].as_array_mut().expect("cases") {
            if let Some(turns) = case["parameters"].get_mut("turns") {
                *turns = (19 * cpus).into();
            }
        }
        for field in ["cpus_allowed", "cpus_online"] {
            value["host"][field] = cpus.into();
        }
        let name = format!("{host}.json");
        std::fs::write(folder.path().join(&name), value.to_string()).expect("room");
        names.push(name);
    }
    let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.extend(["--html", "page.html"]);
    let output = report(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("Table 3.1 of the report"));
    for heading in ["report, 2 cores", "one, 1 CPUs", "two, 2 CPUs, tick", "four, 4 CPUs"] {
        assert!(page.contains(heading), "{heading}");
    }
    // The row of program 0: the report's figures come before those of the runs.
    assert!(page.contains("2%, 124"), "the report's figure of program 0");

    // Each case has a row with the figures of all runs.
    let rows = page.split("<tr>").filter_map(|row| Some(row.split_once("</tr>")?.0));
    let rows: Vec<&str> = rows.filter(|row| row.contains("placement=")).collect();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row.matches("data-value").count() == 3), "{rows:#?}");
    let mixed = [names[0].as_str(), &records()[0], "--html", "mixed.html"];
    let mixed = report(folder.path(), &mixed);
    assert_eq!(mixed.status.code(), Some(2));
    assert!(text(&mixed.stderr).contains("of up to 8 runs"), "{}", text(&mixed.stderr));
    assert!(!folder.path().join("mixed.html").exists());
}

/// Writes the page of two runs of one machine in a folder, and returns the paths of their records.
fn page_of_two_runs(folder: &Path) -> [String; 2] {
    let record = records()[5].clone();
    let value = std::fs::read_to_string(&record).expect("a record");
    let mut value: serde_json::Value = serde_json::from_str(&value).expect("JSON");
    value["started_at"] = "2026-01-02T03:04:05Z".into();
    let later = folder.join("later.json").display().to_string();
    std::fs::write(&later, value.to_string()).expect("room");
    let made = report(folder, &[&record, &later, "--html", "page.html"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    [record, later]
}

#[test]
fn a_page_of_several_runs_can_be_read_like_their_records() {
    let folder = tempfile::tempdir().expect("a folder");
    page_of_two_runs(folder.path());
    let again = report(folder.path(), &["page.html", "--html", "again.html"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a page");
    let record = |page: &str| page.split_once("id=\"record\">").expect("a record").1.to_owned();
    assert!(record(&page("again.html")) == record(&page("page.html")), "the same records");

    let lines = report(folder.path(), &["page.html", "--format", "jsonl"]);
    assert_eq!(text(&lines.stdout).lines().count(), 2, "{}", text(&lines.stderr));
    let one = report(folder.path(), &["page.html", "--format", "json"]);
    assert_eq!(one.status.code(), Some(2));
    assert!(text(&one.stderr).contains("use --format jsonl"), "{}", text(&one.stderr));
}

#[test]
fn runs_of_a_page_are_compared_with_each_other_and_with_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let [record, later] = page_of_two_runs(folder.path());
    let compare = |arguments: &[&str]| {
        output(Command::new(contend()).arg("compare").args(arguments).current_dir(folder.path()))
    };
    let two = compare(&["page.html"]);
    assert!(text(&two.stdout).starts_with("2 runs, "), "{}", text(&two.stderr));
    assert!(text(&two.stdout).contains("B  page.html (2026-01-02 03:04:05 UTC)"));
    let three = compare(&["page.html", &later]);
    assert!(text(&three.stdout).starts_with("3 runs, "), "{}", text(&three.stderr));
    let one = compare(&[&record]);
    assert_eq!(one.status.code(), Some(2));
    assert!(text(&one.stderr).contains("give at least two runs"), "{}", text(&one.stderr));
}

#[test]
fn a_page_is_opened_with_xdg_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, opened) = with_opener(folder.path());
    let open = |path: &str, page: &str| {
        let mut command = Command::new(contend());
        command.args(["report", &records()[0], "--open", "--html", page]).env("PATH", path);
        output(command.current_dir(folder.path()))
    };
    let shown = open(&path, "page.html");
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    wait_until("the page is opened", || opened.exists());
    assert_eq!(std::fs::read_to_string(&opened).expect("it exists"), "page.html");
    let missing = open("/nonexistent", "page.html");
    assert!(missing.status.success(), "the page is written: {missing:?}");
    assert!(text(&missing.stderr).contains("cannot start xdg-open"), "{missing:?}");
    let nowhere = open(&path, "-");
    assert_eq!((nowhere.status.code(), text(&nowhere.stdout)), (Some(2), String::new()));
    assert!(text(&nowhere.stderr).contains("--open needs a file"), "{nowhere:?}");
}
