//! `units/callback`: callback threads compared with threads and processes.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::memory::ParkedMeasurement;
use super::parent;
use super::parked::{self, Callbacks, ParkedUnits};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_alternates_cpus,
};
use crate::support::limits::{self, UnitKind};

/// The definition of `units/callback`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/callback",
    summary: "memory, creation and end of callback threads, threads and processes",
    about: "Creates n units that wait: callback threads (of the crate contend-callback, on one \
        Worker, each with an 8-byte closure that waits for a message), threads, or processes. Each \
        case runs in a process of its own. Once all units wait, memory is read as in \
        `units/memory`, and the value is the memory of all units; room for the list of their \
        addresses is allocated before. Then each unit is woken and ends: callback threads by one \
        message each, threads by a condition variable, processes by end of file. `create` is the \
        time to create them until all wait, `end` the time from waking the first until all have \
        ended, both for one unit. The case fails unless all n units were woken and ended normally. \
        A line fitted over n gives the bytes of one unit. Kernel memory is counted for the whole \
        machine and varies by a few hundred kB, so only large numbers of callback threads show \
        theirs.",
    view: View::UnitMemory,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(3),
    fit: Fit::Line(names::N),
    settings: &[],
    cases,
    unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE,
    subject: |parameters| Ok(Box::new(UnitComparison::new(parameters)?)),
};

const CALLBACK: &str = "callback";

fn cases(scope: &Scope) -> Vec<Parameters> {
    let many = scope.choose(&[100_000, 300_000, 1_000_000], &[100_000, 1_000_000], &[100, 200]);
    let few = scope.choose(&[100, 1000, 5000], &[100, 500], &[2, 4]);
    let kinds = [(CALLBACK, many), ("thread", few), ("process", few)];
    let of =
        |kind: &'static str, n: &u64| Parameters::new().with(names::KIND, kind).with(names::N, *n);
    kinds.into_iter().flat_map(|(kind, counts)| counts.iter().map(move |n| of(kind, n))).collect()
}

/// Returns the kind of task that the kernel has for each unit, or `None` for callback threads,
/// which are not tasks.
fn kind(parameters: &Parameters) -> Option<UnitKind> {
    match parameters.text(names::KIND) {
        Some(CALLBACK) => None,
        Some("thread") => Some(UnitKind::Thread),
        _ => Some(UnitKind::Process),
    }
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let n = parameters.number(names::N).unwrap_or(0);
    parent::memory_unreadable()
        .or_else(|| kind(parameters).and_then(|kind| limits::shortage(kind, n)))
}

struct UnitComparison {
    n: u64,
    parked: Box<dyn ParkedUnits>,
}

impl UnitComparison {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let n = parameters.number(names::N).unwrap_or(0);
        let parked = match kind(parameters) {
            Some(kind) => parked::empty_set(kind)?,
            None => Box::new(Callbacks::new()?),
        };
        Ok(Self { n, parked })
    }
}

impl Subject for UnitComparison {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let measured = ParkedMeasurement::measure(self.parked.as_mut(), self.n)?;
        let (create, end) =
            (measured.per_unit_ns(measured.create_time), measured.per_unit_ns(measured.end_time));
        let sample = measured.sample();
        Ok(sample.with("create", Unit::Nanoseconds, create).with("end", Unit::Nanoseconds, end))
    }

    fn facts(&self) -> Facts {
        match self.parked.stack_bytes() {
            0 => Facts::new(),
            bytes => Facts::from([("stack_bytes".to_owned(), bytes.into())]),
        }
    }
}
