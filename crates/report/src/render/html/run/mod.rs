//! The page of a parallel run.

mod work;

use contend_record::run::{Class, Outcome, RunRecord, Stage};
use maud::{Markup, html};

use super::chart::Colour;
use super::chart::rows::{self, Row};
use super::frame::{Figure, Page};
use super::table::{Cell, Table};
use super::{exit, label, number_of, origin};
use crate::render::text::printable;
use crate::render::units::{bytes, counted, seconds};

/// Largest number of pipelines of a script whose work is shown.
const MAX_PIPELINES: usize = 20;

/// Returns the page of a parallel run.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &RunRecord) -> serde_json::Result<String> {
    let mut facts = vec![number_of(record.jobs, "job")];
    let mut sections = Vec::new();
    if let Some(outcome) = &record.outcome {
        facts.push(format!("{} wall time", seconds(outcome.wall_seconds)));
        facts.push(format!("{} of input", bytes(outcome.input_bytes as f64)));
        facts.push(counted(outcome.parts, "chunk"));
        facts.extend(exit(outcome.exit_code));
        if !outcome.work.is_empty() {
            sections.push(("Workers".to_owned(), work::figure(outcome).markup()));
        }
        if !outcome.stages.is_empty() {
            let figure = cpu(record, outcome);
            sections.push(("Where the CPU time went".to_owned(), figure.markup()));
        }
    }
    if let Some(plan) = &record.plan {
        sections.push(("Plan".to_owned(), stages(&plan.stages).markup("Stages of the pipeline")));
    }
    let ran =
        record.pipelines.iter().filter_map(|pipeline| Some((pipeline, pipeline.outcome.as_ref()?)));
    let pipelines =
        ran.filter(|(_, outcome)| !outcome.work.is_empty()).map(|(pipeline, outcome)| {
            html! { h3 { code { (label(&pipeline.command)) } } (work::figure(outcome).markup()) }
        });
    let pipelines: Vec<Markup> = pipelines.take(MAX_PIPELINES).collect();
    if !pipelines.is_empty() {
        sections
            .push(("Pipelines".to_owned(), html! { @for pipeline in pipelines { (pipeline) } }));
    }
    if !record.taken.is_empty() || !record.left.is_empty() {
        sections.push(("Script".to_owned(), script(record).markup("Commands of the script")));
    }
    let page = Page {
        subject: &record.command,
        kind: "run",
        facts,
        result: result(record),
        sections,
        warnings: Vec::new(),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

fn result(record: &RunRecord) -> Markup {
    let runs = if record.decision.parallel { "It ran in parallel." } else { "It ran unchanged." };
    let check = record.outcome.as_ref().and_then(|outcome| outcome.check.as_ref());
    let pieces = record.outcome.as_ref().map_or(&[][..], |outcome| &outcome.in_one_piece);
    html! {
        p { strong { (runs) } " " (printable(&record.decision.why)) }
        @if let Some(check) = check {
            p {
                @if check.same { "The output is that of the original pipeline, compared byte for byte." }
                @else { "The output differs from that of the original pipeline." }
                " The original took " (seconds(check.wall_seconds)) "."
            }
        }
        @for reason in pieces { p { "As a whole: " (printable(reason)) } }
    }
}

/// The CPU time of each stage.
fn cpu(record: &RunRecord, outcome: &Outcome) -> Figure {
    let text = |index: usize| {
        let stages = record.plan.as_ref().map_or(&[][..], |plan| &plan.stages);
        let found = index.checked_sub(1).and_then(|place| stages.get(place));
        found.map_or_else(String::new, |stage| stage.text.clone())
    };
    let mut table = Table::new(&["#stage", "command", "#CPU time", "#processes", "#exit code"]);
    let mut bars = Vec::new();
    for stage in &outcome.stages {
        let command = text(stage.index);
        table.push(vec![
            Cell::number(stage.index.to_string(), stage.index as f64),
            printable(&command).into(),
            Cell::number(seconds(stage.cpu_seconds), stage.cpu_seconds),
            Cell::number(stage.starts.to_string(), stage.starts as f64),
            Cell::number(stage.exit_code.to_string(), f64::from(stage.exit_code)),
        ]);
        let name = format!("{} {}", stage.index, label(&command));
        bars.push(Row::bar(name, stage.cpu_seconds, seconds(stage.cpu_seconds), Colour(0)));
    }
    let own = outcome.own_cpu_seconds;
    bars.push(Row::bar("contend itself", own, seconds(own), Colour::NEUTRAL));
    let most = outcome.stages.iter().max_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
    let alternative = most.map_or_else(String::new, |stage| {
        format!(
            "Bars of the CPU time of each stage. The largest is that of stage {}, {}.",
            stage.index,
            seconds(stage.cpu_seconds)
        )
    });
    let scale = rows::scale(&bars);
    Figure {
        title: "CPU time of each stage, over all chunks".to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: format!(
            "As the kernel charges it, over {} by {}.",
            counted(outcome.parts, "chunk"),
            number_of(record.jobs, "job")
        ),
    }
}

fn stages(stages: &[Stage]) -> Table {
    let mut table = Table::new(&["#stage", "command", "runs", "why"]);
    for (index, stage) in stages.iter().enumerate() {
        let class = match stage.class {
            Class::PerRecord => "on chunks",
            Class::Combinable => "on chunks, then combined",
            Class::Opaque => "alone",
            Class::LeftOut => "not at all",
        };
        table.push(vec![
            Cell::number((index + 1).to_string(), (index + 1) as f64),
            printable(&stage.text).into(),
            class.into(),
            printable(&stage.why).into(),
        ]);
    }
    table
}

fn script(record: &RunRecord) -> Table {
    let mut table = Table::new(&["#line", "text", "runs", "why"]);
    let line = |number: usize| Cell::number(number.to_string(), number as f64);
    for taken in &record.taken {
        let text = printable(&taken.text);
        table.push(vec![line(taken.line), text.into(), "in contend".into(), "".into()]);
    }
    for left in &record.left {
        let (text, why) = (printable(&left.text), printable(&left.why));
        table.push(vec![line(left.line), text.into(), "in the shell".into(), why.into()]);
    }
    table
}
