//! The experiments and suites that the engine can run.
//!
//! The engine names no experiment: its caller passes a [`Registry`], and tests pass their own.

use contend_record::lab::{RunRecord, View};

use super::experiment::Experiment;
use super::pattern::matches;
use super::suite::Suite;

/// Experiments and suites by name.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// All experiments, in the order of lists and reports.
    pub experiments: &'static [&'static Experiment],
    /// All suites.
    pub suites: &'static [Suite],
    /// Experiments with which the engine calibrates itself.
    pub calibration: Calibrators,
}

/// The experiments with which the engine calibrates itself. They take no parameters.
#[derive(Debug, Clone, Copy)]
pub struct Calibrators {
    /// An empty operation. Its facts `clock_ns`, `clock_resolution_ns` and `empty_loop_ns` are the
    /// cost of the clock and of the loop.
    pub empty: &'static Experiment,
    /// A cache line that bounces between two CPUs. Its value is their distance.
    pub distance: &'static Experiment,
}

impl Registry {
    /// Returns the experiment with this name.
    pub fn find(&self, name: &str) -> Option<&'static Experiment> {
        self.experiments.iter().copied().find(|experiment| experiment.name == name)
    }

    /// Returns the suite with this name.
    pub fn suite(&self, name: &str) -> Option<&'static Suite> {
        self.suites.iter().find(|suite| suite.name == name)
    }

    /// Returns the experiments whose name matches one of the patterns, or whose family is one of
    /// them, in the order of the table. `*` matches any text.
    ///
    /// # Errors
    /// Returns the first pattern that matches nothing.
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

    /// Fills in fields that records of older versions lack: the view of their cases, and the chapter
    /// of their suite.
    pub fn complete(&self, record: &mut RunRecord) {
        for case in record.cases.iter_mut().filter(|case| case.view == View::Table) {
            case.view = self.find(&case.experiment).map_or(View::Table, |found| found.view);
        }
        let suite = record.suite.as_deref().and_then(|name| self.suite(name));
        record.chapter = record.chapter.or(suite.map(|suite| suite.chapter));
    }

    /// Returns the experiments of a suite, in the order of the table.
    pub fn of_suite(&self, suite: &Suite) -> Vec<&'static Experiment> {
        self.matching(suite.patterns).unwrap_or_default()
    }
}
