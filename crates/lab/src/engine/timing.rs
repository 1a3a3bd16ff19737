//! Times operations in a loop.
//!
//! Only the loop runs between the two readings of the clock. The cost of the clock and of an empty
//! loop is measured first and subtracted.

use std::hint::black_box;
use std::io;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit};
use contend_record::stats::median;
use contend_sys::{Pid, child, cpu};
use rustix::time::{ClockId, clock_gettime};

use crate::engine::experiment::{ErrorContext, Facts, Sample, Subject, SubjectError};

/// The overhead of the clock and of the loop.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overhead {
    /// Time between two consecutive readings of the clock, in nanoseconds.
    pub clock: f64,
    /// Time of one iteration of the loop with an empty operation, in nanoseconds.
    pub iteration: f64,
}

const CALIBRATION_RUNS: usize = 11;
const LOOP_ITERATIONS: u64 = 50_000;

impl Overhead {
    /// Measures the overhead, which takes a few milliseconds.
    pub fn measure() -> Self {
        let clock = median_of_runs(|| {
            let started = Instant::now();
            (0..1000).for_each(|_| {
                black_box(Instant::now());
            });
            started.elapsed().as_nanos() as f64 / 1000.0
        });
        let iteration = median_of_runs(|| match elapsed(&mut || Ok(()), LOOP_ITERATIONS) {
            Ok(time) => (time.as_nanos() as f64 - clock) / LOOP_ITERATIONS as f64,
            Err(_) => 0.0,
        });
        Self { clock, iteration }
    }
}

fn median_of_runs(mut once: impl FnMut() -> f64) -> f64 {
    let times: Vec<f64> = (0..CALIBRATION_RUNS).map(|_| once()).collect();
    median(&times).unwrap_or(0.0)
}

/// Returns the smallest observed step between two different readings of the clock, in nanoseconds.
pub fn clock_resolution() -> f64 {
    let step = |_| {
        let first = Instant::now();
        loop {
            let step = first.elapsed();
            if !step.is_zero() {
                break step.as_nanos() as f64;
            }
        }
    };
    (0..1000).map(step).fold(f64::INFINITY, f64::min)
}

/// Converts a duration to whole nanoseconds, at most `u64::MAX`.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time of `CLOCK_MONOTONIC`, which all processes share, in nanoseconds.
pub fn now() -> u64 {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).map_or(0, nanoseconds)
}

/// Returns the number of operations that fit into `time`, if `operations` of them took `taken`.
pub fn operations_within(time: Duration, taken: Duration, operations: u64) -> u64 {
    let each = taken.as_nanos() / u128::from(operations.max(1));
    u64::try_from(time.as_nanos() / each.max(1)).unwrap_or(u64::MAX)
}

/// Returns the number of operations that fit into `time`, clamped to `range`. `run` does the given
/// number of operations and returns their duration. It is called with `first_guess` operations,
/// then with the resulting number, since a warm operation may be faster.
///
/// # Errors
/// Returns the error of `run`.
///
/// # Panics
/// Panics if `range` is empty.
pub fn calibrate_operations(
    time: Duration,
    first_guess: u64,
    range: RangeInclusive<u64>,
    mut run: impl FnMut(u64) -> Result<Duration, SubjectError>,
) -> Result<u64, SubjectError> {
    let mut operations = first_guess;
    for _ in 0..2 {
        let taken = run(operations)?;
        operations = operations_within(time, taken, operations).clamp(*range.start(), *range.end());
    }
    Ok(operations)
}

/// Runs the operation `iterations` times and returns the wall time. Never inlined, so that the same
/// machine code times the empty operation and all others.
#[inline(never)]
fn elapsed(operation: &mut dyn FnMut() -> io::Result<()>, iterations: u64) -> io::Result<Duration> {
    let started = Instant::now();
    for _ in 0..iterations {
        operation()?;
    }
    Ok(started.elapsed())
}

/// A subject that times an operation in a loop.
pub struct Timed<F> {
    overhead: Overhead,
    operation: F,
    /// Number of units of work in one operation. Measurements are divided by it.
    units: u64,
    /// Children that outlive an operation. Their CPU time counts like that of children that have
    /// ended.
    children: Vec<Pid>,
    facts: Facts,
}

impl<F: FnMut() -> io::Result<()>> Timed<F> {
    /// Measures the overhead, then creates a subject that times `operation`.
    pub fn new(operation: F) -> Self {
        let overhead = Overhead::measure();
        Self { overhead, operation, units: 1, children: Vec::new(), facts: Facts::new() }
    }

    /// Sets the number of units of work in one operation, such as created processes, by which
    /// measurements are divided. It has to be positive; the default is 1.
    #[must_use]
    pub fn of_units(mut self, units: u64) -> Self {
        self.units = units;
        self
    }

    /// Sets the children that outlive an operation, so that their CPU time counts like that of
    /// children that have ended.
    #[must_use]
    pub fn with_children(mut self, children: Vec<Pid>) -> Self {
        self.children = children;
        self
    }

    /// Sets the facts for the record.
    #[must_use]
    pub fn with_facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    fn resources(&self) -> Resources {
        let own = child::own_usage();
        let mut children = child::children_usage().cpu();
        children += self.children.iter().filter_map(|&pid| cpu::time_of(pid)).sum::<Duration>();
        Resources {
            own: cpu::own_time(),
            children,
            voluntary: own.voluntary_switches,
            involuntary: own.involuntary_switches,
            faults: own.minor_faults,
        }
    }
}

/// Resource usage so far: CPU time of this process and its children, and the context switches and
/// minor page faults of this process.
struct Resources {
    own: Duration,
    children: Duration,
    voluntary: u64,
    involuntary: u64,
    faults: u64,
}

impl<F: FnMut() -> io::Result<()>> Subject for Timed<F> {
    fn sample(
        &mut self,
        iterations: u64,
        _tell: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError> {
        let before = self.resources();
        let time = elapsed(&mut self.operation, iterations).context("do the operation")?;
        let after = self.resources();
        let iterations = iterations.max(1) as f64;
        let count = iterations * self.units as f64;
        let net =
            time.as_nanos() as f64 - self.overhead.clock - iterations * self.overhead.iteration;
        let each = |time: Duration| time.as_nanos() as f64 / count;
        let events = |after: u64, before: u64| after.saturating_sub(before) as f64 / count;
        Ok(Sample::of(net / count)
            .with("cpu_self", Unit::Nanoseconds, each(after.own.saturating_sub(before.own)))
            .with(
                "cpu_children",
                Unit::Nanoseconds,
                each(after.children.saturating_sub(before.children)),
            )
            .with("voluntary_switches", Unit::Count, events(after.voluntary, before.voluntary))
            .with(
                "involuntary_switches",
                Unit::Count,
                events(after.involuntary, before.involuntary),
            )
            .with("minor_faults", Unit::Count, events(after.faults, before.faults)))
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn living_children_cpu(&self) -> Duration {
        self.children.iter().filter_map(|&pid| cpu::time_of(pid)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operation_is_done_as_often_as_asked_and_divided_by_its_units() {
        let mut done = 0;
        {
            let mut subject = Timed::new(|| {
                done += 1;
                std::thread::sleep(Duration::from_millis(2));
                Ok(())
            })
            .of_units(4);
            let sample = subject.sample(3, &mut |_| {}).expect("it works");
            assert!(sample.value >= 0.5e6, "2 ms divided by 4 units: {}", sample.value);
            assert!(sample.metrics["voluntary_switches"].0 > 0.0);
        }
        assert_eq!(done, 3);
    }

    #[test]
    fn an_operation_that_fails_gives_no_sample() {
        let mut subject = Timed::new(|| Err(io::ErrorKind::OutOfMemory.into()));
        let error = subject.sample(1, &mut |_| {}).expect_err("it fails");
        assert_eq!(error.to_string(), "cannot do the operation: out of memory");
    }

    #[test]
    fn the_clock_steps_forward() {
        assert!(clock_resolution() >= 1.0);
        assert!(Overhead::measure().clock > 0.0);
    }
}
