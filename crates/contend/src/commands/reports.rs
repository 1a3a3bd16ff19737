//! Writes the results of a measurement in every form: a report for people, JSON, a web page, and exports.

use std::any::Any;

use anyhow::Result;
use contend_record::compare::CompareRecord;
use contend_record::doctor::DoctorRecord;
use contend_record::pipe::PipeRecord;
use contend_record::versus::VersusRecord;
use contend_record::{lab, run};
use contend_report::export::{self, Workbook};
use contend_report::render::{html, json};

use crate::output::{self, ReportFile};
use crate::settings::{RecordFiles, Reports};

/// A record that can be written in every form.
pub trait Reported {
    /// Returns the record as indented JSON.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    fn json(&self) -> serde_json::Result<String>;

    /// Returns the record as JSON on one line.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    fn json_line(&self) -> serde_json::Result<String>;

    /// Returns the record as a web page.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON, which is a part of the page.
    fn html(&self) -> serde_json::Result<String>;

    /// Returns the figures of the record as tables.
    fn workbook(&self) -> Workbook;

    /// Returns the record, for those that need one of a certain kind.
    fn as_any(&self) -> &dyn Any;
}

/// Implements [`Reported`] with the functions that have the name of the record's kind.
macro_rules! reported {
    ($($record:ty: $kind:ident,)*) => {
        $(impl Reported for $record {
            fn json(&self) -> serde_json::Result<String> {
                json::$kind(self)
            }

            fn json_line(&self) -> serde_json::Result<String> {
                json::line(self)
            }

            fn html(&self) -> serde_json::Result<String> {
                html::$kind(self)
            }

            fn workbook(&self) -> Workbook {
                export::$kind(self)
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        })*
    };
}

reported! {
    PipeRecord: pipe,
    VersusRecord: versus,
    CompareRecord: compare,
    DoctorRecord: doctor,
    lab::RunRecord: lab,
    run::RunRecord: run,
}

/// Writes the record in the requested forms, and the report for people, which is given.
///
/// The record is written first, so that the measurements survive if the report cannot be printed.
///
/// # Errors
/// Returns the first error, after everything that can be written has been written.
pub fn write(record: &impl Reported, report: &str, to: Reports) -> Result<()> {
    let written = write_files(record, to.files);
    let shown = match to.output {
        Some(file) => file.write(&output::plain(report)),
        None => output::stderr(report),
    };
    shown.and(written)
}

/// Writes the record in the requested forms. Its figures have the label of the run, as those that
/// `contend report` writes do.
///
/// # Errors
/// Returns the first error, after everything that can be written has been written.
pub fn write_files(record: &dyn Reported, files: RecordFiles) -> Result<()> {
    let RecordFiles { json, html, markdown, csv, label } = files;
    let json = json.map_or(Ok(()), |file| file.write(&record.json()?));
    let html = html.map_or(Ok(()), |file| file.write(&record.html()?));
    let workbook = || labelled(record.workbook(), &label);
    let exports = write_exports(workbook, markdown, csv);
    json.and(html).and(exports)
}

/// Adds the label of a saved run to its tables, unless it is empty.
fn labelled(workbook: Workbook, label: &str) -> Workbook {
    if label.is_empty() { workbook } else { workbook.with_label(label) }
}

/// Writes the tables that `workbook` makes, if a format of them is requested.
///
/// # Errors
/// Returns the first error, after everything that can be written has been written.
pub fn write_exports(
    workbook: impl FnOnce() -> Workbook,
    markdown: Option<ReportFile>,
    csv: Option<ReportFile>,
) -> Result<()> {
    if markdown.is_none() && csv.is_none() {
        return Ok(());
    }
    let books = [workbook()];
    let markdown = markdown.map_or(Ok(()), |file| file.write(&export::markdown(&books)));
    let csv = csv.map_or(Ok(()), |file| file.write(&export::csv(&books)?));
    markdown.and(csv)
}
