//! `ipc/one-way` and `ipc/round-trip`: what a message costs, mechanism by mechanism.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;

use super::channels;
use super::exchange::{Exchange, Taken};
use super::settings::{SETTINGS, case, exchange, hands_over, unavailable};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::timing::{Overhead, as_many_as_fit, how_many};
use crate::support::histogram::{ENOUGH, histogram, note, percentiles};
use crate::support::pair::{Placement, Used};

/// The row of `ipc/one-way`.
pub const ONE_WAY: Experiment = row(
    "ipc/one-way",
    "messages sent as fast as they are received, by each mechanism, length and placement",
    "Main sends messages, sub receives them: as many as pass in about 20 ms. The value is the time \
            of one of them, from main's first to sub's last. Every message is written in full, a \
            different one each time, and read in full: one that is lost, comes twice, in the wrong order \
            or not whole is an error. `cpu_main` and `cpu_sub` are the CPU time of either side for a \
            message, that for writing and reading it included; `main.write` and the like are system \
            calls for a message, counted where they are made; switches and page faults are those of both \
            sides. Placements are those of handoff/mechanisms. Where both are on one CPU, sender and \
            receiver take turns, a buffer full at a time; one that spins holds the CPU until the end of \
            its time slice.",
    View::OneWay,
    |parameters| Ok(Box::new(Messages::new(parameters, Pattern::OneWay)?)),
);

/// The row of `ipc/round-trip`.
pub const ROUND_TRIP: Experiment = row(
    "ipc/round-trip",
    "a message to a partner and its answer, by each mechanism, length and placement",
    "Main sends a message and waits for its answer, which is as long: the value is the time of \
            both. Everything else is as in ipc/one-way. As many messages again are timed one by one, for \
            `p50`, `p99` and `p99.9`, without the clock's own time. The next message is sent when the \
            one before has been answered, so that these are times of service; ipc/rate sends at a fixed \
            rate. What wakes a partner depends on where it sleeps: on the same CPU it only has to be \
            switched to, another CPU that is idle has to be woken, and one that something else keeps \
            awake does not.",
    View::RoundTrip,
    |parameters| Ok(Box::new(Messages::new(parameters, Pattern::RoundTrip)?)),
);

/// A row of the table: messages of which each is timed with many others.
const fn row(
    name: &'static str,
    summary: &'static str,
    about: &'static str,
    view: View,
    subject: fn(&Parameters) -> Result<Box<dyn Subject>, SubjectError>,
) -> Experiment {
    Experiment {
        name,
        summary,
        about,
        view,
        unit: Unit::Nanoseconds,
        sampling: Sampling::Fixed(7),
        fit: Fit::None,
        settings: &SETTINGS,
        cases,
        unavailable,
        hands_over,
        demands: Demands::NONE.lasting(150, 250),
        subject,
    }
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    let lengths = scope.choose(&[1, 64, 4096, 65_536, 1 << 20], &[1, 4096, 1 << 20], &[1, 4096]);
    let partners = scope.choose(&["process", "thread"], &["process"], &["process"]);
    let all = [Placement::Same, Placement::Apart, Placement::Awake, Placement::Free];
    let placements = scope.choose(&all, &all[..3], &all[3..]);
    let all = channels::names();
    let few = [
        "pipe",
        "unix-stream",
        "tcp",
        "posix-queue",
        "ring-futex",
        "ring-spin",
        "process-vm-writev",
        "io-uring",
    ];
    let mechanisms = scope.choose(&all, &few, &all);
    let mut cases = Vec::new();
    for mechanism in mechanisms.iter().filter_map(|name| channels::find(name)) {
        for &bytes in lengths.iter().filter(|&&bytes| bytes <= mechanism.most as u64) {
            for &partners in partners {
                for &placement in placements {
                    if partners == "process" || mechanism.between_threads {
                        cases.push(case(mechanism, bytes, partners, placement));
                    }
                }
            }
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

/// Who sends when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    OneWay,
    RoundTrip,
}

/// Messages that are exchanged.
struct Messages {
    exchange: Exchange,
    pattern: Pattern,
    /// Of a sample, as soon as that is known.
    count: Option<u64>,
    overhead: Overhead,
}

/// Messages by which it is found out how many make a sample.
const TRIAL: u64 = 10;
/// Messages before those that are measured: caches are warm, and pages are there.
const WARM_UP: u64 = 100;
/// What a sample is to take.
const SAMPLE: Duration = Duration::from_millis(20);
/// Round trips one by one may take so long for there to be enough for a percentile of 99.9.
const ONE_BY_ONE: Duration = Duration::from_millis(45);
/// Messages of a sample, at least and at most.
const FEWEST: u64 = 10;
const MOST: u64 = 4_000_000;

impl Messages {
    fn new(parameters: &Parameters, pattern: Pattern) -> Result<Self, SubjectError> {
        let exchange = exchange(parameters, WARM_UP)?;
        // Long ones are soon warm.
        let warm_up = WARM_UP.min((16 << 20) / exchange.bytes as u64);
        let exchange = Exchange { warm_up, ..exchange };
        Ok(Self { exchange, pattern, count: None, overhead: Overhead::measure() })
    }

    fn take(&self, count: u64) -> Result<Taken, SubjectError> {
        match self.pattern {
            Pattern::OneWay => self.exchange.one_way(count),
            Pattern::RoundTrip => self.exchange.round_trips(count, None),
        }
    }

    /// Adds percentiles of single round trips.
    fn one_by_one(&self, sample: Sample, affordable: u64) -> Result<Sample, SubjectError> {
        let mut histogram = histogram()?;
        let clock = Duration::from_secs_f64(self.overhead.clock.max(0.0) / 1e9);
        let mut each = |time: Duration| note(&mut histogram, time.saturating_sub(clock));
        self.exchange.round_trips(affordable.clamp(FEWEST, ENOUGH), Some(&mut each))?;
        Ok(percentiles(&histogram).fold(sample, |sample, (name, nanoseconds)| {
            sample.with(name, Unit::Nanoseconds, nanoseconds)
        }))
    }
}

/// The sample of so many messages.
pub fn sample_of(taken: &Taken, count: u64) -> Sample {
    let each = |figure: f64| figure / count as f64;
    let mut sample = Sample::of(each(taken.elapsed.as_nanos() as f64));
    for (who, done) in ["main", "sub"].into_iter().zip(&taken.done) {
        let cpu = each(done.used.cpu.as_nanos() as f64);
        sample = sample.with(&format!("cpu_{who}"), Unit::Nanoseconds, cpu);
        let calls = each(done.calls.total() as f64);
        sample = sample.with(&format!("calls_{who}"), Unit::Count, calls);
        for (name, calls) in done.calls.named() {
            sample = sample.with(&format!("{who}.{name}"), Unit::Count, each(calls as f64));
        }
    }
    let of_both = |figure: fn(&Used) -> u64| {
        each(taken.done.iter().map(|done| figure(&done.used)).sum::<u64>() as f64)
    };
    sample
        .with("voluntary_switches", Unit::Count, of_both(|used| used.voluntary_switches))
        .with("involuntary_switches", Unit::Count, of_both(|used| used.involuntary_switches))
        .with("minor_faults", Unit::Count, of_both(|used| used.faults))
}

impl Subject for Messages {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let count = if let Some(count) = self.count {
            count
        } else {
            let take = |count| Ok(self.take(count)?.elapsed);
            *self.count.insert(as_many_as_fit(SAMPLE, TRIAL, FEWEST..=MOST, take)?)
        };
        let taken = self.take(count)?;
        let mut sample = sample_of(&taken, count);
        if self.pattern == Pattern::RoundTrip {
            sample = self.one_by_one(sample, how_many(ONE_BY_ONE, taken.elapsed, count))?;
        }
        sample.facts = self.facts();
        sample.facts.insert("messages".to_owned(), count.into());
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        facts(&self.exchange)
    }
}

/// What is worth knowing of an exchange.
pub fn facts(exchange: &Exchange) -> Facts {
    let mechanism = exchange.mechanism;
    let mut facts = Facts::from([
        ("mechanism_is".to_owned(), mechanism.summary.into()),
        ("waits".to_owned(), mechanism.waiting.name().into()),
    ]);
    let cpus = exchange.pair.placement.describe();
    facts.extend(cpus.map(|cpus| ("cpus".to_owned(), cpus.into())));
    facts
}
