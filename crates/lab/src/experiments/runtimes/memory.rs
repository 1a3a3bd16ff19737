//! `runtime/memory`: what n units take while they wait, in every runtime.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::probe::{Early, Probe};
use super::table::{Row, TABLE};
use super::{DEMANDS, N, UNIT, cost, row, unavailable};
use crate::engine::experiment::{
    Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError, never_hands_over,
};
use crate::engine::setting::Setting;
use crate::support::tree::settled;

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "runtime/memory",
    summary: "memory of n units that wait, and of one by a line through n, in every runtime",
    about: "A probe, a small program in the runtime's own language, makes n units; each counts itself \
            before it waits (timers and functions behind promises, which run nothing before they end, are \
            counted as they are made), and memory is read when all of them wait. Then all are woken, and count \
            themselves when they end. There is no figure unless as many waited as were made, none had \
            ended before memory was read, and as many have ended. The value is what the probe's processes \
            take more than before (PSS); the line through the values over n gives the bytes of one unit, \
            whatever the runtime takes without any. `kernel` is what the kernel keeps for them besides: page \
            tables, and stacks and objects of the whole machine, where a few hundred kB are chance. \
            `runtime` is what the runtime itself says that it uses more than with none. `create` and `end` \
            are for one unit; those that wait for time have no `end`. `left` is what of the value is still \
            taken when they have ended and garbage has been collected, and `left_1s` a second later.",
    view: View::RuntimeMemory,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit: Fit::Line(names::N),
    settings: &SETTINGS,
    cases,
    unavailable,
    hands_over: never_hands_over,
    demands: DEMANDS.lasting_by(cost::memory),
    subject: |parameters| Ok(Box::new(Memory::new(parameters)?)),
};

const SETTINGS: [&Setting; 2] = [&UNIT, &N];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let of = |row: &Row, n: u64| Parameters::new().with(UNIT.name, row.unit).with(N.name, n);
    let cases = TABLE.iter().flat_map(|row| {
        let counts = counts(scope, row.most.min(scope.max_units));
        counts.into_iter().map(move |n| of(row, n))
    });
    scope.choices.applied(cases.collect(), &SETTINGS)
}

/// How many units are made, up to so many: two numbers at least where there is to be a line.
fn counts(scope: &Scope, most: u64) -> Vec<u64> {
    let many = [100, 1000, 10_000, 100_000, 1_000_000];
    let usual = scope.choose(&many, &many[..4], &[20]);
    let counts: Vec<_> = usual.iter().copied().filter(|&n| n <= most).collect();
    if counts.len() >= usual.len().min(2) {
        return counts;
    }
    let mut counts: Vec<_> = [100, 10, 1].map(|part| most / part).into();
    counts.retain(|&n| n > 0);
    counts
}

struct Memory {
    n: u64,
    row: &'static Row,
    /// Whether memory is read once more a second after the units have ended.
    reads_later: bool,
}

impl Memory {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let (n, row) = (parameters.number(N.name).unwrap_or(1), row(parameters)?);
        Ok(Self { n, row, reads_later: true })
    }
}

impl Memory {
    /// Measures units of which those that wait for time do so this long; none where that was too short.
    fn measure(&self, hold: Duration) -> Result<Result<Sample, Early>, SubjectError> {
        let mut probe = Probe::start(self.row)?;
        let none = probe.rest()?;
        let before = settled(|| probe.taken())?;
        let parked = probe.park(self.n, hold)?;
        let waiting = probe.taken()?;
        let end = match probe.wake(self.n)? {
            Ok(each) => each,
            Err(early) => return Ok(Err(early)),
        };
        probe.rest()?;
        let left = settled(|| probe.taken())?;
        let later = if self.reads_later {
            std::thread::sleep(Duration::from_secs(1));
            Some(probe.taken()?)
        } else {
            None
        };
        let more = |now: u64, before: u64| now as f64 - before as f64;
        let sample = Sample::of(more(waiting.pss, before.pss))
            .with("kernel", Unit::Bytes, more(waiting.kernel, before.kernel))
            .with("create", Unit::Nanoseconds, parked.each)
            .with("left", Unit::Bytes, more(left.pss, before.pss));
        let sample = match later {
            Some(later) => sample.with("left_1s", Unit::Bytes, more(later.pss, before.pss)),
            None => sample,
        };
        let sample = match parked.runtime.zip(none) {
            Some((now, none)) => sample.with("runtime", Unit::Bytes, now - none),
            None => sample,
        };
        // Those that wait for time end when it has come.
        let sample = match self.row.each {
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

    /// Once more where units that wait for time have not waited long enough: how long they take to be made
    /// is known of one machine only.
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        const LONGER: u32 = 4;
        let hold = self.row.hold(self.n);
        let measured = match self.measure(hold)? {
            Err(_) if self.row.each.is_some() => self.measure(hold * LONGER)?,
            measured => measured,
        };
        measured.map_err(|early| early.of(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::says;
    use super::*;
    use crate::engine::experiment::Size;

    #[test]
    fn there_are_numbers_enough_for_a_line_however_few_units_there_may_be() {
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
        let each = Some(Duration::from_micros(1));
        for (unit, each, is_measured) in
            [("hurried", each, true), ("hurried", None, false), ("early", each, false)]
        {
            let row = Box::leak(Box::new(Row { each, ..says(unit) }));
            let sample = Memory { n: 3, row, reads_later: true }.sample(1, &mut |_| {});
            assert_eq!(sample.is_ok(), is_measured, "{unit} {each:?}: {sample:?}");
        }
    }
}
