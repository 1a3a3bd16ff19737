//! `runtime/round-trip`: a message to a unit and its answer, in every runtime.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;

use super::probe::Probe;
use super::table::{Row, TABLE};
use super::{DEMANDS, UNIT, cost, row, unavailable};
use crate::engine::experiment::{
    Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::engine::setting::Setting;

/// The definition of `runtime/round-trip`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "runtime/round-trip",
    summary: "a message to a unit and its answer, in every runtime that has messages",
    about: "A probe, a small program in the runtime's own language, sends a number to one unit by the \
            runtime's usual means (channels, mailboxes, promises, pipes) and waits for the answer. It doubles \
            the number of messages until they take a tenth of a second, which warms the runtime up; each sample \
            exchanges as many. Every answer is checked. The runtime decides whether one thread or several run the \
            two sides. Units that take no messages are not included.",
    view: View::RuntimeRoundTrip,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(7),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |parameters| {
        let row = row(parameters).ok()?;
        let reason = || "it takes no messages, or another unit represents its runtime".to_owned();
        (!row.has_messages).then(reason).or_else(|| unavailable(parameters))
    },
    alternates_cpus: never_alternates_cpus,
    demands: DEMANDS.with_cost(cost::round_trip),
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
        let messages = messages_per_sample(|messages| probe.round_trips(messages))?;
        Ok(Self { row, probe, messages })
    }
}

/// Returns the number of messages in a sample: enough to take at least a tenth of a second, but at
/// most about 2^31. `measure` exchanges the given number of messages and returns the mean time of a
/// round trip in nanoseconds. It is called with ever larger numbers, which also warms up JIT
/// compilers.
fn messages_per_sample(
    mut measure: impl FnMut(u64) -> Result<f64, SubjectError>,
) -> Result<u64, SubjectError> {
    const MIN_MESSAGES: u64 = 1000;
    const MAX_MESSAGES: u64 = 1 << 30;
    const SAMPLE_NS: f64 = 1e8;
    let mut messages = MIN_MESSAGES;
    while measure(messages)? * (messages as f64) < SAMPLE_NS && messages < MAX_MESSAGES {
        messages *= 2;
    }
    Ok(messages)
}

impl Subject for RoundTrip {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        self.probe.round_trips(self.messages).map(Sample::of)
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
        assert_eq!(messages_per_sample(|_| Ok(20_000.0)).expect("no error"), 8000);
        // Simulates a runtime that compiles its code after 10,000 messages.
        let mut before = 0;
        let warms_up = |messages| {
            before += messages;
            Ok(if before < 10_000 { 8000.0 } else { 500.0 })
        };
        assert_eq!(messages_per_sample(warms_up).expect("no error"), 256_000);
        assert_eq!(messages_per_sample(|_| Ok(0.0)).expect("no error"), 1000 << 21);
    }
}
