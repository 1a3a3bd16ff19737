//! Writes a trace to a file.

use anyhow::Result;
use contend_record::trace::Trace;
use contend_report::render::trace::{self, About};

use crate::output;
use crate::settings::TraceFile;

/// Writes a trace, and says on standard error if it is not complete or not exact.
///
/// # Errors
/// Returns an error if the file cannot be written.
fn write(trace: &Trace, about: About<'_>, to: TraceFile) -> Result<()> {
    let TraceFile { file, format } = to;
    file.write_with(|mut out| trace::write(trace, about, format, &mut out))?;
    for note in trace::notes(trace) {
        output::error(&note);
    }
    Ok(())
}

/// Does the same if there are a trace and a file for it.
///
/// # Errors
/// Fails as [`write()`] does.
pub fn write_if<'a, R>(trace: Option<&Trace>, record: &'a R, to: Option<TraceFile>) -> Result<()>
where
    About<'a>: From<&'a R>,
{
    match (trace, to) {
        (Some(trace), Some(file)) => write(trace, record.into(), file),
        _ => Ok(()),
    }
}
