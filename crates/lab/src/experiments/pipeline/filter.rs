//! `pipeline/filter`: the wall time of a pipeline with a selective stage first or last.

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};

use super::stages::Stage;
use super::subject::PipelineSubject;
use crate::engine::experiment::{
    Demands, Experiment, Fit, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::support::programs;

/// The definition of `pipeline/filter`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/filter",
    summary: "a filter before or after sed: time saved by filtering early",
    about: "Lines of base64, the same in every run, of which 1 in 55 contains `00`, go through \
        `sed s/a/A/g` and a filter for these lines: `grep 00` or `sed -n /00/p`. The filter is the \
        second stage (`order` late) or the first (early); the output is the same. The value is the \
        wall time of the pipeline; the times of each stage are in the record.",
    view: View::PipelineFilter,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(5),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: |_| programs::missing(["sed", "grep"]),
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE.with_cost_ms(100, 50).with_ns_per(&[("lines", 1_500)]),
    subject,
};

fn cases(scope: &Scope) -> Vec<Parameters> {
    let lines = scope.choose(&[1_000_000], &[100_000], &[500])[0];
    let case = |(filter, order): (&str, &str)| {
        Parameters::new().with(names::FILTER, filter).with(names::ORDER, order).with("lines", lines)
    };
    [("grep", "late"), ("grep", "early"), ("sed", "late"), ("sed", "early")].map(case).to_vec()
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that the table requires")]
fn subject(parameters: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    let filter = match parameters.text(names::FILTER) {
        Some("grep") => Stage::new(&["grep", "00"]),
        _ => Stage::new(&["sed", "-n", "/00/p"]),
    };
    let mut stages = vec![Stage::new(&["sed", "s/a/A/g"]), filter];
    if parameters.text(names::ORDER) == Some("early") {
        stages.reverse();
    }
    Ok(Box::new(PipelineSubject::on_lines(parameters.number("lines").unwrap_or(0), stages)))
}
