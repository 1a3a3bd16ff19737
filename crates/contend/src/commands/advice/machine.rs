//! What is known of this machine: from the lab, or found out now.

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_advise::predict::calibration::{Calibration, KnownStartUp};
use contend_advise::predict::model;
use contend_advise::predict::what_if::Question;
use contend_record::Host;
use contend_record::lab::{self, View};
use contend_record::pipe::PipeRecord;
use contend_report::store::Store;

use crate::records;

/// Runs of the lab that are looked through for what starting costs.
const LAB_RUNS: usize = 20;

/// Finds out what pipes and starting cost here, and answers the questions.
///
/// # Errors
/// When the machine has no pipe or process to spare.
pub fn answer(
    record: &mut PipeRecord,
    questions: &[Question],
    store: Option<&Path>,
) -> Result<Calibration> {
    let known = store.and_then(|store| known_start_up(store, &record.host));
    let calibration = Calibration::measure(known).context("cannot measure the cost of a pipe")?;
    record.what_if =
        questions.iter().map(|question| question.answer(record, &calibration)).collect();
    record.calibration = Some(calibration.record());
    record.predicted_unchanged = Some(model::unchanged(record, calibration.start_up));
    Ok(calibration)
}

/// What the lab has last found a start to cost on this machine. A store that is not there or
/// cannot be read is no reason to stop.
fn known_start_up(store: &Path, host: &Host) -> Option<KnownStartUp> {
    if !store.is_file() {
        return None;
    }
    let store = Store::open_to_read(store).ok()?;
    let entries = store.list(LAB_RUNS).ok()?;
    entries.into_iter().filter(|entry| entry.schema == lab::SCHEMA).find_map(|entry| {
        let (schema, text) = store.get(entry.id).ok()??;
        let run = records::saved_lab(entry.id, &schema, &text).ok()?;
        let same = run.host.cpu_model == host.cpu_model && run.host.kernel == host.kernel;
        let starts = |case: &&lab::Case| {
            [View::Startup, View::PipelineStartup].contains(&case.view)
                && case.parameters.text("command") == Some("true")
                && case.disturbed.is_empty()
        };
        let case = run.cases.iter().filter(|_| same).find(starts)?;
        Some(KnownStartUp { seconds: case.median? * 1e-9, run: entry.id })
    })
}
