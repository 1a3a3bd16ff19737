//! What the stages did over the time of the run, and the fill of the pipes: a lane for each.

use std::fmt::Write as _;

use contend_record::pipe::{PipeRecord, StageSeries, TimeSeries};
use unicode_width::UnicodeWidthStr as _;

use super::super::layout::{BOLD, cut, dimmed};
use super::super::picture::{axis, parts, sparkline};
use super::super::units::seconds;
use super::bar::{Activity, styled};

/// Largest number of columns of an interval.
const MAX_REPEAT: usize = 4;
/// Largest width of a lane's name, in columns.
const MAX_NAME_COLUMNS: usize = 24;

/// Writes the lanes, if the record has a time series.
pub(super) fn lanes(out: &mut String, record: &PipeRecord, width: usize) {
    let Some(series) = &record.time_series else { return };
    let names: Vec<String> = record
        .stages
        .iter()
        .map(|stage| cut(&format!("{} {}", stage.index, stage.command), MAX_NAME_COLUMNS))
        .collect();
    let name_columns =
        names.iter().map(|name| name.width()).chain([PIPE.width()]).max().unwrap_or(0);
    let intervals = series.stages.first().map_or(0, |stage| stage.running.len());
    let columns = width.saturating_sub(name_columns + 2);
    // A short run has few intervals.
    let repeat = (columns / intervals.max(1)).clamp(1, MAX_REPEAT);
    let _ = writeln!(out, "\n{BOLD}Over time{BOLD:#}");
    for (index, (name, of_stage)) in names.iter().zip(&series.stages).enumerate() {
        let lane = styled(repeated(&main_activities(of_stage, columns), repeat).trim_end());
        let gap = " ".repeat(name_columns.saturating_sub(name.width()) + 2);
        let _ = writeln!(out, "{name}{gap}{lane}");
        if let Some(fill) = fill(record, series, index, columns) {
            let gap = " ".repeat(name_columns - PIPE.width() + 2);
            let _ = writeln!(out, "{PIPE}{gap}{}", repeated(&fill, repeat).trim_end());
        }
    }
    let shown = parts(intervals, columns).count() * repeat;
    let end = seconds(record.wall_seconds);
    let _ = writeln!(out, "{}{}", " ".repeat(name_columns + 2), axis("0", &end, shown));
    dimmed(
        out,
        "Each column shows what the stage mostly did, with the symbols of the bars above, or the fill of the pipe.",
        width,
    );
}

/// Repeats each symbol of a lane.
fn repeated(lane: &str, times: usize) -> String {
    lane.chars().flat_map(|symbol| std::iter::repeat_n(symbol, times)).collect()
}

/// Name of the lane of a pipe.
const PIPE: &str = "  pipe";

/// Returns the symbol of the main activity in each column; blank where the stage had ended.
fn main_activities(series: &StageSeries, columns: usize) -> String {
    let activities = [
        (Activity::Running, &series.running),
        (Activity::Queued, &series.queued),
        (Activity::Starved, &series.starved),
        (Activity::Blocked, &series.blocked),
        (Activity::Other, &series.other),
    ];
    let main = |(from, to): (usize, usize)| {
        let sum =
            |shares: &[f64]| -> f64 { shares.get(from..to).map_or(0.0, |part| part.iter().sum()) };
        let times = activities.map(|(activity, shares)| (activity, sum(shares)));
        let most = times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        match most {
            Some((activity, time)) if time > 0.0 => activity.symbol(),
            _ => ' ',
        }
    };
    parts(series.running.len(), columns).map(main).collect()
}

/// Returns the fill of the output pipe of the stage at a position, from 0; `None` if it is unknown.
fn fill(record: &PipeRecord, series: &TimeSeries, index: usize, columns: usize) -> Option<String> {
    let capacity = record.boundaries.get(index)?.capacity_bytes? as f64;
    let fills = &series.pipes.get(index)?.mean_fill_bytes;
    let fills: Vec<f64> = fills.iter().map(|fill| fill.unwrap_or(0) as f64).collect();
    Some(sparkline(&fills, capacity, columns))
}

#[cfg(test)]
mod tests {
    use contend_record::pipe::{Boundary, PipeSeries, Stage};

    use super::super::super::testing::plain;
    use super::*;

    #[test]
    fn lanes_have_the_symbols_of_the_main_activities() {
        let stage = |index: usize, command: &str| Stage {
            index,
            command: command.to_owned(),
            ..Stage::default()
        };
        let first = StageSeries {
            running: vec![0.9, 0.8, 0.1, 0.0],
            blocked: vec![0.1, 0.2, 0.8, 0.0],
            ..StageSeries::default()
        };
        let second = StageSeries {
            running: vec![0.0, 0.1, 0.9, 1.0],
            starved: vec![1.0, 0.9, 0.1, 0.0],
            ..StageSeries::default()
        };
        let record = PipeRecord {
            wall_seconds: 2.0,
            stages: vec![stage(1, "cat file"), stage(2, "sort")],
            boundaries: vec![Boundary { capacity_bytes: Some(65_536), ..Boundary::default() }],
            time_series: Some(TimeSeries {
                interval_seconds: 0.5,
                stages: vec![first, second],
                pipes: vec![PipeSeries {
                    mean_fill_bytes: vec![Some(0), Some(65_536), Some(32_768), None],
                }],
            }),
            ..PipeRecord::default()
        };
        let mut out = String::new();
        lanes(&mut out, &record, 60);
        insta::assert_snapshot!(plain(&out), @r"
        Over time
        1 cat file  ########::::
          pipe          ████▄▄▄▄
        2 sort      ........########
                    0 ──────── 2.00s
        Each column shows what the stage mostly did, with the
        symbols of the bars above, or the fill of the pipe.
        ");
        assert_eq!(main_activities(&StageSeries::default(), 10), "");
    }
}
