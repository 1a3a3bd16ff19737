//! `handoff/mechanisms`: what a hand-off costs, mechanism by mechanism and place by place.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::partners::{Part, Partners};
use super::settings::{MECHANISM, PERIOD, microseconds};
use super::ways::{self, SEMAPHORE, Terms};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::setting::Setting;
use crate::engine::timing::{Overhead, as_many_as_fit, how_many};
use crate::support::histogram::{ENOUGH, histogram, note, percentiles};
use crate::support::pair::settings::{PARTNERS, PLACEMENT, SLACK, pair, placement};
use crate::support::pair::{Pair, Placement, Used};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "handoff/mechanisms",
    summary: "a turn handed to a partner, by each mechanism and placement: time, tail, CPU",
    about: "Two partners, processes or threads, hand a turn to each other and do nothing else. The \
            value is half of a round trip, over turns that are timed together. As many turns, and up to \
            1,000 if that takes 45 ms at most, are then timed one by one, for `p50`, `p99` and `p99.9` \
            of half a round trip, in a histogram of two digits, without the clock's own time; with fewer \
            than 100 and 1,000 turns the last two are left out. The next turn begins when the one before \
            has ended, so that these are times of service, not of waiting for it. `cpu` is what \
            both partners use for a hand-off, `switches` how often they are switched from. \
            Placements: `free`, wherever the scheduler puts them; `same-cpu`; `two-cpus`, of which \
            one is idle while its partner waits; `two-awake`, where something that runs only when \
            nothing else wants to (SCHED_IDLE) keeps both awake. A sleep or a timer ends 1 ms \
            later at the earliest. Spinning on one CPU waits for the end of the partner's time \
            slice.",
    view: View::HandoffMechanisms,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(9),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |parameters| placement(parameters, Placement::Free).unavailable(),
    hands_over: |parameters| placement(parameters, Placement::Free).crosses(),
    demands: Demands::NONE.lasting(100, 250),
    subject: |parameters| Ok(Box::new(HandOff::new(parameters)?)),
};

fn cases(scope: &Scope) -> Vec<Parameters> {
    let all = ways::waiting();
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

/// What can be chosen.
const SETTINGS: [&Setting; 5] = [&MECHANISM, &PARTNERS, &PLACEMENT, &SLACK, &PERIOD];

/// Turns in which nothing is done.
pub struct HandOff {
    partners: Partners,
    /// Of a sample, as soon as that is known.
    turns: Option<u64>,
    /// What the mechanism is.
    what: &'static str,
    overhead: Overhead,
}

impl HandOff {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let period = microseconds(parameters, &PERIOD, Duration::from_millis(1));
        let mechanism = parameters.text(MECHANISM.name).unwrap_or("");
        let hand_off = Self::by(mechanism, pair(parameters, Placement::Free))?;
        let terms = Terms { period, tick: Duration::ZERO };
        let partners = Partners { terms, ..hand_off.partners };
        Ok(Self { partners, ..hand_off })
    }

    /// One by this mechanism, both ways.
    ///
    /// # Errors
    /// When there is no such mechanism.
    pub fn by(name: &str, pair: Pair) -> Result<Self, SubjectError> {
        let mechanism = ways::find(name)
            .ok_or_else(|| SubjectError::Wrong(format!("there is no mechanism {name}")))?;
        let partners = Partners {
            pair,
            mechanisms: [SEMAPHORE, mechanism, mechanism, SEMAPHORE],
            terms: Terms { period: Duration::from_millis(1), tick: Duration::ZERO },
            warm_up: TRIAL,
        };
        Ok(Self { partners, turns: None, what: mechanism.summary, overhead: Overhead::measure() })
    }
}

/// Turns by which it is found out how many make a sample, and before each.
const TRIAL: u64 = 10;
/// What a sample is to take, for turns that are timed together and again for those one by one.
const SAMPLE: Duration = Duration::from_millis(15);
/// Those one by one may take so long for there to be enough for a percentile of 99.9.
const ONE_BY_ONE: Duration = Duration::from_millis(45);
/// Turns of a sample, at least and at most.
const FEWEST: u64 = 4;
const MOST: u64 = 100_000;

impl HandOff {
    fn turns_of_a_sample(&self, nothing: [Part<'_>; 2]) -> Result<u64, SubjectError> {
        let take = |turns| Ok(self.partners.run(turns, nothing, None)?.elapsed);
        as_many_as_fit(SAMPLE, TRIAL, FEWEST..=MOST, take)
    }
}

impl Subject for HandOff {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let nothing: [Part<'_>; 2] = [&|| (), &|| ()];
        let turns = match self.turns {
            Some(turns) => turns,
            None => *self.turns.insert(self.turns_of_a_sample(nothing)?),
        };
        let whole = self.partners.run(turns, nothing, None)?;
        let mut histogram = histogram()?;
        let clock = Duration::from_secs_f64(self.overhead.clock.max(0.0) / 1e9);
        let mut note = |turn: Duration| note(&mut histogram, turn.saturating_sub(clock) / 2);
        let affordable = how_many(ONE_BY_ONE, whole.elapsed, turns);
        let timed = turns.max(affordable.min(ENOUGH));
        self.partners.run(timed, nothing, Some(&mut note))?;
        let hand_offs = 2.0 * turns as f64;
        let of_both =
            |figure: fn(&Used) -> f64| whole.used.iter().map(figure).sum::<f64>() / hand_offs;
        let mut sample = Sample::of(whole.elapsed.as_nanos() as f64 / hand_offs)
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
        let mut facts = Facts::from([("mechanism_is".to_owned(), self.what.into())]);
        let cpus = self.partners.pair.placement.describe();
        facts.extend(cpus.map(|cpus| ("cpus".to_owned(), cpus.into())));
        facts
    }
}
