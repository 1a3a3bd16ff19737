//! `runtime/round-trip`: a message to a unit and its answer, in every runtime.

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;

use super::probe::Probe;
use super::table::{Row, TABLE};
use super::{UNIT, row, unavailable};
use crate::experiment::{
    Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError, never_hands_over,
};
use crate::setting::Setting;

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "runtime/round-trip",
    summary: "a message to a unit and its answer, in every runtime that has messages",
    about: "A probe, a small program in the runtime's own language, sends a number to one unit by what the \
            runtime has for that (channels, mailboxes, promises, pipes) and waits for its answer, again and \
            again, as many times as take a tenth of a second; every answer is looked at. Units may be run \
            by one thread or by several, as the runtime likes. Where a probe has no messages for a kind of \
            unit, its reason stands instead of a figure.",
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
        const FEW: u64 = 2000;
        const LONG: f64 = 1e8;
        let row = row(parameters)?;
        let mut probe = Probe::start(row)?;
        probe.trips(FEW)?; // the first are still cold
        let each = probe.trips(FEW)?.max(1.0);
        let messages = (LONG / each).clamp(FEW as f64, 1e7);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was clamped"
        )]
        let messages = messages as u64;
        Ok(Self { row, probe, messages })
    }
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
