//! Suites: the experiments of one source document, run and shown together.

use crate::experiment::Experiment;
use crate::experiments::matching;

/// One suite.
#[derive(Debug)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The experiments, by name or pattern.
    pub patterns: &'static [&'static str],
}

/// All suites.
pub const SUITES: &[Suite] = &[Suite {
    name: "process-thread",
    summary: "what a process and a thread cost: sharing, memory, creation, limit, start-up",
    patterns: &["sharing/*", "units/*"],
}];

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
