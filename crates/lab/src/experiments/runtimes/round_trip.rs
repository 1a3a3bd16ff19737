//! `runtime/round-trip`: a message to a unit and its answer, in every runtime.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;

use super::probe::Probe;
use super::table::{Row, TABLE};
use super::{DEMANDS, UNIT, cost, row, unavailable};
use crate::engine::experiment::{
    Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError, never_hands_over,
};
use crate::engine::setting::Setting;

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "runtime/round-trip",
    summary: "a message to a unit and its answer, in every runtime that has messages",
    about: "A probe, a small program in the runtime's own language, sends a number to one unit by what the \
            runtime has for that (channels, mailboxes, promises, pipes) and waits for its answer, again and \
            again: twice as often each time until that takes a tenth of a second, which warms the runtime up, and \
            then as often for each sample; every answer is looked at. Units may be run by one thread or by \
            several, as the runtime likes. Kinds that take no messages are not among these.",
    view: View::RuntimeRoundTrip,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(7),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |parameters| {
        let row = row(parameters).ok()?;
        let without = || "it takes no messages, or others of its runtime stand for it".to_owned();
        (!row.has_messages).then(without).or_else(|| unavailable(parameters))
    },
    hands_over: never_hands_over,
    demands: DEMANDS.lasting_by(cost::round_trip),
    subject: |parameters| Ok(Box::new(RoundTrip::new(parameters)?)),
};

const SETTINGS: [&Setting; 1] = [&UNIT];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let with_messages = TABLE.iter().filter(|row| row.has_messages);
    let of = |row: &Row| Parameters::new().with(UNIT.name, row.unit);
    scope.choices.applied(with_messages.map(of).collect(), &SETTINGS)
}

struct RoundTrip {
    row: &'static Row,
    probe: Probe,
    messages: u64,
}

impl RoundTrip {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let row = row(parameters)?;
        let mut probe = Probe::start(row)?;
        let messages = enough(|messages| probe.trips(messages))?;
        Ok(Self { row, probe, messages })
    }
}

/// How many messages take long enough, by what one of so many takes: twice as many again and again, which
/// also warms up what compiles code while it runs.
fn enough(mut each: impl FnMut(u64) -> Result<f64, SubjectError>) -> Result<u64, SubjectError> {
    const FEW: u64 = 1000;
    const MANY: u64 = 1 << 30;
    const LONG: f64 = 1e8;
    let mut messages = FEW;
    while each(messages)? * (messages as f64) < LONG && messages < MANY {
        messages *= 2;
    }
    Ok(messages)
}

impl Subject for RoundTrip {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        self.probe.trips(self.messages).map(Sample::of)
    }

    fn facts(&self) -> Facts {
        Facts::from([
            ("runtime".to_owned(), self.row.runtime.into()),
            ("version".to_owned(), self.probe.version.as_str().into()),
            ("messages".to_owned(), self.messages.into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_made_longer_until_one_takes_a_tenth_of_a_second() {
        assert_eq!(enough(|_| Ok(20_000.0)).expect("no error"), 8000);
        // As of a runtime that has compiled its code after so many messages.
        let mut before = 0;
        let warms_up = |messages| {
            before += messages;
            Ok(if before < 10_000 { 8000.0 } else { 500.0 })
        };
        assert_eq!(enough(warms_up).expect("no error"), 256_000);
        assert_eq!(enough(|_| Ok(0.0)).expect("no error"), 1000 << 21);
    }
}
