//! `contend compare`: compares runs of the lab, or of pipelines.

use anyhow::{Context as _, Result};
use contend_record::compare::CompareRecord;
use contend_record::versus::VersusRecord;
use contend_report::compare::{compare, compare_pipelines};
use contend_report::render;
use contend_report::render::pipe::Detail;

use super::reports::Reported;
use crate::exit::Exit;
use crate::output::{self, ReportFile};
use crate::settings::{Compare, ComparedRuns};
use crate::version;

/// Compares the runs, prints the result, and writes it as JSON if requested. JSON on standard
/// output replaces the printed result.
///
/// # Errors
/// Returns an error if the result cannot be written.
pub fn run(settings: Compare) -> Result<Exit> {
    let has_page = settings.html.is_some();
    let ((json, page), report) = match settings.runs {
        ComparedRuns::Lab(runs) => {
            let record = CompareRecord { contend: Some(version::writer()), ..compare(&runs) };
            let report = render::compare::report(&record, output::width());
            (forms(&record, has_page)?, report)
        }
        ComparedRuns::Pipelines(runs) => {
            let record = compare_pipelines(runs).context("there is no run to compare")?;
            let record = VersusRecord { contend: Some(version::writer()), ..record };
            let report = render::versus::report(&record, Detail::Full, output::width());
            (forms(&record, has_page)?, report)
        }
    };
    let shown = !settings.json.as_ref().is_some_and(ReportFile::is_stdout);
    if let Some(file) = settings.json {
        file.write(&json)?;
    }
    if let (Some(file), Some(page)) = (settings.html, page) {
        file.write(&page)?;
    }
    if shown {
        output::stdout(&report)?;
    }
    Ok(Exit::Success)
}

/// Returns a record as JSON and, if requested, as a web page.
fn forms(record: &impl Reported, has_page: bool) -> serde_json::Result<(String, Option<String>)> {
    Ok((record.json()?, has_page.then(|| record.html()).transpose()?))
}
