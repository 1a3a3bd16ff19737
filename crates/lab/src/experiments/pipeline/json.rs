//! `pipeline/json`: a tokenizer and a parser for JSON, connected by a pipe.

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};

use super::awk;
use super::subject::PipelineSubject;
use crate::engine::experiment::{
    Demands, Experiment, Fit, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::support::inputs::{Input, json_array};
use crate::support::programs;

/// The definition of `pipeline/json`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/json",
    summary: "time of a JSON tokenizer piped into a parser, by stage and by awk",
    about: "An array of copies of an example document, about 24 MB in total, goes through a \
        tokenizer and a parser in awk, under every awk that is installed; the output goes to \
        /dev/null. The tokenizer is one command, or four (tr | tr | awk | awk) that do the same. \
        The value is the wall time of the pipeline; the wall, user and system time of each stage, \
        from wait4, are in the record. With `copies` 10, ten such pipelines run at once, each on a \
        fortieth of the documents: a quarter of the data in total. busybox, by far the slowest, \
        gets a tenth of the documents. `contend generate awk` prints the programs. The locale is \
        that of the environment, and is recorded.",
    view: View::PipelineJson,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(3),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE
        .with_cost_ms(100, 100)
        .with_ns_per(&[("documents", 200_000), ("copies", 30_000_000)]),
    subject,
};

fn cases(scope: &Scope) -> Vec<Parameters> {
    let documents = scope.choose(&[100_000], &[8000], &[800])[0];
    let mut cases = Vec::new();
    for copies in [1, 10] {
        for (kind, _) in awk::IMPLEMENTATIONS {
            // busybox flushes every line and is many times slower than the others.
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
    let wrong = || SubjectError::Unexpected(format!("no such case: {parameters}"));
    let awk = parameters.text(names::AWK).and_then(awk::command).ok_or_else(wrong)?;
    let mut stages = match parameters.text(names::TOKENIZER) {
        Some("one") => awk::tokenizer(awk),
        _ => awk::four_command_tokenizer(awk),
    };
    stages.push(awk::parser(awk));
    let documents = parameters.number("documents").ok_or_else(wrong)?;
    let copies = parameters.number(names::COPIES).unwrap_or(1);
    let input = Box::new(move || Input::new(|file| json_array(file, documents)));
    Ok(Box::new(PipelineSubject { stages, copies, input }))
}
