//! `pipeline/json`: a tokenizer and a parser for JSON, connected by a pipe.

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};

use super::awk;
use super::subject::Pipeline;
use crate::engine::experiment::{
    Demands, Experiment, Fit, Sampling, Scope, Subject, SubjectError, never_hands_over,
};
use crate::support::inputs::{Input, json_array};
use crate::support::programs;

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/json",
    summary: "a JSON tokenizer in awk piped into a parser in awk: per stage, and ten copies",
    about: "An array of many copies of an example document, some 24 MB in all, goes through a \
            tokenizer and a parser in awk, under every awk that is installed; the output goes to \
            /dev/null. The tokenizer is one command, or four (tr | tr | awk | awk) that do the \
            same. The value is the real time of the whole; each stage's real, user and system time \
            are in the record, from wait4. With `copies` 10, ten such pipelines run at once, each \
            on a fortieth of the documents: a quarter as much in all. busybox, by far the slowest, \
            gets a tenth of what the others get. `contend generate awk` prints the programs. The \
            locale is the environment's, and recorded.",
    view: View::PipelineJson,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(3),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable,
    hands_over: never_hands_over,
    demands: Demands::NONE
        .lasting(100, 100)
        .and_ns_per(&[("documents", 200_000), ("copies", 30_000_000)]),
    subject,
};

fn cases(scope: &Scope) -> Vec<Parameters> {
    let documents = scope.choose(&[100_000], &[8000], &[800])[0];
    let mut cases = Vec::new();
    for copies in [1, 10] {
        for (kind, _) in awk::KINDS {
            // It writes every line at once, and takes many times as long as the others.
            let slow = if kind == "busybox" { 10 } else { 1 };
            for tokenizer in ["one", "four"] {
                let each = documents / slow / if copies == 1 { 1 } else { 40 };
                let case =
                    Parameters::new().with(names::AWK, kind).with(names::TOKENIZER, tokenizer);
                cases.push(case.with(names::COPIES, copies).with("documents", each));
            }
        }
    }
    cases
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let awk = parameters.text(names::AWK).and_then(awk::command)?;
    programs::missing([awk[0], "tr"])
}

fn subject(parameters: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    let wrong = || SubjectError::Wrong(format!("there is no such case: {parameters}"));
    let awk = parameters.text(names::AWK).and_then(awk::command).ok_or_else(wrong)?;
    let mut stages = match parameters.text(names::TOKENIZER) {
        Some("one") => awk::tokenizer(awk),
        _ => awk::tokenizer_of_four(awk),
    };
    stages.push(awk::parser(awk));
    let documents = parameters.number("documents").ok_or_else(wrong)?;
    let copies = parameters.number(names::COPIES).unwrap_or(1);
    let input = Box::new(move || Input::of(|file| json_array(file, documents)));
    Ok(Box::new(Pipeline { stages, copies, input }))
}
