//! `contend compare`: compares runs of the lab, or of pipelines.

use anyhow::{Context as _, Result};
use contend_record::compare::{CompareRecord, Origin};
use contend_record::lab::RunRecord;
use contend_record::versus::VersusRecord;
use contend_report::compare::{SavedRuns, compare, compare_pipelines};
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
            let record = of_lab(&runs);
            let report = render::compare::report(&record, output::width());
            (Box::new(record), report)
        }
        ComparedRuns::Pipelines(runs) => {
            let record = of_pipelines(runs)?;
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

/// Returns the page that compares runs.
///
/// # Errors
/// Returns an error if there are no runs, or the comparison cannot be written as JSON, which is a part of the
/// page.
pub fn page(runs: ComparedRuns) -> Result<String> {
    Ok(match runs {
        ComparedRuns::Lab(runs) => of_lab(&runs).html()?,
        ComparedRuns::Pipelines(runs) => of_pipelines(runs)?.html()?,
    })
}

/// Compares runs of the lab.
pub(super) fn of_lab(runs: &[(Origin, RunRecord)]) -> CompareRecord {
    CompareRecord { contend: Some(version::writer()), ..compare(runs) }
}

fn of_pipelines(runs: Vec<SavedRuns>) -> Result<VersusRecord> {
    let record = compare_pipelines(runs).context("there is no run to compare")?;
    Ok(VersusRecord { contend: Some(version::writer()), ..record })
}
