//! `ipc/rate`: the latency of messages sent at a fixed rate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;
use contend_sys::shared::{Line, Shared};

use super::channels::{self, WaitStrategy};
use super::exchange::{EXTRA_VALUES, Exchange};
use super::messages::{facts, sample_of};
use super::payload;
use super::settings::{BYTES, MECHANISM, alternates_cpus, case, exchange, unavailable};
use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::setting::Setting;
use crate::engine::timing::now;
use crate::support::histogram::{histogram, percentiles, record};
use crate::support::partners::Placement;
use crate::support::partners::settings::{PARTNERS, PLACEMENT};

/// The experiment `ipc/rate`, in which main sends each message when it is due.
pub const EXPERIMENT: Experiment = Experiment {
    name: "ipc/rate",
    summary: "latency of messages sent at a fixed rate, including queueing, by mechanism",
    about: "Main sends `rate_per_s` messages a second, each when it is due, for 250 ms and at \
        least 100 messages. Sub records when it has received each. The value is the median \
        latency; `p99`, `p99.9` and `max` are recorded as well. Latency counts from when a message \
        was due rather than from when it was sent, so that a delay also counts for the messages \
        queued after it. `late` is the percentage of messages that main started to send more than \
        10 µs after they were due. Main spins on the clock while it waits, so its CPU is awake; on \
        one CPU, sub has to preempt main. If a mechanism cannot sustain the rate, latency grows \
        during the sample.",
    view: View::MessageRate,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(5),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable,
    alternates_cpus,
    demands: Demands::NONE,
    subject: |parameters| Ok(Box::new(FixedRate::new(parameters)?)),
};

/// Parameter that sets the rate, in messages a second.
const RATE: Setting = Setting::number(
    "rate_per_s",
    "messages a second [default: 1000, 10000, 100000]",
    1,
    10_000_000,
);

const SETTINGS: [&Setting; 5] = [&MECHANISM, &BYTES, &PARTNERS, &PLACEMENT, &RATE];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let all = channels::names();
    let quick = ["pipe", "unix-stream", "tcp", "eventfd", "ring-futex", "ring-spin"];
    let mechanisms = scope.choose(&all, &quick, &quick);
    let rates = scope.choose(&[1000, 10_000, 100_000_u64], &[1000, 100_000], &[10_000]);
    let placements = [Placement::TwoCpus, Placement::Same];
    let mut cases = Vec::new();
    for mechanism in mechanisms.iter().filter_map(|name| channels::find(name)) {
        // Two partners that only spin on one CPU take a time slice for each message.
        let count = if mechanism.waiting == WaitStrategy::Spin { 1 } else { 2 };
        for &placement in &placements[..count] {
            for &rate in rates {
                cases.push(case(mechanism, 1, "process", placement).with(RATE.name, rate));
            }
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

/// Duration of a sample, unless the minimum number of messages takes longer.
const SAMPLE_TIME: Duration = Duration::from_millis(250);
/// Minimum number of messages in a sample.
const MIN_MESSAGES: u64 = 100;
/// Delay in nanoseconds above which a message counts as sent late.
const LATE_THRESHOLD_NS: u64 = 10_000;

/// Subject that sends messages at a fixed rate.
struct FixedRate {
    exchange: Exchange,
    /// Number of messages a second, at least 1.
    rate: u64,
}

impl FixedRate {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let rate = parameters.number(RATE.name).unwrap_or(1000).max(1);
        Ok(Self { exchange: exchange(parameters, 100)?, rate })
    }
}

/// Spins until `due`, a time in nanoseconds of `CLOCK_MONOTONIC`. Returns the delay: the
/// nanoseconds from `due` to now.
fn spin_until(due: u64) -> u64 {
    loop {
        match now().checked_sub(due) {
            Some(late) => return late,
            None => std::hint::spin_loop(),
        }
    }
}

impl Subject for FixedRate {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let interval = 1_000_000_000 / self.rate;
        let wanted = SAMPLE_TIME.as_nanos() / u128::from(interval.max(1));
        let count = u64::try_from(wanted).unwrap_or(u64::MAX).max(MIN_MESSAGES);
        let warm_up = self.exchange.warm_up;
        let begin = Shared::new(Line(AtomicU64::new(0))).context("map shared memory")?;
        let due = |number: u64| begin.load(Ordering::Acquire) + (number - warm_up) * interval;
        let mut late = 0;
        let mut latencies = histogram()?;
        let result = self.exchange.run(
            count,
            &mut |end, numbers| {
                if numbers.start < warm_up {
                    return end.send_all(numbers);
                }
                begin.store(now() + interval, Ordering::Release);
                for number in numbers {
                    late += u64::from(spin_until(due(number)) > LATE_THRESHOLD_NS);
                    payload::write(end.draft()?, number);
                    end.send()?;
                    end.flush()?;
                }
                Ok(())
            },
            &mut |end, numbers| {
                for number in numbers {
                    end.receive_all(number..number + 1)?;
                    if number >= warm_up {
                        record(
                            &mut latencies,
                            Duration::from_nanos(now().saturating_sub(due(number))),
                        );
                    }
                }
                let mut extra = [0; EXTRA_VALUES];
                for (to, (_, nanoseconds)) in extra.iter_mut().zip(percentiles(&latencies)) {
                    *to = nanoseconds.to_bits();
                }
                extra[EXTRA_VALUES - 1] = latencies.max();
                Ok(extra)
            },
            &|_| (),
        )?;
        let names = ["p50", "p99", "p99.9"];
        let percentiles = names.into_iter().zip(result.extra).filter(|(_, bits)| *bits != 0);
        let mut sample = sample_of(&result, count);
        sample.value = f64::from_bits(result.extra[0]);
        for (name, bits) in percentiles.skip(1) {
            sample = sample.with(name, Unit::Nanoseconds, f64::from_bits(bits));
        }
        let achieved = count as f64 / result.elapsed.as_secs_f64();
        sample = sample
            .with("max", Unit::Nanoseconds, result.extra[EXTRA_VALUES - 1] as f64)
            .with("late", Unit::Count, 100.0 * late as f64 / count as f64)
            .with("achieved_per_s", Unit::Count, achieved);
        sample.facts = self.facts();
        sample.facts.insert("messages".to_owned(), count.into());
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        facts(&self.exchange)
    }
}
