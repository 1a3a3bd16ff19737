//! `handoff/mechanisms`: the time of a hand-off, by mechanism and placement.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::partners::{Partners, TurnWork};
use super::primitives::{self, SEMAPHORE, SleepTiming};
use super::settings::{MECHANISM, PERIOD, microseconds};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::setting::Setting;
use crate::engine::timing::{Overhead, calibrate_operations, operations_within};
use crate::support::histogram::{MIN_P999_SAMPLES, histogram, percentiles, record};
use crate::support::partners::settings::{PARTNERS, PLACEMENT, SLACK, pair, placement};
use crate::support::partners::{Pair, Placement, ResourceUsage};

/// The definition of `handoff/mechanisms`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "handoff/mechanisms",
    summary: "time and CPU cost of a hand-off to a partner, on one CPU with a context switch, by \
        mechanism and placement",
    about: "Two partners, processes or threads, alternate turns without any work. The value is \
        half of a round trip, from turns that are timed together. The same number of turns, or up \
        to 1,000 if they fit into 45 ms, are then timed individually for `p50`, `p99` and `p99.9` \
        of half a round trip; the time of the clock is subtracted, and the histogram keeps two \
        digits. `p99` needs 100 turns and `p99.9` needs 1,000. Each turn starts when the previous \
        one has ended, so these are service times without queueing. `cpu` is the CPU time that \
        both partners use for a hand-off, `switches` their context switches. Placements: `free`, \
        as the scheduler decides; `same-cpu`; `two-cpus`, where the CPU of the waiting partner \
        becomes idle; `two-awake`, where a SCHED_IDLE task keeps both CPUs \
        awake. `sleep` and `timer` take at least 1 ms. Spinning on one CPU waits for the end of \
        the partner's time slice.",
    view: View::HandoffMechanisms,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(9),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |parameters| placement(parameters, Placement::Free).unavailable(),
    alternates_cpus: |parameters| placement(parameters, Placement::Free).uses_two_cpus(),
    demands: Demands::NONE.with_cost_ms(100, 250),
    subject: |parameters| Ok(Box::new(HandOff::new(parameters)?)),
};

fn cases(scope: &Scope) -> Vec<Parameters> {
    let all = primitives::waiting_names();
    let quick = ["semaphore", "eventfd", "condition", "pipe", "futex", "spin"];
    let mechanisms = scope.choose(&all, &quick, &all);
    let partners = scope.choose(&["process", "thread"], &["process"], &["process"]);
    let placements = Placement::names();
    let placements = scope.choose(&placements, &placements[1..4], &placements[..1]);
    let mut cases = Vec::new();
    for &mechanism in mechanisms {
        for &partners in partners {
            for &placement in placements {
                let parameters = Parameters::new().with(names::MECHANISM, mechanism);
                cases.push(
                    parameters.with(names::PARTNERS, partners).with(names::PLACEMENT, placement),
                );
            }
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

/// Parameters that the user can set.
const SETTINGS: [&Setting; 5] = [&MECHANISM, &PARTNERS, &PLACEMENT, &SLACK, &PERIOD];

/// The subject of a case, in which two partners alternate turns without work.
pub struct HandOff {
    partners: Partners,
    /// Number of turns that a sample times together; `None` until calibrated.
    turns: Option<u64>,
    /// Description of the mechanism, for the record.
    mechanism_summary: &'static str,
    overhead: Overhead,
}

impl HandOff {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let period = microseconds(parameters, &PERIOD, Duration::from_millis(1));
        let mechanism = parameters.text(MECHANISM.name).unwrap_or("");
        let hand_off = Self::with_mechanism(mechanism, pair(parameters, Placement::Free))?;
        let timing = SleepTiming { period, tick: Duration::ZERO };
        let partners = Partners { timing, ..hand_off.partners };
        Ok(Self { partners, ..hand_off })
    }

    /// Creates a subject in which the partners of `pair` use the mechanism called `name` in both
    /// directions, with sleeps of 1 ms if it sleeps.
    ///
    /// # Errors
    /// Returns an error if the mechanism does not exist.
    pub fn with_mechanism(name: &str, pair: Pair) -> Result<Self, SubjectError> {
        let mechanism = primitives::find(name)
            .ok_or_else(|| SubjectError::Unexpected(format!("no mechanism '{name}'")))?;
        let partners = Partners {
            pair,
            mechanisms: [SEMAPHORE, mechanism, mechanism, SEMAPHORE],
            timing: SleepTiming { period: Duration::from_millis(1), tick: Duration::ZERO },
            warm_up: CALIBRATION_TURNS,
        };
        Ok(Self {
            partners,
            turns: None,
            mechanism_summary: mechanism.summary,
            overhead: Overhead::measure(),
        })
    }
}

/// Number of turns in the first calibration run and in the warm-up of every session.
const CALIBRATION_TURNS: u64 = 10;
/// Target time for the turns that are timed together.
const SAMPLE_TIME: Duration = Duration::from_millis(15);
/// Maximum expected time for timing up to `MIN_P999_SAMPLES` turns individually, if the turns timed
/// together are fewer.
const SINGLE_TURNS_TIME: Duration = Duration::from_millis(45);
/// Minimum number of turns that a sample times together.
const MIN_TURNS: u64 = 4;
/// Maximum number of turns that a sample times together.
const MAX_TURNS: u64 = 100_000;

impl HandOff {
    fn calibrate_turns(&self, nothing: [TurnWork<'_>; 2]) -> Result<u64, SubjectError> {
        let take = |turns| Ok(self.partners.run(turns, nothing, None)?.elapsed);
        calibrate_operations(SAMPLE_TIME, CALIBRATION_TURNS, MIN_TURNS..=MAX_TURNS, take)
    }
}

impl Subject for HandOff {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let nothing: [TurnWork<'_>; 2] = [&|| (), &|| ()];
        let turns = match self.turns {
            Some(turns) => turns,
            None => *self.turns.insert(self.calibrate_turns(nothing)?),
        };
        let session = self.partners.run(turns, nothing, None)?;
        let mut histogram = histogram()?;
        let clock = Duration::from_secs_f64(self.overhead.clock.max(0.0) / 1e9);
        let mut record_turn =
            |turn: Duration| record(&mut histogram, turn.saturating_sub(clock) / 2);
        let affordable = operations_within(SINGLE_TURNS_TIME, session.elapsed, turns);
        let timed = turns.max(affordable.min(MIN_P999_SAMPLES));
        self.partners.run(timed, nothing, Some(&mut record_turn))?;
        let hand_offs = 2.0 * turns as f64;
        let of_both = |counter: fn(&ResourceUsage) -> f64| {
            session.used.iter().map(counter).sum::<f64>() / hand_offs
        };
        let mut sample = Sample::of(session.elapsed.as_nanos() as f64 / hand_offs)
            .with("cpu", Unit::Nanoseconds, of_both(|used| used.cpu.as_nanos() as f64))
            .with("switches", Unit::Count, of_both(|used| used.switches() as f64));
        for (name, nanoseconds) in percentiles(&histogram) {
            sample = sample.with(name, Unit::Nanoseconds, nanoseconds);
        }
        sample.facts = self.facts();
        sample.facts.insert("timed_one_by_one".to_owned(), timed.into());
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::from([("mechanism_is".to_owned(), self.mechanism_summary.into())]);
        let cpus = self.partners.pair.placement.describe();
        facts.extend(cpus.map(|cpus| ("cpus".to_owned(), cpus.into())));
        facts
    }
}
