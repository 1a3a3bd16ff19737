//! Progress of a run of the lab: a line on the terminal, demonstrations, and the unfinished record.

use std::time::{Duration, Instant};

use contend_lab::engine::plan::PlannedCase;
use contend_lab::engine::runner::{Observer, Progress};
use contend_record::lab::{Ending, RunRecord, Step};
use contend_report::render::lab::timeline;
use contend_report::render::text::printable;
use contend_report::store::{Store, StoreError, StoredRun};

use crate::output;

/// Time before the first line; shorter runs show none.
const DELAY: Duration = Duration::from_secs(1);
/// Minimum time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(100);

const CLEAR_LINE: &str = "\r\x1b[K";

/// The observer of a run: draws the progress line, prints demonstrations, and saves the record.
#[derive(Debug)]
pub struct Follower {
    /// Whether to draw the progress line.
    draws: bool,
    /// Whether to print steps of demonstrations.
    tells: bool,
    drawn: Option<Instant>,
    /// Part of the run that was last shown as complete.
    part: f64,
    telling: Option<String>,
    keeper: Option<Keeper>,
}

impl Follower {
    /// Creates the observer of a run that has not started.
    pub fn new(draws: bool, tells: bool, keeper: Option<Keeper>) -> Self {
        Self { draws, tells, drawn: None, part: 0.0, telling: None, keeper }
    }

    /// Clears the line and saves the complete record.
    ///
    /// # Errors
    /// If the record cannot be saved.
    pub fn finish(mut self, record: &RunRecord) -> Result<Option<Fate>, StoreError> {
        self.clear();
        self.keeper.as_ref().map(|keeper| keeper.finish(record)).transpose()
    }

    fn clear(&mut self) {
        if self.drawn.take().is_some() {
            output::terminal(CLEAR_LINE);
        }
    }
}

impl Observer for Follower {
    fn measuring(&mut self, progress: &Progress<'_>) {
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL);
        if !self.draws || !due || progress.elapsed < DELAY {
            return;
        }
        // Estimates get better, but the shown part never decreases.
        self.part = self.part.max(progress.part().min(0.99));
        let line = line(progress, self.part);
        // Leaves room for the echo of a key such as ^C.
        let room = output::width().saturating_sub(4);
        let line: String = printable(&line).chars().take(room).collect();
        output::terminal(&format!("{CLEAR_LINE}{line}"));
        self.drawn = Some(Instant::now());
    }

    fn step(&mut self, case: &PlannedCase, step: &Step) {
        if !self.tells {
            return;
        }
        self.clear();
        let name = case.experiment.name;
        let mut text = String::new();
        if self.telling.as_deref() != Some(name) {
            let gap = if self.telling.is_some() { "\n" } else { "" };
            text.push_str(&format!("{gap}{}", timeline::heading(name)));
            self.telling = Some(name.to_owned());
        }
        text.push_str(&timeline::step(step, output::width()));
        let _ = output::stdout(&text); // the report reports the error
    }

    fn save(&mut self, record: &RunRecord) {
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(record);
        }
    }
}

/// Returns the line that shows how far a run is, of which this part is over.
fn line(progress: &Progress<'_>, part: f64) -> String {
    let seconds = progress.remaining.as_secs_f64().ceil().max(1.0);
    let case = progress.case;
    format!(
        "{:.0} %, about {seconds:.0} s left: {} {}",
        (100.0 * part).floor(),
        case.experiment.name,
        case.parameters
    )
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Saves the record of a run in the store, while it is unfinished and at its end.
#[derive(Debug)]
pub struct Keeper {
    store: Store,
    title: String,
    id: Option<i64>,
}

impl Keeper {
    /// Creates a keeper of one run with this title.
    pub fn new(store: Store, title: String) -> Self {
        Self { store, title, id: None }
    }

    /// Checks that the store can be written, before any time is spent.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn check(&self, started_at: &str) -> Result<(), StoreError> {
        self.store.check_writable(&self.kept(started_at, Ending::Unfinished, "{}"))
    }

    fn kept<'a>(&'a self, started_at: &'a str, ending: Ending, record: &'a str) -> StoredRun<'a> {
        let ending = match ending {
            Ending::Unfinished => "unfinished",
            Ending::Interrupted => "interrupted",
            Ending::Complete => "complete",
            Ending::Empty => "empty",
        };
        let schema = contend_record::lab::SCHEMA;
        StoredRun { started_at, schema, title: &self.title, ending, record }
    }

    /// Saves the unfinished record. Ignores errors: the last save reports them.
    fn keep(&mut self, record: &RunRecord) {
        if record.is_empty() {
            return;
        }
        let Ok(json) = serde_json::to_string(record) else { return };
        let kept = self.kept(&record.started_at, record.ending, &json);
        match self.id {
            Some(id) => drop(self.store.update_if_free(id, &kept)),
            None => self.id = self.store.add(&kept).ok(),
        }
    }

    fn finish(&self, record: &RunRecord) -> Result<Fate, StoreError> {
        if record.is_empty() {
            return Ok(Fate::Empty);
        }
        let json = serde_json::to_string(record).unwrap_or_default();
        let kept = self.kept(&record.started_at, record.ending, &json);
        match self.id {
            None => self.store.add(&kept).map(Fate::Kept),
            Some(id) if self.store.update(id, &kept)? => Ok(Fate::Kept(id)),
            Some(id) => Ok(Fate::Removed(id)),
        }
    }
}

/// The outcome of saving a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was saved under this number.
    Kept(i64),
    /// Nothing was measured, so that nothing was saved.
    Empty,
    /// The user removed the run with this number before it ended.
    Removed(i64),
}

#[cfg(test)]
mod tests {
    use contend_lab::engine::experiment::Size;
    use contend_lab::experiments::REGISTRY;
    use contend_record::parameters::Parameters;

    use super::*;

    #[test]
    fn the_line_has_the_time_left_and_the_case() {
        let experiment = REGISTRY.calibration.empty;
        let case = PlannedCase::new(experiment, Parameters::new(), Size::Full);
        let line = |millis| {
            let remaining = Duration::from_millis(millis);
            line(&Progress { elapsed: Duration::from_secs(8), remaining, case: &case }, 0.999)
        };
        assert_eq!(line(2500), "99 %, about 3 s left: engine/empty ");
        assert_eq!(line(0), "99 %, about 1 s left: engine/empty ");
    }
}
