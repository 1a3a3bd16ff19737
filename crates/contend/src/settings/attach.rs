//! Settings for observing a running pipeline.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use contend_profile::pipeline::attach::{FoundPipeline, Target, find};
use contend_report::render::pipe::Detail;

use crate::cli::pipe::AttachArgs;
use crate::exit::UsageError;
use crate::output::ReportFile;
use crate::records::save::Saving;

/// Settings for observing a running pipeline.
#[derive(Debug)]
pub struct Attach {
    /// The pipeline to observe.
    pub found: FoundPipeline,
    /// Time after which the observation ends; `None` for the end of the pipeline or a signal.
    pub limit: Option<Duration>,
    /// Whether to show the stages during the observation.
    pub live: bool,
    /// Where the report goes.
    pub reports: Reports,
    /// How to save the profile in the history, unless it is not saved.
    pub saving: Option<Saving>,
}

/// The reports to write.
#[derive(Debug)]
pub struct Reports {
    /// Amount of detail.
    pub detail: Detail,
    /// File for the report instead of standard error.
    pub output: Option<ReportFile>,
    /// File for the record as JSON.
    pub json: Option<ReportFile>,
}

impl Attach {
    /// Finds the stages of the pipeline that the arguments name, and returns the settings.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if there is no such pipeline, or it may not be examined.
    pub fn of(
        args: &AttachArgs,
        reports: Reports,
        live: bool,
        saving: Option<Saving>,
    ) -> Result<Self> {
        let shell = || rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let target = match (args.pid, args.pgid) {
            (Some(pid), _) => Target::Process(pid),
            (None, Some(group)) => Target::Group(group),
            (None, None) => Target::LastJob(shell()),
        };
        let found = find::pipeline(target).map_err(|error| UsageError(error.to_string()))?;
        Ok(Self { found, limit: args.limit, live, reports, saving })
    }
}

/// Returns the files for the report (`--output`) and for the record (`--json`), as far as they are given.
/// Refuses one file for both.
pub fn report_files(
    output: Option<&Path>,
    json: Option<&Path>,
) -> Result<(Option<ReportFile>, Option<ReportFile>)> {
    let output = output.map(ReportFile::prepare).transpose()?;
    let json = json.map(ReportFile::prepare).transpose()?;
    if let (Some(output), Some(json)) = (&output, &json)
        && output.is_same_as(json)
    {
        let message = "--output and --json name the same file: give them different names";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok((output, json))
}
