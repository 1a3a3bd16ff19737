//! The experiments and suites that the engine can run.
//!
//! The engine names no experiment: its caller passes a [`Registry`], and tests pass their own.

use contend_record::lab::{RunRecord, View};

use super::experiment::Experiment;
use super::pattern::matches;
use super::suite::Suite;

/// A table of experiments and suites.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// All experiments, in the order of lists and reports.
    pub experiments: &'static [&'static Experiment],
    /// All suites.
    pub suites: &'static [Suite],
    /// Experiments with which the engine calibrates itself.
    pub calibration: Calibrators,
}

/// The experiments with which the engine calibrates itself. They take no parameters, and have to be
/// among [`Registry::experiments`] too.
#[derive(Debug, Clone, Copy)]
pub struct Calibrators {
    /// Experiment that times an empty operation. Its facts `clock_ns`, `clock_resolution_ns` and
    /// `empty_loop_ns` are the cost and the resolution of the clock, and the cost of an iteration
    /// of the loop, in nanoseconds.
    pub empty: &'static Experiment,
    /// Experiment that bounces a cache line between two CPUs. The value is the distance between
    /// them, as a round-trip time in nanoseconds.
    pub distance: &'static Experiment,
}

impl Registry {
    /// Returns the experiment with the given name, or `None` if there is none.
    pub fn find(&self, name: &str) -> Option<&'static Experiment> {
        self.experiments.iter().copied().find(|experiment| experiment.name == name)
    }

    /// Returns the suite with the given name, or `None` if there is none.
    pub fn suite(&self, name: &str) -> Option<&'static Suite> {
        self.suites.iter().find(|suite| suite.name == name)
    }

    /// Returns the experiments whose name matches one of the patterns, or whose family equals one
    /// of them, in the order of the table. `*` matches any string.
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

    /// Fills in fields that records of older versions lack: the views of cases, and the chapter of
    /// the suite. Leaves them as they are if this registry lacks the experiment or the suite.
    pub fn complete(&self, record: &mut RunRecord) {
        for case in record.cases.iter_mut().filter(|case| case.view == View::Table) {
            case.view = self.find(&case.experiment).map_or(View::Table, |found| found.view);
        }
        let suite = record.suite.as_deref().and_then(|name| self.suite(name));
        record.chapter = record.chapter.or(suite.map(|suite| suite.chapter));
    }

    /// Returns the experiments of a suite, in the order of the table; none if one of its patterns
    /// matches nothing.
    pub fn of_suite(&self, suite: &Suite) -> Vec<&'static Experiment> {
        self.matching(suite.patterns).unwrap_or_default()
    }
}
