//! How many bytes flow through the stages, and what each stage waits for.

use contend_record::pipe::{Figure as Count, PipeRecord, Stage};

use super::super::chart::Colour;
use super::super::chart::flow::{self, Link, Part};
use super::super::frame::Figure;
use super::super::table::{Cell, Table};
use super::{byte_cell, colour, legend, stage_name};
use crate::render::pipe::bar::Activity;
use crate::render::units::{bytes, percent, ratio, seconds};

/// Returns the flow of bytes through the pipeline.
pub(super) fn figure(record: &PipeRecord) -> Figure {
    let first = record.stages.first().and_then(|stage| stage.bytes_in);
    let last = record.stages.last().and_then(|stage| stage.bytes_out);
    let amounts: Vec<Option<u64>> = [first]
        .into_iter()
        .chain(record.boundaries.iter().map(|boundary| boundary.bytes))
        .chain([last])
        .collect();
    let mut table =
        Table::new(&["#stage", "#bytes in", "#bytes out", "#output per input", "mostly"]);
    for (stage, pair) in record.stages.iter().zip(amounts.windows(2)) {
        let factor = pair[0].zip(pair[1]).filter(|(input, _)| *input > 0);
        table.push(vec![
            Cell::number(stage.index.to_string(), stage.index as f64),
            byte_cell(pair[0]),
            byte_cell(pair[1]),
            factor.map_or_else(Cell::default, |(input, output)| {
                let factor = output as f64 / input as f64;
                Cell::number(ratio(factor), factor)
            }),
            main_activity(stage).name().into(),
        ]);
    }
    let parts: Vec<Part> = record.stages.iter().map(part).collect();
    let links: Vec<Link> =
        amounts.iter().enumerate().map(|(number, amount)| link(record, number, *amount)).collect();
    let alternative = format!(
        "The stages from top to bottom, as wide as the bytes that go in and out. {}",
        links.iter().map(|link| format!("{}.", link.text)).collect::<Vec<_>>().join(" ")
    );
    let mut legend = legend();
    legend.push((Colour::NEUTRAL, "bytes".to_owned()));
    Figure {
        title: "Flow of bytes".to_owned(),
        legend,
        chart: flow::draw(&parts, &links, &alternative),
        table,
        method: "The width shows bytes, as a share of the most; the colour is the activity on which the stage spends \
                 most of its time. Bytes of mapped files are not counted."
            .to_owned(),
    }
}

/// Returns the activity on which a stage spends most of its time.
fn main_activity(stage: &Stage) -> Activity {
    let longest =
        Activity::ALL.into_iter().max_by(|a, b| a.seconds(stage).total_cmp(&b.seconds(stage)));
    longest.unwrap_or(Activity::Unknown)
}

fn part(stage: &Stage) -> Part {
    let parts = Activity::ALL.into_iter().filter(|activity| activity.seconds(stage) > 0.0).map(
        |activity| {
            let time = activity.seconds(stage);
            format!("{} {} ({})", activity.name(), seconds(time), percent(time, stage.wall_seconds))
        },
    );
    let text = format!("stage {}: {}", stage.index, parts.collect::<Vec<_>>().join(", "));
    Part { label: stage_name(stage), colour: colour(main_activity(stage)), text }
}

/// Returns the link before the stage at a position, from 0.
fn link(record: &PipeRecord, number: usize, amount: Option<u64>) -> Link {
    let name = match number {
        0 => "input".to_owned(),
        _ if number == record.stages.len() => "output".to_owned(),
        _ => format!("from stage {number} to stage {}", number + 1),
    };
    let about = if is_approximate(record, number) { "about " } else { "" };
    let label = amount
        .map_or_else(|| "unknown".to_owned(), |total| format!("{about}{}", bytes(total as f64)));
    Link { amount: amount.map(|total| total as f64), text: format!("{name}: {label}"), label }
}

fn is_approximate(record: &PipeRecord, number: usize) -> bool {
    match record.boundaries.get(number.wrapping_sub(1)) {
        Some(boundary) => boundary.bytes_approximate,
        None if number == 0 => {
            record.stages.first().is_some_and(|stage| stage.is_approximate(Count::BytesIn))
        }
        None => record.stages.last().is_some_and(|stage| stage.is_approximate(Count::BytesOut)),
    }
}

#[cfg(test)]
mod tests {
    use contend_record::pipe::Boundary;

    use super::*;

    #[test]
    fn links_are_named_by_their_ends() {
        let stages = vec![
            Stage {
                index: 1,
                bytes_in: Some(2000),
                approximate: vec![Count::BytesIn],
                ..Stage::default()
            },
            Stage { index: 2, bytes_out: Some(10), ..Stage::default() },
        ];
        let boundaries = vec![Boundary { from: 1, to: 2, bytes: None, ..Boundary::default() }];
        let record = PipeRecord { stages, boundaries, ..PipeRecord::default() };
        let text = |number, amount| link(&record, number, amount).text;
        assert_eq!(text(0, Some(2000)), "input: about 2.00kB");
        assert_eq!(text(1, None), "from stage 1 to stage 2: unknown");
        assert_eq!(text(2, Some(10)), "output: 10B");
    }
}
