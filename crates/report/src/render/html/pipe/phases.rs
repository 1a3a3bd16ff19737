//! The phases of a run, and the shares of the stages' activities in each.

use contend_record::pipe::{Phase, PhaseStage, PipeRecord, Stage};

use super::super::chart::rows::{self, Row, Span};
use super::super::frame::Figure;
use super::super::number_of;
use super::super::table::{Cell, Table};
use super::{colour, legend, stage_name};
use crate::render::pipe::bar::Activity;
use crate::render::pipe::phases::{explained, name};
use crate::render::text::printable;
use crate::render::units::seconds;

/// What each stage did in each phase.
pub(super) fn figure(record: &PipeRecord) -> Figure {
    let headings = [
        "#phase",
        "#from",
        "#to",
        "bottleneck",
        "#explained",
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
                printable(&name(record, phase)).into(),
                Cell::number(explained(phase.explained_share), phase.explained_share),
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
        method: format!(
            "A phase ends where the input of a stage ends that writes nothing before. Within a phase, the order of a \
             stage's activities is not known: the parts are their shares.{}",
            record.explained_share.map_or_else(String::new, |share| format!(
                " The bottlenecks of all phases explain {} of the time.",
                explained(share)
            ))
        ),
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
