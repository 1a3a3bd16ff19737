//! Records for tests.

use contend_record::Host;
use contend_record::lab::{Case, Chapter, Ending, Metric, RunRecord, SCHEMA, Unit, View};
use contend_record::parameters::Parameters;

/// Returns the record of a run with these cases, shown in this chapter, on eight CPUs.
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

/// Returns a case with two samples of this value, in nanoseconds, and with these metrics.
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
