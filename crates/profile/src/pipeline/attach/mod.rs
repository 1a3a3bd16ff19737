//! Observes a pipeline that is already running, without stopping it.
//!
//! The stages are children of another process, so their exit statuses are unknown, and counters are
//! read relative to their values at the beginning. Nothing is traced.

pub mod find;
mod snapshot;
mod unseen;

use std::time::Duration;

use contend_record::Host;
use contend_record::pipe::{Attached, PipeRecord};
use contend_record::trace::Trace;
use contend_record::warning::{Warning, WarningId};
use contend_sys::cpu;
use contend_sys::interrupt::Signals;
use contend_sys::load::Load;

use super::progress::Progress;
use super::{Source, record, run};
pub use find::{FindError, FoundPipeline, FoundStage, Target};

/// Observes a pipeline until all of its stages have ended, a signal arrives, or `limit` has passed.
/// Returns the record, which includes copies of `host`, with the CPUs that the stages may use, and
/// of `started_at`, and what each stage did over time if `traced` is true. Calls `progress` about ten times a second, and before contend is stopped.
///
/// # Errors
/// Returns an error if one of the stages has ended already or cannot be observed.
pub fn observe(
    found: &FoundPipeline,
    limit: Option<Duration>,
    traced: bool,
    host: &Host,
    started_at: String,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> std::io::Result<(PipeRecord, Option<Trace>)> {
    let stages = &found.stages;
    let pids: Vec<_> = stages.iter().map(|stage| stage.pid).collect();
    let host = Host {
        cpus_allowed: cpu::allowed_to(&pids).unwrap_or(host.cpus_allowed),
        cpu_quota: pids.first().and_then(|pid| cpu::quota_of(*pid)),
        ..host.clone()
    };
    let load_before = Load::read();
    let run = run::observe(stages, limit, traced, signals, progress)?;
    let load = Load::read().since(load_before);
    let texts: Vec<_> = stages.iter().map(|stage| stage.text.clone()).collect();
    let trace = super::trace_of(&run, &texts, &host);
    let source = Source { text: texts.join(" | "), stages: texts, inverted: false };
    let has_ended = run.stages.iter().all(|stage| !stage.still_running);
    let pids = pids.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    let mut record = record(&run, source, String::new(), started_at, &host, load);
    record.attached = Some(Attached { pids, has_ended });
    let unseen = found.unseen.iter();
    record.warnings.extend(unseen.map(|what| Warning::new(WarningId::Unobserved, what)));
    Ok((record, trace))
}
