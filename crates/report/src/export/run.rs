//! The tables of a parallel run: the stages, also those of the pipelines in a script.

use std::collections::{BTreeMap, BTreeSet};

use contend_record::run::{Outcome, RunRecord, Stage, StageOutcome};

use super::sheet::{Field, Quantity, Sheet, Workbook};
use super::{name, origin};
use crate::render::run::peak_memory_of_all;

/// A stage of the plan, or of the outcome, or both.
struct Entry<'a> {
    /// Number of the pipeline in the script, from 1; `None` if only one pipeline ran.
    pipeline: Option<usize>,
    /// Text of the pipeline in the script.
    text: &'a str,
    /// Position of the stage, from 1.
    index: usize,
    planned: Option<&'a Stage>,
    outcome: Option<&'a StageOutcome>,
}

/// Returns the tables of a parallel run.
pub fn workbook(record: &RunRecord) -> Workbook {
    let is_script = !record.pipelines.is_empty();
    let mut entries = stages(record, None);
    for (place, pipeline) in record.pipelines.iter().enumerate() {
        entries.extend(stages(pipeline, Some(place + 1)));
    }
    let sheet = Sheet::new("stage", "Stages", &entries, fields(is_script));
    Workbook::new("run", &record.command, record, whole(), vec![sheet])
}

/// Returns the stages of a pipeline. The record has their plan, their outcome or both.
fn stages(record: &RunRecord, pipeline: Option<usize>) -> Vec<Entry<'_>> {
    let planned = record.plan.as_ref().map_or(&[][..], |plan| &plan.stages);
    let outcomes = record.outcome.as_ref().map_or(&[][..], |outcome| &outcome.stages);
    let of_outcome: BTreeMap<usize, &StageOutcome> =
        outcomes.iter().rev().map(|stage| (stage.index, stage)).collect();
    let indices: BTreeSet<usize> = (1..=planned.len()).chain(of_outcome.keys().copied()).collect();
    let entry = |index: usize| Entry {
        pipeline,
        text: &record.command,
        index,
        planned: index.checked_sub(1).and_then(|place| planned.get(place)),
        outcome: of_outcome.get(&index).copied(),
    };
    indices.into_iter().map(entry).collect()
}

/// Returns the outcomes of a run and of the pipelines that its shell passed to contend.
fn outcomes(record: &RunRecord) -> impl Iterator<Item = &Outcome> {
    std::iter::once(record).chain(&record.pipelines).filter_map(|run| run.outcome.as_ref())
}

/// Returns the sum of a figure over a run and its pipelines; `None` without an outcome of the run.
fn sum(record: &RunRecord, figure: fn(&Outcome) -> f64) -> Option<f64> {
    record.outcome.as_ref().map(|_| outcomes(record).map(figure).sum())
}

fn whole() -> Vec<Field<'static, RunRecord>> {
    type Whole<'a> = Field<'a, RunRecord>;
    let mut fields = vec![
        Whole::label("pipeline", |record| record.command.clone()),
        Whole::figure("wall_seconds", Quantity::Seconds, "Wall time of the run.", |record| {
            record.outcome.as_ref().map(|outcome| outcome.wall_seconds)
        }),
        Whole::figure(
            "own_cpu_seconds",
            Quantity::Seconds,
            "CPU time of contend itself.",
            |record| sum(record, |outcome| outcome.own_cpu_seconds),
        ),
        Whole::figure(
            "peak_memory_bytes",
            Quantity::Bytes,
            "Peak memory of contend and its commands together.",
            |record| outcomes(record).filter_map(peak_memory_of_all).max(),
        ),
        Whole::figure("input_bytes", Quantity::Bytes, "Bytes cut into chunks.", |record| {
            sum(record, |outcome| outcome.input_bytes as f64)
        }),
        Whole::figure("chunks", Quantity::Count, "Number of chunks.", |record| {
            sum(record, |outcome| outcome.parts as f64)
        }),
        Whole::figure(
            "jobs",
            Quantity::Count,
            "Largest number of chunks that are processed at the same time.",
            |record| record.jobs,
        ),
        Whole::figure(
            "exit_code",
            Quantity::Plain,
            "Exit status of the pipeline, as the shell would return it.",
            |record| record.outcome.as_ref().map(|outcome| outcome.exit_code),
        ),
        Whole::detail("is_parallel", |record| record.decision.parallel),
        Whole::detail("decision", |record| record.decision.why.clone()).for_people(),
    ];
    fields.extend(origin(
        |record: &RunRecord| &record.host,
        |record| record.contend.as_ref(),
        |record| &record.started_at,
    ));
    fields
}

/// Returns the columns for stages. A script may run any number of pipelines, so the figures of their
/// stages are not observed over time.
fn fields<'a>(is_script: bool) -> Vec<Field<'a, Entry<'a>>> {
    let figure = |field: Field<'a, Entry<'a>>| if is_script { field.into_detail() } else { field };
    let mut fields: Vec<Field<'a, Entry<'a>>> = Vec::new();
    if is_script {
        fields.extend([
            Field::label("pipeline_number", |entry: &Entry<'a>| entry.pipeline),
            Field::detail("pipeline_command", |entry: &Entry<'a>| entry.text.to_owned()),
        ]);
    }
    fields.extend([
        Field::label("stage", |entry: &Entry<'a>| entry.index),
        Field::label("command", |entry: &Entry<'a>| entry.planned.map(|stage| stage.text.clone())),
        Field::detail("class", |entry: &Entry<'a>| entry.planned.map(|stage| name(&stage.class))),
        figure(Field::figure(
            "cpu_seconds",
            Quantity::Seconds,
            "CPU time of the stage, over all chunks.",
            |entry: &Entry<'a>| entry.outcome.map(|stage| stage.cpu_seconds),
        )),
        figure(Field::figure(
            "starts",
            Quantity::Count,
            "Number of commands that were started for the stage.",
            |entry: &Entry<'a>| entry.outcome.map(|stage| stage.starts),
        )),
        figure(Field::figure("exit_code", Quantity::Plain, "Exit status.", |entry: &Entry<'a>| {
            entry.outcome.map(|stage| stage.exit_code)
        })),
        Field::detail("why", |entry: &Entry<'a>| entry.planned.map(|stage| stage.why.clone())),
    ]);
    fields
}

#[cfg(test)]
mod tests {
    use contend_record::run::Outcome;

    use super::*;

    #[test]
    fn stages_have_any_numbers() {
        let stage = |index| StageOutcome { index, ..StageOutcome::default() };
        let stages = [0, usize::MAX, 1_000_000_000].map(stage).to_vec();
        let outcome = Some(Outcome { stages, ..Outcome::default() });
        let record = RunRecord { outcome, ..RunRecord::default() };
        let indices: Vec<_> = super::stages(&record, None).iter().map(|one| one.index).collect();
        assert_eq!(indices, [0, 1_000_000_000, usize::MAX]);
    }
}
