//! A record as JSON.

use contend_record::pipe::PipeRecord;

/// The record as indented JSON with a final newline.
///
/// # Errors
/// When a figure cannot be written as JSON, which would be a defect of the record.
pub fn pipe(record: &PipeRecord) -> serde_json::Result<String> {
    serde_json::to_string_pretty(record).map(|text| text + "\n")
}
