//! The page of a comparison of runs of the lab.

use contend_record::compare::{Case, CompareRecord, Run};
use contend_record::stats::Ratio;
use maud::html;

use super::chart::Colour;
use super::chart::rows::{self, Row};
use super::frame::{Figure, Page};
use super::table::{Cell, Table};
use super::{machine, number_of};
use crate::render::lab::shown;
use crate::render::text::printable;
use crate::render::units::ratio;

/// Largest number of bars in a chart. The table has all cases.
const MAX_BARS: usize = 40;

/// Returns the page of a comparison.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &CompareRecord) -> serde_json::Result<String> {
    let names: Vec<&str> = record.runs.iter().map(|run| run.name.as_str()).collect();
    let subject = format!("lab runs {}", names.join(", "));
    let compared = || record.cases.iter().filter(|case| case.measured() > 1);
    let facts = vec![
        number_of(record.runs.len(), "run"),
        format!("{} in at least two of them", number_of(compared().count(), "case")),
    ];
    let runs = runs(record).markup("Compared runs");
    let mut sections = vec![("Runs".to_owned(), runs)];
    for name in record.experiments() {
        let cases: Vec<&Case> = compared().filter(|case| case.experiment == name).collect();
        if !cases.is_empty() {
            sections.push((printable(name), experiment(record, name, &cases).markup()));
        }
    }
    let warnings = record.runs.iter().flat_map(|run| {
        run.warnings.iter().map(|warning| format!("{}: {}", run.name, warning.message))
    });
    let baseline = names.first().copied().unwrap_or_default();
    let mut origin = Vec::new();
    origin.extend(record.contend.as_ref().map(|writer| ("Compared with", writer.to_string())));
    let page = Page {
        subject: &subject,
        kind: "compare",
        facts,
        result: html! {
            p { "Ratios are to run " strong { (printable(baseline)) } ". Above 1 means more time or memory than there." }
        },
        sections,
        warnings: warnings.collect(),
        origin,
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

/// The compared runs with their machines.
fn runs(record: &CompareRecord) -> Table {
    let mut table = Table::new(&["run", "machine", "started at", "contend"]);
    for run in &record.runs {
        let writer = run.contend.as_ref().map(ToString::to_string).unwrap_or_default();
        table.push(vec![
            printable(&run.name).into(),
            printable(&machine(&run.host)).into(),
            printable(&run.started_at).into(),
            printable(&writer).into(),
        ]);
    }
    table
}

/// The ratios of all cases of an experiment.
fn experiment(record: &CompareRecord, name: &str, cases: &[&Case]) -> Figure {
    let mut headings = vec!["case".to_owned()];
    headings.extend(record.runs.iter().map(|run| format!("#{}", printable(&run.name))));
    let others: Vec<&Run> = record.runs.iter().skip(1).collect();
    headings.extend(others.iter().map(|run| format!("#{} ratio", printable(&run.name))));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings);
    let mut bars = Vec::new();
    for case in cases {
        let Some(value) = &case.value else { continue };
        let mut row: Vec<Cell> = vec![printable(&case.parameters.to_string()).into()];
        row.extend(value.medians.iter().map(|median| {
            median.map_or_else(Cell::default, |median| {
                Cell::number(shown(median, value.unit), median)
            })
        }));
        for (number, (run, found)) in record.runs.iter().zip(&value.ratios).enumerate().skip(1) {
            row.push(
                found
                    .as_ref()
                    .map_or_else(Cell::default, |found| Cell::number(text(found), found.ratio)),
            );
            bars.extend(found.as_ref().map(|found| bar(case, run, number, found)));
        }
        table.push(row);
    }
    let more = bars.len().saturating_sub(MAX_BARS);
    bars.truncate(MAX_BARS);
    let legend =
        others.iter().enumerate().map(|(number, run)| (Colour(number + 1), printable(&run.name)));
    let alternative = format!(
        "Bars of {name}: the ratio of each case in {} to the first run, which is the line at 1.",
        number_of(others.len(), "other run")
    );
    let scale = rows::scale(&bars);
    let left_out =
        if more > 0 { format!(" {more} more ratios are in the table.") } else { String::new() };
    Figure {
        title: format!("{}: ratio to the first run", printable(name)),
        legend: legend.collect(),
        chart: rows::draw(&bars, &scale, ratio, &[1.0], &alternative),
        table,
        method: format!(
            "Ratios of medians; thin lines are 95 % intervals (percentile bootstrap).{left_out}"
        ),
    }
}

fn bar(case: &Case, run: &Run, number: usize, found: &Ratio) -> Row {
    let name = format!("{} {}", printable(&run.name), printable(&case.parameters.to_string()));
    Row { interval: found.ci95, ..Row::bar(name, found.ratio, text(found), Colour(number)) }
}

fn text(found: &Ratio) -> String {
    match found.ci95 {
        Some([low, high]) => format!("{} [{}, {}]", ratio(found.ratio), ratio(low), ratio(high)),
        None => ratio(found.ratio),
    }
}
