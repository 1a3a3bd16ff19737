//! `pipeline/sed`: four seds in a row, or one that does the work of all four.

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};

use super::stages::Stage;
use super::subject::PipelineSubject;
use crate::engine::experiment::{
    Demands, Experiment, Fit, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::support::programs;

/// The definition of `pipeline/sed`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/sed",
    summary: "time of four seds in a row or one fused sed, with and without a slow stage",
    about: "Lines of 76 characters of base64, the same in every run, go through four seds that \
        each replace one letter (`form` piped), or through one that replaces all four (fused); \
        with `slow`, `sed 's/[0-9]//g'` follows. The output goes to /dev/null. The value is the \
        wall time of the pipeline; the times of each stage are in the record.",
    view: View::PipelineSed,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(5),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: |_| programs::missing(["sed"]),
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE.with_cost_ms(100, 50).with_ns_per(&[("lines", 6_000)]),
    subject,
};

const SUBSTITUTIONS: [&str; 4] = ["s/a/A/g", "s/b/B/g", "s/c/C/g", "s/d/D/g"];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let lines = scope.choose(&[1_000_000], &[100_000], &[500])[0];
    let case = |(form, slow): (&str, bool)| {
        Parameters::new().with(names::FORM, form).with(names::SLOW, slow).with("lines", lines)
    };
    [("piped", false), ("fused", false), ("piped", true), ("fused", true)].map(case).to_vec()
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that the table requires")]
fn subject(parameters: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    let mut stages: Vec<_> = match parameters.text(names::FORM) {
        Some("piped") => {
            SUBSTITUTIONS.iter().map(|substitution| Stage::new(&["sed", substitution])).collect()
        }
        _ => vec![Stage::new(&["sed", &SUBSTITUTIONS.join("; ")])],
    };
    if parameters.flag(names::SLOW) {
        stages.push(Stage::new(&["sed", "s/[0-9]//g"]));
    }
    Ok(Box::new(PipelineSubject::on_lines(parameters.number("lines").unwrap_or(0), stages)))
}
