//! What each worker did over the time of a run.

use std::collections::BTreeMap;

use contend_record::run::{Outcome, WorkKind, WorkSpan};

use super::super::chart::Colour;
use super::super::chart::rows::{self, Row, Span};
use super::super::frame::Figure;
use super::super::number_of;
use super::super::table::{Cell, Table};
use crate::render::run::{work_name, work_stages};
use crate::render::units::{bytes, counted, percent, seconds};

/// Returns a row for each worker over the time of the run.
pub(super) fn figure(outcome: &Outcome) -> Figure {
    let headings = ["#worker", "work", "stages", "#from", "#to", "#busy", "#number", "#bytes"];
    let mut table = Table::new(&headings);
    let mut workers: BTreeMap<usize, Vec<&WorkSpan>> = BTreeMap::new();
    for span in &outcome.work {
        table.push(vec![
            Cell::number(span.worker.to_string(), span.worker as f64),
            work_name(span.kind).into(),
            work_stages(span).into(),
            Cell::number(seconds(span.begin_seconds), span.begin_seconds),
            Cell::number(seconds(span.end_seconds), span.end_seconds),
            Cell::number(seconds(span.busy_seconds), span.busy_seconds),
            Cell::number(span.count.to_string(), span.count as f64),
            Cell::number(bytes(span.bytes as f64), span.bytes as f64),
        ]);
        workers.entry(span.worker).or_default().push(span);
    }
    let rows: Vec<Row> =
        workers.iter().map(|(worker, spans)| row(*worker, spans, outcome)).collect();
    let scale = rows::scale(&rows);
    let used =
        WorkKind::ALL.into_iter().filter(|kind| outcome.work.iter().any(|span| span.kind == *kind));
    Figure {
        title: "Work over time".to_owned(),
        legend: used.map(|kind| (colour(kind), description(kind).to_owned())).collect(),
        chart: rows::draw(&rows, &scale, seconds, &[], &alternative(outcome, &workers)),
        table,
        method: format!(
            "Recorded by the threads themselves, for {}. A worker is a thread; one that begins after another has \
             ended takes over its row.",
            counted(outcome.parts, "chunk")
        ),
    }
}

fn alternative(outcome: &Outcome, workers: &BTreeMap<usize, Vec<&WorkSpan>>) -> String {
    let busy: Vec<String> = workers
        .iter()
        .map(|(worker, spans)| format!("worker {worker} {}", share(spans, outcome)))
        .collect();
    format!(
        "A row for each of {} over the time of the run. Busy: {}.",
        number_of(workers.len(), "worker"),
        busy.join(", ")
    )
}

fn row(worker: usize, spans: &[&WorkSpan], outcome: &Outcome) -> Row {
    let of_span = |span: &&WorkSpan| Span {
        from: span.begin_seconds,
        to: span.end_seconds,
        colour: colour(span.kind),
        text: format!(
            "worker {worker}, {} to {}: {}{}{}",
            seconds(span.begin_seconds),
            seconds(span.end_seconds),
            work_name(span.kind),
            if span.count > 1 { format!(", {} times", span.count) } else { String::new() },
            if span.bytes > 0 { format!(", {}", bytes(span.bytes as f64)) } else { String::new() },
        ),
    };
    Row {
        label: format!("worker {worker}, {}", stages_of(spans)),
        value: format!("busy {}", share(spans, outcome)),
        spans: spans.iter().map(of_span).collect(),
        ..Row::default()
    }
}

/// Returns for which share of the run a worker was busy.
fn share(spans: &[&WorkSpan], outcome: &Outcome) -> String {
    let busy: f64 = spans.iter().map(|span| span.busy_seconds).sum();
    percent(busy, outcome.wall_seconds)
}

/// Names the stages on which a worker worked.
fn stages_of(spans: &[&WorkSpan]) -> String {
    let mut all: Vec<String> = spans.iter().map(|span| work_stages(span)).collect();
    all.sort_unstable();
    all.dedup();
    let plural =
        if all.len() > 1 || all.iter().any(|text| text.contains('–')) { "s" } else { "" };
    format!("stage{plural} {}", all.join(", "))
}

fn description(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Chunk => "chunk: runs the commands over a chunk",
        WorkKind::Finish => "finish: waits for the processes after the last chunk",
        WorkKind::Sort => "sort: sorts the gathered lines",
        WorkKind::Merge => "merge: merges sorted lines",
        WorkKind::Combine => "combine: combines the outputs of the workers",
        WorkKind::Whole => "whole: runs the commands once, over their whole input",
    }
}

fn colour(kind: WorkKind) -> Colour {
    match kind {
        WorkKind::Chunk => Colour(0),
        WorkKind::Finish => Colour(2),
        WorkKind::Sort => Colour(4),
        WorkKind::Merge => Colour(1),
        WorkKind::Combine => Colour(3),
        WorkKind::Whole => Colour(5),
    }
}
