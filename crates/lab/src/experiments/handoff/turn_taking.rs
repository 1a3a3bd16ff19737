//! Sessions of two partners with work in every turn, and a model that predicts their time.

use std::time::Duration;

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;
use contend_sys::cpu;

use super::load_meter::LoadMeter;
use super::partners::{self, Partners, SessionStats, TurnWork};
use super::preset::Preset;
use super::primitives::{self, Mechanism, SleepTiming};
use super::settings::{
    END, FACTOR, PERIOD, START, TICK, TO_MAIN, TO_SUB, TURNS, WORK, microseconds,
};
use crate::engine::experiment::{Facts, Sample, Subject, SubjectError};
use crate::engine::setting::Setting;
use crate::support::histogram::{histogram, percentiles, record};
use crate::support::partners::settings::{PARTNERS, PLACEMENT, SLACK, pair};
use crate::support::partners::{Pair, ResourceUsage};
use crate::support::work::Work;

/// Parameters that the user can set.
pub const SETTINGS: [&Setting; 12] = [
    &START, &TO_SUB, &TO_MAIN, &END, &WORK, &FACTOR, &TICK, &PARTNERS, &PLACEMENT, &SLACK, &PERIOD,
    &TURNS,
];

/// Number of turns in a run of the test report, to which values are scaled.
const REPORT_TURNS: u64 = 10_000;
/// Default CPU time of the work in a turn.
const DEFAULT_WORK: Duration = Duration::from_micros(37);
/// Default length of a sleep, as requested from the kernel.
const DEFAULT_PERIOD: Duration = Duration::from_millis(1);
/// The kernel's default timer slack.
const DEFAULT_TIMER_SLACK: Duration = Duration::from_micros(50);
/// Maximum expected time of a sample. A case that is expected to take longer is refused.
const MAX_SAMPLE_TIME: Duration = Duration::from_secs(200);
/// Approximate maximum duration of the hand-off measurement that a prediction needs if main is
/// notified.
const MAX_CALIBRATION_TIME: Duration = Duration::from_millis(300);

/// A case: a preset, overridden by the user's parameters.
#[derive(Debug, Clone)]
pub struct ResolvedCase {
    /// Mechanisms for `start`, `to_sub`, `to_main` and `end` of a session, in this order.
    mechanisms: [&'static Mechanism; 4],
    /// CPU time of the work of sub in a turn, including the factor.
    work: Duration,
    main_works: bool,
    timing: SleepTiming,
    /// Kind of the partners (processes or threads), their placement and their timer slack.
    pub pair: Pair,
}

impl ResolvedCase {
    /// Creates a case from a preset and the parameters that override it.
    pub fn resolve(parameters: &Parameters, preset: &Preset) -> Self {
        let mechanism = |index: usize, setting: &Setting| {
            let chosen = parameters.text(setting.name).and_then(primitives::find);
            chosen.unwrap_or(preset.mechanisms[index])
        };
        let factor = parameters.number(FACTOR.name).unwrap_or(preset.factor);
        let work = microseconds(parameters, &WORK, DEFAULT_WORK);
        Self {
            mechanisms: [
                mechanism(0, &START),
                mechanism(1, &TO_SUB),
                mechanism(2, &TO_MAIN),
                mechanism(3, &END),
            ],
            work: work * u32::try_from(factor).unwrap_or(u32::MAX),
            main_works: preset.main_works,
            timing: SleepTiming {
                period: microseconds(parameters, &PERIOD, DEFAULT_PERIOD),
                tick: microseconds(parameters, &TICK, Duration::ZERO),
            },
            pair: pair(parameters, preset.placement),
        }
    }

    /// Returns whether any mechanism sleeps, in which case the clock tick matters.
    pub fn sleeps(&self) -> bool {
        self.mechanisms.iter().any(|mechanism| mechanism.sleeps)
    }

    /// Returns an optimistic estimate of the time of a turn. If any mechanism sleeps, assumes that
    /// every turn has one sleep, during which sub works. Otherwise, assumes that the hand-off
    /// follows the work.
    fn min_turn_time(&self) -> Duration {
        const HAND_OFF_TIME: Duration = Duration::from_micros(3);
        let slept = self.timing.tick.max(self.timing.period);
        if self.sleeps() { self.work.max(slept) } else { self.work + HAND_OFF_TIME }
    }

    /// Returns the number of turns that are expected to fit into `max_sample_us` microseconds, but
    /// at least 4 and at most [`REPORT_TURNS`].
    pub fn turns_within(&self, max_sample_us: u64) -> u64 {
        let turn = u64::try_from(self.min_turn_time().as_micros()).unwrap_or(u64::MAX);
        (max_sample_us / turn.max(1)).clamp(4, REPORT_TURNS)
    }

    fn partners(&self) -> Partners {
        Partners { pair: self.pair, mechanisms: self.mechanisms, timing: self.timing, warm_up: 0 }
    }

    /// Returns how the model classifies main's wait for sub.
    fn main_wait(&self) -> MainWait {
        let SleepTiming { period, tick } = self.timing;
        match self.mechanisms[2] {
            Mechanism { sleeps: true, .. } if tick.is_zero() => {
                MainWait::Polling(period + self.pair.slack.unwrap_or(DEFAULT_TIMER_SLACK))
            }
            Mechanism { sleeps: true, .. } => {
                // A sleep starts shortly after a tick and ends at the first tick after its period.
                let ticks = period.as_nanos() / tick.as_nanos() + 1;
                MainWait::Polling(tick * u32::try_from(ticks).unwrap_or(u32::MAX))
            }
            Mechanism { waits: true, .. } => MainWait::Notified,
            _ => MainWait::NoWait,
        }
    }

    /// Returns whether the model covers this case: sub must not sleep while it waits for main.
    fn is_modelled(&self) -> bool {
        !self.mechanisms[1].sleeps
    }

    /// Returns the maximum number of turns that are expected to fit into [`MAX_SAMPLE_TIME`].
    fn max_turns(&self) -> u64 {
        let turn = self.min_turn_time().as_nanos().max(1);
        u64::try_from(MAX_SAMPLE_TIME.as_nanos() / turn).unwrap_or(u64::MAX)
    }

    /// Returns why no machine can measure this case, or `None` if there is no such reason. The
    /// message names the values to use instead.
    pub fn conflict(&self, parameters: &Parameters) -> Option<String> {
        let (turns, max) = (turns(parameters), self.max_turns());
        let too_many =
            || format!("{turns} turns would take more than 200 s; use --set turns={max} or fewer");
        partners::conflict(self.mechanisms).or_else(|| (turns > max).then(too_many))
    }

    /// Returns whether both partners can run at the same time.
    fn has_two_cpus(&self) -> bool {
        match self.pair.placement.cpus() {
            Some([main, sub]) => main != sub,
            None => cpu::allowed() > 1,
        }
    }
}

/// Returns the number of turns in a sample, which is at least 1, and 1 if the parameter is not set.
fn turns(parameters: &Parameters) -> u64 {
    parameters.number(TURNS.name).unwrap_or(1).max(1)
}

/// The kinds of main's wait for sub that the model distinguishes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MainWait {
    /// Main polls, and sleeps for the given time after each failed poll. With `pause`, main always
    /// sleeps once instead.
    Polling(Duration),
    /// Main blocks until it is notified.
    Notified,
    /// Main does not wait.
    NoWait,
}

/// The subject of a case, whose samples are sessions with work in every turn.
#[derive(Debug)]
pub struct TurnTaking {
    case: ResolvedCase,
    partners: Partners,
    turns: u64,
    /// Work of main and of sub in a turn, in this order.
    work: [Work; 2],
}

impl TurnTaking {
    /// Creates the subject of a case.
    ///
    /// # Errors
    /// Returns an error if the parameters cannot be combined, or ask for too many turns.
    pub fn new(parameters: &Parameters, preset: &Preset) -> Result<Self, SubjectError> {
        let case = ResolvedCase::resolve(parameters, preset);
        if let Some(reason) = case.conflict(parameters) {
            return Err(SubjectError::Unexpected(reason));
        }
        let turns = turns(parameters);
        let work = Work::lasting(case.work);
        let of_main = if case.main_works { work } else { Work::NONE };
        Ok(Self { partners: case.partners(), case, turns, work: [of_main, work] })
    }

    /// Predicts the time of a turn, or returns `None` if the model does not cover the case.
    /// `not_ready` is the fraction of turns in which main finds sub not ready. If main is notified,
    /// measures hand-offs for about `taken`, the duration of the session to predict, or
    /// [`MAX_CALIBRATION_TIME`] if that is less, but in at most 2,000 turns.
    fn predict(&self, not_ready: f64, taken: Duration) -> Result<Option<Duration>, SubjectError> {
        let work = self.case.work;
        if !self.case.is_modelled() {
            return Ok(None);
        }
        Ok(Some(match self.case.main_wait() {
            MainWait::NoWait if self.case.main_works && !self.case.has_two_cpus() => 2 * work,
            MainWait::NoWait => work,
            MainWait::Notified => {
                // Work of the same order keeps main's CPU in the same idle state as in the session.
                let twice = self.work[1].times(2);
                let time = taken.min(MAX_CALIBRATION_TIME);
                let turns = time.as_nanos() / (2 * work).as_nanos().max(1);
                let turns = u64::try_from(turns).unwrap_or(u64::MAX).clamp(1, 2000);
                let session = self.partners.run(turns, [&|| (), &|| twice.run()], None)?;
                session.elapsed.div_f64(turns as f64).saturating_sub(work)
            }
            MainWait::Polling(sleep) => {
                let sleeps = (work.as_secs_f64() / sleep.as_secs_f64()).ceil();
                let failed_polls = sleep.mul_f64(sleeps.max(1.0));
                failed_polls.mul_f64(not_ready) + work.mul_f64(1.0 - not_ready)
            }
        }))
    }

    fn run(
        &self,
        on_turn_time: &mut dyn FnMut(Duration),
    ) -> (Result<SessionStats, SubjectError>, Option<f64>) {
        let meter = LoadMeter::new();
        let parts = self.work.map(|work| move || work.run());
        let parts: [TurnWork<'_>; 2] = [&parts[0], &parts[1]];
        meter.measure_during(|| {
            self.partners
                .run_observed(self.turns, parts, Some(on_turn_time), &|sub| meter.watch(sub))
        })
    }
}

impl Subject for TurnTaking {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let mut histogram = histogram()?;
        let (session, load_max) = self.run(&mut |turn| record(&mut histogram, turn));
        let session = session?;
        let cpu: f64 = session.used.iter().map(|used| used.cpu.as_secs_f64()).sum();
        let load = 100.0 * cpu / session.elapsed.as_secs_f64() / cpu::allowed() as f64;
        let not_ready = session.not_ready_turns as f64 / self.turns as f64;
        let predicted = self.predict(not_ready, session.elapsed)?;
        let scale = REPORT_TURNS as f64 / self.turns as f64;
        let switches =
            |of: fn(&ResourceUsage) -> u64| session.used.iter().map(of).sum::<u64>() as f64 * scale;
        let mut sample = Sample::of(session.elapsed.as_nanos() as f64 * scale)
            .with("turns_a_second", Unit::Count, self.turns as f64 / session.elapsed.as_secs_f64())
            .with("not_ready", Unit::Count, 100.0 * not_ready)
            .with("load_max", Unit::Count, load_max.unwrap_or(load).max(load))
            .with("load_mean", Unit::Count, load)
            .with("cpu", Unit::Nanoseconds, cpu * 1e9 * scale)
            .with("voluntary_switches", Unit::Count, switches(|used| used.voluntary_switches))
            .with("involuntary_switches", Unit::Count, switches(|used| used.involuntary_switches));
        for (name, nanoseconds) in percentiles(&histogram) {
            sample = sample.with(name, Unit::Nanoseconds, nanoseconds);
        }
        Ok(match predicted {
            Some(turn) => {
                let all = turn.as_nanos() as f64 * REPORT_TURNS as f64;
                sample.with("predicted", Unit::Nanoseconds, all)
            }
            None => sample,
        })
    }

    fn facts(&self) -> Facts {
        let case = &self.case;
        let [start, to_sub, to_main, end] = case.mechanisms.map(|mechanism| mechanism.name);
        let work = u64::try_from(case.work.as_nanos()).unwrap_or(u64::MAX);
        let mut facts = Facts::from([
            ("turns".to_owned(), self.turns.into()),
            ("start".to_owned(), start.into()),
            ("to_sub".to_owned(), to_sub.into()),
            ("to_main".to_owned(), to_main.into()),
            ("end".to_owned(), end.into()),
            ("work_ns".to_owned(), work.into()),
        ]);
        facts.extend(case.pair.placement.describe().map(|cpus| ("cpus".to_owned(), cpus.into())));
        if self.turns != REPORT_TURNS {
            facts.insert("scaled_to_turns".to_owned(), REPORT_TURNS.into());
        }
        facts
    }
}
