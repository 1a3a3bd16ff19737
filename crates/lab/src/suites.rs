//! Suites: the experiments of one source document, run and shown together.

use crate::experiment::Experiment;
use crate::experiments::matching;
use crate::plan::USUAL_BUDGET_SECONDS;

/// One suite.
#[derive(Debug)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The experiments, by name or pattern.
    pub patterns: &'static [&'static str],
    /// The most time for measuring it takes by itself, in seconds.
    pub budget_seconds: f64,
}

/// All suites.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "process-thread",
        summary: "what a process and a thread cost: sharing, memory, creation, limit, start-up",
        patterns: &["sharing/*", "units/create", "units/memory", "units/limit", "units/startup"],
        budget_seconds: USUAL_BUDGET_SECONDS,
    },
    Suite {
        name: "pipeline",
        summary: "what pipes cost and bring: a JSON parser in awk, seds, filters, sort, start-up",
        patterns: &["pipeline/*"],
        budget_seconds: 75.0,
    },
];

/// The suite of this name.
pub fn find(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|suite| suite.name == name)
}

impl Suite {
    /// Its experiments, in the order of the table.
    pub fn experiments(&self) -> Vec<&'static Experiment> {
        matching(self.patterns).unwrap_or_default()
    }
}
