//! The page of a profiled pipeline.

mod flow;
mod over_time;
mod phases;
mod runs;
#[cfg(test)]
mod tests;

use contend_record::pipe::{Boundary, PipeRecord, Stage};
use maud::{Markup, html};

use super::chart::Colour;
use super::chart::rows::{self, Row};
use super::frame::{Figure, Page, made_with};
use super::table::{Cell, Table};
use super::{command, gains, label, number_of, origin, prose};
use crate::render::advice::{all_answers, basis_of_predictions, note_on_answers, pasted};
use crate::render::pipe::bar::Activity;
use crate::render::pipe::{self, bottleneck_name, ending};
use crate::render::text::printable;
use crate::render::units::{bytes, counted, percent, seconds};

/// Largest width of the name of the bottleneck, in columns.
const MAX_BOTTLENECK_COLUMNS: usize = 200;

/// Returns the page of a profiled pipeline.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &PipeRecord) -> serde_json::Result<String> {
    let page = Page {
        subject: &record.command,
        kind: "pipe",
        facts: facts(record),
        result: result(record),
        sections: sections(record),
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

/// Returns facts about the run, which begin as the report in the terminal does.
fn facts(record: &PipeRecord) -> Vec<String> {
    let [wall, cpu, exit] = pipe::facts(record);
    let mut facts = vec![wall, cpu, number_of(record.stages.len(), "stage")];
    facts.extend(record.total.bytes.map(|total| format!("{} through pipes", bytes(total as f64))));
    facts.push(exit);
    facts
}

fn sections(record: &PipeRecord) -> Vec<(String, Markup)> {
    let mut sections = Vec::new();
    if !record.findings.is_empty() {
        let list =
            html! { ul { @for finding in &record.findings { li { (prose(&finding.message)) } } } };
        sections.push(("Findings".to_owned(), list));
    }
    if let Some(figure) = gains::rewrites(record) {
        sections.push(("Changes".to_owned(), figure.markup()));
    }
    sections.extend(answers(record).map(|answers| ("What if".to_owned(), answers)));
    if let Some(runs) = &record.runs {
        let name = format!("Medians of {}", counted(runs.count as u64, "run"));
        sections.push((name, runs::figure(record, runs).markup()));
    }
    let times = html! {
        (stages(record).markup())
        @if let Some(series) = &record.time_series { (over_time::figure(record, series).markup()) }
        @if !record.phases.is_empty() { (phases::figure(record).markup()) }
    };
    sections.push(("Where the time went".to_owned(), times));
    if !record.boundaries.is_empty() {
        let pipes = html! { (flow::figure(record).markup()) (pipes(record).markup()) };
        sections.push(("Pipes".to_owned(), pipes));
    }
    sections
}

/// Returns the answers to `--what-if`; `None` if there are none.
fn answers(record: &PipeRecord) -> Option<Markup> {
    let answers = all_answers(record);
    let has_wall = answers.first()?.wall_seconds.is_some();
    let mut headings = vec!["question", "#CPU", "bottleneck"];
    if has_wall {
        headings.insert(1, "#wall");
    }
    let mut table = Table::new(&headings);
    for answer in &answers {
        let mut row: Vec<Cell> = vec![printable(&answer.question).into()];
        row.extend(answer.wall_seconds.map(|wall| Cell::number(seconds(wall), wall)));
        row.push(Cell::number(seconds(answer.cpu_seconds), answer.cpu_seconds));
        row.push(printable(&answer.bottleneck).into());
        table.push(row);
    }
    Some(html! {
        (table.markup("Answers to --what-if"))
        p.method { (note_on_answers(record)) " " (basis_of_predictions(record).unwrap_or_default()) }
    })
}

fn result(record: &PipeRecord) -> Markup {
    let winner = record.trial.as_ref().and_then(|trial| record.candidates.get(trial.winner?));
    let bottleneck = bottleneck_name(&record.bottleneck, &record.stages, MAX_BOTTLENECK_COLUMNS);
    html! {
        p { strong { (printable(&bottleneck)) "." } " " (prose(&record.bottleneck.evidence)) }
        @if let Some(winner) = winner {
            p { "Use this instead:" }
            pre { code { (pasted(&winner.command)) } }
        }
        @if let Some(attached) = &record.attached {
            p {
                "contend was attached to the running pipeline (" (pids(&attached.pids)) "): all times and counts are "
                "those of the observation."
            }
        }
        @if let Some(runs) = &record.runs { p.method { (pipe::runs::note(runs)) } }
        (made_with(&command::of_pipe(record)))
    }
}

/// Names the processes of the stages.
fn pids(pids: &[i32]) -> String {
    let numbers: Vec<String> = pids.iter().map(ToString::to_string).collect();
    format!("PID{} {}", if pids.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

fn stage_name(stage: &Stage) -> String {
    format!("{} {}", stage.index, label(&stage.command))
}

/// The time of each stage by activity.
pub(super) fn stages(record: &PipeRecord) -> Figure {
    let headings = [
        "#stage", "command", "#wall", "#running", "#queued", "#starved", "#blocked", "#other",
        "#unknown", "#in", "#out", "exit",
    ];
    let mut table = Table::new(&headings);
    let mut bars = Vec::new();
    let runs = record.runs.as_ref();
    for stage in &record.stages {
        let mut cells = vec![
            Cell::number(stage.index.to_string(), stage.index as f64),
            printable(&stage.command).into(),
            Cell::number(seconds(stage.wall_seconds), stage.wall_seconds),
        ];
        cells.extend(Activity::ALL.map(|activity| {
            Cell::number(seconds(activity.seconds(stage)), activity.seconds(stage))
        }));
        cells.extend([stage.bytes_in, stage.bytes_out].map(byte_cell));
        cells.push(ending(stage).into());
        table.push(cells);
        let parts = Activity::ALL.map(|activity| {
            let time = activity.seconds(stage);
            let text = format!(
                "{}: {} {} ({})",
                stage_name(stage),
                activity.name(),
                seconds(time),
                percent(time, stage.wall_seconds)
            );
            (time, colour(activity), text)
        });
        let value = format!("{} running", seconds(stage.on_cpu_seconds));
        let interval = runs.and_then(|runs| {
            let of_stage = runs.stages.iter().find(|of_stage| of_stage.index == stage.index)?;
            pipe::runs::ends(&of_stage.wall_seconds, runs)
        });
        bars.push(Row { interval, ..Row::stacked(stage_name(stage), value, parts) });
    }
    let busiest = record.stages.iter().max_by(|a, b| a.on_cpu_seconds.total_cmp(&b.on_cpu_seconds));
    let alternative = format!(
        "A stacked bar for each stage: time by activity. {}",
        busiest.map_or_else(String::new, |stage| format!(
            "Stage {} runs longest, for {}.",
            stage.index,
            seconds(stage.on_cpu_seconds)
        ))
    );
    let scale = rows::scale(&bars);
    Figure {
        title: "Time of each stage by activity".to_owned(),
        legend: legend(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: format!(
            "Running and queued are the kernel's; waits are from {} of {}.{}",
            counted(record.observation.ticks, "sample"),
            record.observation.method,
            runs.map_or_else(String::new, runs::shown_run)
        ),
    }
}

/// What went through each pipe, and which side waited.
fn pipes(record: &PipeRecord) -> Figure {
    let headings = [
        "pipe",
        "#bytes",
        "#bytes per second",
        "#mean fill",
        "#capacity",
        "#writer blocked",
        "#reader starved",
    ];
    let mut table = Table::new(&headings);
    let mut bars = Vec::new();
    for boundary in &record.boundaries {
        let name = format!("{} → {}", boundary.from, boundary.to);
        table.push(vec![
            name.clone().into(),
            byte_cell(boundary.bytes),
            boundary
                .bytes_per_second
                .map_or_else(Cell::default, |rate| Cell::number(bytes(rate), rate)),
            boundary
                .mean_fill_bytes
                .map_or_else(Cell::default, |fill| Cell::number(bytes(fill), fill)),
            byte_cell(boundary.capacity_bytes),
            Cell::number(seconds(boundary.writer_blocked_seconds), boundary.writer_blocked_seconds),
            Cell::number(seconds(boundary.reader_starved_seconds), boundary.reader_starved_seconds),
        ]);
        bars.push(pipe_row(&name, boundary));
    }
    let most = record.boundaries.iter().max_by_key(|boundary| boundary.bytes);
    let alternative = format!(
        "A bar for each pipe: waits of its two sides. {}",
        most.and_then(|pipe| Some((pipe, pipe.bytes?))).map_or_else(
            String::new,
            |(pipe, total)| format!(
                "Most bytes, {}, go from stage {} to stage {}.",
                bytes(total as f64),
                pipe.from,
                pipe.to
            )
        )
    );
    let scale = rows::scale(&bars);
    Figure {
        title: "Waits at each pipe".to_owned(),
        legend: vec![
            (colour(Activity::Blocked), "writer blocked: the pipe is full".to_owned()),
            (colour(Activity::Starved), "reader starved: it is empty".to_owned()),
        ],
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: "Bytes are counted where the kernel shows them; waits are from samples.".to_owned(),
    }
}

fn pipe_row(name: &str, boundary: &Boundary) -> Row {
    let parts = [
        (Activity::Blocked, "writer blocked", boundary.writer_blocked_seconds),
        (Activity::Starved, "reader starved", boundary.reader_starved_seconds),
    ];
    let value = boundary.bytes.map_or_else(String::new, |total| bytes(total as f64));
    let parts = parts.map(|(activity, side, time)| {
        (time, colour(activity), format!("{name}: {side} {}", seconds(time)))
    });
    Row::stacked(name, value, parts)
}

fn byte_cell(value: Option<u64>) -> Cell {
    value.map_or_else(Cell::default, |value| Cell::number(bytes(value as f64), value as f64))
}

fn legend() -> Vec<(Colour, String)> {
    Activity::ALL.map(|activity| (colour(activity), activity.name().to_owned())).into()
}

fn colour(activity: Activity) -> Colour {
    match activity {
        Activity::Running => Colour(0),
        Activity::Queued => Colour(1),
        Activity::Starved => Colour(2),
        Activity::Blocked => Colour(3),
        Activity::Other => Colour(5),
        Activity::Unknown => Colour::NEUTRAL,
    }
}
