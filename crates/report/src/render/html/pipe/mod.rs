//! The page of a profiled pipeline.

use contend_record::pipe::{Boundary, Phase, PhaseStage, PipeRecord, Stage};
use maud::{Markup, html};

use super::chart::Colour;
use super::chart::rows::{self, Row, Span};
use super::frame::{Figure, Page};
use super::table::{Cell, Table};
use super::{exit, gains, label, number_of, origin};
use crate::render::pipe::bar::Activity;
use crate::render::pipe::{bottleneck_name, ending};
use crate::render::text::printable;
use crate::render::units::{bytes, counted, percent, seconds};

/// Largest width of the name of the bottleneck, in columns.
const MAX_BOTTLENECK_COLUMNS: usize = 200;

/// Returns the page of a profiled pipeline.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &PipeRecord) -> serde_json::Result<String> {
    let cpu = record.total.user_seconds + record.total.system_seconds;
    let mut facts = vec![
        format!("{} wall time", seconds(record.wall_seconds)),
        format!("{} CPU time", seconds(cpu)),
        number_of(record.stages.len(), "stage"),
    ];
    facts.extend(record.total.bytes.map(|total| format!("{} through pipes", bytes(total as f64))));
    facts.extend(record.runs.as_ref().map(|runs| number_of(runs.count, "run")));
    facts.extend(exit(record.exit_code));
    let mut sections = Vec::new();
    if !record.findings.is_empty() {
        let list = html! { ul { @for finding in &record.findings { li { (printable(&finding.message)) } } } };
        sections.push(("Findings".to_owned(), list));
    }
    if let Some(figure) = gains::rewrites(record) {
        sections.push(("Changes".to_owned(), figure.markup()));
    }
    let times = html! {
        (stages(record).markup())
        @if !record.phases.is_empty() { (phases(record).markup()) }
    };
    sections.push(("Where the time went".to_owned(), times));
    if !record.boundaries.is_empty() {
        sections.push(("Pipes".to_owned(), pipes(record).markup()));
    }
    let page = Page {
        subject: &record.command,
        kind: "pipe",
        facts,
        result: result(record),
        sections,
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

fn result(record: &PipeRecord) -> Markup {
    let winner = record.trial.as_ref().and_then(|trial| record.candidates.get(trial.winner?));
    let bottleneck = bottleneck_name(&record.bottleneck, &record.stages, MAX_BOTTLENECK_COLUMNS);
    html! {
        p { strong { (printable(&bottleneck)) "." } " " (printable(&record.bottleneck.evidence)) }
        @if let Some(winner) = winner {
            p { "Use this instead:" }
            pre { code { (printable(&winner.command)) } }
        }
    }
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
        bars.push(Row::stacked(stage_name(stage), value, parts));
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
            "Running and queued are the kernel's; waits are from {} of {}.",
            counted(record.observation.ticks, "sample"),
            record.observation.method
        ),
    }
}

/// What each stage did in each phase, over the time of the run.
fn phases(record: &PipeRecord) -> Figure {
    let headings = [
        "#phase",
        "#from",
        "#to",
        "bottleneck",
        "#stage",
        "#running",
        "#queued",
        "#starved",
        "#blocked",
    ];
    let mut table = Table::new(&headings);
    for (number, phase) in record.phases.iter().enumerate() {
        for stage in &phase.stages {
            table.push(vec![
                Cell::number((number + 1).to_string(), (number + 1) as f64),
                Cell::number(seconds(phase.begin_seconds), phase.begin_seconds),
                Cell::number(seconds(phase.end_seconds), phase.end_seconds),
                phase
                    .bottleneck
                    .stage
                    .map_or_else(String::new, |stage| format!("stage {stage}"))
                    .into(),
                Cell::number(stage.index.to_string(), stage.index as f64),
                Cell::number(seconds(stage.cpu_seconds), stage.cpu_seconds),
                Cell::number(seconds(stage.run_queue_seconds), stage.run_queue_seconds),
                Cell::number(seconds(stage.starved_seconds), stage.starved_seconds),
                Cell::number(seconds(stage.blocked_seconds), stage.blocked_seconds),
            ]);
        }
    }
    let lanes: Vec<Row> = record.stages.iter().map(|stage| lane(record, stage)).collect();
    let borders: Vec<f64> = record.phases.iter().skip(1).map(|phase| phase.begin_seconds).collect();
    let scale = rows::scale(&lanes);
    let alternative = format!(
        "A lane for each stage over the time of the run, which has {}. The parts of a phase show the shares of the \
         stage's activities in it.",
        number_of(record.phases.len(), "phase")
    );
    Figure {
        title: "Phases of the run".to_owned(),
        legend: legend(),
        chart: rows::draw(&lanes, &scale, seconds, &borders, &alternative),
        table,
        method: "A phase ends where the input of a stage ends that writes nothing before. Within a phase, the order \
                 of a stage's activities is not known: the parts are their shares."
            .to_owned(),
    }
}

fn lane(record: &PipeRecord, stage: &Stage) -> Row {
    let spans = record.phases.iter().enumerate().flat_map(|(number, phase)| {
        let found = phase.stages.iter().find(|part| part.index == stage.index);
        found.into_iter().flat_map(move |part| phase_spans(number + 1, phase, part))
    });
    Row { label: stage_name(stage), spans: spans.collect(), ..Row::default() }
}

/// Returns the shares of a stage's activities in a phase, as spans in order. The rest of the phase is time in
/// which the stage did not exist, or waited for something else.
fn phase_spans(number: usize, phase: &Phase, part: &PhaseStage) -> Vec<Span> {
    let other = (part.service_seconds - part.cpu_seconds).max(0.0);
    let times = [
        (Activity::Running, part.cpu_seconds),
        (Activity::Queued, part.run_queue_seconds),
        (Activity::Starved, part.starved_seconds),
        (Activity::Blocked, part.blocked_seconds),
        (Activity::Other, other),
    ];
    // Stages with several threads may run for longer than the phase takes.
    let sum: f64 = times.iter().map(|(_, time)| time).sum();
    let factor = (phase.seconds() / sum.max(f64::MIN_POSITIVE)).min(1.0);
    let mut from = phase.begin_seconds;
    let mut spans = Vec::new();
    for (activity, time) in times.into_iter().filter(|(_, time)| *time > 0.0) {
        let to = from + time * factor;
        let text = format!(
            "phase {number}, stage {}: {} {} of {}",
            part.index,
            activity.name(),
            seconds(time),
            seconds(phase.seconds())
        );
        spans.push(Span { from, to, colour: colour(activity), text });
        from = to;
    }
    spans
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
