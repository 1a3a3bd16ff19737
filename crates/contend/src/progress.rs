//! What is to be seen of a run of the lab while it goes on.

use std::time::{Duration, Instant};

use contend_lab::plan::PlannedCase;
use contend_lab::runner::{Observer, Progress};
use contend_record::lab::{Ending, RunRecord, Step};
use contend_report::render::lab::timeline;
use contend_report::render::text::printable;
use contend_report::store::{Kept, Store, StoreError};

use crate::output;

/// Shorter runs are over before anyone could read.
const DELAY: Duration = Duration::from_secs(1);
/// The line is drawn no more often than this.
const INTERVAL: Duration = Duration::from_millis(100);

const CLEAR_LINE: &str = "\r\x1b[K";

/// Follows a run: a line on the terminal, the steps of demonstrations, and the store.
#[derive(Debug)]
pub struct Follower {
    /// Whether there is a terminal that wants the line.
    draws: bool,
    /// Whether steps are told as they happen.
    tells: bool,
    drawn: Option<Instant>,
    telling: Option<String>,
    keeper: Option<Keeper>,
}

impl Follower {
    /// Follows a run that has not begun.
    pub fn new(draws: bool, tells: bool, keeper: Option<Keeper>) -> Self {
        Self { draws, tells, drawn: None, telling: None, keeper }
    }

    /// The run is over.
    ///
    /// # Errors
    /// What went wrong in keeping it.
    pub fn finish(mut self, record: &RunRecord) -> Result<Option<i64>, StoreError> {
        self.clear();
        match &mut self.keeper {
            Some(keeper) => keeper.finish(record).map(Some),
            None => Ok(None),
        }
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
        let case = progress.case;
        let left = match progress.budget.saturating_sub(progress.elapsed) {
            Duration::ZERO => "finishing".to_owned(),
            left => format!("about {:.0} s left", left.as_secs_f64().ceil()),
        };
        let of_time = progress.elapsed.as_secs_f64() / progress.budget.as_secs_f64().max(1e-3);
        let of_cases = progress.done as f64 / progress.cases.max(1) as f64;
        let line = format!(
            "{:.0} %, {left}: {} {}",
            100.0 * of_time.max(of_cases).min(0.99),
            case.experiment.name,
            case.parameters
        );
        // A key that is pressed, such as ^C, is shown behind it.
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
        let _ = output::stdout(&text); // the report will say it if nothing can be written
    }

    fn keep(&mut self, record: &RunRecord) {
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(record);
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Puts what there is so far into the store.
#[derive(Debug)]
pub struct Keeper {
    store: Store,
    title: String,
    id: Option<i64>,
}

impl Keeper {
    /// Keeps runs of this title here.
    pub fn new(store: Store, title: String) -> Self {
        Self { store, title, id: None }
    }

    /// Puts the run in before it begins, so that a store that cannot be written is found out
    /// before any time is spent.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, started_at: &str) -> Result<(), StoreError> {
        let record = "{}";
        self.id = Some(self.store.add(&self.kept(started_at, Ending::Unfinished, record))?);
        Ok(())
    }

    fn kept<'a>(&'a self, started_at: &'a str, ending: Ending, record: &'a str) -> Kept<'a> {
        let ending = match ending {
            Ending::Unfinished => "unfinished",
            Ending::Interrupted => "interrupted",
            Ending::Complete => "complete",
        };
        let schema = contend_record::lab::SCHEMA;
        Kept { started_at, schema, title: &self.title, ending, record }
    }

    fn keep(&mut self, record: &RunRecord) {
        let Some(id) = self.id else { return };
        let Ok(json) = serde_json::to_string(record) else { return };
        let kept = self.kept(&record.started_at, record.ending, &json);
        // If this does not work, the last time will tell.
        let _ = self.store.update_if_free(id, &kept);
    }

    fn finish(&mut self, record: &RunRecord) -> Result<i64, StoreError> {
        let id = self.id.unwrap_or(0);
        let json = serde_json::to_string(record).unwrap_or_default();
        let kept = self.kept(&record.started_at, record.ending, &json);
        self.store.update(id, &kept).map(|()| id)
    }
}
