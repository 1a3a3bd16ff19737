//! What the stages did over the time of a run, and the fill of the pipes between them.

use contend_record::pipe::{Boundary, PipeRecord, PipeSeries, Stage, StageSeries, TimeSeries};

use super::super::chart::Colour;
use super::super::chart::lanes::{self, Lane, Layer};
use super::super::frame::Figure;
use super::super::table::{Cell, Table};
use super::{colour, legend, stage_name};
use crate::render::pipe::bar::Activity;
use crate::render::units::{bytes, percent, seconds};

/// Heights of the lanes of a stage and of a pipe, in pixels.
const STAGE: f64 = 36.0;
const PIPE: f64 = 16.0;
/// The colour of the fill of a pipe, which no activity has.
const FILL: Colour = Colour(7);

/// Returns a lane for each stage, with the pipes between them.
pub(super) fn figure(record: &PipeRecord, series: &TimeSeries) -> Figure {
    let mut lanes = Vec::new();
    let headings = [
        "#from",
        "#to",
        "#stage",
        "#running",
        "#queued",
        "#starved",
        "#blocked",
        "#other",
        "#fill of its output",
    ];
    let mut table = Table::new(&headings);
    for (index, (stage, of_stage)) in record.stages.iter().zip(&series.stages).enumerate() {
        let pipe = record.boundaries.get(index).zip(series.pipes.get(index));
        for (number, cells) in shares(of_stage).iter().enumerate() {
            let (from, to) = interval(series, number);
            let mut row = vec![
                Cell::number(seconds(from), from),
                Cell::number(seconds(to), to),
                Cell::number(stage.index.to_string(), stage.index as f64),
            ];
            row.extend(cells.iter().map(|(_, share)| Cell::number(percent(*share, 1.0), *share)));
            let fill = pipe.and_then(|(_, pipe)| *pipe.mean_fill_bytes.get(number)?);
            row.push(super::byte_cell(fill));
            table.push(row);
        }
        lanes.push(stage_lane(stage, of_stage, series));
        lanes.extend(pipe.map(|(boundary, pipe)| pipe_lane(boundary, pipe, series)));
    }
    let borders: Vec<f64> = record.phases.iter().skip(1).map(|phase| phase.begin_seconds).collect();
    let mut legend = legend();
    legend.push((FILL, "bytes in the pipe, of its capacity".to_owned()));
    Figure {
        title: "Activities over time".to_owned(),
        legend,
        chart: lanes::draw(
            &lanes,
            series.interval_seconds,
            seconds,
            &borders,
            &alternative(record, series),
        ),
        table,
        method: format!(
            "Running and queued are from the scheduler's counters, the waits from samples, in intervals of {}. \
             Dashed lines are the borders of phases.",
            seconds(series.interval_seconds)
        ),
    }
}

fn alternative(record: &PipeRecord, series: &TimeSeries) -> String {
    let mut text = "A lane for each stage over the time of the run, with the shares of its activities, and a lane \
                    for the fill of each pipe."
        .to_owned();
    for (stage, of_stage) in record.stages.iter().zip(&series.stages) {
        let busy = of_stage.running.iter().position(|share| *share > 0.5);
        let last = of_stage.running.iter().rposition(|share| *share > 0.5);
        if let (Some(first), Some(last)) = (busy, last) {
            let (from, _) = interval(series, first);
            let (_, to) = interval(series, last);
            text.push_str(&format!(
                " Stage {} mostly runs between {} and {}.",
                stage.index,
                seconds(from),
                seconds(to)
            ));
        }
    }
    text
}

/// Returns begin and end of an interval, in seconds since the start.
fn interval(series: &TimeSeries, number: usize) -> (f64, f64) {
    (series.interval_seconds * number as f64, series.interval_seconds * (number + 1) as f64)
}

/// Returns the activities in each interval, with their shares of it.
fn shares(series: &StageSeries) -> Vec<[(Activity, f64); 5]> {
    let share = |of: &[f64], number: usize| of.get(number).copied().unwrap_or(0.0);
    let intervals = 0..series.running.len();
    let all = intervals.map(|number| {
        [
            (Activity::Running, share(&series.running, number)),
            (Activity::Queued, share(&series.queued, number)),
            (Activity::Starved, share(&series.starved, number)),
            (Activity::Blocked, share(&series.blocked, number)),
            (Activity::Other, share(&series.other, number)),
        ]
    });
    all.collect()
}

fn stage_lane(stage: &Stage, of_stage: &StageSeries, series: &TimeSeries) -> Lane {
    let shares = shares(of_stage);
    let layers = [
        &of_stage.running,
        &of_stage.queued,
        &of_stage.starved,
        &of_stage.blocked,
        &of_stage.other,
    ];
    let layers = layers
        .into_iter()
        .zip(Activity::ALL)
        .map(|(shares, activity)| Layer { colour: colour(activity), shares: shares.clone() });
    let texts = shares.iter().enumerate().map(|(number, shares)| {
        let (from, to) = interval(series, number);
        let parts: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(activity, share)| format!("{} {}", activity.name(), percent(*share, 1.0)))
            .collect();
        let parts =
            if parts.is_empty() { "ended, or unknown".to_owned() } else { parts.join(", ") };
        format!("stage {}, {} to {}: {parts}", stage.index, seconds(from), seconds(to))
    });
    Lane {
        label: stage_name(stage),
        height: STAGE,
        layers: layers.collect(),
        texts: texts.collect(),
    }
}

fn pipe_lane(boundary: &Boundary, pipe: &PipeSeries, series: &TimeSeries) -> Lane {
    let capacity = boundary.capacity_bytes.unwrap_or(0).max(1) as f64;
    let fills = &pipe.mean_fill_bytes;
    let shares =
        fills.iter().map(|fill| fill.map_or(0.0, |fill| (fill as f64 / capacity).min(1.0)));
    let texts = fills.iter().enumerate().map(|(number, fill)| {
        let (from, to) = interval(series, number);
        let fill = fill.map_or_else(|| "not inspected".to_owned(), |fill| bytes(fill as f64));
        format!(
            "pipe {} → {}, {} to {}: {fill}",
            boundary.from,
            boundary.to,
            seconds(from),
            seconds(to)
        )
    });
    Lane {
        label: format!("pipe {} → {}", boundary.from, boundary.to),
        height: PIPE,
        layers: vec![Layer { colour: FILL, shares: shares.collect() }],
        texts: texts.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_an_interval_keep_the_order_of_the_activities() {
        let series =
            StageSeries { running: vec![0.5], blocked: vec![0.25], ..StageSeries::default() };
        let shares = shares(&series);
        assert_eq!(shares.len(), 1);
        assert_eq!(shares[0].map(|(activity, _)| activity), Activity::ALL[..5]);
        let bits = shares[0].map(|(_, share)| share.to_bits());
        assert_eq!(bits, [0.5, 0.0, 0.0, 0.25, 0.0].map(f64::to_bits));
    }
}
