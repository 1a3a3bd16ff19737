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

/// Returns the cells of a column, row by row.
fn column(books: &[Workbook], name: &str) -> Vec<String> {
    let rows = cells(&csv(books).expect("CSV"));
    let place = rows[0].iter().position(|heading| heading == name).expect(name);
    rows[1..].iter().map(|row| row[place].clone()).collect()
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
fn a_script_has_the_sums_over_its_pipelines() {
    let record: run::RunRecord = serde_json::from_str(RUN).expect("a record");
    let outcome = |chunks, own_cpu_seconds, own_max_rss_bytes, peak_memory_bytes| run::Outcome {
        own_cpu_seconds,
        own_max_rss_bytes,
        peak_memory_bytes,
        input_bytes: 10 * chunks,
        parts: chunks,
        ..run::Outcome::default()
    };
    let run_with = |outcome| run::RunRecord { outcome: Some(outcome), ..record.clone() };
    let pipelines = [outcome(3, 0.25, 3000, Some(2000)), outcome(4, 0.125, 500, Some(1000))];
    let script = run::RunRecord {
        plan: None,
        pipelines: pipelines.map(run_with).to_vec(),
        ..run_with(outcome(0, 0.5, 9000, None))
    };
    let books = [run(&script)];
    let first = |name: &str| column(&books, name).swap_remove(0);
    assert_eq!(first("run_own_cpu_seconds"), "0.875");
    assert_eq!(first("run_peak_memory_bytes"), "3000");
    assert_eq!(first("run_input_bytes"), "70");
    assert_eq!(first("run_chunks"), "7");
    let without = [run(&run::RunRecord { outcome: None, ..record })];
    assert_eq!(column(&without, "run_input_bytes")[0], "");
}

#[test]
fn the_peak_memory_of_a_run_is_that_of_the_report() {
    let mut record: run::RunRecord = serde_json::from_str(RUN).expect("a record");
    let outcome = record.outcome.as_mut().expect("an outcome");
    outcome.own_max_rss_bytes = 373_616_640;
    outcome.command_max_rss_bytes = 190_496_768;
    outcome.peak_memory_bytes = Some(366_624_768);
    let report = crate::render::run::statistics(&record, 200);
    assert!(report.contains("all processes 374MB"), "{report}");
    let books = [run(&record)];
    assert_eq!(column(&books, "run_peak_memory_bytes")[0], "373616640");
    assert!(markdown(&books).contains("- peak memory: 374MB\n"), "{}", markdown(&books));
}

#[test]
fn an_exit_status_that_is_unknown_is_empty() {
    let record: pipe::PipeRecord = serde_json::from_str(PIPE).expect("a record");
    let with = |outcome| {
        let mut record = record.clone();
        record.stages[0].outcome = outcome;
        [pipe(&record)]
    };
    for outcome in [pipe::Outcome::Running, pipe::Outcome::Unobserved, pipe::Outcome::Unknown] {
        let books = with(outcome);
        assert_eq!(column(&books, "exit_code")[..2], ["", "0"]);
        assert_eq!(column(&books, "pipe_exit_code")[0], "0");
    }
    assert_eq!(column(&with(pipe::Outcome::Killed(9)), "exit_code")[0], "0");
    let attached = pipe::Attached { pids: vec![7], has_ended: false };
    let mut running = pipe::PipeRecord { attached: Some(attached), ..record };
    for stage in &mut running.stages {
        stage.outcome = pipe::Outcome::Running;
    }
    let books = [pipe(&running)];
    assert!(column(&books, "exit_code").iter().all(String::is_empty));
    assert!(column(&books, "pipe_exit_code").iter().all(String::is_empty));
    assert!(!markdown(&books).contains("exit code"), "{}", markdown(&books));
    assert!(!openmetrics(&books).expect("one record").contains("exit_code"));
    let mut compared: versus::VersusRecord = serde_json::from_str(VERSUS).expect("a record");
    compared.variants[0].profile = running;
    assert_eq!(column(&[versus(&compared)], "exit_code"), ["", "0"]);
}

#[test]
fn the_bottleneck_is_named_before_the_evidence() {
    let mut record: pipe::PipeRecord = serde_json::from_str(PIPE).expect("a record");
    let evidence = record.bottleneck.evidence.clone();
    let text = markdown(&[pipe(&record)]);
    let line = format!("- bottleneck: stage 5, sort -rn (CPU-bound). {evidence}\n");
    assert!(text.contains(&line), "{text}");
    record.bottleneck = pipe::Bottleneck::default();
    let text = markdown(&[pipe(&record)]);
    assert!(text.contains("- bottleneck: No bottleneck found.\n"), "{text}");
}

#[test]
fn a_few_rounds_have_a_range_in_every_format() {
    let mut record: versus::VersusRecord = serde_json::from_str(VERSUS).expect("a record");
    let heading = "| wall | wall 95 % low | wall 95 % high | CPU |";
    let text = markdown(&[versus(&record)]);
    assert!(text.contains(heading), "six rounds have an interval: {text}");
    record.rounds = 3;
    for variant in &mut record.variants {
        variant.wall_seconds.samples = vec![0.25, 0.125, 0.5];
        if let Some(ratio) = &mut variant.ratios {
            ratio.wall.samples = vec![1.5, 0.5, 1.0];
        }
    }
    let books = [versus(&record)];
    let text = markdown(&books);
    assert!(text.contains("| wall | wall min | wall max | CPU |"), "{text}");
    assert!(text.contains("| wall ratio | wall min ratio | wall max ratio |"), "{text}");
    assert!(text.contains(" | 125ms | 500ms | "), "{text}");
    assert_eq!(column(&books, "wall_min_seconds"), ["0.125", "0.125"]);
    assert_eq!(column(&books, "wall_max_ratio"), ["", "1.5"]);
    assert_eq!(column(&books, "wall_ci95_low_seconds"), ["", ""]);
    let metrics = openmetrics(&books).expect("one record");
    assert!(metrics.contains("contend_versus_variant_wall_max_seconds{"), "{metrics}");
}

#[test]
fn a_few_runs_of_a_profile_have_a_range() {
    let record: pipe::PipeRecord = serde_json::from_str(PIPE).expect("a record");
    let estimate = |samples: &[f64]| contend_record::stats::Estimate {
        median: samples[0],
        ci95: [0.375, 0.625],
        samples: samples.to_vec(),
    };
    let with = |samples: &[f64]| {
        let runs = pipe::Runs {
            count: samples.len(),
            wall_seconds: estimate(samples),
            cpu_seconds: estimate(samples),
            same_bottleneck: 1,
            stages: Vec::new(),
        };
        [pipe(&pipe::PipeRecord { runs: Some(runs), ..record.clone() })]
    };
    let (few, many) = (with(&[0.5, 0.0125, 0.75]), with(&[0.5, 0.25, 0.75, 0.5, 0.5, 0.5]));
    let range = "- median wall min: 12.5 ms\n- median wall max: 750 ms\n";
    assert!(markdown(&few).contains(range), "{}", markdown(&few));
    assert!(!markdown(&many).contains("median wall min"), "{}", markdown(&many));
    assert_eq!(column(&many, "pipe_median_wall_min_seconds")[0], "0.25");
}

#[test]
fn people_read_words_and_programs_identifiers() {
    let books = [workbook(DOCTOR).expect("a record")];
    let (text, metrics) = (markdown(&books), openmetrics(&books).expect("one record"));
    assert!(text.contains("| some CPUs busy, no other thread ready |"), "{text}");
    assert!(text.contains("| 1 | Contended lock |") && !text.contains("serial"), "{text}");
    assert!(column(&books, "cause").contains(&"serial".to_owned()));
    assert!(metrics.contains("cause=\"serial\"") && metrics.contains("state=\"runnable\""));
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

#[test]
fn figures_of_the_lab_have_three_digits() {
    let mut run: lab::RunRecord = serde_json::from_str(LAB[2]).expect("a record");
    run.cases.truncate(1);
    run.cases[0].unit = lab::Unit::Nanoseconds;
    (run.cases[0].median, run.cases[0].ci95) = (Some(10.4e6), Some([8.02e6, 13.8e6]));
    let text = markdown(&[self::lab(&run)]);
    assert!(text.contains("| 10.4ms | 8.02ms | 13.8ms |"), "{text}");
    let mut compared: compare::CompareRecord = serde_json::from_str(COMPARE).expect("a record");
    compared.cases.truncate(1);
    let figure = compared.cases[0].value.as_mut().expect("a figure");
    (figure.unit, figure.medians[0]) = (lab::Unit::Nanoseconds, Some(10.4e6));
    let text = markdown(&[self::compare(&compared)]);
    assert!(text.contains("| 10.4ms |"), "{text}");
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
