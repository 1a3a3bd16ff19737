//! Takes samples of all cases in rounds, until each case has enough samples or the time is used up.
//!
//! A run is a sequence of rounds. A round visits cases that need samples. The first round visits
//! cheap cases first, so that expensive ones do not use the budget before every case has a sample.
//! The order is then random, so that slow changes of the machine affect all cases alike. A visit
//! takes one sample:
//!
//! ```text
//!            ┌── no session ──► open a process, find the number of iterations
//!  visit ────┤                                      │
//!            └── session ───────────────────────────┴──► sample ──► window ──► next case
//!                                                          │           └ every 600 ms: mark
//!                                                          │             disturbed samples
//!                                                          └ adaptive: end the process
//! ```
//!
//! A case leaves the rounds for one of these reasons:
//!
//! | event | [`Stopped`] | the case then has |
//! |---|---|---|
//! | its interval is narrow, at two checks in a row | `Interval` | its samples |
//! | it has its fixed or maximum number of samples | `Count` | its samples |
//! | no time is left for a sample | `Budget` | its samples, or a reason for having none |
//! | a signal asks the run to stop | `Interrupt` | the same |
//! | its process fails | `Failure` | the same, and the message |
//! | the plan skips it | – | the plan's reason |
//!
//! Rules:
//!
//! - Cases on which a conclusion of the suite depends take enough samples for an interval before
//!   other cases take a second one.
//! - Adaptive cases share evenly what cases with a fixed number of samples leave of the budget. A
//!   case that has used such a share waits for the others.
//! - A case with a fixed number of samples takes the first one even if the budget is used. The time
//!   limit of a plan has no such exception.
//! - Every sample of an adaptive case has a process of its own, unless the process takes longer to
//!   start than a sample should take. Samples of a single process would vary too little: each
//!   process adds its own bias.
//! - The engine reaches processes and clocks only through [`World`], so that tests run in simulated
//!   time.

mod case_state;
mod estimate;
mod fits;
mod summary;
#[cfg(test)]
mod tests;
mod world;

use std::time::Duration;

use contend_record::Warning;
use contend_record::lab::{Calibration, Case, Ending, RunRecord, SCHEMA, Stopped, Unit};
use contend_record::stats::{MIN_CI95_SAMPLES, median};
use contend_record::warning::WarningId;

use crate::engine::experiment::{Sampling, Size};
use crate::engine::noise::{self, Others, Reading};
use crate::engine::plan::Plan;
use crate::engine::protocol::Measurement;
use crate::engine::sampling::iterations_for;
use case_state::CaseState;
use fits::{fits, scaling};
use summary::{case, run_warnings};
pub use world::{
    MeasuringConditions, Observer, Progress, RunContext, Session, SessionError, World,
};

/// Minimum time that the samples of an adaptive case span before a narrow interval ends the case,
/// in multiples of the target duration of a sample. The speed of a machine may change every few
/// seconds.
const MIN_SPAN_FACTOR: u32 = 150;

/// If the first iteration of a case takes longer than this multiple of a sample's target duration,
/// it is a sample by itself, without warm-up.
const LONG_ITERATION_FACTOR: u32 = 10;

/// Minimum time between two saves of an unfinished record.
const SAVE_INTERVAL: Duration = Duration::from_secs(3);

/// Time between the deadline for samples and the time limit of the run: enough to kill processes
/// and to write the report.
const CLOSING_TIME: Duration = Duration::from_secs(4);

/// Measures the cases of the plan and returns their record, which is incomplete if the run is
/// interrupted.
pub fn run(
    plan: &Plan,
    context: RunContext,
    world: &mut dyn World,
    observer: &mut dyn Observer,
) -> RunRecord {
    let mut run = Run::new(plan, context, world, observer);
    run.calibrate();
    run.measuring_since = run.world.now();
    while run.round() {}
    run.close_window(true);
    let ending = match run.world.interrupted() {
        true => Ending::Interrupted,
        false if run.states.iter().all(|state| state.samples.count() == 0) => Ending::Empty,
        false => Ending::Complete,
    };
    run.record(ending)
}

/// A period whose samples are judged together, since the kernel's CPU accounting is too coarse for
/// a single sample.
struct Window {
    /// Start of the period, on the clock of [`World::now`].
    since: Duration,
    before: Reading,
    /// Samples of the period: index of the case, and index of the sample in that case.
    samples: Vec<(usize, usize)>,
}

struct Run<'a> {
    plan: &'a Plan,
    context: RunContext,
    world: &'a mut dyn World,
    observer: &'a mut dyn Observer,
    states: Vec<CaseState<'a>>,
    random: fastrand::Rng,
    started: Duration,
    /// Time from which the budget is counted. A failed visit moves it forward by the duration of
    /// the visit, so that such a visit does not use the budget.
    measuring_since: Duration,
    /// Time by which the last sample has to end, on the clock of [`World::now`], or `None` without
    /// a time limit.
    deadline: Option<Duration>,
    first_reading: Reading,
    window: Window,
    calibration: Option<Calibration>,
    sentinel: Option<Sentinel>,
    /// Round-trip times that the sentinel has measured, in nanoseconds.
    distances: Vec<f64>,
    /// Time of the last save of the record, or `None` before the first save.
    last_saved: Option<Duration>,
}

/// A process that bounces a cache line between two CPUs, before and after samples in which two CPUs
/// alternate. A changed round-trip time shows that the hypervisor has moved a virtual CPU.
struct Sentinel {
    session: Box<dyn Session>,
    iterations: u64,
}

/// Target duration of a sample of the sentinel.
const SENTINEL_SAMPLE_TIME: Duration = Duration::from_millis(10);

impl<'a> Run<'a> {
    fn new(
        plan: &'a Plan,
        context: RunContext,
        world: &'a mut dyn World,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let seed = |index| plan.seed.wrapping_add(index as u64);
        let states = plan.cases.iter().enumerate();
        let states = states.map(|(index, planned)| CaseState::new(planned, seed(index))).collect();
        let started = world.now();
        let reading = world.reading();
        Self {
            plan,
            context,
            states,
            random: fastrand::Rng::with_seed(plan.seed),
            started,
            measuring_since: started,
            deadline: plan.time_limit.map(|limit| started + limit.saturating_sub(CLOSING_TIME)),
            first_reading: reading,
            window: Window { since: started, before: reading, samples: Vec::new() },
            calibration: None,
            sentinel: None,
            distances: Vec::new(),
            last_saved: None,
            world,
            observer,
        }
    }

    fn calibrate(&mut self) {
        match self.world.calibrate() {
            Ok(calibration) => self.calibration = Some(calibration),
            Err(SessionError::Interrupted | SessionError::OutOfTime) => {}
            Err(SessionError::Failed(message)) => {
                let message = format!("cannot calibrate the clock: {message}");
                self.context.warnings.push(Warning::new(WarningId::Uncalibrated, message));
            }
        }
        let needed = self.states.iter().any(|state| {
            !state.is_done()
                && (state.planned.experiment.alternates_cpus)(&state.planned.parameters)
        });
        if needed && self.world.cpus() > 1 {
            self.sentinel = self.make_sentinel().ok();
        }
    }

    fn make_sentinel(&mut self) -> Result<Sentinel, SessionError> {
        let mut session = self.world.open_sentinel()?;
        let mut iterations = 1000;
        for _ in 0..2 {
            let trial = session.sample(iterations, &mut |_| {})?;
            iterations = iterations_for(SENTINEL_SAMPLE_TIME, &trial, iterations);
        }
        Ok(Sentinel { session, iterations })
    }

    /// Visits the cases of a round ([`Self::order`]), and ends those that are complete or for which
    /// no time is left, or all cases if a signal asks the run to stop. Returns whether another
    /// round is needed.
    fn round(&mut self) -> bool {
        for index in self.order() {
            if self.world.interrupted() {
                break;
            }
            if self.lacks_time(index) {
                self.end_for_lack_of_time(index);
            } else {
                self.visit(index);
            }
            self.close_window(false);
            self.save_regularly();
        }
        if self.world.interrupted() {
            self.states.iter_mut().for_each(|state| state.stop(Stopped::Interrupt));
        }
        self.finish_complete_cases();
        self.states.iter().any(|state| !state.is_done())
    }

    /// Returns the indexes of the cases of the next round, in visiting order. The first round
    /// consists of all cases, in ascending order of their declared cost. Without a time limit,
    /// adaptive cases precede those with a fixed number of samples, which take the first one even
    /// if the budget is used.
    ///
    /// Later rounds consist, in random order, of the unfinished cases on which a conclusion depends
    /// and which have too few samples for an interval; or else of those that have not used their
    /// share of the budget; or else of all unfinished cases.
    fn order(&mut self) -> Vec<usize> {
        let is_fixed = |state: &CaseState<'_>| state.planned.sampling != Sampling::Adaptive;
        let unfinished = |index: &usize| !self.states[*index].is_done();
        let mut order: Vec<_> = (0..self.states.len()).filter(unfinished).collect();
        let is_first = |index: &usize| self.states[*index].visits == 0;
        let mut first: Vec<_> = order.iter().copied().filter(is_first).collect();
        if !first.is_empty() {
            first.sort_by_key(|&index| {
                let ignores_budget = is_fixed(&self.states[index]) && self.deadline.is_none();
                (ignores_budget, estimate::declared(&self.states, index))
            });
            return first;
        }
        let is_decisive = |index: &usize| {
            let state = &self.states[*index];
            state.planned.is_decisive && state.samples.count() < MIN_CI95_SAMPLES
        };
        if order.iter().any(is_decisive) {
            order.retain(is_decisive);
            self.random.shuffle(&mut order);
            return order;
        }
        let fixed = self.states.iter().filter(|state| is_fixed(state));
        let spent: Duration = fixed.map(|state| state.used).sum();
        let adaptive = self.states.iter().filter(|t| !is_fixed(t) && t.shares_budget()).count();
        let share = self.plan.budget.saturating_sub(spent).div_f64(adaptive.max(1) as f64);
        if order.iter().any(|&index| self.states[index].used < share) {
            order.retain(|&index| self.states[index].used < share);
        }
        self.random.shuffle(&mut order);
        order
    }

    /// Returns whether too little time is left for another sample of the case. The first sample may
    /// exceed the budget: an adaptive case takes it unless the budget is used up, and a case with a
    /// fixed number of samples takes it even then, as does the first case of the run. The deadline
    /// always applies.
    fn lacks_time(&self, index: usize) -> bool {
        let state = &self.states[index];
        let count = u32::try_from(state.samples.count()).unwrap_or(u32::MAX);
        let expected = match count {
            0 => estimate::first_visit(&self.states, index),
            count => state.used / count,
        };
        if self.until_deadline().is_some_and(|left| left < expected) {
            return true;
        }
        let left = self.budget_left();
        match count {
            0 if matches!(state.planned.sampling, Sampling::Fixed(_)) => false,
            0 => left.is_zero() && self.states.iter().any(|state| state.visits > 0),
            // After the first sample, an adaptive case has not used any of its share.
            _ => left <= expected,
        }
    }

    /// Returns the time until the deadline, zero if it has passed, or `None` without a time limit.
    fn until_deadline(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.world.now()))
    }

    /// Returns the rest of the budget, or the time until the deadline if that is less.
    fn budget_left(&self) -> Duration {
        let spent = self.world.now().saturating_sub(self.measuring_since);
        let left = self.plan.budget.saturating_sub(spent);
        self.until_deadline().map_or(left, |time| left.min(time))
    }

    fn elapsed(&self) -> Duration {
        self.world.now().saturating_sub(self.started)
    }

    /// Ends a case for which no time is left. Without samples, the case counts as skipped.
    fn end_for_lack_of_time(&mut self, index: usize) {
        let over_budget = format!(
            "the budget of {} s was used up before a first sample",
            self.plan.budget.as_secs_f64()
        );
        let reason = self.plan.time_limit.map_or(over_budget, |limit| {
            format!(
                "no time was left within {} s on this machine; a run without --quick has no limit",
                limit.as_secs()
            )
        });
        let state = &mut self.states[index];
        if state.samples.count() == 0 {
            state.skipped = Some(reason);
        }
        state.stop(Stopped::Budget);
    }

    /// Takes one sample of a case, and ends the case if that fails. Charges the time to the case,
    /// except for visits of an adaptive case up to its first sample.
    fn visit(&mut self, index: usize) {
        self.report_progress(index);
        let began = self.world.now();
        let is_first = self.states[index].samples.count() == 0;
        let declared = estimate::declared(&self.states, index);
        let result = self.sample(index);
        let took = self.world.now().saturating_sub(began);
        let state = &mut self.states[index];
        if !is_first || state.planned.sampling != Sampling::Adaptive {
            state.used += took;
        }
        if state.visits == 0 {
            (state.first_visit, state.declared) = (took, declared);
        }
        state.visits += 1;
        state.visited += took;
        match result {
            Ok(()) => {}
            Err(SessionError::Interrupted) => self.states[index].stop(Stopped::Interrupt),
            Err(SessionError::OutOfTime) => self.end_for_lack_of_time(index),
            Err(SessionError::Failed(message)) => {
                self.states[index].fail(message);
                // A hanging case does not use the budget of the others.
                self.measuring_since += self.world.now().saturating_sub(began);
            }
        }
    }

    /// Reports the progress of the run to the observer, before a sample of the case at `index`.
    fn report_progress(&mut self, index: usize) {
        let remaining = estimate::remaining(&self.states, self.budget_left());
        let remaining = self.until_deadline().map_or(remaining, |time| remaining.min(time));
        let case = self.states[index].planned;
        self.observer.measuring(&Progress { elapsed: self.elapsed(), remaining, case });
    }

    fn sample(&mut self, index: usize) -> Result<(), SessionError> {
        let planned = self.states[index].planned;
        let alternates = (planned.experiment.alternates_cpus)(&planned.parameters);
        let before = if alternates { self.sentinel_distance()? } else { None };
        let long = self.warm_up(index)?;
        let iterations = self.states[index].samples.iterations;
        let mut taken = match long {
            Some(taken) => taken,
            None => self.take(index, iterations)?,
        };
        let after = if alternates { self.sentinel_distance()? } else { None };
        let distance = before.zip(after);
        if let Some((before, after)) = distance {
            taken.sample = taken.sample.with("cache_line", Unit::Nanoseconds, before.max(after));
        }
        let state = &mut self.states[index];
        let sample_index = state.samples.push(taken.sample);
        state.first_sample_at.get_or_insert(self.world.now());
        let median_distance = median(&self.distances).unwrap_or(0.0);
        let moved = |(before, after)| {
            noise::has_moved(before, after)
                || noise::has_moved(median_distance, after)
                || noise::has_moved(median_distance, before)
        };
        if distance.is_some_and(moved) {
            state.samples.mark_disturbed(sample_index);
        }
        // The memory layout of a process, and the CPU on which it started, bias all its samples, so
        // the next sample gets a new process.
        if state.opens_fast == Some(true) && state.planned.sampling == Sampling::Adaptive {
            state.session = None;
        }
        self.window.samples.push((index, sample_index));
        Ok(())
    }

    /// Opens the case unless it has a session, and warms up the new process of an adaptive case.
    /// The first process finds the number of iterations for a sample; later processes run a quarter
    /// of that number. Returns the very first iteration as the sample if it takes long
    /// (`LONG_ITERATION_FACTOR`), and otherwise `None`.
    fn warm_up(&mut self, index: usize) -> Result<Option<Measurement>, SessionError> {
        if self.states[index].session.is_some() {
            return Ok(None);
        }
        let planned = self.states[index].planned;
        let began = self.world.now();
        let skip_slow_metrics = self.plan.scope.size == Size::Quick;
        let conditions = MeasuringConditions { deadline: self.deadline, skip_slow_metrics };
        let session = self.world.open(planned.experiment, &planned.parameters, conditions)?;
        let opening = self.world.now().saturating_sub(began);
        let state = &mut self.states[index];
        state.opens_fast.get_or_insert(opening <= self.plan.sample_time);
        state.processes += 1;
        state.facts = session.facts();
        state.session = Some(session);
        if planned.sampling != Sampling::Adaptive {
            return Ok(None);
        }
        if state.samples.count() > 0 {
            let fewer = (state.samples.iterations / 4).max(1);
            self.take(index, fewer)?;
            return Ok(None);
        }
        let mut iterations = 1;
        for _ in 0..10 {
            let trial = self.take(index, iterations)?;
            if iterations == 1 && trial.elapsed > LONG_ITERATION_FACTOR * self.plan.sample_time {
                return Ok(Some(trial));
            }
            let next = iterations_for(self.plan.sample_time, &trial, iterations);
            let settled = next <= 2 * iterations;
            iterations = next;
            if settled {
                break;
            }
        }
        self.states[index].samples.iterations = iterations;
        Ok(None)
    }

    fn take(&mut self, index: usize, iterations: u64) -> Result<Measurement, SessionError> {
        let state = &mut self.states[index];
        let planned = state.planned;
        let failed = || SessionError::Failed("it has no process".to_owned());
        let session = state.session.as_mut().ok_or_else(failed)?;
        let (observer, steps) = (&mut self.observer, &mut state.steps);
        session.sample(iterations, &mut |step| {
            observer.step(planned, &step);
            steps.push(step);
        })
    }

    fn sentinel_distance(&mut self) -> Result<Option<f64>, SessionError> {
        let Some(sentinel) = &mut self.sentinel else { return Ok(None) };
        match sentinel.session.sample(sentinel.iterations, &mut |_| {}) {
            Ok(taken) => {
                self.distances.push(taken.sample.value);
                Ok(Some(taken.sample.value))
            }
            Err(error @ (SessionError::Interrupted | SessionError::OutOfTime)) => Err(error),
            Err(SessionError::Failed(message)) => {
                self.sentinel = None;
                let message =
                    format!("cannot detect whether the hypervisor moves virtual CPUs: {message}");
                self.context.warnings.push(Warning::new(WarningId::Uncalibrated, message));
                Ok(None)
            }
        }
    }

    /// Judges the samples of the current window and starts a new window, if the current one is long
    /// enough or if `last` is true.
    fn close_window(&mut self, last: bool) {
        let now = self.world.now();
        let time = now.saturating_sub(self.window.since);
        if time < noise::MIN_WINDOW && !last {
            return;
        }
        let after = self.world.reading();
        let others = Others::between(self.window.before, after, time, self.world.cpus());
        if others.is_disturbance {
            for &(state, sample_index) in &self.window.samples {
                self.states[state].samples.mark_disturbed(sample_index);
            }
        }
        self.window = Window { since: now, before: after, samples: Vec::new() };
    }

    /// Ends the cases that have enough samples. An adaptive case continues at least until the
    /// window of its latest sample has been judged. Even if its interval is narrow, it continues
    /// until its samples span the minimum time (`MIN_SPAN_FACTOR`).
    fn finish_complete_cases(&mut self) {
        for index in 0..self.states.len() {
            let waiting = self.window.samples.iter().any(|&(state, _)| state == index);
            let fixed = self.states[index].planned.sampling != Sampling::Adaptive;
            if self.states[index].is_done() || (waiting && !fixed) {
                continue;
            }
            let since = self.states[index]
                .first_sample_at
                .map(|since| self.world.now().saturating_sub(since));
            let short =
                !fixed && since.is_none_or(|since| since < MIN_SPAN_FACTOR * self.plan.sample_time);
            match self.states[index].samples.check_complete() {
                // Too early: the speed of the machine may change every few seconds.
                Some(Stopped::Interval) if short => {}
                Some(why) => self.states[index].stop(why),
                None => {}
            }
        }
    }

    /// Saves the record once there is a sample, and then if [`SAVE_INTERVAL`] has passed since the
    /// last save, so that a killed run loses little.
    fn save_regularly(&mut self) {
        let since = |last_saved| self.world.now().saturating_sub(last_saved);
        let due = match self.last_saved {
            Some(last_saved) => since(last_saved) >= SAVE_INTERVAL,
            None => self.states.iter().any(|state| state.samples.count() > 0),
        };
        if due {
            let record = self.record(Ending::Unfinished);
            self.observer.save(&record);
            self.last_saved = Some(self.world.now());
        }
    }

    fn record(&mut self, ending: Ending) -> RunRecord {
        let wall = self.elapsed();
        let cases: Vec<Case> = self.states.iter().map(case).collect();
        let mut warnings = self.context.warnings.clone();
        let reading = self.world.reading();
        warnings.extend(run_warnings(self.first_reading, reading, wall, self.world.cpus()));
        RunRecord {
            schema: SCHEMA.to_owned(),
            contend: self.context.writer.clone(),
            suite: self.plan.suite.map(|suite| suite.name.to_owned()),
            chapter: self.plan.suite.map(|suite| suite.chapter),
            started_at: self.context.started_at.clone(),
            wall_seconds: wall.as_secs_f64(),
            seed: self.plan.seed,
            quick: self.plan.scope.size != Size::Full,
            budget_seconds: self.plan.budget.as_secs_f64(),
            ending,
            host: self.context.host.clone(),
            calibration: self.calibration.clone(),
            fits: fits(&self.plan.cases, &cases),
            scaling: scaling(
                &self.plan.cases,
                &cases,
                self.context.host.usable_cpus(),
                self.plan.seed,
            ),
            cases,
            warnings,
        }
    }
}
