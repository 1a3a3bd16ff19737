//! `runtime/memory`: memory of n waiting units, in every runtime.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::probe::{EarlyEnds, Probe};
use super::table::{Row, TABLE};
use super::{DEMANDS, N, UNIT, cost, row, unavailable};
use crate::engine::experiment::{
    Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::engine::setting::Setting;
use crate::support::process_tree::read_until_stable;

/// The definition of `runtime/memory`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "runtime/memory",
    summary: "memory of n waiting units, and of one by a line through n, in every runtime",
    about: "A probe, a small program in the runtime's own language, creates n units. Each counts itself before \
            it waits (timers and promise callbacks run no code before, so they are counted when they are created). \
            Memory is read while all of them wait. Then all are woken, and count themselves when they end. A \
            figure is valid only if n units waited, none had ended before memory was read, and n have ended. The \
            value is the growth of the probe's memory (PSS of its processes, without mapped files); the slope of a line through the \
            values over n is the memory of one unit, without the fixed cost of the runtime. `kernel` is the \
            growth of kernel memory: page tables of the probe, and stacks and unreclaimable objects of the whole \
            machine, which vary by a few hundred kB. `runtime` is the growth that the runtime itself reports. \
            `create` and `end` are times for one unit; units with timers have no `end`. `left` is the part of the \
            value that remains after all units have ended and garbage has been collected, `left_1s` a second later.",
    view: View::RuntimeMemory,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit: Fit::Line(names::N),
    settings: &SETTINGS,
    cases,
    unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: DEMANDS.with_cost(cost::memory),
    subject: |parameters| Ok(Box::new(Memory::new(parameters)?)),
};

const SETTINGS: [&Setting; 2] = [&UNIT, &N];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let of = |row: &Row, n: u64| Parameters::new().with(UNIT.name, row.unit).with(N.name, n);
    let cases = TABLE.iter().flat_map(|row| {
        let counts = counts(scope, row.max_units.min(scope.max_units));
        counts.into_iter().map(move |n| of(row, n))
    });
    scope.choices.applied(cases.collect(), &SETTINGS)
}

/// Returns the numbers of units to measure: the default numbers that do not exceed `max`. If fewer
/// than two of several default numbers are left, which are too few to fit a line, or if a single
/// default number exceeds `max`, returns a hundredth, a tenth and all of `max` instead, as far as
/// these are not 0.
fn counts(scope: &Scope, max: u64) -> Vec<u64> {
    let many = [100, 1000, 10_000, 100_000, 1_000_000];
    let default_counts = scope.choose(&many, &many[..4], &[20]);
    let counts: Vec<_> = default_counts.iter().copied().filter(|&n| n <= max).collect();
    if counts.len() >= default_counts.len().min(2) {
        return counts;
    }
    let mut counts: Vec<_> = [100, 10, 1].map(|part| max / part).into();
    counts.retain(|&n| n > 0);
    counts
}

struct Memory {
    n: u64,
    row: &'static Row,
    /// Whether memory is read once more, one second after the reading for `left`.
    reads_later: bool,
}

impl Memory {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let (n, row) = (parameters.number(N.name).unwrap_or(1), row(parameters)?);
        Ok(Self { n, row, reads_later: true })
    }
}

impl Memory {
    /// Measures memory once, with timers that are due after `hold`. Returns `EarlyEnds` if units
    /// ended before their memory was read.
    fn measure(&self, hold: Duration) -> Result<Result<Sample, EarlyEnds>, SubjectError> {
        let mut probe = Probe::start(self.row)?;
        let none = probe.rest()?;
        let before = read_until_stable(|| probe.memory_use())?;
        let parked = probe.park(self.n, hold)?;
        let waiting = probe.memory_use()?;
        let end = match probe.wake(self.n)? {
            Ok(each) => each,
            Err(early) => return Ok(Err(early)),
        };
        probe.rest()?;
        let left = read_until_stable(|| probe.memory_use())?;
        let later = if self.reads_later {
            std::thread::sleep(Duration::from_secs(1));
            Some(probe.memory_use()?)
        } else {
            None
        };
        let more = |now: u64, before: u64| now as f64 - before as f64;
        let sample = Sample::of(more(waiting.user, before.user))
            .with("kernel", Unit::Bytes, more(waiting.kernel, before.kernel))
            .with("create", Unit::Nanoseconds, parked.ns_per_unit)
            .with("left", Unit::Bytes, more(left.user, before.user));
        let sample = match later {
            Some(later) => sample.with("left_1s", Unit::Bytes, more(later.user, before.user)),
            None => sample,
        };
        let sample = match parked.runtime_bytes.zip(none) {
            Some((now, none)) => sample.with("runtime", Unit::Bytes, now - none),
            None => sample,
        };
        // Units with timers end when their timers are due, so there is no time to wake them.
        let sample = match self.row.max_create_time {
            None => sample.with("end", Unit::Nanoseconds, end),
            Some(_) => sample,
        };
        let facts = Facts::from([
            ("runtime".to_owned(), self.row.runtime.into()),
            ("version".to_owned(), probe.version.as_str().into()),
            ("unit_is".to_owned(), self.row.summary.into()),
        ]);
        Ok(Ok(Sample { facts, ..sample }))
    }
}

impl Subject for Memory {
    fn skip_slow_metrics(&mut self) {
        self.reads_later = false;
    }

    /// Measures memory once. If timers fired before memory was read, measures once more with a
    /// longer `hold`, because the creation times in the table come from one machine.
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        const HOLD_FACTOR: u32 = 4;
        let hold = self.row.hold(self.n);
        let measured = match self.measure(hold)? {
            Err(_) if self.row.max_create_time.is_some() => self.measure(hold * HOLD_FACTOR)?,
            measured => measured,
        };
        measured.map_err(|early| early.of(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fake_probe;
    use super::*;
    use crate::engine::experiment::Size;

    #[test]
    fn a_fit_has_at_least_two_unit_counts() {
        let [full, quick, smallest] = [Size::Full, Size::Quick, Size::Smallest].map(Scope::of);
        assert_eq!(counts(&full, 10_000), [100, 1000, 10_000]);
        assert_eq!(counts(&full, 150), [1, 15, 150]);
        assert_eq!(counts(&quick, 1_000_000), [100, 1000, 10_000, 100_000]);
        assert_eq!(counts(&quick, 10_000), [100, 1000, 10_000]);
        assert_eq!(counts(&quick, 1000), [100, 1000]);
        assert_eq!(counts(&smallest, 1000), [20]);
        assert_eq!(counts(&quick, 5), [5]);
    }

    #[test]
    fn units_that_end_too_early_wait_longer_the_second_time() {
        let max_create_time = Some(Duration::from_micros(1));
        for (unit, max_create_time, is_measured) in [
            ("hurried", max_create_time, true),
            ("hurried", None, false),
            ("early", max_create_time, false),
        ] {
            let row = Box::leak(Box::new(Row { max_create_time, ..fake_probe(unit) }));
            let sample = Memory { n: 3, row, reads_later: true }.sample(1, &mut |_| {});
            assert_eq!(sample.is_ok(), is_measured, "{unit} {max_create_time:?}: {sample:?}");
        }
    }
}
