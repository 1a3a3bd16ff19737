//! Records for tests.

use contend_record::Host;
use contend_record::lab::{Case, Ending, RunRecord, SCHEMA};

/// A run of a suite with these cases, on eight CPUs.
pub fn record(suite: &str, cases: Vec<Case>) -> RunRecord {
    RunRecord {
        schema: SCHEMA.to_owned(),
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
