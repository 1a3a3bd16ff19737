//! Settings of `contend report`: reads the record.

use anyhow::{Context as _, Result};

use super::named::{self, Text};
use crate::cli::report::ReportArgs;
use crate::output::ReportFile;

/// Settings of `contend report`.
#[derive(Debug)]
pub struct Report {
    /// The record.
    pub record: Text,
    /// The file for the page.
    pub html: ReportFile,
}

/// Returns the settings of `contend report`.
///
/// # Errors
/// Returns an error if the record cannot be read, as [`named::read`] says, or the page cannot be written, or
/// would replace the record.
pub fn report(args: ReportArgs) -> Result<Report> {
    let names = [args.record];
    let mut read = named::read(&names, args.store)?;
    let (_, record) = read.pop().context("there is one record")?;
    named::check_is_not_input("--html", &args.html, &names)?;
    let html = ReportFile::prepare(&args.html)?;
    Ok(Report { record, html })
}
