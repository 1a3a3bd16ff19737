//! Renders records as JSON.

use contend_record::compare::CompareRecord;
use contend_record::doctor::DoctorRecord;
use contend_record::lab::RunRecord;
use contend_record::pipe::PipeRecord;
use contend_record::run;
use contend_record::versus::VersusRecord;
use serde::Serialize;

use crate::store::Entry;

/// Returns the record of a profiled pipeline as indented JSON with a final newline.
///
/// # Errors
/// Returns an error only if the record's type has a bug that prevents its serialization.
pub fn pipe(record: &PipeRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns the record of a lab run as indented JSON with a final newline.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn lab(record: &RunRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns the record of a parallel run as indented JSON with a final newline.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn run(record: &run::RunRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns the comparison of several lab runs as indented JSON with a final newline.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn compare(record: &CompareRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns the comparison of several pipelines as indented JSON with a final newline.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn versus(record: &VersusRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns the record of a diagnosis as indented JSON with a final newline.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn doctor(record: &DoctorRecord) -> serde_json::Result<String> {
    indented(record)
}

/// Returns the list of saved runs as indented JSON with a final newline: an array of objects.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn history(entries: &[Entry]) -> serde_json::Result<String> {
    indented(&entries)
}

/// Returns a record of any kind as JSON on one line, with a final newline.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn line(record: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(record).map(|text| text + "\n")
}

fn indented(record: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(record).map(|text| text + "\n")
}
