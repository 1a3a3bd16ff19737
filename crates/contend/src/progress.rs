//! Follows a run of the lab: draws a progress line, prints the steps of demonstrations, and saves
//! the record during the run and at its end.

use std::time::{Duration, Instant};

use contend_lab::engine::plan::{Plan, PlannedCase};
use contend_lab::engine::runner::{Observer, Progress};
use contend_record::lab::{Ending, RunRecord, Step};
use contend_report::render::lab::timeline;
use contend_report::render::text::printable;
use contend_report::render::units::counted;
use contend_report::store::{Store, StoreError, StoredRun};

use crate::output;
use crate::publish::Publisher;

/// Minimum time from the start of a run to the first update of its progress line.
const START_DELAY: Duration = Duration::from_secs(1);
/// Minimum time between two updates of the line.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Text that removes the line of the cursor from a terminal.
pub const CLEAR_LINE: &str = "\r\x1b[K";

/// The observer of a run: draws the progress line, prints demonstrations, and saves the record.
#[derive(Debug)]
pub struct Follower {
    /// Whether to draw the progress line.
    draws: bool,
    /// Whether to print steps of demonstrations.
    prints_steps: bool,
    drawn: Option<Instant>,
    /// Completed share of the run as last shown, from 0 to 1.
    part: f64,
    last_heading: Option<String>,
    saver: Option<RunSaver>,
    /// Publishes the progress for `contend serve`; `None` if it is not published.
    publisher: Option<Publisher>,
}

impl Follower {
    /// Creates the observer of a run that has not started.
    pub fn new(draws: bool, prints_steps: bool, saver: Option<RunSaver>) -> Self {
        Self {
            draws,
            prints_steps,
            drawn: None,
            part: 0.0,
            last_heading: None,
            saver,
            publisher: None,
        }
    }

    /// Also publishes the progress.
    pub fn with_publisher(mut self, publisher: Option<Publisher>) -> Self {
        self.publisher = publisher;
        self
    }

    /// Clears the progress line and saves the final record. Returns `None` if the run is not to be
    /// saved.
    ///
    /// # Errors
    /// Returns an error if the record cannot be saved.
    pub fn finish(mut self, record: &RunRecord) -> Result<Option<SaveOutcome>, StoreError> {
        self.clear();
        let saved = self.saver.as_ref().map(|saver| saver.finish(record)).transpose();
        if let Some(publisher) = self.publisher.take() {
            let number = match saved {
                Ok(Some(SaveOutcome::Saved(number))) => Some(number),
                _ => None,
            };
            publisher.end(&ending(record), number);
        }
        saved
    }

    /// Publishes the share of the run that is complete, if that is due.
    fn publish(&mut self, progress: &Progress<'_>) {
        if let Some(publisher) = self.publisher.as_mut().filter(|publisher| publisher.is_due()) {
            self.part = self.part.max(progress.completed_share().min(0.99));
            publisher.update(line(progress, self.part), vec![vec![Some(100.0 * self.part)]]);
        }
    }

    /// Draws the first line, if the progress line is enabled. It stays until the first update,
    /// `START_DELAY` or more after the start of the run.
    pub fn begin(&mut self, plan: &Plan) {
        if self.draws {
            let cases = counted(plan.cases.len() as u64, "case");
            let seconds = plan.expected().as_secs_f64().ceil().max(1.0);
            self.draw(&format!("{cases}, about {seconds:.0} s: calibrating the clock"));
        }
    }

    fn draw(&mut self, line: &str) {
        // Leaves room for the echo of a key such as ^C.
        let room = output::width().saturating_sub(4);
        let line: String = printable(line).chars().take(room).collect();
        output::terminal(&format!("{CLEAR_LINE}{line}"));
        self.drawn = Some(Instant::now());
    }

    fn clear(&mut self) {
        if self.drawn.take().is_some() {
            output::terminal(CLEAR_LINE);
        }
    }
}

impl Observer for Follower {
    fn measuring(&mut self, progress: &Progress<'_>) {
        self.publish(progress);
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_INTERVAL);
        if !self.draws || !due || progress.elapsed < START_DELAY {
            return;
        }
        // Estimates change, but the displayed share never decreases.
        self.part = self.part.max(progress.completed_share().min(0.99));
        let line = line(progress, self.part);
        // Leaves room for the echo of a key such as ^C.
        let room = output::width().saturating_sub(4);
        let line: String = printable(&line).chars().take(room).collect();
        output::terminal(&format!("{CLEAR_LINE}{line}"));
        self.drawn = Some(Instant::now());
    }

    fn step(&mut self, case: &PlannedCase, step: &Step) {
        if !self.prints_steps {
            return;
        }
        self.clear();
        let name = case.experiment.name;
        let mut text = String::new();
        if self.last_heading.as_deref() != Some(name) {
            let gap = if self.last_heading.is_some() { "\n" } else { "" };
            text.push_str(&format!("{gap}{}", timeline::heading(name)));
            self.last_heading = Some(name.to_owned());
        }
        text.push_str(&timeline::step(step, output::width()));
        let _ = output::stdout(&text); // writing the report fails, too
    }

    fn save(&mut self, record: &RunRecord) {
        if let Some(saver) = &mut self.saver {
            saver.save(record);
        }
    }
}

/// Returns the progress line of a run whose completed share is `part`.
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

/// A saver that stores the record of one run, during the run and at its end.
#[derive(Debug)]
pub struct RunSaver {
    store: Store,
    title: String,
    label: String,
    /// Network name of the machine.
    host: String,
    id: Option<i64>,
}

impl RunSaver {
    /// Creates a saver for one run with the given title and label on this machine.
    pub fn new(store: Store, title: String, label: String) -> Self {
        Self { store, title, label, host: crate::host::name(), id: None }
    }

    /// Checks that the store can be written, before the run spends any time. `started_at` is the
    /// start of the run in UTC (RFC 3339).
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub fn check(&self, started_at: &str) -> Result<(), StoreError> {
        self.store.check_writable(&self.stored_run(started_at, "unfinished", "{}"))
    }

    fn stored_run<'a>(
        &'a self,
        started_at: &'a str,
        ending: &'a str,
        record: &'a str,
    ) -> StoredRun<'a> {
        let schema = contend_record::lab::SCHEMA;
        StoredRun {
            started_at,
            schema,
            title: &self.title,
            ending,
            label: &self.label,
            host: &self.host,
            record,
        }
    }

    /// Saves the unfinished record, unless it is empty. Ignores errors, such as a store that
    /// another program has locked: [`Self::finish`] reports them.
    fn save(&mut self, record: &RunRecord) {
        if record.is_empty() {
            return;
        }
        let Ok(json) = serde_json::to_string(record) else { return };
        let ending = ending(record);
        let run = self.stored_run(&record.started_at, &ending, &json);
        match self.id {
            Some(id) => drop(self.store.update_if_free(id, &run)),
            None => self.id = self.store.add(&run).ok(),
        }
    }

    fn finish(&self, record: &RunRecord) -> Result<SaveOutcome, StoreError> {
        if record.is_empty() {
            return Ok(SaveOutcome::Empty);
        }
        let json = serde_json::to_string(record).unwrap_or_default();
        let ending = ending(record);
        let run = self.stored_run(&record.started_at, &ending, &json);
        match self.id {
            None => self.store.add(&run).map(SaveOutcome::Saved),
            Some(id) if self.store.update(id, &run)? => Ok(SaveOutcome::Saved(id)),
            Some(id) => Ok(SaveOutcome::Removed(id)),
        }
    }
}

/// Returns how the run ended, for the list of runs. A run that had no time for some of its cases is
/// not complete.
pub fn ending(record: &RunRecord) -> String {
    match record.ending {
        Ending::Unfinished => "unfinished".to_owned(),
        Ending::Interrupted => "interrupted".to_owned(),
        Ending::Complete if record.lacked_time() => {
            format!("{} of {}", record.measured(), counted(record.cases.len() as u64, "case"))
        }
        Ending::Complete => "complete".to_owned(),
        Ending::Empty => "empty".to_owned(),
    }
}

/// The outcome of saving a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The run was saved under the given number.
    Saved(i64),
    /// Nothing was measured, so nothing was saved.
    Empty,
    /// The user removed the run with the given number before it ended.
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
