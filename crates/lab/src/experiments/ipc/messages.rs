//! `ipc/one-way` and `ipc/round-trip`: the cost of a message, and of a message with its answer, by
//! mechanism.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;

use super::channels;
use super::exchange::{Exchange, ExchangeResult};
use super::settings::{SETTINGS, alternates_cpus, case, exchange, unavailable};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::timing::{Overhead, calibrate_operations, operations_within};
use crate::support::histogram::{MIN_P999_SAMPLES, histogram, percentiles, record};
use crate::support::partners::{Placement, ResourceUsage};

/// The experiment `ipc/one-way`, in which main sends at full speed and sub does not answer.
pub const ONE_WAY: Experiment = message_experiment(
    "ipc/one-way",
    "time of a message at full speed, by mechanism, length and placement",
    "Main sends and sub receives as many messages as pass in about 20 ms. The value is the time of \
     one message, from main's first to sub's last. Each message is written in full, with different \
     content every time, and checked in full; a lost, repeated, reordered or torn message is an \
     error. `cpu_main` and `cpu_sub` are the CPU time of each side for a message, including \
     writing and checking it; `main.write` and similar metrics are system calls for a message, \
     counted where they are made; context switches and page faults are those of both sides. \
     Placements are those of handoff/mechanisms. On one CPU, sender and receiver alternate, with a \
     full buffer each time, and a mechanism that spins uses up its time slice.",
    View::OneWay,
    |parameters| Ok(Box::new(MessageExchange::new(parameters, Pattern::OneWay)?)),
);

/// The experiment `ipc/round-trip`, in which main waits for the answer to each message.
pub const ROUND_TRIP: Experiment = message_experiment(
    "ipc/round-trip",
    "time of a message and its answer, by mechanism, length and placement",
    "Main sends a message and waits for an answer of the same length. The value is the time of \
     both. Round trips are then timed individually for `p50`, `p99` and `p99.9`, with the time of \
     the clock subtracted. The next message is sent when the previous one has been answered, so \
     these are service times without queueing; ipc/rate sends at a fixed rate. Waking a partner \
     costs least on the same CPU, where a context switch is enough; another CPU that is idle has \
     to wake up first, unless `two-awake` keeps it awake. Everything else is as in ipc/one-way.",
    View::RoundTrip,
    |parameters| Ok(Box::new(MessageExchange::new(parameters, Pattern::RoundTrip)?)),
);

/// Returns an experiment with the cases, settings and sampling that `ipc/one-way` and
/// `ipc/round-trip` have in common.
const fn message_experiment(
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
        alternates_cpus,
        demands: Demands::NONE.with_cost_ms(150, 250),
        subject,
    }
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    let message_lengths =
        scope.choose(&[1, 64, 4096, 65_536, 1 << 20], &[1, 4096, 1 << 20], &[1, 4096]);
    let partners = scope.choose(&["process", "thread"], &["process"], &["process"]);
    let all = [Placement::Same, Placement::TwoCpus, Placement::TwoAwakeCpus, Placement::Free];
    let placements = scope.choose(&all, &all[..3], &all[3..]);
    let all = channels::names();
    let quick = [
        "pipe",
        "unix-stream",
        "tcp",
        "posix-queue",
        "ring-futex",
        "ring-spin",
        "process-vm-writev",
        "io-uring",
    ];
    let mechanisms = scope.choose(&all, &quick, &all);
    let mut cases = Vec::new();
    for mechanism in mechanisms.iter().filter_map(|name| channels::find(name)) {
        for &bytes in
            message_lengths.iter().filter(|&&bytes| bytes <= mechanism.max_message_bytes as u64)
        {
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

/// The pattern of an exchange: whether sub answers each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    OneWay,
    RoundTrip,
}

/// Subject of `ipc/one-way` and `ipc/round-trip`: an exchange of messages in the given pattern.
struct MessageExchange {
    exchange: Exchange,
    pattern: Pattern,
    /// Number of measured messages in a sample; `None` until it is calibrated.
    count: Option<u64>,
    overhead: Overhead,
}

/// Number of measured messages in the first calibration run, and of warm-up messages in every
/// calibration run.
const CALIBRATION_MESSAGES: u64 = 10;
/// Maximum number of warm-up messages, which warm caches and map pages. [`warm_up`] returns fewer
/// for slow or long messages.
const WARM_UP_MESSAGES: u64 = 100;
/// Target time of the measured messages of a sample. The individually timed round trips take
/// additional time.
const SAMPLE_TIME: Duration = Duration::from_millis(20);
/// Time budget for the individually timed round trips of a sample.
const SINGLE_TRIPS_TIME: Duration = Duration::from_millis(45);
/// Minimum number of measured messages in a sample, and of individually timed round trips.
const MIN_MESSAGES: u64 = 10;
/// Maximum number of measured messages in a sample.
const MAX_MESSAGES: u64 = 4_000_000;

impl MessageExchange {
    fn new(parameters: &Parameters, pattern: Pattern) -> Result<Self, SubjectError> {
        let exchange = exchange(parameters, CALIBRATION_MESSAGES)?;
        Ok(Self { exchange, pattern, count: None, overhead: Overhead::measure() })
    }

    fn exchange_messages(&self, count: u64) -> Result<ExchangeResult, SubjectError> {
        match self.pattern {
            Pattern::OneWay => self.exchange.one_way(count),
            Pattern::RoundTrip => self.exchange.round_trips(count, None),
        }
    }

    /// Returns the number of measured messages in a sample. The first call calibrates this number
    /// and that of the warm-up messages, which must be small if messages are slow: two partners
    /// that spin on one CPU take a time slice for each message, so a hundred messages would take a
    /// second.
    fn calibrated_count(&mut self) -> Result<u64, SubjectError> {
        if let Some(count) = self.count {
            return Ok(count);
        }
        let take = |count| Ok(self.exchange_messages(count)?.elapsed);
        let range = MIN_MESSAGES..=MAX_MESSAGES;
        let count = calibrate_operations(SAMPLE_TIME, CALIBRATION_MESSAGES, range, take)?;
        self.exchange.warm_up = warm_up(count, self.exchange.bytes);
        Ok(*self.count.insert(count))
    }

    /// Times `affordable` round trips individually, but at least [`MIN_MESSAGES`] and at most
    /// [`MIN_P999_SAMPLES`], and adds the percentiles of their times to the sample. The time of
    /// reading the clock is subtracted from each.
    fn with_percentiles(&self, sample: Sample, affordable: u64) -> Result<Sample, SubjectError> {
        let mut histogram = histogram()?;
        let clock = Duration::from_secs_f64(self.overhead.clock.max(0.0) / 1e9);
        let mut record_trip = |time: Duration| record(&mut histogram, time.saturating_sub(clock));
        self.exchange.round_trips(
            affordable.clamp(MIN_MESSAGES, MIN_P999_SAMPLES),
            Some(&mut record_trip),
        )?;
        Ok(percentiles(&histogram).fold(sample, |sample, (name, nanoseconds)| {
            sample.with(name, Unit::Nanoseconds, nanoseconds)
        }))
    }
}

/// Returns the number of warm-up messages before `count` measured messages of `bytes` bytes:
/// [`WARM_UP_MESSAGES`], but at most `count`, and at most 16 MiB of messages.
fn warm_up(count: u64, bytes: usize) -> u64 {
    const MAX_WARM_UP_BYTES: u64 = 16 << 20;
    WARM_UP_MESSAGES.min(MAX_WARM_UP_BYTES / bytes as u64).min(count)
}

/// Returns the sample for an exchange of `count` measured messages. Its value and metrics are means
/// for one message or, if sub answers, for one round trip.
pub fn sample_of(result: &ExchangeResult, count: u64) -> Sample {
    let per_message = |total: f64| total / count as f64;
    let mut sample = Sample::of(per_message(result.elapsed.as_nanos() as f64));
    for (who, stats) in ["main", "sub"].into_iter().zip(&result.stats) {
        let cpu = per_message(stats.used.cpu.as_nanos() as f64);
        sample = sample.with(&format!("cpu_{who}"), Unit::Nanoseconds, cpu);
        let calls = per_message(stats.calls.total() as f64);
        sample = sample.with(&format!("calls_{who}"), Unit::Count, calls);
        for (name, calls) in stats.calls.named() {
            sample = sample.with(&format!("{who}.{name}"), Unit::Count, per_message(calls as f64));
        }
    }
    let of_both = |counter: fn(&ResourceUsage) -> u64| {
        per_message(result.stats.iter().map(|stats| counter(&stats.used)).sum::<u64>() as f64)
    };
    sample
        .with("voluntary_switches", Unit::Count, of_both(|used| used.voluntary_switches))
        .with("involuntary_switches", Unit::Count, of_both(|used| used.involuntary_switches))
        .with("minor_faults", Unit::Count, of_both(|used| used.faults))
}

impl Subject for MessageExchange {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let count = self.calibrated_count()?;
        let result = self.exchange_messages(count)?;
        let mut sample = sample_of(&result, count);
        if self.pattern == Pattern::RoundTrip {
            sample = self.with_percentiles(
                sample,
                operations_within(SINGLE_TRIPS_TIME, result.elapsed, count),
            )?;
        }
        sample.facts = self.facts();
        sample.facts.insert("messages".to_owned(), count.into());
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        facts(&self.exchange)
    }
}

/// Returns the facts about an exchange for the record: its mechanism, its wait strategy and, if the
/// placement binds the partners, their CPUs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_is_shorter_for_slow_or_long_messages() {
        assert_eq!(warm_up(MAX_MESSAGES, 1), 100);
        assert_eq!(warm_up(MIN_MESSAGES, 1), 10);
        assert_eq!(warm_up(MAX_MESSAGES, 1 << 20), 16);
    }

    #[test]
    fn partners_that_spin_on_one_cpu_exchange_few_messages() {
        let spin = channels::find("ring-spin").expect("it is in the table");
        let parameters = case(spin, 1, "process", Placement::Same);
        let mut subject = MessageExchange::new(&parameters, Pattern::RoundTrip).expect("it exists");
        assert_eq!(subject.exchange.warm_up, CALIBRATION_MESSAGES);
        subject.sample(1, &mut |_| {}).expect("it works");
        let count = subject.count.expect("it was found");
        assert_eq!(subject.exchange.warm_up, warm_up(count, 1));
    }
}
