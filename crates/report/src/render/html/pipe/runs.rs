//! The medians of several runs of a pipeline, with their intervals.

use contend_record::pipe::{PipeRecord, Runs};
use contend_record::stats::Estimate;

use super::super::chart::Colour;
use super::super::chart::rows::{self, Row};
use super::super::frame::Figure;
use super::super::label;
use super::super::table::{Cell, Table};
use super::colour;
use crate::render::pipe::bar::Activity;
use crate::render::pipe::runs::{brackets, ends, median};
use crate::render::text::printable;
use crate::render::units::{counted, seconds};

/// What the bars are.
const METHOD: &str = "User and system time, as the kernel charges it";

/// Returns the CPU time of the whole pipeline and of each stage, with the other medians in the table.
pub(super) fn figure(record: &PipeRecord, runs: &Runs) -> Figure {
    let headings =
        ["#stage", "command", "#wall", "#busy", "#CPU", "#queued", "#starved", "#blocked"];
    let mut table = Table::new(&headings);
    let cell = |of: &Estimate| Cell::number(median(of, runs), of.median);
    let mut whole = vec![Cell::default(), "all stages".into(), cell(&runs.wall_seconds)];
    whole.extend([Cell::default(), cell(&runs.cpu_seconds)]);
    whole.extend([Cell::default(), Cell::default(), Cell::default()]);
    table.push(whole);
    let bar = |name: &str, of: &Estimate, colour: Colour| Row {
        interval: ends(of, runs),
        ..Row::bar(name, of.median, median(of, runs), colour)
    };
    let mut bars = vec![bar("all stages", &runs.cpu_seconds, Colour::NEUTRAL)];
    for stage in &runs.stages {
        let command = record.stages.get(stage.index.wrapping_sub(1));
        let command = command.map_or("", |stage| stage.command.as_str());
        let mut row = vec![
            Cell::number(stage.index.to_string(), stage.index as f64),
            printable(command).into(),
        ];
        let figures = [
            &stage.wall_seconds,
            &stage.service_seconds,
            &stage.cpu_seconds,
            &stage.run_queue_seconds,
            &stage.starved_seconds,
            &stage.blocked_seconds,
        ];
        row.extend(figures.map(cell));
        table.push(row);
        let name = format!("{} {}", stage.index, label(command));
        bars.push(bar(&name, &stage.cpu_seconds, colour(Activity::Running)));
    }
    let most =
        runs.stages.iter().max_by(|a, b| a.cpu_seconds.median.total_cmp(&b.cpu_seconds.median));
    let most = most.map_or_else(String::new, |stage| {
        format!(
            " The largest is that of stage {}, {}.",
            stage.index,
            seconds(stage.cpu_seconds.median)
        )
    });
    let alternative = format!("Bars of the median CPU time of all stages and of each stage.{most}");
    let scale = rows::scale(&bars);
    Figure {
        title: format!("CPU time of {}", counted(runs.count as u64, "run")),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: match brackets(runs) {
            Some(words) => format!("{METHOD}: medians; thin lines show the {words}."),
            None => format!("{METHOD}."),
        },
    }
}

/// Says which of several runs a chart of the stages shows, and what its thin lines are, with a space before it.
/// Empty for a single run.
pub(super) fn shown_run(runs: &Runs) -> String {
    brackets(runs).map_or_else(String::new, |words| {
        format!(
            " Of {}, this is the one nearest to the median; thin lines show the {words} of each stage's wall time.",
            counted(runs.count as u64, "run")
        )
    })
}
