//! Settings for observing a running pipeline.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use contend_profile::pipeline::attach::{FoundPipeline, Target, find};

use super::{Reports, TraceFile};
use crate::cli::pipe::AttachArgs;
use crate::exit::UsageError;
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
    /// Where the trace goes; `None` if none is written.
    pub trace: Option<TraceFile>,
    /// How to save the profile in the history, unless it is not saved.
    pub saving: Option<Saving>,
    /// Directory in which the observation publishes its progress; `None` if it does not.
    pub publish: Option<PathBuf>,
}

impl Attach {
    /// Finds the stages of the pipeline that the arguments name, and returns the settings, which publish nothing.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if there is no such pipeline, or it may not be examined.
    pub fn of(
        args: &AttachArgs,
        reports: Reports,
        trace: Option<TraceFile>,
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
        let publish = None;
        Ok(Self { found, limit: args.limit, live, reports, trace, saving, publish })
    }
}
