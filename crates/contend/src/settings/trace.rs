//! Settings for writing a trace.

use std::path::Path;

use anyhow::Result;
use contend_report::render::trace::Format;

use super::reports::check_differ;
use crate::exit::UsageError;
use crate::output::ReportFile;

/// Where a trace goes.
#[derive(Debug)]
pub struct TraceFile {
    /// The file.
    pub file: ReportFile,
    /// The format that the file's name stands for.
    pub format: Format,
}

impl TraceFile {
    /// Prepares to write a trace to `path`, in the format that its name stands for. `others` are the other
    /// files that will be written, with the options that name them.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if the name stands for no format, if one of `others` is the same file, or
    /// if the file cannot be written.
    pub fn prepare<'a>(
        path: &Path,
        others: impl Iterator<Item = (&'static str, &'a ReportFile)>,
    ) -> Result<Self> {
        let Some(format) = Format::of(path) else {
            return Err(UsageError(format!(
                "the name '{}' does not tell the format of the trace: it must end in .json or .json.gz \
                 for the Firefox Profiler, or in .pftrace or .perfetto-trace for Perfetto",
                path.display()
            ))
            .into());
        };
        let file = ReportFile::prepare(path)?;
        for other in others {
            check_differ(("--trace", &file), other)?;
        }
        Ok(Self { file, format })
    }
}
