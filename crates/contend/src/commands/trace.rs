//! Writes a trace to a file.

use std::time::Instant;

use anyhow::Result;
use contend_record::trace::{Clocks, Trace};
use contend_report::render::trace::{self, About};
use contend_sys::clock::{ClockId, nanoseconds};

use crate::output;
use crate::settings::TraceFile;

/// Writes a trace, and says on standard error if it is not complete or not exact.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(trace: &Trace, about: About<'_>, to: TraceFile) -> Result<()> {
    let TraceFile { file, format } = to;
    file.write_with(|mut out| trace::write(trace, about, format, &mut out))?;
    for note in trace::notes(trace) {
        output::error(&note);
    }
    Ok(())
}

/// Returns what the clocks of a trace read at `begun`.
pub fn clocks_at(begun: Instant) -> Clocks {
    let since = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let at_begin = |clock| nanoseconds(clock).saturating_sub(since);
    Clocks {
        monotonic: at_begin(ClockId::Monotonic),
        boottime: at_begin(ClockId::Boottime),
        realtime: at_begin(ClockId::Realtime),
    }
}

/// Does the same as [`write()`] if there are a trace and a file for it.
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
