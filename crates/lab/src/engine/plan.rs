//! The plan of a run: the cases that it measures, selected before it starts.
//!
//! A plan lists the cases of some experiments, with the expected cost of each ([`cost`]). A plan
//! with a time limit skips cases until the first samples of the other cases are expected to fit
//! (`trim.rs`). Skipped cases stay in the plan, and thus in the record and the report, with the
//! reason.

use std::time::Duration;

use contend_record::parameters::Parameters;

use crate::engine::cost::{self, Cost};
use crate::engine::experiment::{Experiment, Sampling, Scope, Size};
use crate::engine::pattern::matches;
use crate::engine::suite::Suite;
use crate::engine::trim::{Candidate, trim};

/// A case to measure, or to skip for a given reason.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    /// Experiment to which the case belongs.
    pub experiment: &'static Experiment,
    /// Parameters of the case.
    pub parameters: Parameters,
    /// Rule for the number of samples.
    pub sampling: Sampling,
    /// Upper bound on the number of samples, even if the interval is still wide.
    pub max_samples: usize,
    /// Expected times of the setup, of a sample, and of shared work.
    pub cost: Cost,
    /// Whether a conclusion of the suite depends on the case, so that it takes enough samples for
    /// an interval before other cases take a second one.
    pub is_decisive: bool,
    /// Why the case is not measured, or `None` if it is: its parameters cannot be combined, it
    /// cannot be measured here, or the run has no time for it.
    pub skipped: Option<String>,
}

impl PlannedCase {
    /// Creates a case for a run of the given size; in a run of the smallest size, it takes at most
    /// one sample. It is skipped if its parameters conflict or it cannot be measured here.
    pub fn new(experiment: &'static Experiment, parameters: Parameters, size: Size) -> Self {
        let max_samples = if size == Size::Smallest { 1 } else { MAX_SAMPLES };
        let sampling = match experiment.sampling {
            Sampling::Fixed(count) => Sampling::Fixed(count.min(max_samples)),
            Sampling::Adaptive => Sampling::Adaptive,
        };
        let cost = experiment.demands.cost.of(&parameters);
        let skipped = (experiment.demands.conflict)(&parameters)
            .or_else(|| (experiment.unavailable)(&parameters));
        let is_decisive = false;
        Self { experiment, parameters, sampling, max_samples, cost, is_decisive, skipped }
    }
}

/// Maximum number of samples of a case, except in runs of the smallest size. More samples hardly
/// narrow an interval.
const MAX_SAMPLES: usize = 300;

/// The cases of a run, with its budget and time limit.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Suite, or `None` if experiments were chosen by name.
    pub suite: Option<&'static Suite>,
    /// Cases in the order of the report, skipped ones included.
    pub cases: Vec<PlannedCase>,
    /// Number of cases left out to stay within the time limit.
    pub left_out: usize,
    /// Size and options of the cases.
    pub scope: Scope,
    /// Wall time that samples may use. Cases with a fixed number of samples take the first one
    /// even if the budget is used.
    pub budget: Duration,
    /// Wall time within which the run has to end, even if some cases then have no sample; `None`
    /// without a limit.
    pub time_limit: Option<Duration>,
    /// Target duration of an adaptive sample, from which its number of iterations follows.
    pub sample_time: Duration,
    /// Seed of the random numbers that order the cases and determine the intervals.
    pub seed: u64,
}

/// A condition on a parameter. It admits cases with the given value or, if the value is empty,
/// cases without the parameter. Several conditions on one parameter admit all their values.
/// Experiments without the parameter are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Pattern for the names of the experiments to which the condition applies.
    pub experiments: String,
    /// Name of the parameter.
    pub name: String,
    /// Admitted value as a string; empty for cases without the parameter.
    pub value: String,
}

impl Condition {
    /// Creates a condition from a row of a suite's table: a pattern for experiments, a parameter,
    /// and a value.
    pub fn of_suite(&(experiments, name, value): &(&str, &str, &str)) -> Self {
        Self { experiments: experiments.to_owned(), name: name.to_owned(), value: value.to_owned() }
    }

    /// Returns the conditions that apply to an experiment.
    fn of_experiment<'a>(all: &'a [Self], experiment: &Experiment) -> Vec<&'a Self> {
        all.iter().filter(|only| matches(&only.experiments, experiment.name)).collect()
    }
}

/// Returns whether the conditions `only` admit the case with these `parameters`. `only` has just
/// the conditions that apply to the case's experiment, and `all` has the parameters of all cases of
/// that experiment.
fn admits(only: &[&Condition], all: &[Parameters], parameters: &Parameters) -> bool {
    only.iter().all(|condition| {
        let name = condition.name.as_str();
        let known = all.iter().any(|other| other.get(name).is_some());
        let value = parameters.get(name).map(ToString::to_string).unwrap_or_default();
        !known || only.iter().any(|other| other.name == name && other.value == value)
    })
}

/// Upper bound on the default budget of a full run of experiments chosen by name, in seconds.
const DEFAULT_BUDGET_SECONDS: f64 = 45.0;

/// Upper bound on the default budget of a quick run of experiments chosen by name, in seconds.
const QUICK_BUDGET_SECONDS: f64 = 8.0;

/// Upper bound on the default budget of a quick run of a suite, in seconds. It leaves 40 % of
/// [`QUICK_TIME_LIMIT`] for machines that are slower or busy.
const QUICK_SUITE_BUDGET_SECONDS: f64 = 36.0;

/// Time limit of a quick run of a suite, unless a budget is given.
pub const QUICK_TIME_LIMIT: Duration = Duration::from_mins(1);

/// Share of a time limit that a plan fills. The rest is a margin for machines slower than the one
/// on which the costs were measured.
const PLANNED_SHARE: f64 = 0.75;

/// Expected time for calibration and for writing the report.
const OVERHEAD: Duration = Duration::from_millis(1500);

impl Plan {
    /// Creates a plan of the cases that the conditions `only` admit. If `budget` is `None`, the
    /// budget depends on the size of the run and the number of its cases, and a quick run of a
    /// suite has the time limit [`QUICK_TIME_LIMIT`].
    pub fn new(
        suite: Option<&'static Suite>,
        experiments: &[&'static Experiment],
        scope: Scope,
        only: &[Condition],
        budget: Option<Duration>,
        seed: u64,
    ) -> Self {
        let decisive = suite.map_or(&[][..], |suite| suite.decisive).iter();
        let decisive: Vec<_> = decisive.map(Condition::of_suite).collect();
        let cases: Vec<_> = experiments
            .iter()
            .flat_map(|&experiment| {
                let all = (experiment.cases)(&scope);
                let [only, decisive] =
                    [only, &decisive].map(|all| Condition::of_experiment(all, experiment));
                let admitted = all.iter().filter(|case| admits(&only, &all, case));
                let planned = |parameters: &Parameters| PlannedCase {
                    is_decisive: !decisive.is_empty() && admits(&decisive, &all, parameters),
                    ..PlannedCase::new(experiment, parameters.clone(), scope.size)
                };
                admitted.map(planned).collect::<Vec<_>>()
            })
            .collect();
        let is_limited = suite.is_some() && scope.size == Size::Quick && budget.is_none();
        let max_budget = match (suite, scope.size) {
            (Some(suite), Size::Full) => suite.budget_seconds,
            (None, Size::Full) => DEFAULT_BUDGET_SECONDS,
            (Some(_), _) => QUICK_SUITE_BUDGET_SECONDS,
            (None, _) => QUICK_BUDGET_SECONDS,
        };
        let budget = budget.unwrap_or_else(|| default_budget(&cases, scope.size, max_budget));
        let sample_time = Duration::from_millis(match scope.size {
            Size::Full => 20,
            Size::Quick => 5,
            Size::Smallest => 1,
        });
        let plan =
            Self { suite, cases, left_out: 0, scope, budget, time_limit: None, sample_time, seed };
        if is_limited { plan.within(QUICK_TIME_LIMIT) } else { plan }
    }

    /// Creates the plan of a run of `suite` without options: with the suite's own conditions and
    /// parameter values, the default budget, and a seed of 0.
    pub fn of_suite(
        suite: &'static Suite,
        experiments: &[&'static Experiment],
        mut scope: Scope,
    ) -> Self {
        let only: Vec<_> = suite.only.iter().map(Condition::of_suite).collect();
        suite.add_choices(experiments, &mut scope.choices, |_, _| true);
        Self::new(Some(suite), experiments, scope, &only, None, 0)
    }

    /// Sets a time limit, lowers the budget to fit into it, and skips cases until the first samples
    /// of the other cases are expected to fit.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        let measured: Vec<usize> =
            (0..self.cases.len()).filter(|&index| self.cases[index].skipped.is_none()).collect();
        let candidates: Vec<_> = measured
            .iter()
            .map(|&index| {
                let PlannedCase { experiment, parameters, cost, .. } = &self.cases[index];
                Candidate { experiment: experiment.name, parameters, cost: *cost }
            })
            .collect();
        let fill = limit.mul_f64(PLANNED_SHARE).saturating_sub(OVERHEAD);
        let reason = format!(
            "left out to end within {} s; a run without --quick measures it",
            limit.as_secs()
        );
        let left_out = trim(&candidates, fill);
        for &index in &left_out {
            self.cases[measured[index]].skipped = Some(reason.clone());
        }
        self.left_out += left_out.len();
        self.budget = self.budget.min(fill);
        self.time_limit = Some(limit);
        self
    }

    /// Returns the cases to measure: those that are not skipped.
    pub fn measured(&self) -> impl Iterator<Item = &PlannedCase> + Clone {
        self.cases.iter().filter(|case| case.skipped.is_none())
    }

    /// Returns whether the run is expected to take longer than its budget, because cases with a
    /// fixed number of samples take the first one even then.
    pub fn exceeds_budget(&self) -> bool {
        /// Difference that does not count, because estimates are rough.
        const TOLERANCE: Duration = Duration::from_secs(2);
        self.expected() > self.budget + OVERHEAD + TOLERANCE
    }

    /// Returns the expected wall time of the run, on the assumption that every case that is not
    /// skipped takes its first sample, and that the other samples use at most the rest of the
    /// budget.
    pub fn expected(&self) -> Duration {
        let costs = self.measured().map(|case| &case.cost);
        let first = cost::first_samples(costs.clone());
        let all: Option<Duration> = self.measured().map(|case| case.cost.all(case.sampling)).sum();
        let wanted = all.map_or(self.budget, |all| self.budget.min(all + cost::shared(costs)));
        let measuring = if self.measured().next().is_none() { Duration::ZERO } else { wanted };
        OVERHEAD + first.max(measuring)
    }
}

/// Returns the default budget. It is 3 s per case for a full run and 0.5 s per case for a quick run,
/// at most `max` seconds, and 0.1 s for a run of the smallest size.
fn default_budget(cases: &[PlannedCase], size: Size, max: f64) -> Duration {
    let count = cases.len() as f64;
    let seconds = match size {
        Size::Full => (3.0 * count).min(max),
        Size::Quick => (0.5 * count).min(max),
        Size::Smallest => 0.1,
    };
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::experiment::{
        Demands, Fit, SubjectError, always_available, never_alternates_cpus,
    };
    use crate::engine::setting::{Choices, Setting};
    use contend_record::lab::{Chapter, Unit, View};
    use contend_record::parameters::Value;

    const SECOND: Duration = Duration::from_secs(1);

    /// Cases of one, two and four seconds; those of kind `none` cannot be measured.
    const SLOW: Experiment = Experiment {
        name: "mock/slow",
        summary: "x",
        about: "x",
        view: View::Table,
        unit: Unit::Nanoseconds,
        sampling: Sampling::Fixed(3),
        fit: Fit::None,
        settings: &[],
        cases: |_| {
            let kinds = ["a", "b", "none"].into_iter();
            let sizes =
                |kind| [1_u64, 2, 4].map(|n| Parameters::new().with("kind", kind).with("n", n));
            kinds.flat_map(sizes).collect()
        },
        unavailable: |case| (case.text("kind") == Some("none")).then(|| "it is absent".to_owned()),
        alternates_cpus: never_alternates_cpus,
        demands: Demands::NONE.with_cost_ms(0, 0).with_ns_per(&[("n", 1_000_000_000)]),
        subject: |_| Err(SubjectError::Unexpected("it is never made".to_owned())),
    };
    const ADAPTIVE: Experiment = Experiment {
        name: "mock/adaptive",
        sampling: Sampling::Adaptive,
        cases: |_| vec![Parameters::new()],
        unavailable: always_available,
        demands: Demands::NONE.with_cost_ms(0, 100),
        ..SLOW
    };
    const SUITE: &Suite = &Suite {
        name: "mock",
        summary: "x",
        chapter: Chapter::Pipeline,
        patterns: &[],
        only: &[],
        set: &[],
        decisive: &[("mock/slow", "kind", "a"), ("mock/slow", "n", "1")],
        budget_seconds: 30.0,
    };

    fn plan(size: Size, budget: Option<u32>) -> Plan {
        let budget = budget.map(|seconds| seconds * SECOND);
        Plan::new(Some(SUITE), &[&SLOW, &ADAPTIVE], Scope::of(size), &[], budget, 0)
    }

    #[test]
    fn quick_runs_of_suites_are_limited_unless_a_budget_is_given() {
        assert_eq!(plan(Size::Quick, None).time_limit, Some(QUICK_TIME_LIMIT));
        assert_eq!(plan(Size::Quick, Some(9)).time_limit, None);
        assert_eq!(plan(Size::Full, None).time_limit, None);
        let by_name = Plan::new(None, &[&SLOW], Scope::of(Size::Quick), &[], None, 0);
        assert_eq!(by_name.time_limit, None);
    }

    #[test]
    fn cases_are_left_out_until_the_plan_fills_three_quarters_of_the_limit() {
        let limited = plan(Size::Quick, None).within(8 * SECOND);
        // 8 s allow 4.5 s for samples: two sizes of one kind and one of the other.
        let names: Vec<_> = limited.measured().map(|case| case.parameters.to_string()).collect();
        assert_eq!(names, ["kind=a n=1", "kind=a n=2", "kind=b n=1", ""]);
        assert_eq!(limited.cases.len(), 10, "what is left out stays in the plan");
        let reasons = |text: &str| {
            let skipped = limited.cases.iter().filter_map(|case| case.skipped.as_ref());
            skipped.filter(|reason| reason.contains(text)).count()
        };
        assert_eq!((reasons("left out to end within 8 s"), reasons("it is absent")), (3, 3));
        let whole = plan(Size::Quick, None);
        assert_eq!(whole.measured().count(), 7, "the limit of a minute is not reached");
    }

    #[test]
    fn the_expected_time_is_that_of_first_samples_or_of_the_budget() {
        let without_overhead = |time: Duration| time.saturating_sub(OVERHEAD);
        let first = 14 * SECOND + SECOND / 10;
        assert_eq!(without_overhead(plan(Size::Full, Some(5)).expected()), first);
        assert_eq!(without_overhead(plan(Size::Full, Some(20)).expected()), 20 * SECOND);
        let fixed = |budget: u32| {
            let budget = Some(budget * SECOND);
            Plan::new(None, &[&SLOW], Scope::of(Size::Full), &[], budget, 0).expected()
        };
        assert_eq!(without_overhead(fixed(100)), 3 * 14 * SECOND, "three samples of each case");
        assert!(plan(Size::Full, Some(5)).exceeds_budget());
        assert!(!plan(Size::Full, Some(20)).exceeds_budget());
        let limited = plan(Size::Quick, None).within(8 * SECOND);
        assert!(limited.expected() <= 8 * SECOND, "{:?}", limited.expected());
    }

    #[test]
    fn a_suite_names_the_cases_on_which_conclusions_depend() {
        let plan = plan(Size::Full, None);
        let decisive = plan.cases.iter().filter(|case| case.is_decisive);
        let names: Vec<_> = decisive.map(|case| case.parameters.to_string()).collect();
        assert_eq!(names, ["kind=a n=1"], "cases of experiments without conditions do not count");
    }

    #[test]
    fn a_suite_sets_parameters_that_the_user_does_not() {
        const N: Setting = Setting::number("n", "", 1, 9);
        const SET: Experiment = Experiment { settings: &[&N], ..SLOW };
        const SETTING: Suite = Suite { set: &[("n", "2"), ("n", "3"), ("n", "x")], ..*SUITE };
        let chosen = |users: &[u64], applies: bool| {
            let mut choices = Choices::default();
            for &n in users {
                choices.add("n", Value::Number(n));
            }
            SETTING.add_choices(&[&SET], &mut choices, |_, _| applies);
            choices.numbers("n", &[])
        };
        assert_eq!(chosen(&[], true), [2, 3]);
        assert_eq!(chosen(&[], false), [0_u64; 0]);
        assert_eq!(chosen(&[7], true), [7]);
    }

    #[test]
    fn conditions_choose_cases_by_value_or_absence() {
        let small = Parameters::new().with("kind", "fork").with("n", 1);
        let large = small.clone().with("parent_mib", 64);
        let other = Parameters::new().with("kind", "thread").with("n", 10);
        let all = [small.clone(), large.clone(), other.clone()];
        let chosen = |conditions: &[(&str, &str)]| -> Vec<Parameters> {
            let only: Vec<_> = conditions
                .iter()
                .map(|&(name, value)| Condition {
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
        assert_eq!(chosen(&[("absent", "1")]), all);
    }
}
