//! A case while it is measured.

use std::time::Duration;

use contend_record::Warning;
use contend_record::lab::{Step, Stopped};
use contend_record::warning::WarningId;

use super::world::Session;
use crate::engine::experiment::Facts;
use crate::engine::plan::PlannedCase;
use crate::engine::sampling::Samples;

/// One case on its way.
pub(super) struct CaseState<'a> {
    pub(super) planned: &'a PlannedCase,
    pub(super) session: Option<Box<dyn Session>>,
    pub(super) facts: Facts,
    pub(super) samples: Samples,
    /// Whether a process for it is made so soon that every sample can have its own.
    pub(super) opens_fast: Option<bool>,
    /// When its first sample was there.
    pub(super) first_sample_at: Option<Duration>,
    /// Processes that were made for it.
    pub(super) processes: u64,
    /// How often it was measured, and what that took in all and the first time, failures included.
    pub(super) visits: u32,
    pub(super) visited: Duration,
    pub(super) first_visit: Duration,
    /// Declared duration of the first visit, with the shared work that it did.
    pub(super) declared: Duration,
    /// Time that was spent on it after it was first opened and warmed up.
    pub(super) used: Duration,
    pub(super) steps: Vec<Step>,
    pub(super) stopped: Option<Stopped>,
    pub(super) skipped: Option<String>,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> CaseState<'a> {
    /// A case of which nothing has been measured.
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

    pub(super) fn is_done(&self) -> bool {
        self.stopped.is_some() || self.skipped.is_some()
    }

    /// Whether it was to be measured at all.
    pub(super) fn is_wanted(&self) -> bool {
        self.skipped.is_none() || self.samples.count() > 0
    }

    pub(super) fn stop(&mut self, why: Stopped) {
        if why == Stopped::Interrupt && self.samples.count() == 0 && self.skipped.is_none() {
            self.skipped = Some("the run was interrupted before its first sample".to_owned());
        }
        self.stopped.get_or_insert(why);
        self.session = None; // its memory and its children are given back
    }

    pub(super) fn fail(&mut self, message: String) {
        if self.samples.count() == 0 {
            self.skipped = Some(message);
        } else {
            self.warnings.push(Warning::new(WarningId::SubjectFailed, message));
        }
        self.stop(Stopped::Failure);
    }
}
