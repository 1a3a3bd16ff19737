//! The state of a case while it is measured. Each visit to the case takes one sample.

use std::time::Duration;

use contend_record::Warning;
use contend_record::lab::{Step, Stopped};
use contend_record::warning::WarningId;

use super::world::Session;
use crate::engine::experiment::Facts;
use crate::engine::plan::PlannedCase;
use crate::engine::sampling::Samples;

/// A case of a plan, with everything measured about it so far.
pub(super) struct CaseState<'a> {
    pub(super) planned: &'a PlannedCase,
    pub(super) session: Option<Box<dyn Session>>,
    pub(super) facts: Facts,
    pub(super) samples: Samples,
    /// Whether the first process started fast enough for every sample to have a process of its own;
    /// `None` before that start.
    pub(super) opens_fast: Option<bool>,
    /// Time at which the first sample was complete, on the clock of `World::now`, or `None` until
    /// then.
    pub(super) first_sample_at: Option<Duration>,
    /// Number of processes started for the case.
    pub(super) processes: u64,
    /// Number of visits, failed ones included.
    pub(super) visits: u32,
    /// Total duration of all visits.
    pub(super) visited: Duration,
    /// Duration of the first visit; zero before it.
    pub(super) first_visit: Duration,
    /// Declared duration of the first visit, including the shared work that it did; zero before the
    /// visit.
    pub(super) declared: Duration,
    /// Time charged to the case's share of the budget: the duration of its visits. Those of an
    /// adaptive case up to its first sample are not charged, because they include the search for
    /// the number of iterations.
    pub(super) used: Duration,
    pub(super) steps: Vec<Step>,
    pub(super) stopped: Option<Stopped>,
    pub(super) skipped: Option<String>,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> CaseState<'a> {
    /// Creates the state of a case before its first visit.
    pub(super) fn new(planned: &'a PlannedCase, seed: u64) -> Self {
        Self {
            planned,
            session: None,
            facts: Facts::new(),
            samples: Samples::new(planned.sampling, planned.max_samples, seed),
            opens_fast: None,
            first_sample_at: None,
            processes: 0,
            visits: 0,
            visited: Duration::ZERO,
            first_visit: Duration::ZERO,
            declared: Duration::ZERO,
            used: Duration::ZERO,
            steps: Vec::new(),
            stopped: None,
            skipped: planned.skipped.clone(),
            warnings: Vec::new(),
        }
    }

    /// Returns whether the case needs no more visits.
    pub(super) fn is_done(&self) -> bool {
        self.stopped.is_some() || self.skipped.is_some()
    }

    /// Returns whether the case counts when the budget is divided. All cases do, even if they are
    /// done, except for skipped ones without samples.
    pub(super) fn shares_budget(&self) -> bool {
        self.skipped.is_none() || self.samples.count() > 0
    }

    /// Ends the case and its process for the given reason; an earlier reason stays. A case that is
    /// interrupted before its first sample counts as skipped.
    pub(super) fn stop(&mut self, why: Stopped) {
        if why == Stopped::Interrupt && self.samples.count() == 0 && self.skipped.is_none() {
            self.skipped = Some("the run was interrupted before its first sample".to_owned());
        }
        self.stopped.get_or_insert(why);
        self.session = None; // ends the process and its children
    }

    /// Ends the case because its process failed. `message` becomes a warning or, if the case has no
    /// samples, the reason for which it counts as skipped.
    pub(super) fn fail(&mut self, message: String) {
        if self.samples.count() == 0 {
            self.skipped = Some(message);
        } else {
            self.warnings.push(Warning::new(WarningId::SubjectFailed, message));
        }
        self.stop(Stopped::Failure);
    }
}
