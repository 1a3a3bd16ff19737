//! Turns with work in them, and what a model says of their time.

use std::time::Duration;

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;
use contend_sys::cpu;

use super::load::Meter;
use super::partners::{Part, Partners, Session};
use super::preset::Preset;
use super::settings::{
    END, FACTOR, PERIOD, START, TICK, TO_MAIN, TO_SUB, TURNS, WORK, microseconds,
};
use super::ways::{self, Mechanism, Terms};
use crate::engine::experiment::{Facts, Sample, Subject, SubjectError};
use crate::engine::setting::Setting;
use crate::support::histogram::{histogram, note, percentiles};
use crate::support::pair::settings::{PARTNERS, PLACEMENT, SLACK, pair};
use crate::support::pair::{Pair, Used};
use crate::support::work::Work;

/// All that can be chosen.
pub const SETTINGS: [&Setting; 12] = [
    &START, &TO_SUB, &TO_MAIN, &END, &WORK, &FACTOR, &TICK, &PARTNERS, &PLACEMENT, &SLACK, &PERIOD,
    &TURNS,
];

/// Turns as in the document.
const DOCUMENTS_TURNS: u64 = 10_000;
/// What a turn computes.
const USUAL_WORK: Duration = Duration::from_micros(37);
/// What a sleep is asked to last.
const USUAL_PERIOD: Duration = Duration::from_millis(1);
/// The kernel's usual slack of timers.
const USUAL_SLACK: Duration = Duration::from_micros(50);
/// What a sample may take: it is given up after some more.
const LONGEST: Duration = Duration::from_secs(200);
/// Work in turns by which hand-offs are measured, at most.
const CALIBRATION: Duration = Duration::from_millis(300);

/// What parameters and the preset that they change come to.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Start, main to sub, sub to main, end.
    mechanisms: [&'static Mechanism; 4],
    /// CPU time of a turn of sub.
    work: Duration,
    main_works: bool,
    terms: Terms,
    /// What the partners are, and where.
    pub pair: Pair,
}

impl Settled {
    /// The preset with these parameters.
    pub fn of(parameters: &Parameters, preset: &Preset) -> Self {
        let mechanism = |place: usize, setting: &Setting| {
            let chosen = parameters.text(setting.name).and_then(ways::find);
            chosen.unwrap_or(preset.mechanisms[place])
        };
        let factor = parameters.number(FACTOR.name).unwrap_or(preset.factor);
        let work = microseconds(parameters, &WORK, USUAL_WORK);
        Self {
            mechanisms: [
                mechanism(0, &START),
                mechanism(1, &TO_SUB),
                mechanism(2, &TO_MAIN),
                mechanism(3, &END),
            ],
            work: work * u32::try_from(factor).unwrap_or(u32::MAX),
            main_works: preset.main_works,
            terms: Terms {
                period: microseconds(parameters, &PERIOD, USUAL_PERIOD),
                tick: microseconds(parameters, &TICK, Duration::ZERO),
            },
            pair: pair(parameters, preset.placement),
        }
    }

    /// Whether its turns end by a sleep, so that ticks matter.
    pub fn sleeps(&self) -> bool {
        self.mechanisms.iter().any(|mechanism| mechanism.sleeps)
    }

    /// About what a turn takes at least: sub works while main sleeps, or is told in some time.
    fn turn(&self) -> Duration {
        const TOLD: Duration = Duration::from_micros(3);
        let slept = self.terms.tick.max(self.terms.period);
        if self.sleeps() { self.work.max(slept) } else { self.work + TOLD }
    }

    /// How many turns last about so many microseconds.
    pub fn turns(&self, longest: u64) -> u64 {
        let turn = u64::try_from(self.turn().as_micros()).unwrap_or(u64::MAX);
        (longest / turn.max(1)).clamp(4, DOCUMENTS_TURNS)
    }

    fn partners(&self) -> Partners {
        Partners { pair: self.pair, mechanisms: self.mechanisms, terms: self.terms, warm_up: 0 }
    }

    /// How main waits for sub.
    fn wait(&self) -> Wait {
        let Terms { period, tick } = self.terms;
        match self.mechanisms[2] {
            Mechanism { sleeps: true, .. } if tick.is_zero() => {
                Wait::Sleeping(period + self.pair.slack.unwrap_or(USUAL_SLACK))
            }
            Mechanism { sleeps: true, .. } => {
                // It begins a moment after one tick, and ends with the first one behind its end.
                let ticks = period.as_nanos() / tick.as_nanos() + 1;
                Wait::Sleeping(tick * u32::try_from(ticks).unwrap_or(u32::MAX))
            }
            Mechanism { waits: true, .. } => Wait::Told,
            _ => Wait::Never,
        }
    }

    /// Whether main tells sub without a sleep of its own, as the model has it.
    fn is_modelled(&self) -> bool {
        !self.mechanisms[1].sleeps
    }

    /// How many turns fit into the time that a sample may take.
    fn most_turns(&self) -> u64 {
        let turn = self.turn().as_nanos().max(1);
        u64::try_from(LONGEST.as_nanos() / turn).unwrap_or(u64::MAX)
    }

    /// Whether both can compute at the same time.
    fn has_two_cpus(&self) -> bool {
        match self.pair.placement.cpus() {
            Some([main, sub]) => main != sub,
            None => cpu::allowed() > 1,
        }
    }
}

/// How main waits for sub.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wait {
    /// By sleeping so long, again and again.
    Sleeping(Duration),
    /// Until it is told.
    Told,
    /// Not at all.
    Never,
}

/// Partners that take turns.
#[derive(Debug)]
pub struct Turns {
    settled: Settled,
    partners: Partners,
    count: u64,
    /// What main and sub do in a turn.
    work: [Work; 2],
}

impl Turns {
    /// Those of the preset with these parameters.
    ///
    /// # Errors
    /// When so many turns take too long.
    pub fn new(parameters: &Parameters, preset: &Preset) -> Result<Self, SubjectError> {
        let settled = Settled::of(parameters, preset);
        let count = parameters.number(TURNS.name).unwrap_or(1).max(1);
        let most = settled.most_turns();
        if count > most {
            let message = format!("{count} turns would take some minutes: at most {most} fit");
            return Err(SubjectError::Wrong(message));
        }
        let work = Work::of(settled.work);
        let of_main = if settled.main_works { work } else { Work::NONE };
        Ok(Self { partners: settled.partners(), settled, count, work: [of_main, work] })
    }

    /// What a turn takes by the model, where main finds sub not ready in this part of the turns.
    /// Hand-offs are measured in about as long as the turns themselves have taken.
    fn predict(&self, not_ready: f64, taken: Duration) -> Result<Option<Duration>, SubjectError> {
        let work = self.settled.work;
        if !self.settled.is_modelled() {
            return Ok(None);
        }
        Ok(Some(match self.settled.wait() {
            Wait::Never if self.settled.main_works && !self.settled.has_two_cpus() => 2 * work,
            Wait::Never => work,
            Wait::Told => {
                // While sub works for so long, the CPU of main falls asleep as deep as it does.
                let twice = self.work[1].times(2);
                let time = taken.min(CALIBRATION);
                let turns = time.as_nanos() / (2 * work).as_nanos().max(1);
                let turns = u64::try_from(turns).unwrap_or(u64::MAX).clamp(1, 2000);
                let session = self.partners.run(turns, [&|| (), &|| twice.work()], None)?;
                session.elapsed.div_f64(turns as f64).saturating_sub(work)
            }
            Wait::Sleeping(sleep) => {
                let sleeps = (work.as_secs_f64() / sleep.as_secs_f64()).ceil();
                let in_vain = sleep.mul_f64(sleeps.max(1.0));
                in_vain.mul_f64(not_ready) + work.mul_f64(1.0 - not_ready)
            }
        }))
    }

    fn take(&self, each: &mut dyn FnMut(Duration)) -> (Result<Session, SubjectError>, Option<f64>) {
        let meter = Meter::new();
        let parts = self.work.map(|work| move || work.work());
        let parts: [Part<'_>; 2] = [&parts[0], &parts[1]];
        meter.during(|| {
            self.partners.run_observed(self.count, parts, Some(each), &|sub| meter.watch(sub))
        })
    }
}

impl Subject for Turns {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let mut histogram = histogram()?;
        let (session, load_max) = self.take(&mut |turn| note(&mut histogram, turn));
        let session = session?;
        let cpu: f64 = session.used.iter().map(|used| used.cpu.as_secs_f64()).sum();
        let load = 100.0 * cpu / session.elapsed.as_secs_f64() / cpu::allowed() as f64;
        let not_ready = session.turns_in_vain as f64 / self.count as f64;
        let predicted = self.predict(not_ready, session.elapsed)?;
        let scale = DOCUMENTS_TURNS as f64 / self.count as f64;
        let switches =
            |of: fn(&Used) -> u64| session.used.iter().map(of).sum::<u64>() as f64 * scale;
        let mut sample = Sample::of(session.elapsed.as_nanos() as f64 * scale)
            .with("turns_a_second", Unit::Count, self.count as f64 / session.elapsed.as_secs_f64())
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
                let all = turn.as_nanos() as f64 * DOCUMENTS_TURNS as f64;
                sample.with("predicted", Unit::Nanoseconds, all)
            }
            None => sample,
        })
    }

    fn facts(&self) -> Facts {
        let settled = &self.settled;
        let [start, to_sub, to_main, end] = settled.mechanisms.map(|mechanism| mechanism.name);
        let work = u64::try_from(settled.work.as_nanos()).unwrap_or(u64::MAX);
        let mut facts = Facts::from([
            ("turns".to_owned(), self.count.into()),
            ("start".to_owned(), start.into()),
            ("to_sub".to_owned(), to_sub.into()),
            ("to_main".to_owned(), to_main.into()),
            ("end".to_owned(), end.into()),
            ("work_ns".to_owned(), work.into()),
        ]);
        facts
            .extend(settled.pair.placement.describe().map(|cpus| ("cpus".to_owned(), cpus.into())));
        if self.count != DOCUMENTS_TURNS {
            facts.insert("scaled_to_turns".to_owned(), DOCUMENTS_TURNS.into());
        }
        facts
    }
}
