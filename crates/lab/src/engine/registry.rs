//! What the engine can run: experiments and suites, by name.
//!
//! The engine itself names no experiment. Whoever starts it passes a [`Registry`], so that tests
//! can pass one of their own.

use contend_record::lab::{RunRecord, View};

use super::experiment::Experiment;
use super::pattern::matches;
use super::suite::Suite;

/// The experiments and suites there are.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// Every experiment, in the order in which they are shown.
    pub experiments: &'static [&'static Experiment],
    /// Every suite.
    pub suites: &'static [Suite],
    /// The experiments by which the engine calibrates itself.
    pub calibration: Calibrators,
}

/// The experiments by which the engine calibrates itself. They take no parameters.
#[derive(Debug, Clone, Copy)]
pub struct Calibrators {
    /// Does nothing. Its facts `clock_ns`, `clock_resolution_ns` and `empty_loop_ns` say what the
    /// clock and the loop cost.
    pub empty: &'static Experiment,
    /// Bounces a cache line between two CPUs: its value tells how far apart they are.
    pub distance: &'static Experiment,
}

impl Registry {
    /// The experiment of this name.
    pub fn find(&self, name: &str) -> Option<&'static Experiment> {
        self.experiments.iter().copied().find(|experiment| experiment.name == name)
    }

    /// The suite of this name.
    pub fn suite(&self, name: &str) -> Option<&'static Suite> {
        self.suites.iter().find(|suite| suite.name == name)
    }

    /// The experiments that match any of the patterns, in which `*` stands for anything, or that
    /// are of a family of this name, in the order of the table.
    ///
    /// # Errors
    /// The first pattern that nothing matches.
    pub fn matching<'a>(&self, patterns: &[&'a str]) -> Result<Vec<&'static Experiment>, &'a str> {
        let is_hit = |pattern: &str, experiment: &Experiment| {
            matches(pattern, experiment.name) || pattern == experiment.family()
        };
        for &pattern in patterns {
            if !self.experiments.iter().any(|experiment| is_hit(pattern, experiment)) {
                return Err(pattern);
            }
        }
        let hits = self.experiments.iter().copied();
        Ok(hits.filter(|e| patterns.iter().any(|pattern| is_hit(pattern, e))).collect())
    }

    /// Fills in what records of older versions do not say: how a report presents their cases, and
    /// which chapter shows their suite.
    pub fn complete(&self, record: &mut RunRecord) {
        for case in record.cases.iter_mut().filter(|case| case.view == View::Table) {
            case.view = self.find(&case.experiment).map_or(View::Table, |found| found.view);
        }
        let suite = record.suite.as_deref().and_then(|name| self.suite(name));
        record.chapter = record.chapter.or(suite.map(|suite| suite.chapter));
    }

    /// The experiments of a suite, in the order of the table.
    pub fn of_suite(&self, suite: &Suite) -> Vec<&'static Experiment> {
        self.matching(suite.patterns).unwrap_or_default()
    }
}
