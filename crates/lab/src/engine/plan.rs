//! What is to be measured, decided before anything is.

use std::time::Duration;

use contend_record::parameters::Parameters;

use crate::engine::experiment::{Experiment, Sampling, Scope, Size};
use crate::engine::pattern::matches;
use crate::engine::suite::Suite;

/// One case to measure.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// What it is done with.
    pub parameters: Parameters,
    /// How many samples it takes.
    pub sampling: Sampling,
    /// At most so many of them, whatever their interval.
    pub most: usize,
}

impl PlannedCase {
    /// A case of this size; the smallest is only to show that it works, which it does once.
    pub fn new(experiment: &'static Experiment, parameters: Parameters, size: Size) -> Self {
        let most = if size == Size::Smallest { 1 } else { MOST_SAMPLES };
        let sampling = match experiment.sampling {
            Sampling::Fixed(count) => Sampling::Fixed(count.min(most)),
            Sampling::Adaptive => Sampling::Adaptive,
        };
        Self { experiment, parameters, sampling, most }
    }
}

/// With so many samples an interval hardly gets narrower any more.
const MOST_SAMPLES: usize = 300;

/// What is to be measured, and with what effort.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The suite, if it is one.
    pub suite: Option<&'static Suite>,
    /// The cases, in the order in which they are shown.
    pub cases: Vec<PlannedCase>,
    /// How large they are.
    pub scope: Scope,
    /// The time for measuring.
    pub budget: Duration,
    /// About how long one sample is to take, where that can be chosen.
    pub sample: Duration,
    /// The seed of the order and of the intervals.
    pub seed: u64,
}

/// A condition on a parameter: only cases that have it with this value, or, with an empty value,
/// those that do not have it. Several on the same parameter allow all their values. Experiments
/// that know no such parameter are not touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    /// The experiments that it is for, as a pattern.
    pub experiments: String,
    /// The parameter's name.
    pub name: String,
    /// Its value as it is shown.
    pub value: String,
}

/// Whether the conditions admit a case of an experiment whose cases are `all`.
fn admits(only: &[&Only], all: &[Parameters], parameters: &Parameters) -> bool {
    only.iter().all(|condition| {
        let name = condition.name.as_str();
        let known = all.iter().any(|other| other.get(name).is_some());
        let value = parameters.get(name).map(ToString::to_string).unwrap_or_default();
        !known || only.iter().any(|other| other.name == name && other.value == value)
    })
}

impl Plan {
    /// The plan for these experiments; the budget is by their number unless one is given.
    pub fn new(
        suite: Option<&'static Suite>,
        experiments: &[&'static Experiment],
        scope: Scope,
        only: &[Only],
        budget: Option<Duration>,
        seed: u64,
    ) -> Self {
        let cases: Vec<_> = experiments
            .iter()
            .flat_map(|&experiment| {
                let all = (experiment.cases)(&scope);
                let is_meant = |only: &&Only| matches(&only.experiments, experiment.name);
                let only: Vec<_> = only.iter().filter(is_meant).collect();
                let admitted = all.iter().filter(|case| admits(&only, &all, case));
                let of = |parameters: &Parameters| {
                    PlannedCase::new(experiment, parameters.clone(), scope.size)
                };
                admitted.map(of).collect::<Vec<_>>()
            })
            .collect();
        let budget = budget.unwrap_or_else(|| {
            let most = suite.map_or(USUAL_BUDGET_SECONDS, |suite| suite.budget_seconds);
            usual_budget(&cases, scope.size, most)
        });
        let sample = Duration::from_millis(match scope.size {
            Size::Full => 20,
            Size::Quick => 5,
            Size::Smallest => 1,
        });
        Self { suite, cases, scope, budget, sample, seed }
    }
}

/// The most time that is used for measuring unless more is asked for, in seconds.
pub const USUAL_BUDGET_SECONDS: f64 = 45.0;

/// Enough for dozens of samples of each case, or as long as anyone likes to wait.
fn usual_budget(cases: &[PlannedCase], size: Size, most: f64) -> Duration {
    let count = cases.len() as f64;
    let seconds = match size {
        Size::Full => (3.0 * count).min(most),
        Size::Quick => (0.5 * count).min(8.0),
        Size::Smallest => 0.1,
    };
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_choose_cases_by_value_or_absence() {
        let small = Parameters::new().with("kind", "fork").with("n", 1);
        let large = small.clone().with("parent_mib", 64);
        let other = Parameters::new().with("kind", "thread").with("n", 10);
        let all = [small.clone(), large.clone(), other.clone()];
        let chosen = |conditions: &[(&str, &str)]| -> Vec<Parameters> {
            let only: Vec<_> = conditions
                .iter()
                .map(|&(name, value)| Only {
                    experiments: "*".to_owned(),
                    name: name.to_owned(),
                    value: value.to_owned(),
                })
                .collect();
            let only: Vec<_> = only.iter().collect();
            all.iter().filter(|case| admits(&only, &all, case)).cloned().collect()
        };
        assert_eq!(chosen(&[("n", "1")]), [small.clone(), large.clone()]);
        assert_eq!(chosen(&[("n", "1"), ("parent_mib", "")]), vec![small.clone()]);
        assert_eq!(chosen(&[("parent_mib", "64")]), vec![large.clone()]);
        assert_eq!(chosen(&[("n", "1"), ("n", "10")]), all);
        assert_eq!(chosen(&[("nobody_knows", "1")]), all);
    }
}
