//! `handoff/0` to `handoff/9`: the cases of the document, each a row of one table.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;
use contend_sys::{Pid, cpu};
use hdrhistogram::Histogram;

use super::partners::{Kind, Partners, Placement, Session};
use super::ways::{self, Mechanism, Terms};
use super::work::Work;
use crate::experiment::{Experiment, Facts, Sample, Sampling, Scope, Subject, SubjectError};

/// One of the document's cases.
#[derive(Debug)]
struct Preset {
    /// Its mechanisms: start, main to sub, sub to main, end.
    mechanisms: [&'static str; 4],
    /// How many times the usual work sub does in a turn.
    factor: u64,
    /// Main computes in its turn, too, as much as sub.
    main_works: bool,
    /// Where it runs; the document says it of two of them only.
    placement: &'static str,
}

const SEMAPHORE: &str = "semaphore";
const NONE: &str = "none";

impl Preset {
    /// Sub tells main by a semaphore, and main looks whether it is its turn as the others say.
    const fn of(to_sub: &'static str, to_main: &'static str, end: &'static str) -> Self {
        let mechanisms = [SEMAPHORE, to_sub, to_main, end];
        Self { mechanisms, factor: 1, main_works: false, placement: "free" }
    }

    const fn a_hundred_times(self) -> Self {
        Self { factor: 100, ..self }
    }

    const fn with_work_of_main(self) -> Self {
        Self { main_works: true, ..self }
    }

    const fn on(self, placement: &'static str) -> Self {
        Self { placement, ..self }
    }

    /// Whether its turns end by a sleep, so that ticks matter.
    fn sleeps(&self) -> bool {
        self.mechanisms.iter().any(|name| ["sleep", "timer", "pause"].contains(name))
    }
}

const EVENTS: Preset = Preset {
    mechanisms: ["event", "event", "event", "event"],
    factor: 1,
    main_works: false,
    placement: "free",
};

const ABOUT: &str = "One of the document's cases. Main and sub take turns: sub computes (37 µs of CPU \
    time, or 100 times that), main waits for it; the value is the time of 10,000 turns. Fewer are \
    taken where a turn takes long, and the time is scaled up: `turns` says from how many. A sleep is \
    asked to last 1 ms, and ends with a tick of `tick_us` if that is not 0: 15,625 µs on the document's \
    machines. `load_max` and `load_mean` are the CPU time of both in percent of all CPUs, in pieces of \
    50 ms and altogether; `p50`, `p99` and `p99.9` are those of single turns; `not_ready` is the part \
    of the turns, in percent, in which main looked in vain. `predicted` is what a model says: where \
    main sleeps, a turn in which it looks in vain ends with the first sleep behind sub's work (the tick, \
    or 1 ms and the timer's slack), another one with the work; where it is told, a turn is the work and \
    two hand-offs, which are measured with twice the work; where nobody waits, it is the work.";

macro_rules! preset {
    ($constant:ident, $name:literal, $summary:literal, $preset:expr) => {
        #[doc = concat!("The row of `handoff/", $name, "`.")]
        pub const $constant: Experiment = Experiment {
            name: concat!("handoff/", $name),
            summary: $summary,
            about: ABOUT,
            unit: Unit::Nanoseconds,
            sampling: Sampling::Fixed(2),
            fit_over: None,
            cases: |scope| cases(scope, &$preset),
            unavailable: |parameters| placement(parameters).unavailable(),
            hands_over: |parameters| placement(parameters) == Placement::Apart,
            subject: |parameters| Ok(Box::new(Turns::new(parameters, &$preset)?)),
        };
    };
}

preset!(
    ZERO,
    "0",
    "told by a semaphore, waited for by sleeping: the original form",
    Preset::of(SEMAPHORE, "sleep", "sleep")
);
preset!(
    ZERO_PLUS,
    "0+",
    "0 with 100 times the work",
    Preset::of(SEMAPHORE, "sleep", "sleep").a_hundred_times()
);
preset!(
    ONE,
    "1",
    "no synchronisation, but a sleep in every turn",
    Preset::of(NONE, "pause", SEMAPHORE)
);
preset!(
    ONE_A,
    "1a",
    "no synchronisation, and main computes instead of sleeping",
    Preset::of(NONE, NONE, SEMAPHORE).with_work_of_main()
);
preset!(
    ONE_A_PLUS,
    "1a+",
    "1a with 100 times the work",
    Preset::of(NONE, NONE, SEMAPHORE).with_work_of_main().a_hundred_times()
);
preset!(TWO, "2", "semaphores both ways", Preset::of(SEMAPHORE, SEMAPHORE, SEMAPHORE));
preset!(
    TWO_PLUS,
    "2+",
    "2 with 100 times the work",
    Preset::of(SEMAPHORE, SEMAPHORE, SEMAPHORE).a_hundred_times()
);
preset!(
    THREE,
    "3",
    "told by a semaphore, waited for with a timer",
    Preset::of(SEMAPHORE, "timer", "timer")
);
preset!(FOUR, "4", "events both ways", EVENTS);
preset!(FOUR_PLUS, "4+", "4 with 100 times the work", EVENTS.a_hundred_times());
preset!(
    EIGHT,
    "8",
    "0 with each partner on a CPU of its own",
    Preset::of(SEMAPHORE, "sleep", "sleep").on("two-cpus")
);
preset!(
    NINE,
    "9",
    "0 with both partners on the same CPU",
    Preset::of(SEMAPHORE, "sleep", "sleep").on("same-cpu")
);

/// Turns as in the document.
const TURNS: u64 = 10_000;
/// What a turn computes.
const WORK: Duration = Duration::from_micros(37);
/// What a sleep is asked to last.
const PERIOD: Duration = Duration::from_millis(1);
/// The kernel's usual slack of timers.
const SLACK: Duration = Duration::from_micros(50);

fn cases(scope: &Scope, preset: &Preset) -> Vec<Parameters> {
    let ticks: &[u64] = if preset.sleeps() {
        scope.choose(&[0, 1000, 10_000, 15_625], &[15_625], &[0])
    } else {
        &[0]
    };
    // Turns of a sample: of some seconds at most.
    let longest = scope.choose(&[1_500_000_u64], &[300_000], &[20_000])[0];
    let case = |&tick: &u64| {
        let turn = if preset.sleeps() { tick.max(1000) } else { 40 * preset.factor };
        let turns = (longest / turn).clamp(4, TURNS);
        let mut parameters = Parameters::new();
        if preset.sleeps() {
            parameters = parameters.with("tick_us", tick);
        }
        parameters.with("placement", preset.placement).with("turns", turns)
    };
    ticks.iter().map(case).collect()
}

fn placement(parameters: &Parameters) -> Placement {
    parameters.text("placement").and_then(Placement::find).unwrap_or(Placement::Free)
}

struct Turns {
    partners: Partners,
    count: u64,
    /// What sub and main do in a turn.
    work: [Work; 2],
    /// CPU time of a turn of sub.
    work_time: Duration,
    wait: Wait,
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

impl Turns {
    fn new(parameters: &Parameters, preset: &Preset) -> Result<Self, SubjectError> {
        let mut mechanisms: [&'static Mechanism; 4] = [&ways::TABLE[0]; 4];
        for (found, name) in mechanisms.iter_mut().zip(preset.mechanisms) {
            let named = ways::find(name);
            *found = named.ok_or_else(|| SubjectError::Wrong(format!("there is no {name}")))?;
        }
        let tick = Duration::from_micros(parameters.number("tick_us").unwrap_or(0));
        let terms = Terms { period: PERIOD, tick };
        let placement = placement(parameters);
        let partners = Partners { kind: Kind::Processes, placement, mechanisms, terms, warm_up: 0 };
        let factor = u32::try_from(preset.factor).unwrap_or(u32::MAX);
        let work = Work::of(WORK * factor);
        let wait = match preset.mechanisms[2] {
            NONE => Wait::Never,
            _ if preset.sleeps() && tick.is_zero() => Wait::Sleeping(PERIOD + SLACK),
            _ if preset.sleeps() => {
                // It begins a moment after one tick, and ends with the first one behind its end.
                let ticks = PERIOD.as_nanos() / tick.as_nanos() + 1;
                Wait::Sleeping(tick * u32::try_from(ticks).unwrap_or(u32::MAX))
            }
            _ => Wait::Told,
        };
        Ok(Self {
            partners,
            count: parameters.number("turns").unwrap_or(1).max(1),
            work: [if preset.main_works { work } else { Work::NONE }, work],
            work_time: WORK * factor,
            wait,
        })
    }

    /// What a turn takes by the model.
    fn predict(&self, not_ready: f64) -> Result<Duration, SubjectError> {
        Ok(match self.wait {
            Wait::Never => self.work_time,
            Wait::Told => {
                // While sub works for so long, the CPU of main falls asleep as deep as it does.
                let twice = self.work[1].times(2);
                let turns = CALIBRATION.as_nanos() / (2 * self.work_time).as_nanos().max(1);
                let turns = u64::try_from(turns).unwrap_or(1).clamp(20, 2000);
                let session = self.partners.run(turns, [&|| (), &|| twice.work()], None)?;
                session.elapsed.div_f64(turns as f64).saturating_sub(self.work_time)
            }
            Wait::Sleeping(sleep) => {
                let sleeps = (self.work_time.as_secs_f64() / sleep.as_secs_f64()).ceil();
                let in_vain = sleep.mul_f64(sleeps.max(1.0));
                in_vain.mul_f64(not_ready) + self.work_time.mul_f64(1.0 - not_ready)
            }
        })
    }
}

/// Work in turns by which hand-offs are measured.
const CALIBRATION: Duration = Duration::from_millis(300);

impl Subject for Turns {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2);
        let mut histogram = histogram.map_err(|error| SubjectError::Wrong(error.to_string()))?;
        let mut note = |turn: Duration| {
            histogram.saturating_record(turn.as_nanos().try_into().unwrap_or(u64::MAX));
        };
        let parts = self.work.map(|work| move || work.work());
        let meter = Meter::default();
        let session = meter.during(|| {
            let observer = |sub: Pid| meter.watch(sub);
            let parts: [super::partners::Part<'_>; 2] = [&parts[0], &parts[1]];
            self.partners.run_observed(self.count, parts, Some(&mut note), &observer)
        });
        let (session, load_max) = session;
        let session: Session = session?;
        let cpu: f64 = session.used.iter().map(|used| used.cpu().as_secs_f64()).sum();
        let load = 100.0 * cpu / session.elapsed.as_secs_f64() / cpu::allowed() as f64;
        let not_ready = session.turns_in_vain as f64 / self.count as f64;
        let predicted = self.predict(not_ready)?;
        let scale = TURNS as f64 / self.count as f64;
        let switches = |of: fn(&contend_sys::child::Usage) -> u64| {
            session.used.iter().map(of).sum::<u64>() as f64 * scale
        };
        let percentile = |q| histogram.value_at_quantile(q) as f64;
        Ok(Sample::of(session.elapsed.as_nanos() as f64 * scale)
            .with("predicted", Unit::Nanoseconds, predicted.as_nanos() as f64 * TURNS as f64)
            .with("not_ready", Unit::Count, 100.0 * not_ready)
            .with("load_max", Unit::Count, load_max.unwrap_or(load).max(load))
            .with("load_mean", Unit::Count, load)
            .with("cpu", Unit::Nanoseconds, cpu * 1e9 * scale)
            .with("p50", Unit::Nanoseconds, percentile(0.5))
            .with("p99", Unit::Nanoseconds, percentile(0.99))
            .with("p99.9", Unit::Nanoseconds, percentile(0.999))
            .with("voluntary_switches", Unit::Count, switches(|used| used.voluntary_switches))
            .with("involuntary_switches", Unit::Count, switches(|used| used.involuntary_switches)))
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::from([("turns".to_owned(), self.count.into())]);
        if self.count != TURNS {
            facts.insert("scaled_to_turns".to_owned(), TURNS.into());
        }
        facts
    }
}

/// Looks what two processes use, piece by piece.
#[derive(Debug, Default)]
struct Meter {
    /// Sub, as soon as there is one.
    sub: AtomicU32,
    done: AtomicBool,
}

impl Meter {
    /// How long a piece is.
    const PIECE: Duration = Duration::from_millis(50);

    fn watch(&self, sub: Pid) {
        self.sub.store(sub.as_raw_nonzero().get().cast_unsigned(), Ordering::Relaxed);
    }

    /// CPU time of both so far; none when one has gone.
    fn cpu(&self) -> Option<Duration> {
        let sub = i32::try_from(self.sub.load(Ordering::Relaxed)).ok();
        let sub = sub.and_then(Pid::from_raw)?;
        Some(cpu::time_of(rustix::process::getpid())? + cpu::time_of(sub)?)
    }

    /// Does something, and says what the largest load was meanwhile in percent of all CPUs; none if
    /// it was over too soon.
    fn during<T>(&self, body: impl FnOnce() -> T) -> (T, Option<f64>) {
        std::thread::scope(|scope| {
            let meter = scope.spawn(|| {
                let mut most: Option<f64> = None;
                let mut before: Option<(Instant, Duration)> = None;
                while !self.done.load(Ordering::Relaxed) {
                    let now = self.cpu().map(|cpu| (Instant::now(), cpu));
                    if let (Some((then, used)), Some((now, cpu))) = (before, now) {
                        let part = cpu.saturating_sub(used).as_secs_f64();
                        let load = part / (now - then).as_secs_f64() / cpu::allowed() as f64;
                        most = Some(most.unwrap_or(0.0).max(100.0 * load));
                    }
                    before = now;
                    std::thread::park_timeout(Self::PIECE);
                }
                most
            });
            let result = body();
            self.done.store(true, Ordering::Relaxed);
            meter.thread().unpark();
            (result, meter.join().unwrap_or_default())
        })
    }
}
