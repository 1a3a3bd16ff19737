//! Renders the documentation page on what a unit costs in every runtime, from a record alone.

use std::fmt::Write as _;

use contend_record::lab::{RunRecord, Unit, View};
use contend_record::parameters::{Value, names};

use super::lab::runtimes::{COUNTED_WITH_THEM, Kind, chart, kinds, series};
use super::lab::{shown, skipped};
use super::page::measured_on;
use super::units::{count, nanoseconds};

/// Returns the page, or `None` if the record has nothing for it.
pub fn page(record: &RunRecord) -> Option<String> {
    let kinds: Vec<_> = kinds(record).into_iter().filter(|kind| !kind.cases.is_empty()).collect();
    if kinds.is_empty() {
        return None;
    }
    let mut out = String::from(
        "# What a unit costs\n\nThis page is made by `contend generate unit-costs FILE` from a run of `contend lab suite \
         callback --json FILE`;\nnothing in it was typed. How it is measured stands in [runtimes.md](runtimes.md).\n",
    );
    measured_on(&mut out, record, "");
    out.push_str(
        "| | unit | runtime | bytes of one | 95 % interval | by its own count | in the kernel | create | end | there and back | at most | left |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for kind in &kinds {
        out.push_str(&row(kind));
    }
    out.push_str(
        "\nBytes of one are the slope of the line through all numbers of units, by the processes' proportional sets \
         (PSS). By its\nown count is the same slope through what the runtime says that it uses, where it says so. In \
         the kernel stands what the kernel\nkeeps for one besides. Create and end are for one of the most that there \
         were at once; left is what all of these have\nleft behind a second after their end. A message there and \
         back is to one unit.\n\n",
    );
    out.push_str(&textwrap::fill(COUNTED_WITH_THEM, TEXT_WIDTH));
    out.push('\n');
    out.push_str(&how_sure(record, &kinds));
    if let Some(chart) = chart::bytes_over_numbers(&series(&kinds), CHART_WIDTH) {
        let _ = write!(out, "\n## Bytes in all, over the number of units\n\n```text\n{chart}```\n");
    }
    out.push_str(&points(&kinds));
    out.push_str("\n## What they are\n\n");
    for kind in &kinds {
        let summary = kind.largest().and_then(|case| case.facts.get("unit_is"));
        if let Some(Value::Text(summary)) = summary {
            let _ = writeln!(out, "- `{}`: {summary}.", kind.unit);
        }
    }
    out.push_str(&absent(record));
    Some(out)
}

/// Returns how many samples the figures are from, and through how many points their lines are
/// fitted.
fn how_sure(record: &RunRecord, kinds: &[Kind<'_>]) -> String {
    let points = range(kinds.iter().filter_map(|kind| kind.each.as_ref()).map(|line| line.points));
    let samples = |view| {
        range(record.cases_of(view).map(|case| case.samples.len()).filter(|&samples| samples > 0))
    };
    let mut out = String::new();
    if let Some(points) = points {
        let _ = write!(
            out,
            "\nThe 95 % interval is that of the slope, by how far {points} samples are from the line; it says \
             nothing of\nwhat another run would find."
        );
    }
    if let Some(memory) = samples(View::RuntimeMemory) {
        let _ = write!(out, " Samples of a case: {memory} for memory");
        if let Some(trips) = samples(View::RuntimeRoundTrip) {
            let _ = write!(out, ", {trips} for messages");
        }
        out.push_str(".\n");
    }
    out
}

/// Formats the range of some numbers.
fn range(numbers: impl Iterator<Item = usize> + Clone) -> Option<String> {
    let (least, most) = (numbers.clone().min()?, numbers.max()?);
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

const CHART_WIDTH: usize = 100;
/// Width of running text, in columns.
const TEXT_WIDTH: usize = 118;

fn row(kind: &Kind<'_>) -> String {
    let size =
        |value: Option<f64>| value.map_or_else(String::new, |value| shown(value, Unit::Bytes));
    let time = |value: Option<f64>| value.map_or_else(String::new, nanoseconds);
    let interval =
        kind.each.and_then(|line| line.slope_ci95).map_or_else(String::new, |[low, high]| {
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
        kind.most().map_or_else(String::new, |most| count(most as f64)),
        size(kind.metric("left_1s")),
    )
}

/// Returns the points of the chart.
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

/// Returns which units were not measured, and why.
fn absent(record: &RunRecord) -> String {
    let cases: Vec<_> = record.cases_of(View::RuntimeMemory).collect();
    let reasons = skipped(&cases);
    if reasons.is_empty() {
        return String::new();
    }
    format!("\n## What is missing\n\n- {}\n", reasons.join("\n- "))
}
