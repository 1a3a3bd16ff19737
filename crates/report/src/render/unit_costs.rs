//! Renders the documentation page on the cost of a unit in every runtime, from nothing but a
//! record.

use std::fmt::Write as _;

use contend_record::lab::{RunRecord, Unit, View};
use contend_record::parameters::{Value, names};

use super::lab::runtimes::{Kind, PROBE_MEMORY_NOTE, chart, kinds, series};
use super::lab::{shown, skipped};
use super::page::{TEXT_COLUMNS, measured_on};
use super::units::{count, nanoseconds};

/// Returns the page as Markdown, or `None` if the record has no measurements of units in runtimes.
pub fn page(record: &RunRecord) -> Option<String> {
    let kinds: Vec<_> = kinds(record).into_iter().filter(|kind| !kind.cases.is_empty()).collect();
    if kinds.is_empty() {
        return None;
    }
    let mut out = String::from(
        "# What a unit costs\n\n`contend generate unit-costs FILE` generates this page from the record of \
         `contend lab suite callback --json FILE`.\n[runtimes.md](runtimes.md) describes how the figures are \
         measured.\n",
    );
    measured_on(&mut out, record, "");
    out.push_str(
        "| | unit | runtime | memory | 95 % interval | own count | kernel | create | end | round trip | largest number | left |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for kind in &kinds {
        out.push_str(&row(kind));
    }
    let _ = writeln!(out, "\n{}\n", textwrap::fill(COLUMNS, TEXT_COLUMNS));
    out.push_str(&textwrap::fill(PROBE_MEMORY_NOTE, TEXT_COLUMNS));
    out.push('\n');
    out.push_str(&how_sure(record, &kinds));
    if let Some(chart) = chart::bytes_over_numbers(&series(&kinds), CHART_COLUMNS) {
        let _ = write!(out, "\n## Total memory by number of units\n\n```text\n{chart}```\n");
    }
    out.push_str(&points(&kinds));
    out.push_str("\n## Descriptions\n\n");
    for kind in &kinds {
        let summary = kind.largest().and_then(|case| case.facts.get("unit_is"));
        if let Some(Value::Text(summary)) = summary {
            let _ = writeln!(out, "- `{}`: {summary}.", kind.unit);
        }
    }
    out.push_str(&absent(record));
    Some(out)
}

/// Describes the number of samples of each measurement, and the number of points of each fitted
/// line; empty if neither is known.
fn how_sure(record: &RunRecord, kinds: &[Kind<'_>]) -> String {
    let points =
        range(kinds.iter().filter_map(|kind| kind.memory_line.as_ref()).map(|line| line.points));
    let samples = |view| {
        range(record.cases_of(view).map(|case| case.samples.len()).filter(|&samples| samples > 0))
    };
    let mut text = String::new();
    if let Some(points) = points {
        let _ = write!(
            text,
            "The 95 % interval of the slope comes from the distance of {points} samples from the line; it does \
             not cover differences between runs."
        );
    }
    if let Some(memory) = samples(View::RuntimeMemory) {
        let _ = write!(text, " Samples per case: {memory} for memory");
        if let Some(trips) = samples(View::RuntimeRoundTrip) {
            let _ = write!(text, ", {trips} for messages");
        }
        text.push('.');
    }
    if text.is_empty() { text } else { format!("\n{}\n", textwrap::fill(&text, TEXT_COLUMNS)) }
}

/// Formats the range of `numbers`, such as `5` or `5 to 7`. Returns `None` if there are none.
fn range(numbers: impl Iterator<Item = usize> + Clone) -> Option<String> {
    let (least, most) = (numbers.clone().min()?, numbers.max()?);
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

const CHART_COLUMNS: usize = 100;
/// Explanation of the columns in the table of units.
const COLUMNS: &str = "Memory of one unit: the slope of the line through all numbers of units, by proportional set \
    size (PSS). Own count: the same slope through the memory that the runtime itself reports. Kernel: kernel \
    memory of one unit. Create and end: time for one unit, at the largest number. Left: memory of all units \
    that is not returned one second after they have ended. Round trip: a message to one unit and its answer.";

fn row(kind: &Kind<'_>) -> String {
    let size =
        |value: Option<f64>| value.map_or_else(String::new, |value| shown(value, Unit::Bytes));
    let time = |value: Option<f64>| value.map_or_else(String::new, nanoseconds);
    let interval = kind
        .memory_line
        .and_then(|line| line.slope_ci95)
        .map_or_else(String::new, |[low, high]| {
            format!("{} to {}", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
        });
    format!(
        "| {} | `{}` | {} | {} | {interval} | {} | {} | {} | {} | {} | {} | {} |\n",
        kind.mark,
        kind.unit,
        kind.version(),
        kind.bytes_shown(),
        size(kind.counted()),
        size(kind.kernel()),
        time(kind.metric("create")),
        time(kind.metric("end")),
        time(kind.round_trip),
        kind.max_units().map_or_else(String::new, |most| count(most as f64)),
        size(kind.metric("left_1s")),
    )
}

/// Returns a Markdown table of the points in the chart: the total memory of each kind of unit at
/// each number of units.
fn points(kinds: &[Kind<'_>]) -> String {
    let mut numbers: Vec<_> = kinds
        .iter()
        .flat_map(|kind| &kind.cases)
        .filter_map(|case| case.parameters.number(names::N))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let headings: Vec<_> = numbers.iter().map(|&n| count(n as f64)).collect();
    let mut out = format!(
        "\n| | unit | {} |\n|---|---|{}\n",
        headings.join(" | "),
        "---:|".repeat(numbers.len())
    );
    for kind in kinds {
        let cell = |&n: &u64| {
            let case = kind.cases.iter().find(|case| case.parameters.number(names::N) == Some(n));
            case.and_then(|case| case.median)
                .map_or_else(String::new, |value| shown(value, Unit::Bytes))
        };
        let cells: Vec<_> = numbers.iter().map(cell).collect();
        let _ = writeln!(out, "| {} | `{}` | {} |", kind.mark, kind.unit, cells.join(" | "));
    }
    out
}

/// Returns a Markdown section on the units that were not measured, with reasons; empty if none was
/// skipped.
fn absent(record: &RunRecord) -> String {
    let cases: Vec<_> = record.cases_of(View::RuntimeMemory).collect();
    let reasons = skipped(&cases);
    if reasons.is_empty() {
        return String::new();
    }
    format!("\n## Not measured\n\n- {}\n", reasons.join("\n- "))
}
