//! Renders records as JSON.

use contend_record::compare::CompareRecord;
use contend_record::lab::RunRecord;
use contend_record::pipe::PipeRecord;
use contend_record::run;
use serde::Serialize;

/// Returns a profiled pipeline as indented JSON with a final newline.
///
/// # Errors
/// Returns an error if the record cannot be serialized, which would be a bug.
pub fn pipe(record: &PipeRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns a run of the lab as indented JSON with a final newline.
///
/// # Errors
/// See [`pipe`].
pub fn lab(record: &RunRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns a plan and its outcome as indented JSON with a final newline.
///
/// # Errors
/// See [`pipe`].
pub fn run(record: &run::RunRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns a comparison of runs of the lab as indented JSON with a final newline.
///
/// # Errors
/// See [`pipe`].
pub fn compare(record: &CompareRecord) -> serde_json::Result<String> {
    indented(record)
}

fn indented(record: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(record).map(|text| text + "\n")
}
