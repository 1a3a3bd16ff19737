//! Writes the results of a measurement in every form: a report for people, JSON, and a web page.

use anyhow::Result;
use contend_record::compare::CompareRecord;
use contend_record::doctor::DoctorRecord;
use contend_record::pipe::PipeRecord;
use contend_record::versus::VersusRecord;
use contend_report::render::{html, json};

use crate::output;
use crate::settings::Reports;

/// A record that can be written in every form.
pub trait Reported {
    /// Returns the record as JSON.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    fn json(&self) -> serde_json::Result<String>;

    /// Returns the record as a web page.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON, which is a part of the page.
    fn html(&self) -> serde_json::Result<String>;
}

impl Reported for PipeRecord {
    fn json(&self) -> serde_json::Result<String> {
        json::pipe(self)
    }

    fn html(&self) -> serde_json::Result<String> {
        html::pipe(self)
    }
}

impl Reported for VersusRecord {
    fn json(&self) -> serde_json::Result<String> {
        json::versus(self)
    }

    fn html(&self) -> serde_json::Result<String> {
        html::versus(self)
    }
}

impl Reported for CompareRecord {
    fn json(&self) -> serde_json::Result<String> {
        json::compare(self)
    }

    fn html(&self) -> serde_json::Result<String> {
        html::compare(self)
    }
}

impl Reported for DoctorRecord {
    fn json(&self) -> serde_json::Result<String> {
        json::doctor(self)
    }

    fn html(&self) -> serde_json::Result<String> {
        html::doctor(self)
    }
}

/// Writes the record in the requested forms, and the report for people, which is given.
///
/// The record is written first, so that the measurements survive if the report cannot be printed.
///
/// # Errors
/// Returns the first error, after everything that can be written has been written.
pub fn write(record: &impl Reported, report: &str, to: Reports) -> Result<()> {
    let json = to.json.map_or(Ok(()), |file| file.write(&record.json()?));
    let html = to.html.map_or(Ok(()), |file| file.write(&record.html()?));
    let shown = match to.output {
        Some(file) => file.write(&output::plain(report)),
        None => output::stderr(report),
    };
    shown.and(json).and(html)
}
