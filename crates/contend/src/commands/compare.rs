//! `contend compare`: compares runs of the lab, or of pipelines.

use anyhow::{Context as _, Result};
use contend_record::compare::CompareRecord;
use contend_record::versus::VersusRecord;
use contend_report::compare::{compare, compare_pipelines};
use contend_report::render;
use contend_report::render::pipe::Detail;

use super::reports::{self, Reported};
use crate::exit::Exit;
use crate::output;
use crate::settings::{Compare, ComparedRuns};
use crate::version;

/// Compares the runs, prints the result, and writes it to the requested files. One of them on standard
/// output replaces the printed result.
///
/// # Errors
/// Returns an error if the result cannot be written.
pub fn run(settings: Compare) -> Result<Exit> {
    let (record, report): (Box<dyn Reported>, String) = match settings.runs {
        ComparedRuns::Lab(runs) => {
            let record = CompareRecord { contend: Some(version::writer()), ..compare(&runs) };
            let report = render::compare::report(&record, output::width());
            (Box::new(record), report)
        }
        ComparedRuns::Pipelines(runs) => {
            let record = compare_pipelines(runs).context("there is no run to compare")?;
            let record = VersusRecord { contend: Some(version::writer()), ..record };
            let report = render::versus::report(&record, Detail::Full, output::width());
            (Box::new(record), report)
        }
    };
    let has_stdout = settings.files.has_stdout();
    reports::write_files(record.as_ref(), settings.files)?;
    if !has_stdout {
        output::stdout(&report)?;
    }
    Ok(Exit::Success)
}
