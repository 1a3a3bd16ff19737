//! Builds records for tests.

use contend_record::Host;
use contend_record::lab::{Case, Chapter, Ending, Metric, RunRecord, SCHEMA, Unit, View};
use contend_record::parameters::Parameters;

/// Returns the record of a complete run with the given cases and chapter, on eight CPUs.
pub fn record(chapter: Option<Chapter>, cases: Vec<Case>) -> RunRecord {
    RunRecord {
        schema: SCHEMA.to_owned(),
        contend: None,
        suite: None,
        chapter,
        started_at: String::new(),
        wall_seconds: 1.0,
        seed: 1,
        quick: false,
        budget_seconds: 1.0,
        ending: Ending::Complete,
        host: Host { cpus_allowed: 8, ..Host::default() },
        calibration: None,
        cases,
        fits: Vec::new(),
        scaling: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Returns the rendered chapter of a record in full detail, without styles and with single spaces;
/// empty if the record has no chapter, or no measurements for it.
pub fn chapter_text(record: &RunRecord, width: usize) -> String {
    let text = record.chapter.and_then(|chapter| {
        let content = super::chapter::content(chapter, record, width)?;
        Some(super::chapter::render(&content, chapter, record, super::Detail::Full, width))
    });
    let text = anstream::adapter::strip_str(&text.unwrap_or_default()).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a case with two equal samples of `value` nanoseconds, and two of each of the given
/// metrics.
pub fn case(
    (experiment, view): (&str, View),
    parameters: Parameters,
    value: f64,
    metrics: &[(&str, f64)],
) -> Case {
    let mut case = Case::new(experiment, view, parameters, Unit::Nanoseconds);
    case.samples = vec![value; 2];
    case.median = Some(value);
    for (name, value) in metrics {
        case.metrics.insert((*name).to_owned(), Metric::of(Unit::Count, vec![*value; 2]));
    }
    case
}
