//! `contend report`: makes a web page from a record.

use anyhow::Result;
use contend_record::{compare, doctor, lab, pipe, run, versus};
use contend_report::render::html;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, UsageError};
use crate::records;
use crate::settings::Report;

/// Writes the page.
///
/// # Errors
/// Returns an error if there are no pages for records of this kind, the record is damaged, or the page
/// cannot be written.
pub fn run(settings: Report) -> Result<Exit> {
    let Report { record, html: file } = settings;
    let page = page(&record.json)
        .map_err(|what| UsageError(format!("cannot make a page from {}: {what}", record.from)))?;
    file.write(&page)?;
    Ok(Exit::Success)
}

/// Returns the page of a record.
///
/// # Errors
/// Returns a description of the problem, to follow the name of the record in a message.
fn page(text: &str) -> Result<String, String> {
    let page = match records::schema_of(text).as_str() {
        pipe::SCHEMA => html::pipe(&record(text, pipe::SCHEMA, "contend pipe --json")?),
        doctor::SCHEMA => html::doctor(&record(text, doctor::SCHEMA, "contend doctor --json")?),
        versus::SCHEMA => html::versus(&record(text, versus::SCHEMA, "contend pipe --vs --json")?),
        run::SCHEMA => html::run(&record(text, run::SCHEMA, "contend run --json")?),
        compare::SCHEMA => html::compare(&record(text, compare::SCHEMA, "contend compare --json")?),
        lab::SCHEMA => html::lab(&records::of_lab(text, "contend lab --json")?),
        "" => return Err("it is not a record of contend".to_owned()),
        other => return Err(format!("there is no page for the schema {other} yet")),
    };
    page.map_err(|error| error.to_string())
}

fn record<T: DeserializeOwned>(text: &str, schema: &str, writer: &str) -> Result<T, String> {
    records::of_schema(text, schema, writer)
}
