//! A record as JSON.

use contend_record::compare::CompareRecord;
use contend_record::lab::RunRecord;
use contend_record::pipe::PipeRecord;
use contend_record::run;
use serde::Serialize;

/// A profiled pipeline as indented JSON with a final newline.
///
/// # Errors
/// When a figure cannot be written as JSON, which would be a defect of the record.
pub fn pipe(record: &PipeRecord) -> serde_json::Result<String> {
    indented(record)
}

/// A run of the lab as indented JSON with a final newline.
///
/// # Errors
/// As [`pipe`].
pub fn lab(record: &RunRecord) -> serde_json::Result<String> {
    indented(record)
}

/// A plan and what came of it.
///
/// # Errors
/// As [`pipe`].
pub fn run(record: &run::RunRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Several runs of the lab beside each other.
///
/// # Errors
/// As [`pipe`].
pub fn compare(record: &CompareRecord) -> serde_json::Result<String> {
    indented(record)
}

fn indented(record: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(record).map(|text| text + "\n")
}
