//! `runtime/document`: repeats an evaluation of callbacks in Elixir from 2018, and reads memory
//! immediately, as the original did, and again later.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::probe::Probe;
use super::table::{DOCUMENT, Row};
use super::{DEMANDS, cost};
use crate::engine::experiment::{
    Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::engine::setting::Setting;

/// The definition of `runtime/document`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "runtime/document",
    summary: "the evaluation of 2018 again: callbacks and processes in Elixir, memory read at once and later",
    about: "The document's own program passes n functions that sleep to a Receptor, which hands them to one \
            Worker (`callback`, a reconstruction of its scheme with its faults), or spawns a process for each \
            (`process`). `sister` is the document's program with the Receptor of the library in elixir/. The value \
            is the growth of the emulator's memory (:erlang.memory(:total)), read immediately after the last \
            function was passed on, as in the document. `after_1s` and `after_6s` are the same, later; `left` is \
            the growth after everything has been stopped and garbage has been collected. `begun_at_once` and \
            `begun_6s` count functions that had begun to run; the others are messages in a queue.",
    view: View::RuntimeDocument,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(1),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |_| DOCUMENT.missing(),
    alternates_cpus: never_alternates_cpus,
    demands: DEMANDS.with_cost(cost::document),
    subject: |parameters| Ok(Box::new(Document::new(parameters)?)),
};

const FORMS: [&str; 3] = ["callback", "process", "sister"];
const FORM: Setting = Setting::named(names::FORM, "what runs the functions", || FORMS.to_vec());
const N: Setting =
    Setting::number(names::N, "number of functions [default: 100 to 10000]", 1, 1_000_000);
const SETTINGS: [&Setting; 2] = [&FORM, &N];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let documents = [100, 1000, 2000, 5000, 10_000];
    let counts = scope.choose(&documents, &documents[4..], &[10]);
    let of = |form: &'static str, &n: &u64| Parameters::new().with(FORM.name, form).with(N.name, n);
    let cases = FORMS.iter().flat_map(|form| counts.iter().map(move |n| of(form, n)));
    scope.choices.applied(cases.collect(), &SETTINGS)
}

struct Document {
    form: Row,
    n: u64,
}

impl Document {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let form = parameters.text(FORM.name).unwrap_or_default();
        let form = FORMS.into_iter().find(|&known| known == form);
        let form = Row {
            argument: form.ok_or_else(|| SubjectError::unexpected("no such form"))?,
            ..DOCUMENT
        };
        Ok(Self { form, n: parameters.number(N.name).unwrap_or(1) })
    }
}

impl Subject for Document {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let mut probe = Probe::start(&self.form)?;
        let answer = probe.ask(&format!("evaluate {}", self.n), "evaluated")?;
        let numbers: Vec<_> = answer.split_whitespace().map(str::parse::<f64>).collect();
        let [Ok(at_once), Ok(after_1s), Ok(after_6s), Ok(begun_at_once), Ok(begun_6s), Ok(left)] =
            numbers[..]
        else {
            return Err(SubjectError::unexpected(format!(
                "unexpected answer of the probe: {answer}"
            )));
        };
        let facts = Facts::from([("version".to_owned(), probe.version.as_str().into())]);
        Ok(Sample { facts, ..Sample::of(at_once) }
            .with("after_1s", Unit::Bytes, after_1s)
            .with("after_6s", Unit::Bytes, after_6s)
            .with("begun_at_once", Unit::Count, begun_at_once)
            .with("begun_6s", Unit::Count, begun_6s)
            .with("left", Unit::Bytes, left))
    }
}
