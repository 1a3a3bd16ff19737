//! Records for tests.

use contend_record::Host;
use contend_record::lab::{Case, Ending, Metric, RunRecord, SCHEMA, Unit};
use contend_record::parameters::Parameters;

/// A run of a suite with these cases, on eight CPUs.
pub fn record(suite: &str, cases: Vec<Case>) -> RunRecord {
    RunRecord {
        schema: SCHEMA.to_owned(),
        contend: None,
        suite: Some(suite.to_owned()),
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

/// A case with two samples of this value, in nanoseconds, and of these metrics.
pub fn case(experiment: &str, parameters: Parameters, value: f64, metrics: &[(&str, f64)]) -> Case {
    let mut case = Case::new(experiment, parameters, Unit::Nanoseconds);
    case.samples = vec![value; 2];
    case.median = Some(value);
    for (name, value) in metrics {
        case.metrics.insert((*name).to_owned(), Metric::of(Unit::Count, vec![*value; 2]));
    }
    case
}
