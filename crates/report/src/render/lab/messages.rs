//! Renders the experiments in which partners exchange messages: matrices by mechanism, or tables.

use contend_record::lab::Case;
use contend_record::parameters::names;

use super::super::layout::paragraph;
use super::super::units::{bytes, count, counted, ratio};
use super::table::{self, MetricColumn, figure, grid, matrix, row, values};

/// Columns of the table that is shown instead of matrices if the cases have other parameters.
const ROUND_TRIP: [MetricColumn; 6] = [
    ("p99", "p99", 0),
    ("p99.9", "p99.9", 80),
    ("CPU main", "cpu_main", 0),
    ("CPU sub", "cpu_sub", 0),
    ("calls main", "calls_main", 90),
    ("calls sub", "calls_sub", 90),
];

/// Columns of the table of messages sent at a fixed rate.
const RATE: [MetricColumn; 5] = [
    ("p99", "p99", 0),
    ("p99.9", "p99.9", 0),
    ("max", "max", 0),
    ("late %", "late", 90),
    ("achieved/s", "achieved_per_s", 100),
];

/// Renders the table of messages sent at a fixed rate.
pub fn at_a_rate(cases: &[&Case], width: usize) -> String {
    table::with_metrics(cases, "latency", &RATE, width)
}

/// Renders matrices of messages in one direction: mechanisms by length, for each placement.
pub fn one_way(cases: &[&Case], width: usize) -> String {
    by(cases, "placement", "bytes", &ONE_WAY, width)
}

/// Renders matrices of messages with answers: mechanisms by placement, for each length.
pub fn round_trips(cases: &[&Case], width: usize) -> String {
    by(cases, "bytes", "placement", &ROUND_TRIPS, width)
}

/// A function that formats a cell of a matrix.
type Cell = fn(&Case) -> String;

const ONE_WAY: [(&str, Cell); 4] = [
    ("time", |case| figure(case.median)),
    ("bytes/s", |case| bandwidth(case).map_or_else(String::new, bytes)),
    ("CPU time", |case| figure(cpu(case))),
    ("system calls", |case| calls(case).map_or_else(String::new, calls_shown)),
];

const ROUND_TRIPS: [(&str, Cell); 3] = [
    ("time", |case| figure(case.median)),
    ("CPU time", |case| figure(cpu(case))),
    ("system calls", |case| calls(case).map_or_else(String::new, calls_shown)),
];

/// Returns the CPU time that both partners together use per message, in nanoseconds, or `None` if
/// it was not measured.
pub fn cpu(case: &Case) -> Option<f64> {
    Some(case.metric("cpu_main")? + case.metric("cpu_sub")?)
}

/// Returns the number of system calls that both partners together make per message, or `None` if it
/// was not measured.
pub fn calls(case: &Case) -> Option<f64> {
    Some(case.metric("calls_main")? + case.metric("calls_sub")?)
}

/// Returns the number of bytes that arrive per second, or `None` if the case was not measured or
/// does not give the length of a message.
pub fn bandwidth(case: &Case) -> Option<f64> {
    Some(case.parameters.number(names::BYTES)? as f64 / case.median? * 1e9)
}

/// Formats a number of system calls per message. Values below 0.0005 become `0`, which is often the
/// important result.
fn calls_shown(calls: f64) -> String {
    if calls < 0.0005 { "0".to_owned() } else { ratio(calls) }
}

/// Renders a matrix for each combination of a kind of partners, a value of the parameter `each`,
/// and an element of `cells`. A matrix has a row for each mechanism and a column for each value of
/// the parameter `columns`. Falls back to a table if the cases have other parameters.
fn by(cases: &[&Case], each: &str, columns: &str, cells: &[(&str, Cell)], width: usize) -> String {
    if table::parameter_names(cases) != ["mechanism", "bytes", "partners", "placement"] {
        return table::with_metrics(cases, "time", &ROUND_TRIP, width);
    }
    let mut tables = Vec::new();
    for partners in values(cases, names::PARTNERS) {
        for value in values(cases, each) {
            let of: Vec<&Case> = cases
                .iter()
                .copied()
                .filter(|case| {
                    table::parameter(*case, names::PARTNERS) == partners
                        && table::parameter(*case, each) == value
                })
                .collect();
            let about = match each {
                "bytes" => counted(value.parse().unwrap_or(0), "byte"),
                _ => value,
            };
            let plural = if partners == "process" { "processes" } else { "threads" };
            for (title, cell) in cells.iter().filter(|_| !of.is_empty()) {
                let title = format!("{plural}, {about}, {title}");
                tables.push(matrix(&of, &title, ["mechanism", columns], cell, width));
            }
        }
    }
    let mut out = tables.join("\n");
    let text = "CPU time and system calls: both partners together, per message.";
    paragraph(&mut out, "", text, width);
    out
}

/// Renders a table about the source document's program, which sends many messages of one byte. Each
/// form of the program has a row for each of its two processes. Lost messages are noted below the
/// table.
pub fn one_byte(cases: &[&Case], width: usize) -> String {
    let mut lines = vec![row([
        "form",
        "real",
        "",
        "user",
        "sys",
        "waits",
        "switched",
        "faults",
        "peak",
        "system calls",
    ])];
    for case in cases {
        let form = table::parameter(*case, names::FORM);
        for (who, name) in [("main", "parent"), ("sub", "child")] {
            let metric = |of: &str| case.metric(&format!("{of}_{who}"));
            let number = |of: &str| metric(of).map_or_else(String::new, count);
            let first = who == "main";
            lines.push(vec![
                if first { form.clone() } else { String::new() },
                if first { figure(case.median) } else { String::new() },
                name.to_owned(),
                figure(metric("user")),
                figure(metric("system")),
                number("voluntary_switches"),
                number("involuntary_switches"),
                number("minor_faults"),
                metric("peak_rss").map_or_else(String::new, bytes),
                by_name(case, who),
            ]);
        }
    }
    let mut out = grid(&lines, 1, width);
    for case in cases {
        if let Some(text) = delivery(case) {
            paragraph(&mut out, "", &text, width);
        }
    }
    out
}

/// Lists how often the partner `who` (`main` or `sub`) made each system call. Returns the word
/// `none` if no call was counted.
pub fn by_name(case: &Case, who: &str) -> String {
    let of = format!("{who}.");
    let named = case.metrics.iter().filter_map(|(name, metric)| {
        Some(format!("{} {}", count(metric.median), name.strip_prefix(&of)?))
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}

/// Describes how many messages were lost, or returns `None` if none was, or if they were not
/// counted.
fn delivery(case: &Case) -> Option<String> {
    let (received, lost) = (case.metric("received")?, case.metric("lost")?);
    let form = case.parameters.text(names::FORM)?;
    (lost > 0.0).then(|| {
        format!(
            "{form}: {lost:.0} of {:.0} bytes were overwritten before the child read them.",
            received + lost,
        )
    })
}
