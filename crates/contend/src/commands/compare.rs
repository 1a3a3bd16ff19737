//! `contend compare`: compares lab runs.

use anyhow::Result;
use contend_record::compare::CompareRecord;
use contend_report::compare::compare;
use contend_report::render;

use crate::exit::Exit;
use crate::output::{self, ReportFile};
use crate::settings::Compare;
use crate::version;

/// Compares the runs, prints the result, and writes it as JSON if requested. JSON on standard
/// output replaces the printed result.
///
/// # Errors
/// Returns an error if the result cannot be written.
pub fn run(settings: Compare) -> Result<Exit> {
    let record = CompareRecord { contend: Some(version::writer()), ..compare(&settings.runs) };
    let shown = !settings.json.as_ref().is_some_and(ReportFile::is_stdout);
    if let Some(file) = settings.json {
        file.write(&render::json::compare(&record)?)?;
    }
    if shown {
        output::stdout(&render::compare::report(&record, output::width()))?;
    }
    Ok(Exit::Success)
}
