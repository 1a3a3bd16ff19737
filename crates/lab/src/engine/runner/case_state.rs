//! The state of a case while it is measured.

use std::time::Duration;

use contend_record::Warning;
use contend_record::lab::{Step, Stopped};
use contend_record::warning::WarningId;

use super::world::Session;
use crate::engine::experiment::Facts;
use crate::engine::plan::PlannedCase;
use crate::engine::sampling::Samples;

/// The state of a case during a run.
pub(super) struct CaseState<'a> {
    pub(super) planned: &'a PlannedCase,
    pub(super) session: Option<Box<dyn Session>>,
    pub(super) facts: Facts,
    pub(super) samples: Samples,
    /// Whether its process starts fast enough for every sample to have its own.
    pub(super) opens_fast: Option<bool>,
    /// Time at which it had its first sample.
    pub(super) first_sample_at: Option<Duration>,
    /// Number of processes that were started for it.
    pub(super) processes: u64,
    /// Number of visits, failed ones included.
    pub(super) visits: u32,
    /// Duration of all visits.
    pub(super) visited: Duration,
    /// Duration of the first visit.
    pub(super) first_visit: Duration,
    /// Declared duration of the first visit, with the shared work that it did.
    pub(super) declared: Duration,
    /// Time that counts against its share of the budget: all visits but the first one of an adaptive
    /// case, which warms it up.
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

    /// Returns whether it needs no more visits.
    pub(super) fn is_done(&self) -> bool {
        self.stopped.is_some() || self.skipped.is_some()
    }

    /// Returns whether it takes part in the sharing of the budget.
    pub(super) fn is_wanted(&self) -> bool {
        self.skipped.is_none() || self.samples.count() > 0
    }

    /// Ends it for this reason, and its process.
    pub(super) fn stop(&mut self, why: Stopped) {
        if why == Stopped::Interrupt && self.samples.count() == 0 && self.skipped.is_none() {
            self.skipped = Some("the run was interrupted before its first sample".to_owned());
        }
        self.stopped.get_or_insert(why);
        self.session = None; // frees its memory and ends its children
    }

    /// Ends it because its process failed.
    pub(super) fn fail(&mut self, message: String) {
        if self.samples.count() == 0 {
            self.skipped = Some(message);
        } else {
            self.warnings.push(Warning::new(WarningId::SubjectFailed, message));
        }
        self.stop(Stopped::Failure);
    }
}
