//! The page of a parallel run.

mod pipelines;
#[cfg(test)]
mod tests;
mod work;

use contend_record::run::{Check, Class, Outcome, RunRecord, Stage};
use maud::{Markup, html};

use super::chart::Colour;
use super::chart::rows::{self, Row};
use super::frame::{Figure, Page, made_with};
use super::table::{Cell, Table};
use super::{command, exit, label, number_of, origin, prose};
use crate::render::run::{
    divided_among, others_left, resources, result as how_it_ran, stage_figures,
};
use crate::render::text::printable;
use crate::render::units::{bytes, counted, seconds};

/// Number of bytes of the outputs that are compared at a time.
const BLOCK_BYTES: u64 = 65_536;

/// Returns the page of a parallel run.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &RunRecord) -> serde_json::Result<String> {
    let mut facts = vec![number_of(record.jobs, "job")];
    let mut sections = Vec::new();
    if let Some(outcome) = &record.outcome {
        facts.push(format!("{} wall time", seconds(outcome.wall_seconds)));
        if outcome.input_bytes > 0 {
            facts.push(format!("{} of input", bytes(outcome.input_bytes as f64)));
        }
        if outcome.parts > 0 {
            facts.push(counted(outcome.parts, "chunk"));
        }
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
    if !record.pipelines.is_empty() {
        sections.push(("Pipelines".to_owned(), pipelines::section(&record.pipelines)));
    }
    let others = others_left(record);
    if !record.taken.is_empty() || !record.left.is_empty() || others.is_some() {
        let commands = html! {
            (script(record).markup("Commands of the script"))
            @if let Some(others) = others { p { (others) "." } }
        };
        sections.push(("Script".to_owned(), commands));
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
    let is_parallel = record.decision.parallel;
    let runs = match (&record.outcome, is_parallel) {
        (Some(outcome), true) if outcome.parts == 0 && record.plan.is_some() => {
            "It was to run in parallel"
        }
        (Some(_), true) => "It ran in parallel",
        (Some(_), false) => "It ran unchanged",
        (None, true) => "It would run in parallel",
        (None, false) => "It would run unchanged",
    };
    let expected = record.decision.expected_cpu_seconds;
    html! {
        p {
            strong { (runs) }
            // The statistics of an unchanged run begin with the reason.
            @if is_parallel || record.outcome.is_none() { ": " (prose(&record.decision.why)) }
            "."
            @if let Some(expected) = expected { " The stages were expected to need " (seconds(expected)) " of CPU time." }
        }
        @if let Some(outcome) = &record.outcome { (statistics(record, outcome)) }
        @if let Some(command) = command::of_run(record) { (made_with(&command)) }
    }
}

/// Returns what the statistics in the terminal say about a run, besides those of its stages, and the result of a
/// comparison with the original.
fn statistics(record: &RunRecord, outcome: &Outcome) -> Markup {
    let (how, figures) = how_it_ran(record, outcome);
    html! {
        p { (how) ": " (printable(&figures)) }
        @for reason in &outcome.in_one_piece { p { "As a whole: " (prose(reason)) } }
        @if let (Some(division), Some(divided)) = (&record.division, &outcome.divided) {
            p { "Divided into " (printable(&divided_among(division, divided))) "." }
            @for failure in &divided.failures { p { "A failed attempt: " (printable(failure)) } }
        }
        // A script's are those of its pipelines.
        @if record.plan.is_some() { p { (resources(outcome)) } }
        @if let Some(check) = &outcome.check { p { (compared(check, outcome)) } }
    }
}

/// Says how output and exit code compare with those of the original.
fn compared(check: &Check, outcome: &Outcome) -> String {
    let (own, other) = (outcome.exit_code, check.exit_code);
    let sentence = match check.first_difference {
        _ if check.same => format!(
            "The output is that of the original pipeline, compared byte for byte ({} bytes, exit code {own}).",
            check.bytes
        ),
        None => format!(
            "The output is that of the original pipeline ({} bytes), but the exit code is {own} instead of {other}.",
            check.bytes
        ),
        Some(start) => {
            let end = check.bytes.max(check.original_bytes).min(start.saturating_add(BLOCK_BYTES));
            format!(
                "The output differs from that of the original pipeline, first between bytes {start} and {end}: {} \
                 bytes and exit code {own}, instead of {} bytes and exit code {other}.",
                check.bytes, check.original_bytes
            )
        }
    };
    format!("{sentence} The original took {}.", seconds(check.wall_seconds))
}

/// The CPU time of each stage.
fn cpu(record: &RunRecord, outcome: &Outcome) -> Figure {
    let stages = record.plan.as_ref().map_or(&[][..], |plan| &plan.stages);
    let mut table = Table::new(&["#stage", "command", "#CPU time", "#processes", "#exit code"]);
    let mut bars = Vec::new();
    for stage in &outcome.stages {
        let planned = stages.get(stage.index.wrapping_sub(1));
        // The only stage of shell text is the shell, with all commands that it starts.
        let shell = if record.plan.is_none() { "the shell" } else { "" };
        let command = planned.map_or(shell, |stage| stage.text.as_str());
        let class = planned.map(|stage| stage.class);
        let [status, time, starts] = stage_figures(class, stage, record.decision.parallel);
        table.push(vec![
            Cell::number(stage.index.to_string(), stage.index as f64),
            printable(command).into(),
            Cell::number(time.clone(), stage.cpu_seconds),
            Cell::number(starts, stage.starts as f64),
            Cell::number(status, f64::from(stage.exit_code)),
        ]);
        let name = format!("{} {}", stage.index, label(command));
        bars.push(Row::bar(name, stage.cpu_seconds, time, Colour(0)));
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
        title: match outcome.parts {
            0 => "CPU time of each stage".to_owned(),
            _ => "CPU time of each stage, over all chunks".to_owned(),
        },
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: match outcome.parts {
            0 => "As the kernel charges it.".to_owned(),
            parts => format!(
                "As the kernel charges it, over {} by {}. What contend does for a stage is part of its own.",
                counted(parts, "chunk"),
                number_of(record.jobs, "job")
            ),
        },
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
