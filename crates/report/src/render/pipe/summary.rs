//! Renders the beginning of a report: the headline, and a row with a bar for each stage.

use std::fmt::Write as _;

use anstyle::Style;
use contend_record::pipe::{BottleneckKind, Figure, PipeRecord, Stage};
use contend_record::units::time;
use unicode_width::UnicodeWidthStr as _;

use super::super::layout::{BOLD, DIM, WARN, cut, dimmed, gap, paragraph_after, prose_width};
use super::super::units::{bytes, percent, seconds};
use super::bar::{self, Activity};
use super::tables::{ending, main_wait, optional};
use super::{MIN_CPU_SHARE_SECONDS, runs};

/// Minimum width of a stage's command, in columns.
const MIN_COMMAND_COLUMNS: usize = 12;

/// Writes wall time, CPU time and exit code. For several runs, the times are medians with their
/// intervals or ranges, and a note follows.
pub(super) fn headline(out: &mut String, record: &PipeRecord, width: usize) {
    let [wall, cpu, exit] = facts(record);
    let _ = write!(out, "{BOLD}{wall}{BOLD:#}");
    paragraph_after(out, wall.width(), &format!(" | {cpu} | {exit}"), width);
    if let Some(runs) = &record.runs {
        dimmed(out, &runs::note(runs), width);
    }
}

/// Returns wall time, CPU time, and how the pipeline ended, each in a few words. For several runs, the
/// times are medians with their intervals or ranges.
pub(in crate::render) fn facts(record: &PipeRecord) -> [String; 3] {
    let exit = match &record.attached {
        None => format!("exit {}", record.exit_code),
        Some(attached) if attached.has_ended => "ended, exit status unknown".to_owned(),
        Some(_) => "still running".to_owned(),
    };
    if let Some(runs) = &record.runs {
        let [wall, cpu] = runs::medians(runs);
        return [wall, cpu, exit];
    }
    let cpu = record.total.user_seconds + record.total.system_seconds;
    let of_what = if record.attached.is_some() { "observed" } else { "wall" };
    let wall = format!("{} {of_what}", time(record.wall_seconds));
    let busy = if record.wall_seconds < MIN_CPU_SHARE_SECONDS {
        String::new()
    } else {
        let cpus = record.host.usable_cpus();
        let plural = if (cpus - 1.0).abs() < 1e-9 { "" } else { "s" };
        format!(" ({:.1} of {cpus} CPU{plural} busy)", record.total.cpu_percent / 100.0)
    };
    [wall, format!("{} CPU{busy}", time(cpu)), exit]
}

/// Writes the warnings about disturbances of the run.
pub(super) fn disturbances(out: &mut String, record: &PipeRecord, width: usize) {
    for warning in record.warnings.iter().filter(|warning| warning.is_disturbance()) {
        let _ = write!(out, "{WARN}!{WARN:#} ");
        paragraph_after(out, 2, &warning.message, width);
    }
}

/// A column of the table of stages.
struct Column {
    heading: &'static str,
    is_left_aligned: bool,
    cells: Vec<String>,
}

impl Column {
    fn new(heading: &'static str, is_left_aligned: bool, cells: Vec<String>) -> Self {
        Self { heading, is_left_aligned, cells }
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.width()).chain([self.heading.width()]).max().unwrap_or(0)
    }

    fn padding(&self, text: &str) -> String {
        " ".repeat(self.width().saturating_sub(text.width()))
    }
}

/// Writes a table with a row for each stage, and the legend of the bars.
pub(super) fn stages(out: &mut String, record: &PipeRecord, width: usize) {
    let cells = bar_cells(width);
    let bars = |stage: &Stage| {
        let shares = Activity::ALL.map(|one| (one, one.seconds(stage) / record.wall_seconds));
        bar::bar(&shares, cells)
    };
    let of = |cell: &dyn Fn(&Stage) -> String| record.stages.iter().map(cell).collect::<Vec<_>>();
    let size = |figure, value: fn(&Stage) -> Option<u64>| {
        of(&|stage| match value(stage) {
            // The bytes of the stage's libraries are already subtracted, so it read nothing.
            Some(0) if stage.is_approximate(figure) => "-".to_owned(),
            count => optional(count, stage.is_approximate(figure), bytes),
        })
    };
    let mut columns = vec![
        Column::new("CPU", false, of(&|stage| seconds(stage.cpu_seconds()))),
        Column::new("time spent", true, of(&|stage| format!("{:cells$}", bars(stage)))),
        Column::new("", true, of(&|stage| main_activity(stage, record.wall_seconds, width))),
        Column::new("in", false, size(Figure::BytesIn, |stage| stage.bytes_in)),
        Column::new("out", false, size(Figure::BytesOut, |stage| stage.bytes_out)),
    ];
    if cells < columns[1].heading.len() {
        columns[1].heading = "time";
    }
    if record.stages.iter().any(Stage::has_failed) {
        let exits = of(&|stage| if stage.has_failed() { ending(stage) } else { String::new() });
        columns.push(Column::new("exit", false, exits));
    }
    let has_unknown = columns[1].cells.iter().any(|bar| bar.contains(Activity::Unknown.symbol()));
    let gap = usize::from(gap(width));
    let taken: usize = columns.iter().map(|column| column.width() + gap).sum();
    let index = record.stages.len().to_string().len();
    let longest = record.stages.iter().map(|stage| stage.command.width()).max().unwrap_or(0);
    let room = width.saturating_sub(taken + index + 3).max(MIN_COMMAND_COLUMNS);
    let room = room.min(longest.max("stage".len()));
    let commands = of(&|stage| cut(&stage.command, room));
    columns.insert(0, Column::new("stage", true, commands));
    let heading = row(&columns, &" ".repeat(index + 2), gap, Style::new(), |column| column.heading);
    let _ = writeln!(out, "{DIM}{heading}{DIM:#}");
    for (place, stage) in record.stages.iter().enumerate() {
        let is_bottleneck = is_bottleneck(record, stage);
        let mark = if is_bottleneck { ">" } else { " " };
        let style = if is_bottleneck { BOLD } else { Style::new() };
        let first = format!("{mark} {:>index$}", stage.index);
        let text = row(&columns, &first, gap, style, |column| &column.cells[place]);
        let _ = writeln!(out, "{text}");
    }
    dimmed(out, &legend(record, has_unknown, index + 3, width), width);
}

/// Returns whether the stage itself is the bottleneck. Returns `false` for every stage if the
/// bottleneck is the CPUs, the input or the output.
fn is_bottleneck(record: &PipeRecord, stage: &Stage) -> bool {
    record.bottleneck.kind == BottleneckKind::Stage && record.bottleneck.stage == Some(stage.index)
}

/// Returns a row of the table, which begins with `first`. All cells have the given style, except
/// the bar, which has styles of its own.
fn row<'a>(
    columns: &'a [Column],
    first: &str,
    gap: usize,
    style: Style,
    cell: impl Fn(&'a Column) -> &'a str,
) -> String {
    let mut line = format!("{style}{first}{style:#}");
    for (place, column) in columns.iter().enumerate() {
        let text = cell(column);
        let padding = column.padding(text);
        // The word after a bar belongs to the bar, so only one space separates them.
        let space = " ".repeat(if place == 0 || column.heading.is_empty() { 1 } else { gap });
        let is_bar = column.heading.starts_with("time") && text != column.heading;
        let text = if is_bar { bar::styled(text) } else { format!("{style}{text}{style:#}") };
        line.push_str(&if column.is_left_aligned {
            format!("{space}{text}{padding}")
        } else {
            format!("{space}{padding}{text}")
        });
    }
    line.trim_end().to_owned()
}

/// Returns the width of a bar in columns, on a terminal that is `width` columns wide.
fn bar_cells(width: usize) -> usize {
    match width {
        ..72 => 8,
        72..100 => 14,
        100..120 => 20,
        120..160 => 30,
        _ => 40,
    }
}

/// Returns the activity on which a stage spent the most time, with its share of the pipeline's wall
/// time; empty if the share is too small to show.
fn main_activity(stage: &Stage, wall_seconds: f64, width: usize) -> String {
    let most = Activity::ALL
        .into_iter()
        .max_by(|a, b| a.seconds(stage).total_cmp(&b.seconds(stage)))
        .filter(|most| most.seconds(stage) > 0.0);
    let Some(most) = most else { return String::new() };
    let name = match most {
        Activity::Other if width >= 72 => main_wait(stage).unwrap_or(most.name()),
        _ => most.name(),
    };
    let share = percent(most.seconds(stage), wall_seconds);
    if share.is_empty() { String::new() } else { format!("{name} {share}") }
}

/// Returns a legend of the symbols in the bars: the longest variant that fits on one line, or the
/// shortest if none does.
fn legend(record: &PipeRecord, has_unknown: bool, indent: usize, width: usize) -> String {
    let long = |activity: Activity| match activity {
        Activity::Starved => "starved (no input)",
        Activity::Blocked => "blocked (output full)",
        _ => activity.name(),
    };
    let is_shown = |activity: &Activity| *activity != Activity::Unknown || has_unknown;
    let legend = |name: &dyn Fn(Activity) -> &'static str| {
        let shown = Activity::ALL.into_iter().filter(is_shown);
        let parts = shown.map(|activity| format!("{} {}", activity.symbol(), name(activity)));
        format!("{}{}", " ".repeat(indent), parts.collect::<Vec<_>>().join("  "))
    };
    let scale = format!("  (bar: {})", time(record.wall_seconds));
    let variants = [legend(&long) + &scale, legend(&long), legend(&Activity::name)];
    let fits = |variant: &&String| variant.width() <= prose_width(width);
    variants.iter().find(fits).unwrap_or(&variants[2]).clone()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::tests::record;
    use super::*;
    use contend_record::pipe::{Attached, Outcome};

    #[test]
    fn the_rows_at_the_widths_of_common_terminals() {
        for width in [60, 80, 120] {
            let text = plain_output(|out| stages(out, &record(), width));
            insta::assert_snapshot!(format!("stages_at_{width}_columns"), text);
        }
    }

    #[test]
    fn the_exit_column_appears_where_a_stage_failed() {
        let mut record = record();
        assert!(!plain_output(|out| stages(out, &record, 80)).contains("exit"));
        record.stages[0].outcome = Outcome::Killed(13);
        assert!(!plain_output(|out| stages(out, &record, 80)).contains("exit"));
        record.stages[1].exit_code = 3;
        let text = plain_output(|out| stages(out, &record, 80));
        assert!(text.contains("exit") && text.lines().any(|line| line.ends_with(" 3")), "{text}");
    }

    #[test]
    fn the_headline_has_wall_time_cpu_time_and_exit_code() {
        let text = plain_output(|out| headline(out, &record(), 80));
        assert_eq!(text, "4.00 s wall | 700 ms CPU (0.2 of 2 CPUs busy) | exit 0\n");
    }

    #[test]
    fn an_attached_pipeline_was_observed_and_has_no_exit_code() {
        let attached = |has_ended| PipeRecord {
            attached: Some(Attached { pids: vec![7, 8], has_ended }),
            ..record()
        };
        let [wall, _, exit] = facts(&attached(false));
        assert_eq!([wall.as_str(), exit.as_str()], ["4.00 s observed", "still running"]);
        assert_eq!(facts(&attached(true))[2], "ended, exit status unknown");
    }
}
