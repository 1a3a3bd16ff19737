//! Tests the reports of stored runs of suites and of single experiments: they fit into the width of
//! the terminal, and those of suites give the answer first.

use contend_record::compare::Origin;
use contend_record::lab::{Chapter, RunRecord, View};
use unicode_width::UnicodeWidthStr;

use crate::compare::compare;
use crate::render;
use crate::render::lab::Detail;

const WIDTHS: [usize; 4] = [60, 72, 80, 200];

const RECORDS: [(&str, &str); 7] = [
    ("process-thread", include_str!("../../../../../testdata/lab/process-thread.json")),
    ("synchronisation", include_str!("../../../../../testdata/lab/synchronisation.json")),
    ("pipeline", include_str!("../../../../../testdata/lab/pipeline.json")),
    ("shared-memory", include_str!("../../../../../testdata/lab/shared-memory.json")),
    ("experiments", include_str!("../../../../../testdata/lab/experiments.json")),
    ("messages", include_str!("../../../../../docs/data/messages.json")),
    ("units", include_str!("../../../../../docs/data/units.json")),
];

fn records() -> impl Iterator<Item = (&'static str, RunRecord)> {
    RECORDS.into_iter().map(|(name, text)| (name, serde_json::from_str(text).expect("a record")))
}

/// Adds an interval to every measured case of a run, which makes the columns as wide as possible.
fn with_intervals(mut record: RunRecord) -> RunRecord {
    for case in &mut record.cases {
        case.ci95 = case.median.map(|median| [0.987 * median, 1.013 * median]);
    }
    record
}

fn check(what: &str, report: &str, width: usize) {
    let report = anstream::adapter::strip_str(report).to_string();
    assert!(report.lines().count() > 5, "{what}: {report}");
    let long: Vec<_> = report.lines().filter(|line| line.width() > width).collect();
    assert!(long.is_empty(), "{what} at {width} columns: {long:#?}");
}

#[test]
fn every_suite_and_experiment_keeps_to_the_width() {
    for (name, record) in records() {
        for record in [record.clone(), with_intervals(record)] {
            for width in WIDTHS {
                for detail in [Detail::Summary, Detail::Full] {
                    check(name, &render::lab::report(&record, detail, width), width);
                }
            }
        }
    }
}

/// A generic table keeps intervals before it keeps CPU times, and names the columns that it lacks.
#[test]
fn no_column_vanishes_silently() {
    let (_, record) = records().next().expect("a record");
    let record = with_intervals(record);
    let cases: Vec<_> = record.cases_of(View::Creation).collect();
    for width in 60..120 {
        let text = render::lab::table::generic(&cases, width);
        let text = anstream::adapter::strip_str(&text).to_string();
        check("creation", &text, width);
        for heading in ["[95 % interval]", "CPU self", "children", "samples"] {
            assert!(text.contains(heading), "{heading} at {width} columns: {text}");
        }
        let (tables, note) = text.split_once("Left out for lack of width: ").unwrap_or((&text, ""));
        let headings = tables.lines().filter(|line| line.starts_with("kind"));
        let complete = headings.clone().filter(|line| line.contains("samples")).count();
        assert_eq!(note.contains("samples"), complete < headings.count(), "{text}");
        assert!(tables.contains("[95 % interval]"), "{text}");
    }
}

#[test]
fn prose_is_at_most_100_columns_wide() {
    let has_columns = |line: &str| line.trim_start().contains("  ") || line.contains('─');
    for (name, record) in records() {
        let report = render::lab::report(&record, Detail::Summary, 200);
        let report = anstream::adapter::strip_str(&report).to_string();
        let long: Vec<_> =
            report.lines().filter(|line| line.width() > 100 && !has_columns(line)).collect();
        assert!(long.is_empty(), "{name}: {long:#?}");
    }
}

#[test]
fn a_suite_answers_first_and_in_few_sentences() {
    let suites = records().filter(|(_, record)| record.chapter.is_some());
    for (name, record) in suites {
        let report = render::lab::report(&record, Detail::Summary, 80);
        let report = anstream::adapter::strip_str(&report).to_string();
        let order = ["Source (", "What this means", "Comparison", "More: "];
        let order =
            order.map(|text| report.find(text).unwrap_or_else(|| panic!("{text}: {report}")));
        assert!(order.is_sorted(), "{name}: {report}");
        let meaning = &report[order[1]..order[2]];
        let sentences = meaning.lines().filter(|line| line.starts_with("- ")).count();
        assert!((1..=5).contains(&sentences), "{name}: {meaning}");
        assert!(report.matches("disturbed (other load").count() <= 1, "{name}: {report}");
        let full = render::lab::report(&record, Detail::Full, 80);
        assert!(full.lines().count() > report.lines().count(), "{name}");
    }
}

#[test]
fn comparisons_keep_to_the_width() {
    for (name, record) in records() {
        let origin =
            || Origin::File { path: "a/record/of/the/machine/in/the/cellar.json".to_owned() };
        let record = with_intervals(record);
        let compared = compare(&[(origin(), record.clone()), (origin(), record)]);
        for width in WIDTHS {
            check(name, &render::compare::report(&compared, width), width);
        }
    }
}

#[test]
fn a_full_report_has_every_experiment_at_any_width() {
    // The chapter on runtimes already contains the complete tables of its experiments.
    let others = records().filter(|(_, record)| record.chapter != Some(Chapter::Runtimes));
    for (name, record) in others {
        let shown = |width| {
            anstream::adapter::strip_str(&render::lab::report(&record, Detail::Full, width))
                .to_string()
        };
        let [narrow, wide] = [60, 200].map(shown);
        for experiment in record.experiments() {
            assert!(
                narrow.contains(experiment) && wide.contains(experiment),
                "{name}: {experiment}"
            );
        }
    }
}
