//! Tests of the formats, with records of earlier runs in `testdata`.

use std::collections::BTreeSet;

use contend_record::{compare, doctor, lab, pipe, run, versus};
use serde_json::Value;

use super::sheet::Role;
use super::*;
use crate::render::testing::{COMPARE, DOCTOR, LAB, PIPE, RUN, VERSUS, with_each_text};
use crate::store::Entry;

/// Number of cases of the lab in snapshots.
const FEW_CASES: usize = 6;

/// Returns the tables of a record; `None` if it is not a valid record.
fn workbook(json: &str) -> Option<Workbook> {
    let value: Value = serde_json::from_str(json).ok()?;
    Some(match value["schema"].as_str()? {
        pipe::SCHEMA => pipe(&serde_json::from_str(json).ok()?),
        doctor::SCHEMA => doctor(&serde_json::from_str(json).ok()?),
        run::SCHEMA => run(&serde_json::from_str(json).ok()?),
        versus::SCHEMA => versus(&serde_json::from_str(json).ok()?),
        compare::SCHEMA => compare(&serde_json::from_str(json).ok()?),
        lab::SCHEMA => lab(&serde_json::from_str(json).ok()?),
        _ => return None,
    })
}

fn entries() -> Vec<Entry> {
    let entry = |id: i64, schema: &str, title: &str, label: &str| Entry {
        id,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        schema: schema.to_owned(),
        title: title.to_owned(),
        ending: "1.20 s".to_owned(),
        label: label.to_owned(),
        host: "vm".to_owned(),
    };
    vec![
        entry(12, "contend.pipe/1", "sort x | uniq -c", "before, or \"early\""),
        entry(7, "contend.lab/1", "suite process-thread", ""),
    ]
}

fn all() -> Vec<Workbook> {
    let records = [PIPE, DOCTOR, RUN, VERSUS, COMPARE].into_iter().chain(LAB);
    let books = records.map(|record| workbook(record).expect("a valid record"));
    books.chain([history(&entries())]).collect()
}

/// Returns a record with the first elements only of one of its lists.
fn shortened(json: &str, list: &str, count: usize) -> Workbook {
    let mut value: Value = serde_json::from_str(json).expect("JSON");
    value[list].as_array_mut().expect("a list").truncate(count);
    workbook(&value.to_string()).expect("a valid record")
}

/// Returns the book in all formats, concatenated.
fn formats(book: Workbook) -> String {
    let books = [book];
    let [csv, metrics] = [csv(&books), openmetrics(&books)].map(|text| text.expect("one record"));
    format!("{}\n{csv}\n{metrics}", markdown(&books))
}

/// Returns the cells of a table in CSV, row by row.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
    let rows = reader.records().map(|row| row.expect("a row with all columns"));
    rows.map(|row| row.iter().map(str::to_owned).collect()).collect()
}

#[test]
fn a_profile_has_its_stages() {
    insta::assert_snapshot!("pipe", formats(shortened(PIPE, "stages", 2)));
}

#[test]
fn a_comparison_has_its_variants() {
    insta::assert_snapshot!("versus", formats(workbook(VERSUS).expect("a record")));
}

#[test]
fn a_parallel_run_has_its_stages() {
    insta::assert_snapshot!("run", formats(workbook(RUN).expect("a record")));
}

#[test]
fn a_diagnosis_has_causes_states_and_findings() {
    insta::assert_snapshot!("doctor", formats(workbook(DOCTOR).expect("a record")));
}

#[test]
fn a_run_of_the_lab_has_its_cases() {
    insta::assert_snapshot!("lab", formats(shortened(LAB[2], "cases", FEW_CASES)));
}

#[test]
fn a_comparison_of_the_lab_has_a_row_for_each_case_and_run() {
    insta::assert_snapshot!("compare", formats(shortened(COMPARE, "cases", FEW_CASES)));
}

#[test]
fn a_history_is_a_list() {
    let books = [history(&entries())];
    insta::assert_snapshot!(
        "history",
        format!("{}\n{}", markdown(&books), csv(&books).expect("CSV"))
    );
    let json = crate::render::json::history(&entries()).expect("JSON");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json[0]["number"], &json[1]["title"]),
        (&12.into(), &"suite process-thread".into())
    );
    assert_eq!(csv(&[history(&[])]).expect("CSV").lines().count(), 1);
}

#[test]
fn names_are_for_programs_and_end_with_the_unit() {
    for book in all() {
        let sheets = book.sheets.iter().flat_map(|sheet| &sheet.columns);
        for column in sheets.chain(book.context.iter().map(|(column, _)| column)) {
            let unit = column.quantity.unit();
            assert!(unit.is_none_or(|unit| column.name.ends_with(unit)), "{}", column.name);
            let is_parameter = column.role == Role::Detail;
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(is_parameter || column.name.chars().all(is_plain), "{}", column.name);
            let is_measured = column.role == Role::Figure;
            assert!(!is_measured || column.help.ends_with('.'), "{}", column.name);
        }
    }
}

#[test]
fn headings_are_unique_and_rows_are_complete() {
    for book in all() {
        let rows = cells(&csv(std::slice::from_ref(&book)).expect("CSV"));
        let headings: BTreeSet<&String> = rows[0].iter().collect();
        assert_eq!(headings.len(), rows[0].len(), "{:?}", rows[0]);
        let expected: usize = book.sheets.iter().map(|sheet| sheet.rows.len()).sum();
        assert_eq!(rows.len(), 1 + expected, "{}", book.kind);
    }
}

#[test]
fn figures_keep_their_digits() {
    let record: pipe::PipeRecord = serde_json::from_str(PIPE).expect("a record");
    let rows = cells(&csv(&[pipe(&record)]).expect("CSV"));
    let column = |name: &str| rows[0].iter().position(|heading| heading == name).expect(name);
    for (row, stage) in rows[1..].iter().zip(&record.stages) {
        let number = |name: &str| row[column(name)].parse::<f64>().expect(name);
        assert_eq!(number("wall_seconds").to_bits(), stage.wall_seconds.to_bits());
        assert_eq!(number("pipe_wall_seconds").to_bits(), record.wall_seconds.to_bits());
        assert_eq!(row[column("command")], stage.command);
    }
}

#[test]
fn records_of_one_kind_are_one_table() {
    let book = |source: &str| workbook(PIPE).expect("a record").with_source(source);
    let rows = cells(&csv(&[book("a.json"), book("b.json")]).expect("CSV"));
    let place = rows[0].iter().position(|heading| heading == "record").expect("a column");
    let sources: Vec<&str> = rows[1..].iter().map(|row| row[place].as_str()).collect();
    assert!(sources.starts_with(&["a.json"]) && sources.ends_with(&["b.json"]), "{sources:?}");
    let error = csv(&[book("a.json"), workbook(RUN).expect("a record")]).expect_err("two kinds");
    assert_eq!(
        error.to_string(),
        "records of pipe and run have different columns: export them separately"
    );
}

#[test]
fn the_same_figure_is_not_written_twice() {
    let book = || workbook(PIPE).expect("a record");
    let error = openmetrics(&[book(), book()]).expect_err("the same figure twice").to_string();
    assert!(error.starts_with("two records have the figure contend_pipe_wall_seconds{"), "{error}");
    let text = openmetrics(&[book().with_label("a"), book().with_label("b")]).expect("labels");
    assert!(text.contains("label=\"a\"") && text.ends_with("# EOF\n"), "{text}");
    let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let distinct: BTreeSet<&&str> = types.iter().collect();
    assert_eq!(types.len(), distinct.len());
    let kinds: Vec<Workbook> = all().into_iter().filter(|book| book.kind != "lab").collect();
    assert!(openmetrics(&kinds).is_ok());
}

#[test]
fn a_script_has_no_figures_of_its_stages() {
    let record: run::RunRecord = serde_json::from_str(RUN).expect("a record");
    let script = run::RunRecord { pipelines: vec![record.clone(), record.clone()], ..record };
    let books = [run(&run::RunRecord { plan: None, ..script })];
    assert!(!openmetrics(&books).expect("a record").contains("contend_run_stage_"));
    let rows = cells(&csv(&books).expect("CSV"));
    assert_eq!(rows[0][..3], ["pipeline_number", "pipeline_command", "stage"]);
}

#[test]
fn no_text_of_a_record_breaks_a_format() {
    let hostile =
        "=1+1\r\n\"a\", <script>b</script> | `c` *d* [e](f) \\ \u{202e}\u{1b}[2J $g$\t~h~";
    for record in [PIPE, DOCTOR, RUN, VERSUS, COMPARE, LAB[2]] {
        let mut value: Value = serde_json::from_str(record).expect("JSON");
        let mut checked = 0;
        with_each_text(&mut value, hostile, &mut |value| {
            // A name of a fixed set cannot be replaced: the record is then damaged.
            let Some(book) = workbook(&value.to_string()) else { return };
            checked += 1;
            check(&[book]);
        });
        assert!(checked > 5, "{checked}");
    }
}

/// Checks that the formats are valid, whatever the texts of the record.
fn check(books: &[Workbook]) {
    let csv = csv(books).expect("CSV");
    let lengths: BTreeSet<usize> = cells(&csv).iter().map(Vec::len).collect();
    assert_eq!(lengths.len(), 1);
    assert!(cells(&csv).iter().flatten().all(|cell| !cell.starts_with('=')));
    let markdown = markdown(books);
    assert!(!markdown.contains("<script") && !markdown.contains(['~', '$']));
    for table in markdown.split("\n\n").filter(|part| part.starts_with('|')) {
        let pipes: BTreeSet<usize> = table.lines().map(|row| row.matches('|').count()).collect();
        assert_eq!(pipes.len(), 1, "{table}");
    }
    let metrics = openmetrics(books).expect("one record");
    let samples = metrics.lines().filter(|line| !line.starts_with("# "));
    for sample in samples {
        let (_, value) = sample.rsplit_once(' ').expect("a value");
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{sample}");
        assert_eq!(sample.replace("\\\\", "").replace("\\\"", "").matches('"').count() % 2, 0);
    }
    for text in [csv, markdown, metrics] {
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']));
    }
}

#[test]
fn different_measurements_are_told_apart() {
    let versus = |command: &str| {
        let mut record: versus::VersusRecord = serde_json::from_str(VERSUS).expect("a record");
        record.variants[0].command = command.to_owned();
        self::versus(&record)
    };
    let start = "x".repeat(300);
    let books = [versus(&format!("{start} 1")), versus(&format!("{start} 2"))];
    assert!(openmetrics(&books).is_ok());
    let lab = |experiment: &str| {
        let mut record: lab::RunRecord = serde_json::from_str(LAB[2]).expect("a record");
        record.suite = None;
        record.cases.truncate(1);
        record.cases[0].experiment = experiment.to_owned();
        self::lab(&record)
    };
    assert!(openmetrics(&[lab("units/create"), lab("units/switch")]).is_ok());
}

#[test]
fn a_record_without_rows_is_exported() {
    let mut empty: lab::RunRecord = serde_json::from_str(LAB[2]).expect("a record");
    (empty.suite, empty.cases) = (Some("of nothing".to_owned()), Vec::new());
    let rows = cells(&csv(&[self::lab(&empty)]).expect("CSV"));
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[1].iter().any(|cell| cell == "of nothing"), "{rows:?}");
    let mut run: run::RunRecord = serde_json::from_str(RUN).expect("a record");
    (run.plan, run.outcome) = (None, None);
    let rows = cells(&csv(&[self::run(&run), workbook(RUN).expect("a record")]).expect("CSV"));
    let of_first = rows[1].iter().filter(|cell| !cell.is_empty()).count();
    assert!(of_first > 0 && rows.len() > 2, "{rows:?}");
}
