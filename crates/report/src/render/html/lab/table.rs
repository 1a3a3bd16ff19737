//! The table of the cases of an experiment.

use contend_record::lab::{Case, RunRecord, Stopped, Unit};
use contend_record::parameters::Value;

use super::super::table::{Cell, Table};
use super::{format_of, median_text};
use crate::render::lab::table::parameter_names;
use crate::render::lab::{reported, shown, why_ended};
use crate::render::text::printable;

/// Returns a table with a row for each case: its parameters, its figures and its other metrics.
pub(super) fn of_cases(record: &RunRecord, cases: &[&Case]) -> Table {
    let parameters = parameter_names(cases);
    let metrics = metric_names(cases);
    let has_disturbed = cases.iter().any(|case| !case.disturbed.is_empty());
    let has_ended = cases.iter().any(|case| early_end(case).is_some());
    let has_document = cases.iter().any(|case| reported(record, case).is_some());
    let mut headings: Vec<String> = parameters
        .iter()
        .map(|name| number_heading(name, cases.iter().map(|case| case.parameters.get(name))))
        .collect();
    headings
        .extend(["#median", "#95 % interval", "#least", "#most", "#samples"].map(str::to_owned));
    headings.extend(has_disturbed.then(|| "#disturbed samples".to_owned()));
    headings.extend(has_ended.then(|| "ended because".to_owned()));
    headings.extend(metrics.iter().map(|name| format!("#{}", printable(name).replace('_', " "))));
    headings.extend(has_document.then(|| "#document".to_owned()));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for case in cases {
        let mut row: Vec<Cell> =
            parameters.iter().map(|name| value_cell(case.parameters.get(name))).collect();
        row.extend(figures(case));
        row.extend(has_disturbed.then(|| whole_number(case.disturbed.len())));
        row.extend(has_ended.then(|| early_end(case).unwrap_or_default().into()));
        row.extend(metrics.iter().map(|name| {
            let metric = case.metrics.get(*name);
            metric.map_or_else(Cell::default, |metric| figure(Some(metric.median), metric.unit))
        }));
        if has_document {
            row.push(figure(reported(record, case).map(|reported| reported.value), case.unit));
        }
        table.push(row);
    }
    table
}

/// Returns the names of all metrics of the cases, in order of first appearance.
fn metric_names<'a>(cases: &[&'a Case]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in cases.iter().flat_map(|case| case.metrics.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Returns the median, its interval, the smallest and the largest sample, and the number of samples.
fn figures(case: &Case) -> [Cell; 5] {
    let median = case.median.map_or_else(Cell::default, |value| {
        Cell::number(median_text(case, format_of(case.unit)), value)
    });
    let interval = case.ci95.map_or_else(Cell::default, |[low, high]| {
        Cell::number(format!("{} – {}", shown(low, case.unit), shown(high, case.unit)), low)
    });
    let [least, most] = [case.min, case.max].map(|value| figure(value, case.unit));
    [median, interval, least, most, whole_number(case.samples.len())]
}

fn figure(value: Option<f64>, unit: Unit) -> Cell {
    value.map_or_else(Cell::default, |value| Cell::number(shown(value, unit), value))
}

pub(super) fn whole_number(count: usize) -> Cell {
    Cell::number(count.to_string(), count as f64)
}

/// Returns why a case has fewer samples than it needs; `None` if it has enough.
fn early_end(case: &Case) -> Option<&'static str> {
    match case.stopped? {
        Stopped::Interval | Stopped::Count => None,
        early => Some(why_ended(Some(early))),
    }
}

/// Returns the heading of a column with the given values: that of a column with numbers if no value is of
/// another kind.
pub(super) fn number_heading<'a>(
    name: &str,
    mut values: impl Iterator<Item = Option<&'a Value>>,
) -> String {
    let is_number = values.all(|value| !matches!(value, Some(Value::Text(_) | Value::Flag(_))));
    format!("{}{}", if is_number { "#" } else { "" }, printable(name))
}

/// Returns the cell of a value; empty without one.
pub(super) fn value_cell(value: Option<&Value>) -> Cell {
    match value {
        Some(Value::Number(number)) => Cell::number(number.to_string(), *number as f64),
        Some(value) => printable(&value.to_string()).into(),
        None => Cell::default(),
    }
}
