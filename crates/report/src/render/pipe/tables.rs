//! Renders the tables of `--verbose`: the time and the data of each stage, and the pipes between
//! the stages.

use comfy_table::{Cell, CellAlignment};
use contend_record::pipe::{
    BottleneckKind, Boundary, Figure, Outcome, PipeRecord, Stage, WaitingSide,
};
use contend_record::signal;
use unicode_width::UnicodeWidthStr as _;

use super::super::layout::{aligned, cut, gap, plain_table, styled_lines};
use super::super::units::{bytes, count, percent, seconds};
use super::{MIN_CPU_SHARE_SECONDS, runs};

/// Writes every table, each after an empty line. The tables of pipes and of several runs are left
/// out if there is nothing to show in them.
pub(super) fn all(out: &mut String, record: &PipeRecord, width: usize) {
    let mut tables = vec![times(record, width), flow(record, width)];
    if !record.boundaries.is_empty() {
        tables.push(pipes(record, width));
    }
    if let Some(runs) = &record.runs {
        tables.push(runs::table(runs, record, width));
    }
    for table in tables {
        out.push('\n');
        out.push_str(&table);
    }
}

/// A column of a table: the heading, and a function that formats a stage's cell.
struct Column {
    heading: &'static str,
    cell: fn(&Stage) -> String,
}

const fn column(heading: &'static str, cell: fn(&Stage) -> String) -> Column {
    Column { heading, cell }
}

fn share(stage: &Stage, part: f64) -> String {
    percent(part, stage.wall_seconds)
}

/// Renders a table of how each stage spent its time, with a last row for all stages together. A
/// narrow table has fewer columns.
fn times(record: &PipeRecord, width: usize) -> String {
    let mut columns = vec![column("wall", |s| seconds(s.wall_seconds))];
    if width >= 76 {
        columns.push(column("user", |s| seconds(s.user_seconds)));
        columns.push(column("sys", |s| seconds(s.system_seconds)));
    }
    if width >= 70 {
        columns.push(column("cpu", |s| cpu_share(s.cpu_percent, s.wall_seconds)));
    }
    columns.extend([
        column("running", |s| share(s, s.on_cpu_seconds)),
        column("queued", |s| share(s, s.run_queue_seconds)),
        column("starved", |s| share(s, s.starved_seconds)),
        column("blocked", |s| share(s, s.blocked_seconds)),
    ]);
    columns.push(if width >= 90 {
        column("other", |s| {
            let kind = main_wait(s).map_or_else(String::new, |name| format!(" {name}"));
            format!("{}{kind}", share(s, s.other_wait_seconds))
        })
    } else {
        column("other", |s| share(s, s.other_wait_seconds))
    });
    if record.stages.iter().any(|s| s.unexplained_seconds > 0.005 * s.wall_seconds) {
        columns.push(column("?", |s| share(s, s.unexplained_seconds)));
    }
    let total = &record.total;
    let mut all = vec![seconds(record.wall_seconds)];
    if width >= 76 {
        all.push(seconds(total.user_seconds));
        all.push(seconds(total.system_seconds));
    }
    if width >= 70 {
        all.push(cpu_share(total.cpu_percent, record.wall_seconds));
    }
    stage_table(record, &columns, Some(all), width)
}

fn cpu_share(cpu_percent: f64, wall: f64) -> String {
    if wall < MIN_CPU_SHARE_SECONDS { dash() } else { percent(cpu_percent, 100.0) }
}

/// Returns the kind that makes up the largest part of a stage's other waits, or `None` if all other
/// waits together are too short to mention.
pub(super) fn main_wait(stage: &Stage) -> Option<&'static str> {
    let named = stage.other_waits.named();
    let (name, _) = named.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (stage.other_wait_seconds > 0.005 * stage.wall_seconds).then_some(name)
}

/// Renders a table of the data that passed through each stage. A narrow table has fewer columns.
fn flow(record: &PipeRecord, width: usize) -> String {
    let mut columns = vec![
        column("in", |s| optional(s.bytes_in, s.is_approximate(Figure::BytesIn), bytes)),
        column("out", |s| optional(s.bytes_out, s.is_approximate(Figure::BytesOut), bytes)),
        column("reads", |s| optional(s.reads, s.is_approximate(Figure::Reads), count)),
        column("writes", |s| optional(s.writes, s.is_approximate(Figure::Writes), count)),
    ];
    if width >= 110 {
        columns.push(column("a read", |s| mean(s, s.mean_read_bytes, Figure::Reads)));
        columns.push(column("a write", |s| mean(s, s.mean_write_bytes, Figure::Writes)));
    }
    if width >= 84 {
        columns.push(column("switches", |s| {
            count((s.voluntary_switches + s.involuntary_switches) as f64)
        }));
    }
    if width >= 76 {
        columns.push(column("memory", |s| {
            let about = mark(s.is_approximate(Figure::MaxRssBytes));
            format!("{about}{}", bytes(s.max_rss_bytes as f64))
        }));
    }
    columns.extend([
        column("1st out", |s| s.first_output_seconds.map_or_else(dash, seconds)),
        column("ended", ending),
    ]);
    stage_table(record, &columns, None, width)
}

/// Formats the mean size of the system calls that the figure `calls` counts, or a dash if it is not
/// known.
fn mean(stage: &Stage, size: Option<f64>, calls: Figure) -> String {
    let about = mark(stage.is_approximate(calls));
    size.map_or_else(dash, |size| format!("{about}{}", bytes(size)))
}

fn dash() -> String {
    "-".to_owned()
}

pub(super) fn optional(value: Option<u64>, approximate: bool, show: fn(f64) -> String) -> String {
    match value {
        None => "?".to_owned(),
        Some(value) => format!("{}{}", mark(approximate), show(value as f64)),
    }
}

/// Returns the prefix of a value: `~` if the value is approximate, and nothing otherwise.
pub(super) fn mark(approximate: bool) -> &'static str {
    if approximate { "~" } else { "" }
}

/// Returns how a stage ended: its exit code, or the name of a signal.
pub(in crate::render) fn ending(stage: &Stage) -> String {
    match stage.outcome {
        Outcome::Exited | Outcome::NotFound | Outcome::NotExecutable => stage.exit_code.to_string(),
        Outcome::Unknown | Outcome::Unobserved => "?".to_owned(),
        Outcome::Running => "runs".to_owned(),
        Outcome::Killed(signal) | Outcome::Interrupted(signal) => {
            signal::name(signal).map_or_else(|| format!("sig {signal}"), str::to_owned)
        }
    }
}

fn stage_table(
    record: &PipeRecord,
    columns: &[Column],
    all: Option<Vec<String>>,
    width: usize,
) -> String {
    let rows: Vec<Vec<String>> = record
        .stages
        .iter()
        .map(|stage| columns.iter().map(|column| (column.cell)(stage)).collect())
        .collect();
    let gap = usize::from(gap(width));
    let headings: Vec<String> = columns.iter().map(|c| c.heading.to_owned()).collect();
    let fixed: usize = (0..columns.len())
        .map(|i| {
            let cells = rows.iter().chain([&headings]).chain(&all);
            gap + cells.filter_map(|row| row.get(i)).map(|cell| cell.width()).max().unwrap_or(0)
        })
        .sum();
    let index_width = record.stages.len().to_string().len().max(1);
    let longest = record.stages.iter().map(|s| s.command.width()).max().unwrap_or(0).max(5);
    let room = width.saturating_sub(fixed + index_width + gap).clamp(8, longest.max(8));

    let mut table = plain_table();
    let heading = ["#".to_owned(), "stage".to_owned()].into_iter().chain(headings);
    table.add_row(heading.enumerate().map(|(i, text)| aligned(i, text)));
    for (stage, row) in record.stages.iter().zip(rows) {
        let first = [stage.index.to_string(), cut(&stage.command, room)];
        table.add_row(first.into_iter().chain(row).enumerate().map(|(i, t)| aligned(i, t)));
    }
    if let Some(all) = all {
        let first = [String::new(), "ALL".to_owned()];
        table.add_row(first.into_iter().chain(all).enumerate().map(|(i, t)| aligned(i, t)));
    }
    let paced = match record.bottleneck.kind {
        BottleneckKind::Stage => record.bottleneck.stage,
        _ => None,
    };
    styled_lines(table, paced, width)
}

/// Renders a table of the pipes between the stages: data, rate, how full they were, and which side
/// waited.
fn pipes(record: &PipeRecord, width: usize) -> String {
    let mut table = plain_table();
    let headings = ["pipe", "bytes", "rate", "full", "blocked", "starved", "waits"];
    table.add_row(headings.map(|text| Cell::new(text).set_alignment(CellAlignment::Right)));
    for boundary in &record.boundaries {
        table.add_row(
            pipe_row(boundary).map(|text| Cell::new(text).set_alignment(CellAlignment::Right)),
        );
    }
    styled_lines(table, None, width)
}

fn pipe_row(boundary: &Boundary) -> [String; 7] {
    let unknown = || "?".to_owned();
    let full = match (boundary.mean_fill_bytes, boundary.capacity_bytes) {
        (Some(mean), Some(capacity)) if capacity > 0 => {
            format!("{:.0}%", 100.0 * mean / capacity as f64)
        }
        _ => unknown(),
    };
    [
        format!("{}-{}", boundary.from, boundary.to),
        optional(boundary.bytes, boundary.bytes_approximate, bytes),
        boundary.bytes_per_second.map_or_else(unknown, |rate| {
            format!("{}{}/s", mark(boundary.bytes_approximate), bytes(rate))
        }),
        full,
        seconds(boundary.writer_blocked_seconds),
        seconds(boundary.reader_starved_seconds),
        match boundary.waiting_side {
            WaitingSide::Writer => "writer".to_owned(),
            WaitingSide::Reader => "reader".to_owned(),
            WaitingSide::Neither => "neither".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain;
    use super::super::tests::record;
    use super::*;

    #[test]
    fn the_times_of_a_wide_terminal() {
        insta::assert_snapshot!(plain(&times(&record(), 100)));
    }

    #[test]
    fn the_flow_and_pipes_of_a_narrow_terminal() {
        let record = record();
        insta::assert_snapshot!(plain(&(flow(&record, 60) + &pipes(&record, 60))));
    }

    #[test]
    fn a_pipe_s_bytes_and_rate_are_marked_where_they_are_not_exact() {
        let mut record = record();
        let cells = |record: &PipeRecord| pipe_row(&record.boundaries[0])[1..3].to_vec();
        assert_eq!(cells(&record), ["77.0MB", "19.2MB/s"]);
        record.boundaries[0].bytes_approximate = true;
        assert_eq!(cells(&record), ["~77.0MB", "~19.2MB/s"]);
    }
}
