//! What is to be measured, decided before anything is.

use std::time::Duration;

use contend_record::parameters::Parameters;

use crate::experiment::{Experiment, Scope, Size};

/// One case to measure.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// What it is done with.
    pub parameters: Parameters,
}

/// What is to be measured, and with what effort.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The suite's name, if it is one.
    pub suite: Option<&'static str>,
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

/// A condition on a parameter: only cases that have it with this value, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    /// The parameter's name.
    pub name: String,
    /// Its value as it is shown.
    pub value: String,
}

impl Only {
    fn admits(&self, parameters: &Parameters) -> bool {
        parameters.get(&self.name).is_none_or(|value| value.to_string() == self.value)
    }
}

impl Plan {
    /// The plan for these experiments; the budget is by their number unless one is given.
    pub fn new(
        suite: Option<&'static str>,
        experiments: &[&'static Experiment],
        scope: Scope,
        only: &[Only],
        budget: Option<Duration>,
        seed: u64,
    ) -> Self {
        let cases: Vec<_> = experiments
            .iter()
            .flat_map(|&experiment| {
                let of = move |parameters| PlannedCase { experiment, parameters };
                (experiment.cases)(&scope).into_iter().map(of)
            })
            .filter(|case| only.iter().all(|only| only.admits(&case.parameters)))
            .collect();
        let budget = budget.unwrap_or_else(|| usual_budget(&cases, scope.size));
        let sample = Duration::from_millis(match scope.size {
            Size::Full => 20,
            Size::Quick => 5,
            Size::Smallest => 1,
        });
        Self { suite, cases, scope, budget, sample, seed }
    }
}

/// Enough for dozens of samples of each case, or as long as anyone likes to wait.
fn usual_budget(cases: &[PlannedCase], size: Size) -> Duration {
    let count = cases.len() as f64;
    let seconds = match size {
        Size::Full => (3.0 * count).min(45.0),
        Size::Quick => (0.5 * count).min(8.0),
        Size::Smallest => 0.1,
    };
    Duration::from_secs_f64(seconds)
}
