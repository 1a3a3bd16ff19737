//! What the cases of an experiment found besides their figures: limits, the stages of pipelines, the steps of
//! demonstrations, and facts about the measured subjects.

use contend_record::lab::{Case, Metric, RunRecord};
use maud::{Markup, html};

use super::super::table::{Cell, Table};
use super::table::{number_heading, value_cell, whole_number};
use super::{case_name, number_of_samples, spread_of};
use crate::render::lab::{legend, limit, stage_figures, timeline};
use crate::render::text::printable;
use crate::render::units::seconds;

/// Returns the limits, stages, steps and facts of the cases of an experiment. The tables are folded.
pub(super) fn markup(record: &RunRecord, cases: &[&Case]) -> Markup {
    html! {
        (limits(cases))
        (stages(record, cases))
        @for case in cases.iter().filter(|case| !case.timeline.is_empty()) { (steps(case)) }
        (facts(cases))
    }
}

/// Returns a folded table; nothing if it is empty.
pub(super) fn folded(title: &str, table: &Table) -> Markup {
    html! {
        @if !table.is_empty() { details { summary { (title) } (table.markup(title)) } }
    }
}

/// Returns the outcome of each attempt to reach a limit, and the known limits.
fn limits(cases: &[&Case]) -> Markup {
    let reports = || cases.iter().filter_map(|case| Some((*case, case.limit.as_ref()?)));
    let [name, numbers @ .., source] = limit::HEADINGS;
    let mut headings = vec!["case".to_owned(), name.to_owned()];
    headings.extend(numbers.map(|heading| format!("#{heading}")));
    headings.push(source.to_owned());
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for (case, report) in reports() {
        for found in &report.limits {
            let [name, value, in_use, allows, source] = limit::cells(found);
            table.push(vec![
                case_name(case).into(),
                printable(&name).into(),
                Cell::number(value, found.value as f64),
                Cell::number(in_use, found.in_use as f64),
                Cell::number(allows, found.allows as f64),
                printable(&source).into(),
            ]);
        }
    }
    html! {
        @for (case, report) in reports() {
            p { (case_name(case)) ": " (printable(&limit::outcome(case, report))) }
        }
        (folded("Limits", &table))
    }
}

/// Returns the times of each stage of pipelines.
fn stages(record: &RunRecord, cases: &[&Case]) -> Markup {
    let times = ["real", "user", "sys"];
    let mut headings = vec!["case".to_owned(), "stage".to_owned()];
    headings.extend(times.map(|time| format!("#{time}")));
    headings.push("#cpu".to_owned());
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    let mut spreads = String::new();
    for case in cases {
        for stage in &case.stages {
            let [real, user, system, cpu] = stage_figures(stage);
            let mut time = |text: String, metric: &Metric| {
                let cell = with_spread(&text, metric, record.seed);
                spreads.push_str(&cell);
                Cell::number(cell, metric.median)
            };
            table.push(vec![
                case_name(*case).into(),
                printable(&stage.stage).into(),
                time(real, &stage.real),
                time(user, &stage.user),
                time(system, &stage.system),
                Cell::number(cpu, stage.cpu_percent()),
            ]);
        }
    }
    let counts = cases.iter().flat_map(|case| &case.stages).map(|stage| stage.real.samples.len());
    html! {
        (folded("Stages", &table))
        @if !table.is_empty() {
            p.method { "Stages: medians of " (number_of_samples(counts)) ". " (legend(&spreads).unwrap_or_default()) }
        }
    }
}

/// Returns a figure of a metric with the spread of its samples, if there are several.
pub(super) fn with_spread(text: &str, metric: &Metric, seed: u64) -> String {
    format!("{text} {}", spread_of(metric, seed)).trim_end().to_owned()
}

/// Returns the steps of a demonstration or of a pipeline, and the tasks at each.
fn steps(case: &Case) -> Markup {
    let mut table = Table::new(&["#step", "#time", "what happened"]);
    let mut headings = vec!["#step".to_owned()];
    headings.extend(timeline::TASK_HEADINGS.map(str::to_owned));
    let mut tasks = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, step) in (1..).zip(&case.timeline) {
        table.push(vec![
            whole_number(number),
            Cell::number(seconds(step.at_seconds), step.at_seconds),
            printable(&timeline::line(step)).into(),
        ]);
        for task in &step.tasks {
            let mut row = vec![whole_number(number)];
            row.extend(timeline::task_cells(task).map(|cell| Cell::from(printable(&cell))));
            tasks.push(row);
        }
    }
    let name = case_name(case);
    html! {
        @if let Some(conclusion) = timeline::conclusion(case) { p { (printable(&conclusion)) } }
        (folded(&format!("Step by step: {name}"), &table))
        (folded(&format!("Tasks at each step: {name}"), &tasks))
        @if !tasks.is_empty() { p.method { (timeline::NOTE) } }
    }
}

/// Returns the facts about the subject of each case.
fn facts(cases: &[&Case]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for name in cases.iter().flat_map(|case| case.facts.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut headings = vec!["case".to_owned()];
    headings.extend(names.iter().map(|name| {
        number_heading(&name.replace('_', " "), cases.iter().map(|case| case.facts.get(*name)))
    }));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for case in cases.iter().filter(|case| !case.facts.is_empty()) {
        let mut row: Vec<Cell> = vec![case_name(*case).into()];
        row.extend(names.iter().map(|name| value_cell(case.facts.get(*name))));
        table.push(row);
    }
    folded("Facts", &table)
}
