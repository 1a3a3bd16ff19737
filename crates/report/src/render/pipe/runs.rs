//! Renders several runs of a pipeline, as medians with their intervals.

use std::fmt::Write as _;

use contend_record::pipe::{PipeRecord, Runs};
use contend_record::stats::{Estimate, MIN_CI95_SAMPLES};
use contend_record::units::time;
use unicode_width::UnicodeWidthStr as _;

use super::super::layout::{
    BOLD, aligned, cut, dimmed, paragraph_after, plain_table, styled_lines,
};
use super::super::units::seconds;

/// Writes the medians of wall and CPU time with their intervals (or ranges, with fewer than six
/// runs), `exit`, and which run the rest of the report shows.
pub(super) fn headline(out: &mut String, runs: &Runs, exit: &str, width: usize) {
    let enough = runs.count >= MIN_CI95_SAMPLES;
    let quantity = |estimate: &Estimate, name: &str| {
        let [low, high] = range(estimate, enough);
        format!("{} {name} [{}, {}]", time(estimate.median), time(low), time(high))
    };
    let wall = quantity(&runs.wall_seconds, "wall");
    let rest = format!(" | {} | {exit}", quantity(&runs.cpu_seconds, "CPU"));
    let _ = write!(out, "{BOLD}{wall}{BOLD:#}");
    paragraph_after(out, wall.width(), &rest, width);
    let note = format!(
        "median of {} runs [{}]; the same bottleneck in {} of them; below, the run nearest to the \
         median",
        runs.count,
        if enough { "95 % interval" } else { "minimum, maximum" },
        runs.same_bottleneck
    );
    dimmed(out, &note, width);
}

/// Renders a table of each stage's medians with their intervals, or ranges with fewer than six
/// runs. `record` is the record of the run that the report shows.
pub(super) fn table(runs: &Runs, record: &PipeRecord, width: usize) -> String {
    let enough = runs.count >= MIN_CI95_SAMPLES;
    let interval = |estimate: &Estimate| interval(estimate, enough);
    let mut table = plain_table();
    let mut headings = vec!["#", "stage", "busy", "CPU"];
    let wide = width >= 110;
    if wide {
        headings.extend(["starved", "blocked"]);
    }
    table.add_row(headings.into_iter().enumerate().map(|(i, t)| aligned(i, t.to_owned())));
    for stage in &runs.stages {
        let command =
            record.stages.get(stage.index.wrapping_sub(1)).map_or("", |s| s.command.as_str());
        let mut row = vec![
            stage.index.to_string(),
            cut(command, width.saturating_sub(if wide { 94 } else { 50 }).max(8)),
            interval(&stage.service_seconds),
            interval(&stage.cpu_seconds),
        ];
        if wide {
            row.extend([interval(&stage.starved_seconds), interval(&stage.blocked_seconds)]);
        }
        table.add_row(row.into_iter().enumerate().map(|(i, t)| aligned(i, t)));
    }
    styled_lines(table, None, width)
}

/// Returns the interval of a median, or the range of the samples if `enough` is `false`, because
/// there are too few for an interval.
fn range(estimate: &Estimate, enough: bool) -> [f64; 2] {
    let samples = estimate.samples.iter().copied();
    let range =
        || [samples.clone().fold(f64::INFINITY, f64::min), samples.clone().fold(0.0, f64::max)];
    if enough { estimate.ci95 } else { range() }
}

/// Formats a median, in seconds, with its interval or range.
fn interval(estimate: &Estimate, enough: bool) -> String {
    let [low, high] = range(estimate, enough);
    format!("{} [{}, {}]", seconds(estimate.median), seconds(low), seconds(high))
}
