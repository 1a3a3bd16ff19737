//! Tests of runs in a simulated world, with known measurements and exact time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use contend_record::lab::{Step, View};
use contend_record::{Host, lab};

use super::*;
use crate::engine::cost::{Cost, SharedCost};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Scope, Size, Subject, SubjectError, always_available,
    never_alternates_cpus,
};
use crate::engine::plan::PlannedCase;
use contend_record::parameters::Parameters;

const MS: Duration = Duration::from_millis(1);

/// A simulated world, in which time passes only during samples.
struct Mock {
    state: Rc<RefCell<State>>,
    script: fn(&Parameters, usize) -> Result<f64, SessionError>,
}

#[derive(Default)]
struct State {
    now: Duration,
    taken: Vec<String>,
    of_case: BTreeMap<String, usize>,
    interrupt_after: Option<usize>,
    /// Range of sample indexes during which another program keeps a CPU busy.
    neighbour: std::ops::Range<usize>,
    busy: Duration,
    open: usize,
    most_open: usize,
    opened: usize,
    /// Generator of the random numbers that scatter the samples, or `None` for exact samples.
    noise: Option<fastrand::Rng>,
}

impl State {
    fn is_interrupted(&self) -> bool {
        self.interrupt_after.is_some_and(|count| self.taken.len() >= count)
    }
}

impl Mock {
    fn new(script: fn(&Parameters, usize) -> Result<f64, SessionError>) -> Self {
        Self { state: Rc::default(), script }
    }

    fn run(mut self, plan: &Plan) -> (RunRecord, Rc<RefCell<State>>) {
        let state = Rc::clone(&self.state);
        (self.run_before(plan, &mut Ignore), state)
    }

    fn run_before(&mut self, plan: &Plan, observer: &mut dyn Observer) -> RunRecord {
        let context = RunContext {
            writer: None,
            host: Host::default(),
            started_at: "2026-01-02T03:04:05Z".to_owned(),
            warnings: Vec::new(),
        };
        run(plan, context, self, observer)
    }
}

struct Ignore;

impl Observer for Ignore {
    fn measuring(&mut self, _: &Progress<'_>) {}
    fn step(&mut self, _: &PlannedCase, _: &Step) {}
    fn save(&mut self, _: &RunRecord) {}
}

impl World for Mock {
    fn now(&self) -> Duration {
        self.state.borrow().now
    }

    fn interrupted(&self) -> bool {
        self.state.borrow().is_interrupted()
    }

    fn reading(&mut self) -> Reading {
        Reading { busy: self.state.borrow().busy, ..Reading::default() }
    }

    fn cpus(&self) -> usize {
        1
    }

    fn calibrate(&mut self) -> Result<Calibration, SessionError> {
        Err(SessionError::Failed("there is no clock".to_owned()))
    }

    fn open_sentinel(&mut self) -> Result<Box<dyn Session>, SessionError> {
        Err(SessionError::Failed("there is one CPU".to_owned()))
    }

    fn open(
        &mut self,
        experiment: &'static Experiment,
        parameters: &Parameters,
        conditions: MeasuringConditions,
    ) -> Result<Box<dyn Session>, SessionError> {
        let mut state = self.state.borrow_mut();
        state.open += 1;
        state.opened += 1;
        state.most_open = state.most_open.max(state.open);
        Ok(Box::new(MockSession {
            state: Rc::clone(&self.state),
            script: self.script,
            name: format!("{} {parameters}", experiment.name),
            parameters: parameters.clone(),
            conditions,
        }))
    }
}

struct MockSession {
    state: Rc<RefCell<State>>,
    script: fn(&Parameters, usize) -> Result<f64, SessionError>,
    name: String,
    parameters: Parameters,
    conditions: MeasuringConditions,
}

impl Session for MockSession {
    fn facts(&self) -> Facts {
        Facts::from([("made_by".to_owned(), "mock".into())])
    }

    fn sample(
        &mut self,
        iterations: u64,
        _: &mut dyn FnMut(Step),
    ) -> Result<Measurement, SessionError> {
        if self.state.borrow().is_interrupted() {
            return Err(SessionError::Interrupted);
        }
        let taken = self.state.borrow().of_case.get(&self.name).copied().unwrap_or(0);
        let value = (self.script)(&self.parameters, taken)?;
        let mut state = self.state.borrow_mut();
        let scatter = state.noise.as_mut().map_or(0.0, |random| {
            // Approximately normal, with a standard deviation of 1.
            (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
        });
        let value = value * (1.0 + 0.05 * scatter);
        let elapsed = Duration::from_secs_f64(value * 1e-9 * iterations as f64);
        if let Some(deadline) = self.conditions.deadline
            && state.now + elapsed > deadline
        {
            state.now = deadline;
            return Err(SessionError::OutOfTime);
        }
        state.now += elapsed;
        if state.neighbour.contains(&state.taken.len()) {
            state.busy += elapsed;
        }
        state.taken.push(self.name.clone());
        *state.of_case.entry(self.name.clone()).or_default() += 1;
        Ok(Measurement { sample: Sample::of(value), elapsed, cpu: Duration::ZERO })
    }
}

impl Drop for MockSession {
    fn drop(&mut self) {
        self.state.borrow_mut().open -= 1;
    }
}

fn no_subject(_: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    Err(SubjectError::Unexpected("never created".to_owned()))
}

pub(super) const ADAPTIVE: Experiment = Experiment {
    name: "mock/adaptive",
    summary: "x",
    about: "x",
    view: View::Creation,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::Line("n"),
    settings: &[],
    cases: |_| [1_u64, 2, 3].map(|n| Parameters::new().with("kind", "a").with("n", n)).to_vec(),
    unavailable: always_available,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE,
    subject: no_subject,
};

const FIXED: Experiment =
    Experiment { name: "mock/fixed", sampling: Sampling::Fixed(2), ..ADAPTIVE };

/// Cases that take far longer than most budgets in these tests, and longer than declared.
const LONG_CASES: Experiment = Experiment {
    name: "mock/long",
    sampling: Sampling::Fixed(3),
    demands: Demands::NONE.with_cost_ms(0, 8000),
    cases: |_| {
        [1_u64, 2, 3, 4].map(|n| Parameters::new().with("kind", "long").with("n", n)).to_vec()
    },
    ..ADAPTIVE
};

const ABSENT: Experiment = Experiment {
    name: "mock/absent",
    unavailable: |_| Some("it is not installed".to_owned()),
    ..ADAPTIVE
};

fn plan(experiments: &[&'static Experiment], budget: Duration) -> Plan {
    Plan::new(None, experiments, Scope::of(Size::Full), &[], Some(budget), 42)
}

/// Returns the time of an iteration in nanoseconds, which is always `n` milliseconds.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a script")]
fn steady(parameters: &Parameters, _: usize) -> Result<f64, SessionError> {
    Ok(1e6 * parameters.number("n").unwrap_or(0) as f64)
}

#[test]
fn measurements_match_the_simulated_world() {
    let (record, _) = Mock::new(steady).run(&plan(&[&ADAPTIVE], 100_000 * MS));
    assert_eq!(record.ending, Ending::Complete);
    for (case, n) in record.cases.iter().zip([1e6, 2e6, 3e6]) {
        assert_eq!((case.experiment.as_str(), case.view), ("mock/adaptive", View::Creation));
        assert_eq!((case.median, case.ci95), (Some(n), Some([n, n])));
        assert_eq!((case.min, case.max), (Some(n), Some(n)));
        assert_eq!(case.stopped, Some(Stopped::Interval));
        assert!(case.samples.len() >= 6 && case.skipped.is_none() && case.outliers.is_empty());
        assert_eq!(case.facts["made_by"].to_string(), "mock");
    }
    let line = &record.fits.first().expect("a line through n").line;
    assert!((line.slope - 1e6).abs() < 1.0 && line.intercept.abs() < 1.0, "{line:?}");
}

/// Checks that at least 90 % of the intervals contain the true value, and that at least 95 %
/// overlap the interval of a second run, if samples scatter with a standard deviation of 5 %.
#[test]
fn intervals_contain_the_truth_and_overlap() {
    let once = |seed: u64| {
        let mock = Mock::new(steady);
        mock.state.borrow_mut().noise = Some(fastrand::Rng::with_seed(seed));
        mock.run(&plan(&[&ADAPTIVE], 2000 * MS)).0
    };
    let (mut contained, mut overlapped, mut all) = (0, 0, 0);
    for pair in 0..40 {
        let (first, second) = (once(2 * pair), once(2 * pair + 1));
        for (case, other) in first.cases.iter().zip(&second.cases) {
            let truth = 1e6 * case.parameters.number("n").expect("a number") as f64;
            let (a, b) = (case.ci95.expect("samples"), other.ci95.expect("samples"));
            all += 1;
            contained += i32::from(a[0] <= truth && truth <= a[1]);
            overlapped += i32::from(a[0] <= b[1] && b[0] <= a[1]);
        }
    }
    assert_eq!(all, 120);
    assert!(overlapped * 100 >= 95 * all, "{overlapped} of {all} overlapped");
    assert!(contained * 100 >= 90 * all, "{contained} of {all} contained the truth");
}

#[test]
fn every_sample_has_its_own_process() {
    let (record, state) = Mock::new(steady).run(&plan(&[&ADAPTIVE], 100_000 * MS));
    let samples: usize = record.cases.iter().map(|case| case.samples.len()).sum();
    assert_eq!(state.borrow().opened, samples);
    assert_eq!((state.borrow().most_open, state.borrow().open), (1, 0));
}

#[test]
fn iterations_reach_the_target_length_of_samples() {
    let (record, _) = Mock::new(steady).run(&plan(&[&ADAPTIVE], 100_000 * MS));
    let iterations: Vec<_> = record.cases.iter().map(|case| case.iterations).collect();
    assert_eq!(iterations, [20, 10, 7], "20 ms of 1, 2 and 3 ms");
}

#[test]
fn cases_alternate_in_an_order_that_the_seed_determines() {
    let wide = |parameters: &Parameters, taken: usize| {
        Ok(1e6 * (parameters.number("n").unwrap_or(0) + taken as u64 % 7) as f64 + 1e6)
    };
    let order = || {
        let (_, state) = Mock::new(wide).run(&plan(&[&ADAPTIVE], 2000 * MS));
        state.take().taken
    };
    let first = order();
    assert_eq!(first, order(), "the same seed, the same order");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &first {
        *counts.entry(name).or_default() += 1;
    }
    assert_eq!(counts.len(), 3);
    // Cases progress evenly: each gets its last sample in the second half of the run.
    for name in counts.keys() {
        let last = first.iter().rposition(|taken| taken == name).expect("it was measured");
        assert!(last > first.len() / 2, "{name} was over after {last} of {}", first.len());
    }
}

#[test]
fn the_budget_ends_a_run_whose_intervals_stay_wide() {
    let wide = |_: &Parameters, taken: usize| Ok(1e6 * (1 + taken % 10) as f64);
    let (record, state) = Mock::new(wide).run(&plan(&[&ADAPTIVE], 700 * MS));
    assert!(record.cases.iter().all(|case| case.stopped == Some(Stopped::Budget)));
    let now = state.borrow().now;
    assert!(now >= 500 * MS && now < 1200 * MS, "{now:?}");
    assert_eq!(state.borrow().open, 0, "every process has ended");
}

#[test]
fn the_first_of_a_fixed_number_of_samples_ignores_the_budget() {
    let (record, _) = Mock::new(steady).run(&plan(&[&FIXED, &ADAPTIVE], Duration::ZERO));
    let counts: Vec<_> = record.cases.iter().map(|case| case.samples.len()).collect();
    assert_eq!(counts, [1, 1, 1, 1, 0, 0], "the first case of the run has a sample, too");
    let reason = record.cases[4].skipped.as_deref().expect("a reason");
    assert!(reason.contains("budget of 0 s was used up before a first sample"), "{reason}");
    let (record, _) = Mock::new(steady).run(&plan(&[&FIXED], 1000 * MS));
    assert!(record.cases.iter().all(|case| case.samples.len() == 2 && case.ci95.is_none()));
}

/// Cases that declare their cost: a large parent is expensive.
const BY_COST: Experiment = Experiment {
    name: "mock/by-cost",
    cases: |_| [4000_u64, 2, 500, 1].map(|n| Parameters::new().with("n", n)).to_vec(),
    demands: Demands::NONE.with_cost_ms(0, 0).with_ns_per(&[("n", 1_000_000)]),
    ..ADAPTIVE
};

#[test]
fn every_case_has_a_sample_before_expensive_ones_use_the_budget() {
    let (record, state) = Mock::new(steady).run(&plan(&[&BY_COST], 3000 * MS));
    let counts: Vec<_> = record.cases.iter().map(|case| case.samples.len()).collect();
    assert!(counts[0] == 1 && counts[1..].iter().all(|&count| count > 0), "{counts:?}");
    let mut first = state.take().taken;
    first.dedup();
    let names = [1, 2, 500, 4000].map(|n| format!("mock/by-cost n={n}"));
    assert_eq!(first[..4], names, "the cheapest is first");
}

/// More cases than a small budget can measure several times.
const MANY: Experiment = Experiment {
    name: "mock/many",
    sampling: Sampling::Fixed(9),
    cases: |_| (1_u64..=9).map(|n| Parameters::new().with("n", n)).collect(),
    ..ADAPTIVE
};

#[test]
fn cases_on_which_conclusions_depend_have_an_interval_first() {
    let wide = |_: &Parameters, taken: usize| Ok(5e7 * (1 + taken % 10) as f64);
    let mut plan = plan(&[&MANY], 3000 * MS);
    plan.cases[4].is_decisive = true;
    let (record, _) = Mock::new(wide).run(&plan);
    let counts: Vec<_> = record.cases.iter().map(|case| case.samples.len()).collect();
    assert!(record.cases[4].ci95.is_some(), "{counts:?}");
    let others = counts.iter().enumerate().filter(|&(index, _)| index != 4);
    assert!(others.clone().all(|(_, &count)| (1..MIN_CI95_SAMPLES).contains(&count)), "{counts:?}");
}

#[test]
fn unavailable_cases_are_skipped_with_their_reason() {
    let (record, state) = Mock::new(steady).run(&plan(&[&ABSENT], 1000 * MS));
    assert!(record.cases.iter().all(|c| c.skipped.as_deref() == Some("it is not installed")));
    assert!(record.cases.iter().all(|case| case.samples.is_empty() && case.median.is_none()));
    assert_eq!(state.borrow().most_open, 0);
}

#[test]
fn a_failure_affects_only_its_own_case() {
    let failing = |parameters: &Parameters, taken: usize| match parameters.number("n") {
        Some(1) => Err(SessionError::Failed("it broke".to_owned())),
        Some(2) if taken > 6 => Err(SessionError::Failed("it broke later".to_owned())),
        _ => Ok(1e6 * (1 + taken % 5) as f64),
    };
    let (record, _) = Mock::new(failing).run(&plan(&[&ADAPTIVE], 3000 * MS));
    let [never, early, whole] = record.cases.as_slice() else { panic!("three cases") };
    assert_eq!(never.skipped.as_deref(), Some("it broke"));
    assert_eq!(early.stopped, Some(Stopped::Failure));
    assert!(!early.samples.is_empty() && early.skipped.is_none());
    assert!(early.warnings.iter().any(|warning| warning.id == WarningId::SubjectFailed));
    assert!(whole.samples.len() > early.samples.len() && whole.warnings.is_empty());
}

#[test]
fn an_interrupted_run_keeps_its_samples() {
    let mock = Mock::new(steady);
    mock.state.borrow_mut().interrupt_after = Some(4);
    let (record, state) = mock.run(&plan(&[&ADAPTIVE], 3000 * MS));
    assert_eq!(record.ending, Ending::Interrupted);
    assert!(record.cases.iter().any(|case| !case.samples.is_empty()));
    assert!(record.cases.iter().any(|case| {
        case.skipped.as_deref() == Some("the run was interrupted before its first sample")
    }));
    assert_eq!(state.borrow().taken.len(), 4, "no sample after the interrupt");
    assert_eq!(state.borrow().open, 0);
}

#[test]
fn samples_under_other_load_are_retaken_or_marked() {
    let wobbling = |_: &Parameters, taken: usize| Ok(20e6 + 1e5 * (taken % 3) as f64);
    let mock = Mock::new(wobbling);
    mock.state.borrow_mut().neighbour = 10..40;
    let (record, _) = mock.run(&plan(&[&ADAPTIVE], 60_000 * MS));
    assert!(record.cases.iter().any(|case| case.retaken > 0));
    assert!(
        record.cases.iter().all(|case| case.disturbed.is_empty()),
        "enough time to retake them"
    );

    let mock = Mock::new(wobbling);
    mock.state.borrow_mut().neighbour = 0..10_000;
    let (record, _) = mock.run(&plan(&[&ADAPTIVE], 2000 * MS));
    for case in &record.cases {
        assert_eq!(case.disturbed.len(), case.samples.len(), "no sample was clean");
        assert!(case.warnings.iter().any(|warning| warning.id == WarningId::OtherLoad));
    }
    assert!(record.warnings.iter().any(|warning| warning.id == WarningId::OtherLoad));
}

/// An observer that records the number of samples at each save.
#[derive(Default)]
struct SaveCounter(Vec<usize>);

impl Observer for SaveCounter {
    fn measuring(&mut self, _: &Progress<'_>) {}
    fn step(&mut self, _: &PlannedCase, _: &Step) {}
    fn save(&mut self, record: &RunRecord) {
        assert_eq!(record.ending, Ending::Unfinished);
        self.0.push(record.cases.iter().map(|case| case.samples.len()).sum());
    }
}

#[test]
fn the_record_is_saved_from_the_first_sample_on() {
    let mut counter = SaveCounter::default();
    Mock::new(long_or_short).run_before(&plan(&[&ADAPTIVE, &LONG_CASES], 500 * MS), &mut counter);
    assert_eq!(counter.0.first(), Some(&1), "{:?}", counter.0);
    assert!(
        counter.0.is_sorted() && counter.0.len() >= 4,
        "every long case is saved: {:?}",
        counter.0
    );
    let mut counter = SaveCounter::default();
    Mock::new(steady).run_before(&plan(&[&ABSENT], 500 * MS), &mut counter);
    assert!(counter.0.is_empty(), "nothing to save");
}

/// An observer that records the progress of a run: elapsed time, remaining time, and completed
/// share.
#[derive(Default)]
struct Reported(Vec<(Duration, Duration, f64)>);

impl Observer for Reported {
    fn measuring(&mut self, progress: &Progress<'_>) {
        self.0.push((progress.elapsed, progress.remaining, progress.completed_share()));
    }
    fn step(&mut self, _: &PlannedCase, _: &Step) {}
    fn save(&mut self, _: &RunRecord) {}
}

/// Returns the time of an iteration in nanoseconds: about ten seconds in long cases, and 1 to 7 ms
/// in others.
fn long_or_short(parameters: &Parameters, taken: usize) -> Result<f64, SessionError> {
    let n = parameters.number("n").unwrap_or(0) as f64;
    match parameters.text("kind") {
        Some("long") => Ok(9.5e9 + 0.2e9 * n),
        _ => Ok(steady(parameters, taken)? * (1.0 + 0.3 * (taken % 5) as f64)),
    }
}

#[test]
fn progress_includes_cases_with_a_fixed_number_of_samples() {
    for budget in [500 * MS, 8000 * MS, 200_000 * MS] {
        let mut mock = Mock::new(long_or_short);
        let mut reported = Reported::default();
        let plan = plan(&[&ADAPTIVE, &LONG_CASES], budget);
        mock.run_before(&plan, &mut reported);
        let total = mock.now();
        assert!(total > 39_000 * MS, "every long case is measured once: {total:?}");
        for (elapsed, remaining, share) in &reported.0 {
            let true_share = elapsed.as_secs_f64() / total.as_secs_f64();
            if *share > 0.9 {
                assert!(true_share > 0.75, "{budget:?}: {share} at {elapsed:?} of {total:?}");
            }
            // Cases whose interval becomes narrow end before the budget is used.
            if budget < total {
                let truly = total.saturating_sub(*elapsed);
                let error = remaining.abs_diff(truly).as_secs_f64();
                let text = format!("{elapsed:?} {remaining:?} of {total:?}");
                assert!(error < 0.25 * total.as_secs_f64(), "{text}");
            }
        }
    }
}

#[test]
fn estimates_follow_what_cases_have_taken() {
    let mut mock = Mock::new(long_or_short);
    let mut reported = Reported::default();
    mock.run_before(&plan(&[&LONG_CASES], MS), &mut reported);
    let shares: Vec<_> = reported.0.iter().map(|&(_, _, share)| share).collect();
    assert_eq!(shares.len(), 4, "the budget suffices for one sample of each");
    assert!(shares.is_sorted() && shares[3] < 0.8, "{shares:?}");
    let remaining: Vec<_> = reported.0.iter().map(|&(_, time, _)| time.as_secs()).collect();
    assert_eq!(remaining, [32, 29, 19, 9], "declared as 8 s, and took 9.7, 9.9 and 10.1 s");
}

/// Returns a plan of the given experiments with a time limit and a budget of zero.
fn limited(experiments: &[&'static Experiment], limit: Duration) -> Plan {
    Plan { time_limit: Some(limit), ..plan(experiments, Duration::ZERO) }
}

#[test]
fn a_time_limit_ends_a_run_that_is_slower_than_planned() {
    let mut mock = Mock::new(long_or_short);
    let plan = Plan { budget: 500 * MS, ..limited(&[&LONG_CASES, &ADAPTIVE], 13_000 * MS) };
    let record = mock.run_before(&plan, &mut Ignore);
    assert_eq!(
        mock.now(),
        (13_000 * MS).saturating_sub(CLOSING_TIME),
        "the first long case was killed"
    );
    let counts: Vec<_> = record.cases.iter().map(|case| case.samples.len()).collect();
    assert_eq!(counts, [0, 0, 0, 0, 1, 1, 1], "cheap cases come first");
    for case in &record.cases[..4] {
        let reason = case.skipped.as_deref().expect("a reason");
        assert!(reason.starts_with("no time was left within 13 s"), "{reason}");
        assert_eq!(case.stopped, Some(Stopped::Budget));
    }
    assert_eq!((record.ending, mock.state.borrow().open), (Ending::Complete, 0));
}

#[test]
fn a_case_that_cannot_end_in_time_is_not_started() {
    let mut mock = Mock::new(long_or_short);
    // Two cases of ten seconds each leave six seconds before the deadline, too few for a third.
    mock.run_before(&limited(&[&LONG_CASES], 30_000 * MS), &mut Ignore);
    assert!(mock.now() < 20_000 * MS, "{:?}", mock.now());
    assert_eq!(mock.state.borrow().taken.len(), 2);
}

#[test]
fn cases_with_samples_stop_at_the_deadline_and_keep_them() {
    let mut mock = Mock::new(|parameters, taken| {
        steady(parameters, taken).map(|value| value * (1.0 + 0.3 * (taken % 5) as f64))
    });
    let plan = Plan { budget: 60_000 * MS, ..limited(&[&ADAPTIVE], 5000 * MS) };
    let record = mock.run_before(&plan, &mut Ignore);
    assert!(mock.now() <= (5000 * MS).saturating_sub(CLOSING_TIME), "{:?}", mock.now());
    for case in &record.cases {
        assert!(case.samples.len() > 3 && case.skipped.is_none(), "{case:?}");
        assert_eq!(case.stopped, Some(Stopped::Budget));
    }
}

#[test]
fn shared_work_is_expected_of_the_first_case_alone() {
    const SHARED: Option<SharedCost> =
        Some(SharedCost { name: "compiler", time: Duration::from_secs(20) });
    const COMPILED: Experiment = Experiment {
        demands: Demands::NONE.with_cost(|_| Cost { shared: SHARED, ..Cost::of_millis(0, 9000) }),
        ..LONG_CASES
    };
    let mut reported = Reported::default();
    let script = |parameters: &Parameters, _: usize| {
        Ok(if parameters.number("n") == Some(1) { 29e9 } else { 9e9 })
    };
    Mock::new(script).run_before(&plan(&[&COMPILED], MS), &mut reported);
    let remaining: Vec<_> = reported.0.iter().map(|&(_, time, _)| time.as_secs()).collect();
    assert_eq!(remaining, [20 + 4 * 9, 3 * 9, 2 * 9, 9]);
}

#[test]
fn a_run_without_a_sample_is_not_complete() {
    let (record, _) = Mock::new(steady).run(&plan(&[&ABSENT], 1000 * MS));
    assert_eq!((record.ending, record.is_empty()), (Ending::Empty, true));
    let failing = |_: &Parameters, _: usize| Err(SessionError::Failed("it broke".to_owned()));
    let (record, _) = Mock::new(failing).run(&plan(&[&ADAPTIVE], 1000 * MS));
    assert_eq!((record.ending, record.is_empty()), (Ending::Empty, true));
    let (record, _) = Mock::new(steady).run(&plan(&[&ABSENT, &FIXED], MS));
    assert_eq!((record.ending, record.is_empty()), (Ending::Complete, false));
    let mock = Mock::new(steady);
    mock.state.borrow_mut().interrupt_after = Some(0);
    let (record, _) = mock.run(&plan(&[&ADAPTIVE], 1000 * MS));
    assert_eq!((record.ending, record.is_empty()), (Ending::Interrupted, true));
}

#[test]
fn records_survive_serialization() {
    let (record, _) = Mock::new(steady).run(&plan(&[&ADAPTIVE, &ABSENT], 9000 * MS));
    let text = serde_json::to_string(&record).expect("JSON");
    let again: lab::RunRecord = serde_json::from_str(&text).expect("a record");
    assert_eq!(again, record);
}
