//! Determines the cost of pipes and of starting programs on this machine, by measurement and from
//! saved lab runs, and answers `--what-if`.

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_advise::predict::calibration::{Calibration, KnownStartUp};
use contend_advise::predict::model;
use contend_advise::predict::what_if::Question;
use contend_record::Host;
use contend_record::lab::{self, View};
use contend_record::pipe::PipeRecord;
use contend_report::store::{Filter, Store};

use crate::records;

/// Maximum number of lab runs to search for the cost of starting a program, newest first.
const MAX_LAB_RUNS: usize = 20;

/// Determines the cost of pipes and of starting a program, the latter from the lab runs in `store`
/// if possible. Adds it to the record, together with the predicted time of the unchanged pipeline
/// and the answers to the questions. Returns the cost for further predictions.
///
/// # Errors
/// Returns an error if no pipe or process can be created.
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

/// Returns the cost of starting a program from the latest lab run that measured it on a machine
/// with the same CPU model and kernel, or `None` if there is no such run among the newest
/// `MAX_LAB_RUNS`. Ignores disturbed measurements. A store that does not exist or cannot be read
/// counts as empty.
fn known_start_up(store: &Path, host: &Host) -> Option<KnownStartUp> {
    if !store.is_file() {
        return None;
    }
    let store = Store::open_to_read(store).ok()?;
    let of_lab = Filter { schema: Some(lab::SCHEMA.to_owned()), ..Filter::default() };
    store.list(&of_lab, MAX_LAB_RUNS).ok()?.into_iter().find_map(|entry| {
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
