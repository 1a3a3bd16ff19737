//! Renders the number of units that could be created, and the limit that stopped the attempt.

use std::fmt::Write as _;

use contend_record::lab::{Case, Limit, LimitReport, StoppedBy};
use contend_record::parameters::names;

use super::super::layout::{aligned_left, columns_left_out, fitted_lines, paragraph, plain_table};
use super::super::units::{bytes, count};

/// Renders, for each case that searched for a limit, a paragraph on the outcome and the table of
/// limits.
pub fn section(cases: &[&Case], width: usize) -> String {
    let mut out = String::new();
    for case in cases {
        let Some(report) = &case.limit else { continue };
        paragraph(&mut out, "", &outcome(case, report), width);
        out.push_str(&limits(report, width));
    }
    out
}

fn plural(kind: &str) -> &'static str {
    match kind {
        "process" => "processes",
        "thread" => "threads",
        _ => "units",
    }
}

/// Describes the predicted limit of a case, the number of units that were created, and what ended the attempt,
/// with the evidence.
pub fn outcome(case: &Case, report: &LimitReport) -> String {
    let kind = case.parameters.text(names::KIND).unwrap_or("unit");
    let mut text = String::new();
    if let Some(first) = report.limits.first() {
        let _ = write!(
            text,
            "Predicted limit for {}: {} at {}. ",
            plural(kind),
            first.name,
            first.allows
        );
    }
    let _ = write!(text, "Created {}; ", report.created);
    let error = report.errno.as_ref().map_or_else(String::new, |errno| format!(" ({errno})"));
    text.push_str(&match &report.stopped_by {
        StoppedBy::Cap => "stopped by the cap".to_owned(),
        StoppedBy::MemoryFloor => "stopped by the memory guard".to_owned(),
        StoppedBy::Limit(name) => format!("stopped by {name}{error}"),
        StoppedBy::Unknown => format!("stopped by an unknown limit{error}"),
    });
    for evidence in &report.evidence {
        let _ = write!(text, "; {evidence}");
    }
    text.push_str(match (report.prediction_held, &report.stopped_by) {
        (Some(true), StoppedBy::Cap) => ". The prediction was not contradicted.",
        (Some(true), _) => ". The prediction was correct.",
        (Some(false), _) => ". The prediction was wrong.",
        (None, _) => ".",
    });
    text
}

/// Renders a table of the tightest limits, at most four.
fn limits(report: &LimitReport, width: usize) -> String {
    const MAX_SHOWN_LIMITS: usize = 4;
    let mut table = plain_table();
    let shown = if width < 110 { 4 } else { 5 };
    let row = |cells: [String; 5]| {
        cells.into_iter().take(shown).enumerate().map(|(i, text)| {
            if i == 4 { aligned_left(0, 1, text) } else { aligned_left(i, 1, text) }
        })
    };
    let indented = |[name, rest @ ..]: [String; 5]| {
        let [value, in_use, allows, source] = rest;
        row([format!("  {name}"), value, in_use, allows, source])
    };
    table.add_row(indented(HEADINGS.map(str::to_owned)));
    for limit in report.limits.iter().take(MAX_SHOWN_LIMITS) {
        table.add_row(indented(cells(limit)));
    }
    let mut out = fitted_lines(table, 1, width);
    columns_left_out(&mut out, &HEADINGS[shown..], width);
    out
}

/// Headings of a table of limits.
pub const HEADINGS: [&str; 5] = ["limit", "value", "in use", "room for", "set in"];

/// Returns the row of a limit.
pub fn cells(limit: &Limit) -> [String; 5] {
    let in_bytes = ["memory", "RLIMIT_AS", "RLIMIT_DATA", "vm.overcommit"];
    let number = |value: u64| {
        if value >= 10_000_000 { count(value as f64) } else { value.to_string() }
    };
    let amount = |value: u64| {
        if in_bytes.contains(&limit.name.as_str()) { bytes(value as f64) } else { number(value) }
    };
    [
        limit.name.clone(),
        amount(limit.value),
        if limit.name == "memory" { String::new() } else { amount(limit.in_use) },
        number(limit.allows),
        limit.source.clone(),
    ]
}
