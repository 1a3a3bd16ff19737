//! Writes the trace of an observation to a file.

use anyhow::Result;
use contend_record::doctor::DoctorRecord;
use contend_record::trace::Trace;
use contend_report::render::trace;

use crate::output;
use crate::settings::TraceFile;

/// Writes a trace, and says on standard error if it is not complete or not exact.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(trace: &Trace, record: &DoctorRecord, to: TraceFile) -> Result<()> {
    let TraceFile { file, format } = to;
    file.write_with(|mut out| trace::write(trace, record, format, &mut out))?;
    for note in trace::notes(trace) {
        output::error(&note);
    }
    Ok(())
}
