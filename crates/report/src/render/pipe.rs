//! Renders a profiled pipeline as text for a terminal of at least 60 columns.
//!
//! Colours are escape sequences in the text; the caller removes them where they do not belong.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment};
use contend_record::pipe::{
    Bottleneck, BottleneckKind, Boundary, Figure, Limit, Outcome, PipeRecord, Runs, Stage,
    WaitingSide,
};
use contend_record::signal;
use contend_record::stats::Estimate;
use unicode_width::UnicodeWidthStr;

use super::layout::{
    BOLD, NARROWEST, PACE, aligned, cut, dimmed, gap, paragraph, paragraph_after, plain_table,
    styled_lines, warn, wrapped,
};
use super::text::printable;
use super::units::{bytes, count, counted, percent, seconds};

/// Fewest bytes from which CPU time for each gigabyte is shown.
const WORTH_A_RATE: u64 = 10_000_000;

/// Shortest run, in seconds, whose CPU time is shown as a share of its wall time: in shorter ones,
/// what the kernel does to start and end the stages is not counted.
const WORTH_A_SHARE: f64 = 0.005;

/// Fewest runs from which a 95 % interval is shown. With 5 samples, even the range from the
/// smallest to the largest contains the true median with a probability of only 94 %.
const WORTH_AN_INTERVAL: usize = 6;

/// Returns the whole report.
pub fn report(record: &PipeRecord, width: usize) -> String {
    let record = &visible(record);
    let width = width.max(NARROWEST);
    let mut out = String::new();
    headline(&mut out, record);
    out.push('\n');
    out.push_str(&times(record, width));
    out.push('\n');
    out.push_str(&flow(record, width));
    if !record.boundaries.is_empty() {
        out.push('\n');
        out.push_str(&pipes(record, width));
    }
    out.push('\n');
    verdict(&mut out, record, width);
    for finding in &record.findings {
        paragraph(&mut out, "- ", &finding.message, width);
    }
    for warning in &record.warnings {
        warn(&mut out, &warning.message, width);
    }
    if let Some(runs) = &record.runs {
        out.push('\n');
        out.push_str(&several_runs(runs, record, width));
    }
    out.push_str(&super::advice::section(record, width));
    let watched = &record.observation;
    let note = format!(
        "watched by {}: {}, {} apart; contend used {} of CPU time, {} of memory",
        watched.method,
        counted(watched.ticks, "look"),
        seconds(watched.mean_interval_seconds),
        seconds(watched.own_cpu_seconds),
        bytes(watched.own_max_rss_bytes as f64),
    );
    out.push('\n');
    dimmed(&mut out, &note, width);
    out
}

/// Returns the answers to questions about a pipeline that ran earlier; nothing was run for them.
pub fn answers(record: &PipeRecord, width: usize) -> String {
    let record = &visible(record);
    let width = width.max(NARROWEST);
    let mut out = String::new();
    paragraph(&mut out, "", &format!("Of a run of: {}", record.command), width);
    headline(&mut out, record);
    out.push_str(&super::advice::answers_only(record, width));
    out
}

/// Returns the record with every control character made visible, so that none affects the terminal:
/// commands are the user's text, and messages quote it.
fn visible(record: &PipeRecord) -> PipeRecord {
    let mut record = record.clone();
    let texts = [&mut record.command, &mut record.bottleneck.evidence]
        .into_iter()
        .chain(record.stages.iter_mut().map(|stage| &mut stage.command))
        .chain(record.findings.iter_mut().map(|finding| &mut finding.message))
        .chain(record.warnings.iter_mut().map(|warning| &mut warning.message));
    for text in texts {
        *text = printable(text);
    }
    record
}

fn headline(out: &mut String, record: &PipeRecord) {
    let cpu = record.total.user_seconds + record.total.system_seconds;
    let share = match record.wall_seconds {
        wall if wall < WORTH_A_SHARE => String::new(),
        _ => format!(" ({:.0} %)", record.total.cpu_percent),
    };
    let _ = writeln!(
        out,
        "{BOLD}real {}{BOLD:#}, CPU {}{share}, exit status {}, {} CPU{}",
        seconds(record.wall_seconds),
        seconds(cpu),
        record.exit_code,
        record.host.usable_cpus(),
        if (record.host.usable_cpus() - 1.0).abs() < 1e-9 { "" } else { "s" },
    );
}

/// A column of a table: heading, alignment, and the text of a stage's cell.
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

/// Renders where each stage's time went.
fn times(record: &PipeRecord, width: usize) -> String {
    let mut columns = vec![column("real", |s| seconds(s.wall_seconds))];
    if width >= 76 {
        columns.push(column("user", |s| seconds(s.user_seconds)));
        columns.push(column("sys", |s| seconds(s.system_seconds)));
    }
    if width >= 70 {
        columns.push(column("cpu", |s| cpu_share(s.cpu_percent, s.wall_seconds)));
    }
    columns.extend([
        column("on CPU", |s| share(s, s.on_cpu_seconds)),
        column("queue", |s| share(s, s.run_queue_seconds)),
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
    if wall < WORTH_A_SHARE { dash() } else { percent(cpu_percent, 100.0) }
}

/// Returns the kind of most of a stage's other waits, if they are long enough to mention.
fn main_wait(stage: &Stage) -> Option<&'static str> {
    let named = stage.other_waits.named();
    let (name, _) = named.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (stage.other_wait_seconds > 0.005 * stage.wall_seconds).then_some(name)
}

/// Renders the data that passed through each stage.
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

/// Formats the mean size of the calls that `calls` counts.
fn mean(stage: &Stage, size: Option<f64>, calls: Figure) -> String {
    let about = mark(stage.is_approximate(calls));
    size.map_or_else(dash, |size| format!("{about}{}", bytes(size)))
}

fn dash() -> String {
    "-".to_owned()
}

fn optional(value: Option<u64>, approximate: bool, show: fn(f64) -> String) -> String {
    match value {
        None => "?".to_owned(),
        Some(value) => format!("{}{}", mark(approximate), show(value as f64)),
    }
}

/// Returns the prefix of a figure that may be inexact.
fn mark(approximate: bool) -> &'static str {
    if approximate { "~" } else { "" }
}

fn ending(stage: &Stage) -> String {
    match stage.outcome {
        Outcome::Exited | Outcome::NotFound | Outcome::NotExecutable => stage.exit_code.to_string(),
        Outcome::Unknown => "?".to_owned(),
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

/// Renders how full the pipes between the stages were.
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

fn verdict(out: &mut String, record: &PipeRecord, width: usize) {
    let line = verdict_line(&record.bottleneck, &record.stages);
    let _ = writeln!(out, "{PACE}{}{PACE:#}", cut(&line, width));
    for line in wrapped(&record.bottleneck.evidence, width.saturating_sub(2)) {
        let _ = writeln!(out, "  {line}");
    }
    if let (Some(cost), Some(moved)) = (record.total.cpu_seconds_per_gigabyte, record.total.bytes)
        && moved >= WORTH_A_RATE
    {
        let about = mark(record.total.bytes_approximate);
        let line = format!(
            "CPU time per gigabyte: {about}{} ({about}{} through the widest stage).",
            seconds(cost),
            bytes(moved as f64)
        );
        paragraph(out, "- ", &line, width);
    }
}

fn verdict_line(bottleneck: &Bottleneck, stages: &[Stage]) -> String {
    let command = |index: usize| {
        stages.get(index - 1).map_or_else(String::new, |stage| cut(&stage.command, 44))
    };
    match (bottleneck.kind, bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) => {
            let how = match bottleneck.limit {
                Some(Limit::Wait) => "by waiting",
                _ => "by its CPU time",
            };
            format!("Stage {index} sets the pace, {how}: {}", command(index))
        }
        (BottleneckKind::Machine, Some(index)) => {
            format!("The CPUs set the pace; stage {index} uses the most: {}", command(index))
        }
        (BottleneckKind::Input, _) => "The input sets the pace.".to_owned(),
        (BottleneckKind::Output, _) => "Whoever reads the output sets the pace.".to_owned(),
        _ => "Nothing can be said to set the pace.".to_owned(),
    }
}

/// Renders medians over several runs with their intervals.
fn several_runs(runs: &Runs, record: &PipeRecord, width: usize) -> String {
    let mut out = String::new();
    let count = runs.count;
    let enough = count >= WORTH_AN_INTERVAL;
    let interval = |estimate: &Estimate| interval(estimate, enough);
    let heading = format!("{count} runs");
    let _ = write!(out, "{BOLD}{heading}{BOLD:#}");
    let brackets = if enough { "95 % interval" } else { "least, most" };
    let rest =
        format!(", median [{brackets}]; the tables above are of the run with the median time");
    paragraph_after(&mut out, heading.len(), &rest, width);
    let line = format!(
        "real {}, CPU {}; the same bottleneck in {} of {count}",
        interval(&runs.wall_seconds),
        interval(&runs.cpu_seconds),
        runs.same_bottleneck
    );
    paragraph(&mut out, "", &line, width);
    let mut table = plain_table();
    let mut headings = vec!["#", "stage", "at work", "CPU"];
    let wide = width >= 110;
    if wide {
        headings.extend(["starved", "blocked"]);
    }
    table.add_row(headings.into_iter().enumerate().map(|(i, t)| aligned(i, t.to_owned())));
    for stage in &runs.stages {
        let command = record.stages.get(stage.index - 1).map_or("", |s| s.command.as_str());
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
    out.push_str(&styled_lines(table, None, width));
    out
}

/// Formats a median with its interval, or with the range of its samples if these are not `enough`
/// for an interval.
fn interval(estimate: &Estimate, enough: bool) -> String {
    let samples = estimate.samples.iter().copied();
    let range =
        || [samples.clone().fold(f64::INFINITY, f64::min), samples.clone().fold(0.0, f64::max)];
    let [low, high] = if enough { estimate.ci95 } else { range() };
    format!("{} [{}, {}]", seconds(estimate.median), seconds(low), seconds(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::Host;
    use contend_record::pipe::{Finding, FindingId, OtherWaits, Total};

    fn record() -> PipeRecord {
        let stage = |index: usize, command: &str, on_cpu: f64, blocked: f64| Stage {
            index,
            command: command.to_owned(),
            wall_seconds: 4.0,
            user_seconds: on_cpu,
            system_seconds: 0.01,
            cpu_percent: 25.0 * on_cpu,
            on_cpu_seconds: on_cpu,
            blocked_seconds: blocked,
            other_wait_seconds: 4.0 - on_cpu - blocked,
            other_waits: OtherWaits { sleep: 4.0 - on_cpu - blocked, ..OtherWaits::default() },
            bytes_in: Some(77_000_000),
            bytes_out: Some(65_126_280),
            reads: Some(18_800),
            writes: None,
            max_rss_bytes: 2_100_000,
            first_output_seconds: Some(0.0042),
            ..Stage::default()
        };
        PipeRecord {
            wall_seconds: 4.0,
            stages: vec![
                stage(
                    1,
                    "sed 's/a rather long expression, too long for most terminals/x/'",
                    0.5,
                    3.5,
                ),
                stage(2, "while read -r 漢字; do sleep 1; done", 0.2, 0.0),
            ],
            boundaries: vec![Boundary {
                from: 1,
                to: 2,
                bytes: Some(77_000_000),
                bytes_approximate: false,
                bytes_per_second: Some(19_250_000.0),
                mean_fill_bytes: Some(63_000.0),
                most_fill_bytes: Some(65_536),
                capacity_bytes: Some(65_536),
                writer_blocked_seconds: 3.5,
                reader_starved_seconds: 0.0,
                waiting_side: WaitingSide::Writer,
            }],
            total: Total { user_seconds: 0.7, cpu_percent: 18.0, ..Total::default() },
            bottleneck: Bottleneck {
                kind: BottleneckKind::Stage,
                stage: Some(2),
                limit: Some(Limit::Wait),
                evidence: "Stage 2 was waiting.".to_owned(),
            },
            findings: vec![Finding {
                id: FindingId::TinyReads,
                stages: vec![2],
                message: "Stage 2 reads in small pieces.".to_owned(),
            }],
            host: Host { cpus_allowed: 2, ..Host::default() },
            ..PipeRecord::default()
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn every_width_is_kept_to() {
        for width in [60, 72, 80, 100, 120, 200] {
            for line in plain(&report(&record(), width)).lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

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

    #[test]
    fn only_ten_megabytes_and_more_have_a_cost_per_gigabyte() {
        let said = |bytes: u64, bytes_approximate: bool| {
            let cost = Some(9.0909);
            let total = Total {
                bytes: Some(bytes),
                bytes_approximate,
                cpu_seconds_per_gigabyte: cost,
                ..Total::default()
            };
            let report = plain(&report(&PipeRecord { total, ..record() }, 100));
            report.lines().find(|line| line.contains("per gigabyte")).map(str::to_owned)
        };
        assert_eq!(said(9_999_999, false), None);
        let line = |figures: &str| Some(format!("- CPU time per gigabyte: {figures}."));
        assert_eq!(said(10_000_000, false), line("9.09s (10.0MB through the widest stage)"));
        assert_eq!(said(10_000_000, true), line("~9.09s (~10.0MB through the widest stage)"));
    }

    #[test]
    fn the_verdict_names_the_stage_and_how() {
        let line = verdict_line(&record().bottleneck, &record().stages);
        assert_eq!(line, "Stage 2 sets the pace, by waiting: while read -r 漢字; do sleep 1; done");
        let nothing = Bottleneck { kind: BottleneckKind::None, ..record().bottleneck };
        assert!(verdict_line(&nothing, &[]).contains("Nothing"));
    }
}
