//! Settings of `contend report`: reads the records.

use std::path::{Path, PathBuf};

use anyhow::Result;
use contend_record::compare::Origin;

use super::named::{self, Text};
use super::reports::check_differ;
use crate::cli::report::{FormatArg, ReportArgs};
use crate::exit::UsageError;
use crate::output::ReportFile;

/// Settings of `contend report`.
#[derive(Debug)]
pub struct Report {
    /// The records, at least one; only one for JSON.
    pub records: Vec<NamedRecord>,
    /// The file for a page, if one is requested.
    pub html: Option<ReportFile>,
    /// The page to open in the browser once it is written.
    pub opened: Option<PathBuf>,
    /// The other format to write, if one is requested.
    pub export: Option<Export>,
}

/// A record that an argument names.
#[derive(Debug)]
pub struct NamedRecord {
    /// The record as JSON, and its origin in words.
    pub text: Text,
    /// Label of the saved run; empty if there is none.
    pub label: String,
}

/// A format, and the file for it.
#[derive(Debug)]
pub struct Export {
    /// The format.
    pub format: FormatArg,
    /// The file.
    pub file: ReportFile,
}

/// Returns the settings of `contend report`.
///
/// # Errors
/// Returns an error if there are several records and a form is of only one, if a record cannot be read, as
/// [`named::read`] says, or if a file cannot be written, or would replace a record.
pub fn report(args: ReportArgs) -> Result<Report> {
    let names = args.records;
    let records = named::read(&names, args.store)?.into_iter().map(|(origin, text)| {
        let label = match origin {
            Origin::Kept { label, .. } => label,
            Origin::File { .. } | Origin::StandardInput => String::new(),
        };
        NamedRecord { text, label }
    });
    let records: Vec<NamedRecord> = records.collect();
    if records.len() > 1 {
        check_takes_several(args.format)?;
    }
    for (option, path) in [("--html", &args.html), ("--output", &args.output)] {
        if let Some(path) = path {
            named::check_is_not_input(option, path, &names)?;
        }
    }
    let html = args.html.as_deref().map(ReportFile::prepare).transpose()?;
    if let (true, Some(html)) = (args.open, &html)
        && html.is_stdout()
    {
        let message = "--open needs a file: the page goes to standard output";
        return Err(UsageError(message.to_owned()).into());
    }
    let opened = args.html.filter(|_| args.open);
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let export = args.format.map(|format| -> Result<Export> {
        Ok(Export { format, file: ReportFile::prepare(path)? })
    });
    let export = export.transpose()?;
    if let (Some(html), Some(export)) = (&html, &export) {
        check_differ(("--html", html), ("--output", &export.file))?;
    }
    Ok(Report { records, html, opened, export })
}

/// Returns an error if a requested form is of one record only.
fn check_takes_several(format: Option<FormatArg>) -> Result<(), UsageError> {
    if format == Some(FormatArg::Json) {
        let message = "--format json writes one record: use --format jsonl for several";
        return Err(UsageError(message.to_owned()));
    }
    Ok(())
}
