//! The pipelines of a script that the shell passed to contend.

use contend_record::run::RunRecord;
use maud::{Markup, html};

use super::super::label;
use super::super::table::{Cell, Table};
use super::{cpu, how_it_ran, statistics, work};
use crate::render::text::printable;
use crate::render::units::{counted, seconds};

/// Largest number of pipelines with charts. The table has all of them.
const MAX_PIPELINES: usize = 20;

/// Returns the table of all pipelines, and the charts of the first of them.
pub(super) fn section(pipelines: &[RunRecord]) -> Markup {
    let shown = pipelines.len().min(MAX_PIPELINES);
    html! {
        details {
            summary { "Table" }
            (table(pipelines).markup("Pipelines, in the order in which they ended"))
        }
        @if shown < pipelines.len() {
            p {
                "The charts are those of the first " (shown) " of " (counted(pipelines.len() as u64, "pipeline")) ", in "
                "the order in which they ended. The table has all of them."
            }
        }
        @for pipeline in &pipelines[..shown] { (one(pipeline)) }
    }
}

fn table(pipelines: &[RunRecord]) -> Table {
    let headings = ["#number", "command", "ran", "#wall", "#CPU", "#chunks", "#exit code", "why"];
    let mut table = Table::new(&headings);
    for (number, pipeline) in pipelines.iter().enumerate() {
        let mut row = vec![
            Cell::number((number + 1).to_string(), (number + 1) as f64),
            printable(&pipeline.command).into(),
        ];
        row.extend(match &pipeline.outcome {
            Some(outcome) => {
                let of_stages = outcome.stages.iter().filter(|stage| stage.starts > 0);
                let cpu: f64 = of_stages.map(|stage| stage.cpu_seconds).sum();
                let cpu = cpu + outcome.own_cpu_seconds;
                [
                    Cell::from(how_it_ran(pipeline, outcome).0),
                    Cell::number(seconds(outcome.wall_seconds), outcome.wall_seconds),
                    Cell::number(seconds(cpu), cpu),
                    Cell::number(outcome.parts.to_string(), outcome.parts as f64),
                    Cell::number(outcome.exit_code.to_string(), f64::from(outcome.exit_code)),
                ]
            }
            None => std::array::from_fn(|_| Cell::default()),
        });
        row.push(printable(&pipeline.decision.why).into());
        table.push(row);
    }
    table
}

/// Returns the statistics and the charts of a pipeline.
fn one(pipeline: &RunRecord) -> Markup {
    let Some(outcome) = &pipeline.outcome else { return html! {} };
    html! {
        h3 { code { (label(&pipeline.command)) } }
        (statistics(pipeline, outcome))
        @if !outcome.work.is_empty() { (work::figure(outcome).markup()) }
        @if !outcome.stages.is_empty() { (cpu(pipeline, outcome).markup()) }
    }
}
