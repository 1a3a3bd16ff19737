//! Renders cases as tables with a row for each case, or as matrices.

use contend_record::lab::{Case, Unit};
use contend_record::parameters::{Parameters, Value};
use contend_record::stats::Ratio;

use unicode_width::UnicodeWidthStr;

use super::super::layout::{aligned_left, columns_left_out, fitted_lines, grouped, plain_table};
use super::super::picture::histogram;
use super::super::text::printable;
use super::super::units::{nanoseconds, percent, ratio};
use super::shown;

/// A column of a table: its heading, its rank, and a function that formats the cell of a case. A
/// narrow table lacks the columns with the highest ranks. Rank 0 is always shown.
type Column = (&'static str, u8, fn(&Case) -> String);

/// Heading of the column of intervals, unless it has only ranges.
const INTERVAL: &str = "[95 % interval]";

const COLUMNS: [Column; 10] = [
    ("median", 0, |case| case.median.map_or_else(String::new, |value| shown(value, case.unit))),
    (INTERVAL, 0, interval),
    ("CPU self", 1, |case| metric(case, "cpu_self")),
    ("children", 2, |case| metric(case, "cpu_children")),
    ("user", 0, |case| metric(case, "user")),
    ("sys", 0, |case| metric(case, "system")),
    ("cpu", 0, cpu_percent),
    ("samples", 3, |case| case.samples.len().to_string()),
    (DISTRIBUTION, 5, |case| match case.samples.len() {
        0..MIN_DISTRIBUTION => String::new(),
        _ => histogram(&case.samples, DISTRIBUTION_COLUMNS),
    }),
    (OUTLIERS, 4, |case| match case.outliers.len() {
        0 => String::new(),
        count => count.to_string(),
    }),
];

/// Heading of the column of histograms, from the smallest sample to the largest.
const DISTRIBUTION: &str = "distribution";
/// Width of a histogram, in columns.
const DISTRIBUTION_COLUMNS: usize = 12;
/// Smallest number of samples that have a histogram.
const MIN_DISTRIBUTION: usize = 10;

/// Heading of the column of numbers of outliers, which a table without outliers lacks.
const OUTLIERS: &str = "outliers";

/// Renders generic tables, which suit most experiments: one for each list of parameter names. A note
/// names the columns for which a table is too narrow.
pub fn generic(cases: &[&Case], width: usize) -> String {
    let mut hidden = Vec::new();
    let tables: Vec<_> =
        groups(cases).iter().map(|cases| table(cases, width, &mut hidden)).collect();
    let mut out = tables.join("\n");
    let hidden = COLUMNS.iter().map(|column| column.0).filter(|name| hidden.contains(name));
    columns_left_out(&mut out, &hidden.collect::<Vec<_>>(), width);
    out
}

/// A column for a metric: its heading, the name of the metric, and the minimum terminal width at
/// which the column is shown (in columns).
pub type MetricColumn = (&'static str, &'static str, usize);

/// Renders tables with the value of each case, under the heading `value`, and the measured metrics
/// among `columns`: one table for each list of parameter names.
pub fn with_metrics(
    cases: &[&Case],
    value: &str,
    columns: &[MetricColumn],
    width: usize,
) -> String {
    with_metrics_shown(cases, value, columns, &metric, width)
}

/// A function that formats the metric of a case with the given name.
pub type MetricCell<'a> = &'a dyn Fn(&Case, &str) -> String;

/// Renders tables as [`with_metrics`] does, with metrics formatted by `cell`.
pub fn with_metrics_shown(
    cases: &[&Case],
    value: &str,
    columns: &[MetricColumn],
    cell: MetricCell<'_>,
    width: usize,
) -> String {
    let mut hidden = Vec::new();
    let tables: Vec<_> = groups(cases)
        .iter()
        .map(|cases| metrics(cases, value, columns, cell, width, &mut hidden))
        .collect();
    let mut out = tables.join("\n");
    columns_left_out(&mut out, &hidden, width);
    out
}

fn metrics(
    cases: &[&Case],
    value: &str,
    columns: &[MetricColumn],
    cell: MetricCell<'_>,
    width: usize,
    hidden: &mut Vec<&'static str>,
) -> String {
    let names = parameter_names(cases);
    let measured =
        |column: &&MetricColumn| cases.iter().any(|case| case.metrics.contains_key(column.1));
    let (columns, narrow): (Vec<&MetricColumn>, Vec<_>) =
        columns.iter().filter(measured).partition(|column| width >= column.2);
    hidden.extend(narrow.iter().map(|column| column.0));
    let words = text_columns(&names, cases);
    let mut table = plain_table();
    let headings = names.iter().copied().chain([value]).chain(columns.iter().map(|c| c.0));
    table.add_row(headings.enumerate().map(|(i, text)| aligned_left(i, words, text.to_owned())));
    for case in cases {
        let parameters = names.iter().map(|name| parameter(*case, name));
        let median = case.median.map_or_else(String::new, |value| shown(value, case.unit));
        let row = parameters.chain([median]).chain(columns.iter().map(|c| cell(case, c.1)));
        table.add_row(row.enumerate().map(|(i, text)| aligned_left(i, words, text)));
    }
    fitted_lines(table, names.len(), width)
}

/// Groups cases by the names of their parameters, including the order of the names.
pub fn groups<'a, T: AsRef<Parameters>>(cases: &[&'a T]) -> Vec<Vec<&'a T>> {
    let by_names = cases.iter().map(|&case| (parameter_names(&[case]), case));
    grouped(by_names).into_iter().map(|(_, group)| group).collect()
}

/// Renders a generic table, and adds the headings of the columns that it is too narrow for to
/// `hidden`.
fn table(cases: &[&Case], width: usize, hidden: &mut Vec<&'static str>) -> String {
    let measured = |name: &str| cases.iter().any(|case| case.metrics.contains_key(name));
    let has = |heading: &str| match heading {
        "CPU self" | "children" => measured("cpu_self"),
        "user" | "sys" | "cpu" => measured("user"),
        OUTLIERS => cases.iter().any(|case| !case.outliers.is_empty()),
        DISTRIBUTION => cases.iter().any(|case| case.samples.len() >= MIN_DISTRIBUTION),
        _ => true,
    };
    let names = parameter_names(cases);
    let keys = names.iter().map(|name| {
        let cells = cases.iter().map(|case| parameter(*case, name));
        std::iter::once((*name).to_owned()).chain(cells).collect::<Vec<_>>()
    });
    let keys: Vec<Vec<String>> = keys.collect();
    let column = |column: &Column| {
        let heading = if column.0 == INTERVAL { spread_heading(cases) } else { column.0 };
        let cells = cases.iter().map(|case| (column.2)(case));
        (column.1, std::iter::once(heading.to_owned()).chain(cells).collect::<Vec<_>>())
    };
    let all = COLUMNS.iter().filter(|column| has(column.0));
    let mut columns: Vec<_> = all.map(|of| (of.0, column(of))).collect();
    let widest = |cells: &[String]| cells.iter().map(|cell| cell.width() + 1).max().unwrap_or(0);
    let keys_width: usize = keys.iter().map(|cells| widest(cells)).sum();
    loop {
        let used: usize = columns.iter().map(|(_, (_, cells))| widest(cells)).sum();
        let last = columns.iter().map(|(_, (rank, _))| *rank).max().unwrap_or(0);
        if keys_width + used <= width + 1 || last == 0 {
            break;
        }
        hidden.extend(columns.extract_if(.., |(_, (rank, _))| *rank == last).map(|(name, _)| name));
    }
    let words = text_columns(&names, cases);
    let mut table = plain_table();
    for row in 0..=cases.len() {
        // The headings of parameters are left-aligned, even above numbers.
        let left = if row == 0 { names.len() } else { words };
        let cells = keys.iter().chain(columns.iter().map(|(_, (_, cells))| cells));
        let cells = cells.map(|cells| cells[row].clone()).enumerate();
        table.add_row(cells.map(|(i, text)| aligned_left(i, left, text)));
    }
    fitted_lines(table, names.len(), width)
}

/// Returns the number of names at the beginning of `names` whose value is text in at least one of
/// the cases.
pub fn text_columns<T: AsRef<Parameters>>(names: &[&str], cases: &[&T]) -> usize {
    let is_text = |name: &&&str| {
        cases.iter().any(|case| matches!(T::as_ref(case).get(name), Some(Value::Text(_))))
    };
    names.iter().take_while(is_text).count()
}

/// Returns the names of all parameters of the cases, in order of first appearance.
pub fn parameter_names<'a, T: AsRef<Parameters>>(cases: &[&'a T]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (name, _) in cases.iter().flat_map(|&case| T::as_ref(case).iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Formats the value of the parameter `name`; empty if the case does not have it.
pub fn parameter<T: AsRef<Parameters>>(case: &T, name: &str) -> String {
    T::as_ref(case).get(name).map_or_else(String::new, |value| printable(&value.to_string()))
}

/// Formats the interval of a case, or the range if there are too few samples for an interval. A
/// single sample is marked as such. Empty without samples.
pub fn interval(case: &Case) -> String {
    if case.samples.len() == 1 {
        return "(1 sample)".to_owned();
    }
    let range = case.min.zip(case.max).filter(|_| case.samples.len() > 1);
    spread(case.ci95, range.map(|(low, high)| [low, high]), |value| shown(value, case.unit))
}

/// Formats the interval in brackets, or else the range in parentheses; empty without either.
pub fn spread(
    interval: Option<[f64; 2]>,
    range: Option<[f64; 2]>,
    shown: impl Fn(f64) -> String,
) -> String {
    match (interval, range) {
        (Some([low, high]), _) => format!("[{}, {}]", shown(low), shown(high)),
        (None, Some([low, high])) => format!("({} to {})", shown(low), shown(high)),
        (None, None) => String::new(),
    }
}

/// Formats the ratio of the median of `samples` to that of `baseline`, with its interval in brackets
/// or its range in parentheses: `1.01 [0.97, 1.05]`. Returns `None` if the ratio is not defined.
pub fn ratio_of(samples: &[f64], baseline: &[f64], seed: u64) -> Option<String> {
    let found = Ratio::of(samples, baseline, seed)?;
    let spread = spread(found.ci95, found.range, ratio);
    Some(format!("{} {spread}", ratio(found.ratio)).trim_end().to_owned())
}

/// Formats the median of a case with its interval in brackets or its range in parentheses; empty if
/// the case was not measured.
pub fn with_spread(case: &Case) -> String {
    let median = case.median.map_or_else(String::new, |value| shown(value, case.unit));
    format!("{median} {}", interval(case)).trim().to_owned()
}

/// Returns the heading of a column of intervals or ranges: without any interval, that of a range.
fn spread_heading(cases: &[&Case]) -> &'static str {
    let has_interval = cases.iter().any(|case| case.ci95.is_some());
    let has_range = cases.iter().any(|case| case.samples.len() > 1);
    if has_interval || !has_range { INTERVAL } else { "(range)" }
}

/// Returns whether a rendered text has an interval as [`spread`] formats it.
pub fn has_interval(text: &str) -> bool {
    figures_in(text, '[', ']').any(|inner| inner.contains(','))
}

/// Returns whether a rendered text has a range as [`spread`] formats it.
pub fn has_range(text: &str) -> bool {
    figures_in(text, '(', ')').any(|inner| inner.split_whitespace().nth(1) == Some("to"))
}

/// Returns the texts between the given brackets that begin with a figure.
fn figures_in(text: &str, open: char, close: char) -> impl Iterator<Item = &str> {
    let inner = text.split(open).skip(1).filter_map(move |rest| Some(rest.split_once(close)?.0));
    inner.filter(|inner| inner.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
}

/// Formats CPU time in percent of wall time, as `time` prints it; empty if either was not measured.
fn cpu_percent(case: &Case) -> String {
    let cpu = case.metric("user").zip(case.metric("system")).map(|(user, system)| user + system);
    cpu.zip(case.median).map_or_else(String::new, |(cpu, real)| percent(cpu, real))
}

/// Formats the median of the metric `name`; empty if the case does not have it.
pub fn metric(case: &Case, name: &str) -> String {
    match case.metrics.get(name) {
        Some(metric) if metric.unit == Unit::Nanoseconds && metric.median.abs() < 0.5 => "0".into(),
        Some(metric) => shown(metric.median, metric.unit),
        None => String::new(),
    }
}

/// Renders a table whose first row is the heading, and whose first `words` columns are
/// left-aligned. Columns that do not fit follow below, after a repetition of the first `words`
/// columns.
pub fn grid(rows: &[Vec<String>], words: usize, width: usize) -> String {
    let mut table = plain_table();
    for row in rows {
        let cells = row.iter().cloned().enumerate();
        table.add_row(cells.map(|(i, text)| aligned_left(i, words, text)));
    }
    fitted_lines(table, words, width)
}

/// Returns a row with the given cells.
pub fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Formats a time that is given in nanoseconds; empty if it is `None`, and `0` if it is less than
/// half a nanosecond from 0.
pub fn figure(nanos: Option<f64>) -> String {
    match nanos {
        None => String::new(),
        Some(value) if value.abs() < 0.5 => "0".to_owned(),
        Some(value) => nanoseconds(value),
    }
}

/// A function that returns a time of a case in nanoseconds, or `None` if it was not measured.
pub type TimeOf = fn(&Case) -> Option<f64>;

/// Returns the formatted values of the parameter `name`, each once, in order of first appearance.
pub fn values(cases: &[&Case], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    for case in cases {
        let value = parameter(*case, name);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Renders the cases as a matrix over two of their parameters, one for the rows and one for the
/// columns, with `title` in the corner. If several cases belong in one cell, shows the first.
pub fn matrix(
    cases: &[&Case],
    title: &str,
    [rows, columns]: [&str; 2],
    cell: &dyn Fn(&Case) -> String,
    width: usize,
) -> String {
    let headings = values(cases, columns);
    let mut lines = vec![std::iter::once(title.to_owned()).chain(headings.clone()).collect()];
    for row in values(cases, rows) {
        let of = |column: &String| {
            let case = cases.iter().find(|case| {
                parameter(**case, rows) == row && parameter(**case, columns) == *column
            });
            case.map_or_else(String::new, |case| cell(case))
        };
        let cells: Vec<String> = headings.iter().map(of).collect();
        lines.push(std::iter::once(row).chain(cells).collect());
    }
    grid(&lines, 1, width)
}
