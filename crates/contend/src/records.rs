//! Records that were written before, read again.

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_record::lab::{self, RunRecord};
use contend_report::store::Store;
use serde::de::DeserializeOwned;

use crate::exit::UsageError;

/// A record of this schema, which `writer` writes, out of its JSON.
///
/// # Errors
/// What is wrong with the text, in words that go behind its name.
pub fn of_schema<T: DeserializeOwned>(text: &str, schema: &str, writer: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|source| format!("it is no JSON: {source}"))?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(found) if found == schema => {}
        Some(other) => return Err(format!("its schema is {other}, not {schema}")),
        None => return Err(format!("it is no record that {writer} wrote")),
    }
    // Not from the value, which has lost the order of what is in it.
    serde_json::from_str(text).map_err(|source| format!("the record is damaged: {source}"))
}

/// The schema of a kept run and its record as JSON.
///
/// # Errors
/// When the store cannot be read, or has no such run.
pub fn kept(store: &Path, number: i64) -> Result<(String, String)> {
    let run = Store::open_to_read(store)?.get(number)?;
    let missing = || UsageError(format!("there is no run {number}: see contend history"));
    Ok(run.ok_or_else(missing)?)
}

/// The record of a kept run of the lab.
///
/// # Errors
/// When it is of something else, has nothing in it, or is damaged.
pub fn kept_lab(number: i64, schema: &str, text: &str) -> Result<RunRecord> {
    if schema != lab::SCHEMA {
        let message =
            format!("run {number} has the schema {schema}, which this contend cannot show");
        return Err(UsageError(message).into());
    }
    if text == "{}" {
        let message = format!("run {number} was ended before it had measured anything");
        return Err(UsageError(message).into());
    }
    serde_json::from_str(text).with_context(|| format!("the record of run {number} cannot be read"))
}
