//! `contend report`: writes records as web pages and in the formats of other programs.

use anyhow::Result;
use contend_record::compare::{self, CompareRecord};
use contend_record::doctor::{self, DoctorRecord};
use contend_record::pipe::{self, PipeRecord};
use contend_record::versus::{self, VersusRecord};
use contend_record::{lab, run};
use contend_report::export::{self, ExportError, Workbook};
use contend_report::render::html::{self, MAX_RUNS};
use serde::de::DeserializeOwned;

use super::reports::Reported;
use crate::cli::report::FormatArg;
use crate::exit::{Exit, UsageError};
use crate::settings::{NamedRecord, Report};
use crate::{browser, records};

/// Writes the records in the requested forms.
///
/// # Errors
/// Returns an error if a record is of another program or damaged, the records cannot be written together,
/// or a file cannot be written.
pub fn run(settings: Report) -> Result<Exit> {
    let Report { records: named, html, opened, export } = settings;
    let records = named.iter().map(|one| {
        let from = &one.text.from;
        parsed(&one.text.json)
            .map_err(|what| UsageError(format!("cannot make a report of {from}: {what}")))
    });
    let records: Vec<Box<dyn Reported>> = records.collect::<Result<_, _>>()?;
    let page = html.map(|file| -> Result<()> { file.write(&page(&named, &records)?) });
    let exported = export
        .map(|export| -> Result<()> { export.file.write(&text(export.format, &named, &records)?) });
    page.unwrap_or(Ok(()))?;
    if let Some(page) = opened {
        browser::open(page.as_ref(), "open the page yourself");
    }
    exported.unwrap_or(Ok(()))?;
    Ok(Exit::Success)
}

/// Returns the page of a record, which is JSON.
///
/// # Errors
/// Returns a description of the problem, to follow the name of the record in a message.
pub fn page_of(text: &str) -> Result<String, String> {
    parsed(text)?.html().map_err(|error| error.to_string())
}

/// Returns the page of a record, or of several runs of the lab.
fn page(named: &[NamedRecord], records: &[Box<dyn Reported>]) -> Result<String> {
    if let [record] = records {
        return Ok(record.html()?);
    }
    let runs: Vec<&lab::RunRecord> =
        records.iter().filter_map(|record| record.as_any().downcast_ref()).collect();
    if runs.len() < records.len() || runs.len() > MAX_RUNS {
        return Err(UsageError(format!(
            "--html makes a page of one record, or of up to {MAX_RUNS} runs of `contend lab`: give these, or \
             compare the records with `contend compare`"
        ))
        .into());
    }
    // Runs of different machines are known by their names.
    let mut hosts: Vec<&str> = runs.iter().map(|run| run.host.name.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let has_hosts = hosts.len() == runs.len() && !hosts.contains(&"");
    let names = runs.iter().zip(named).map(|(run, named)| {
        let name = if has_hosts { &run.host.name } else { &named.text.from };
        (name.clone(), *run)
    });
    Ok(html::lab_runs(&names.collect::<Vec<_>>())?)
}

/// Parses a record of any kind.
///
/// # Errors
/// Returns a description of the problem, to follow the name of the record in a message.
fn parsed(text: &str) -> Result<Box<dyn Reported>, String> {
    Ok(match records::schema_of(text).as_str() {
        pipe::SCHEMA => record::<PipeRecord>(text, pipe::SCHEMA, "contend pipe --json")?,
        doctor::SCHEMA => record::<DoctorRecord>(text, doctor::SCHEMA, "contend doctor --json")?,
        versus::SCHEMA => record::<VersusRecord>(text, versus::SCHEMA, "contend pipe --vs --json")?,
        run::SCHEMA => record::<run::RunRecord>(text, run::SCHEMA, "contend run --json")?,
        compare::SCHEMA => {
            record::<CompareRecord>(text, compare::SCHEMA, "contend compare --json")?
        }
        lab::SCHEMA => Box::new(records::of_lab(text, "contend lab --json")?),
        "" if text.starts_with('[') => {
            return Err("it has several records: give the records themselves".to_owned());
        }
        "" => return Err(records::without_schema(text)),
        other => {
            return Err(format!("this version of contend does not know the schema {other}"));
        }
    })
}

fn record<T: Reported + DeserializeOwned + 'static>(
    text: &str,
    schema: &str,
    writer: &str,
) -> Result<Box<dyn Reported>, String> {
    Ok(Box::new(records::of_schema::<T>(text, schema, writer)?))
}

/// Returns the records in a format.
fn text(format: FormatArg, named: &[NamedRecord], records: &[Box<dyn Reported>]) -> Result<String> {
    let books = || workbooks(named, records);
    Ok(match format {
        FormatArg::Markdown => export::markdown(&books()),
        FormatArg::Csv => export::csv(&books()).map_err(usage)?,
        FormatArg::Openmetrics => export::openmetrics(&books()).map_err(usage)?,
        FormatArg::Json => records.iter().map(|one| one.json()).collect::<Result<_, _>>()?,
        FormatArg::Jsonl => records.iter().map(|one| one.json_line()).collect::<Result<_, _>>()?,
    })
}

/// Returns the tables of the records. If there are several, a column names the origin of each.
fn workbooks(named: &[NamedRecord], records: &[Box<dyn Reported>]) -> Vec<Workbook> {
    let has_several = records.len() > 1;
    let books = named.iter().zip(records).map(|(named, record)| {
        let mut book = record.workbook();
        if !named.label.is_empty() {
            book = book.with_label(&named.label);
        }
        if has_several { book.with_source(&named.text.from) } else { book }
    });
    books.collect()
}

/// Returns the error for records that cannot be written together. The user can choose others.
fn usage(error: ExportError) -> anyhow::Error {
    match error {
        ExportError::Csv(_) => error.into(),
        ExportError::Kinds { .. } | ExportError::SameSeries { .. } => {
            UsageError(error.to_string()).into()
        }
    }
}
