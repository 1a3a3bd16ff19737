//! Observes a pipeline that is already running, without stopping it.
//!
//! The stages are children of another process, so their exit statuses are unknown, and counters are
//! read relative to their values at the beginning. Nothing is traced.

pub mod find;

use std::time::Duration;

use contend_record::Host;
use contend_record::pipe::{Attached, PipeRecord};
use contend_sys::interrupt::Signals;
use contend_sys::load::Load;

use super::progress::Progress;
use super::{Source, record, run};
pub use find::{FindError, FoundStage, Target};

/// Observes the given stages until all have ended, a signal arrives, or `limit` has passed. Returns
/// the record, which includes copies of `host` and `started_at`. Calls `progress` about ten times a
/// second, and before contend is stopped.
///
/// # Errors
/// Returns an error if all of the stages have ended already or cannot be observed.
pub fn observe(
    stages: &[FoundStage],
    limit: Option<Duration>,
    host: &Host,
    started_at: String,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> std::io::Result<PipeRecord> {
    let load_before = Load::read();
    let run = run::observe(stages, limit, signals, progress)?;
    let load = Load::read().since(load_before);
    let texts: Vec<_> = stages.iter().map(|stage| stage.text.clone()).collect();
    let source = Source { text: texts.join(" | "), stages: texts, inverted: false };
    let has_ended = run.stages.iter().all(|stage| !stage.still_running);
    let attached = Attached {
        pids: stages.iter().map(|stage| stage.pid.as_raw_nonzero().get()).collect(),
        has_ended,
    };
    let mut record = record(&run, source, String::new(), started_at, host, load);
    record.attached = Some(attached);
    Ok(record)
}
