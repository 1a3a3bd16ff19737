//! Tests that stored runs of every suite and every experiment fit the width of the terminal.

use contend_record::compare::Origin;
use contend_record::lab::RunRecord;
use unicode_width::UnicodeWidthStr;

use crate::compare::compare;
use crate::render;

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

/// Returns the same run with an interval for every case, which makes the columns widest.
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
                check(name, &render::lab::report(&record, width), width);
            }
        }
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
fn a_suite_is_shown_whole_however_narrow() {
    for (name, record) in records() {
        let shown =
            |width| anstream::adapter::strip_str(&render::lab::report(&record, width)).to_string();
        let [narrow, wide] = [60, 200].map(shown);
        for experiment in record.experiments() {
            assert!(
                narrow.contains(experiment) && wide.contains(experiment),
                "{name}: {experiment}"
            );
        }
    }
}
