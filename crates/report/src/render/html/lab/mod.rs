//! The page of a run of the lab. Each experiment has a figure, whose chart suits its cases:
//!
//! ```text
//! hand-offs between CPUs ─────────────▶ heat map
//! a number that takes many values ────▶ points over it, a series for each of the other parameters,
//!                                       and the lines or scaling laws through them
//! otherwise ──────────────────────────▶ a bar for each case
//! percentiles ────────────────────────▶ a second figure with the parts up to each
//! ```
//!
//! Figures of source documents are marks next to those of the run.

mod chapter;
pub(super) mod machines;
mod models;
mod percentiles;

use contend_record::lab::{Case, Ending, RunRecord, Unit, View};
use contend_record::parameters::{Parameters, Value, names};
use maud::{Markup, html};

use super::chart::plot::{self, Axis, Point, Series, Style};
use super::chart::rows::{self, Row};
use super::chart::{Colour, Format, Scale, heat_map};
use super::frame::{Figure, Page};
use super::table::{Cell, Table};
use super::{number_of, origin};
use crate::render::lab::{Reported, reported, shown, skipped};
use crate::render::layout::grouped;
use crate::render::text::printable;
use crate::render::units::{bytes, count, counted, nanoseconds, seconds};

/// Largest number of bars in a chart. The table has all cases.
const MAX_BARS: usize = 40;
/// Largest number of experiments in the heading of a page.
const MAX_NAMED_EXPERIMENTS: usize = 5;
/// Largest number of series of points.
const MAX_SERIES: usize = 8;
/// Smallest number of values of a parameter over which points are drawn.
const MIN_VALUES: usize = 3;
/// Ratio of the largest to the smallest value from which a scale is logarithmic.
const MIN_LOG_RATIO: f64 = 20.0;

/// Returns the page of a run of the lab.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &RunRecord) -> serde_json::Result<String> {
    let subject = match &record.suite {
        Some(suite) => format!("lab suite {suite}"),
        None => match record.experiments().as_slice() {
            few if few.len() <= MAX_NAMED_EXPERIMENTS => format!("lab run {}", few.join(" ")),
            many => format!("lab run of {}", number_of(many.len(), "experiment")),
        },
    };
    let mut facts = vec![
        format!("{} of {} measured", record.measured(), number_of(record.cases.len(), "case")),
        seconds(record.wall_seconds),
        format!("seed {}", record.seed),
    ];
    match record.ending {
        Ending::Interrupted => facts.push("interrupted".to_owned()),
        Ending::Unfinished => facts.push("unfinished".to_owned()),
        Ending::Complete | Ending::Empty => {}
    }
    if record.quick {
        facts.push("a smaller form of the cases (--quick)".to_owned());
    }
    let mut sections = chapter::sections(record);
    sections.extend(record.experiments().into_iter().map(|name| {
        let cases: Vec<&Case> =
            record.cases.iter().filter(|case| case.experiment == name).collect();
        (name.to_owned(), experiment(record, name, &cases))
    }));
    let page = Page {
        subject: &subject,
        kind: "lab",
        facts,
        result: html! { p { (result(record)) } },
        sections,
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

fn result(record: &RunRecord) -> String {
    let experiments = number_of(record.experiments().len(), "experiment");
    let overhead = record.calibration.as_ref().map_or_else(String::new, |calibration| {
        format!(
            " Reading the clock takes {}, an empty loop {}; both are subtracted.",
            nanoseconds(calibration.clock_nanoseconds),
            nanoseconds(calibration.empty_loop_nanoseconds)
        )
    });
    format!("Measurements of {experiments} on this machine. Figures are medians.{overhead}")
}

fn experiment(record: &RunRecord, name: &str, cases: &[&Case]) -> Markup {
    let measured: Vec<&Case> = cases.iter().copied().filter(|case| case.median.is_some()).collect();
    html! {
        @for figure in figures(record, name, &measured) { (figure.markup()) }
        @if let Some(figure) = percentiles::figure(name, &measured) { (figure.markup()) }
        @for sentence in skipped(cases) { p { (sentence) } }
        @if !measured.is_empty() {
            p.method { "Command: " code { "contend lab run " (name) } }
        }
    }
}

/// Returns the figures of an experiment: one for each unit, since a chart has one axis of values.
fn figures(record: &RunRecord, name: &str, cases: &[&Case]) -> Vec<Figure> {
    let by_unit = grouped(cases.iter().map(|case| (case.unit, *case)));
    by_unit.into_iter().map(|(unit, cases)| figure(record, name, unit, &cases)).collect()
}

fn figure(record: &RunRecord, name: &str, unit: Unit, cases: &[&Case]) -> Figure {
    let format = format_of(unit);
    let has_document = cases.iter().any(|case| reported(record, case).is_some());
    let plotted = match cases.first().map(|case| case.view) {
        Some(View::CpuPairs) => Some((Vec::new(), cpu_pairs(cases, format))),
        _ => swept(cases).map(|over| plotted(record, name, &over, unit, cases)),
    };
    let (legend, chart) =
        plotted.unwrap_or_else(|| (Vec::new(), bars(record, name, cases, format)));
    let mut method = method(cases);
    if has_document {
        method.push_str(DOCUMENT);
    }
    Figure { title: title(name, unit), legend, chart, table: table(record, cases), method }
}

fn title(name: &str, unit: Unit) -> String {
    let what = match unit {
        Unit::Nanoseconds => "time",
        Unit::Bytes => "memory",
        Unit::Units => "number of units",
        Unit::Count => "count",
    };
    format!("{name}: {what}")
}

fn format_of(unit: Unit) -> Format {
    match unit {
        Unit::Nanoseconds => nanoseconds,
        Unit::Bytes => |value| shown(value, Unit::Bytes),
        Unit::Units | Unit::Count => count,
    }
}

fn method(cases: &[&Case]) -> String {
    let samples: Vec<usize> = cases.iter().map(|case| case.samples.len()).collect();
    let (least, most) = (samples.iter().min().copied(), samples.iter().max().copied());
    let number = match (least, most) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} samples"),
        (_, most) => counted(most.unwrap_or(0) as u64, "sample"),
    };
    let interval = if cases.iter().any(|case| case.ci95.is_some()) {
        "; lines show the 95 % interval of the median (percentile bootstrap)"
    } else {
        ""
    };
    format!("Medians of {number} for each case{interval}.")
}

/// Returns the parameter over which points are drawn: the one with most values among those with only
/// numbers, if they are enough, and the others do not make too many series.
fn swept(cases: &[&Case]) -> Option<String> {
    let first = cases.first()?;
    let candidates = first
        .parameters
        .iter()
        .filter_map(|(name, value)| matches!(value, Value::Number(_)).then_some(name));
    let values = |name: &str| {
        let mut values: Vec<u64> =
            cases.iter().map(|case| case.parameters.number(name)).collect::<Option<_>>()?;
        values.sort_unstable();
        values.dedup();
        Some(values.len())
    };
    let best = candidates.filter_map(|name| Some((values(name)?, name))).max_by_key(|best| best.0);
    let (count, name) = best?;
    let series = by_others(cases, name).len();
    // A series with a single point shows nothing over the axis.
    let is_useful = count >= MIN_VALUES && series <= MAX_SERIES && 2 * series <= cases.len();
    is_useful.then(|| name.to_owned())
}

/// Groups cases by their parameters other than `over`.
fn by_others<'a>(cases: &[&'a Case], over: &str) -> Vec<(Parameters, Vec<&'a Case>)> {
    let mut groups: Vec<(Parameters, Vec<&Case>)> = Vec::new();
    for case in cases {
        let others = case.parameters.without(over);
        match groups.iter_mut().find(|(known, _)| known.has_same_entries(&others)) {
            Some((_, group)) => group.push(case),
            None => groups.push((others, vec![case])),
        }
    }
    groups
}

/// Draws points over a parameter, with the models through them.
fn plotted(
    record: &RunRecord,
    name: &str,
    over: &str,
    unit: Unit,
    cases: &[&Case],
) -> (Vec<(Colour, String)>, Markup) {
    let groups = by_others(cases, over);
    let at = |case: &Case| case.parameters.number(over).unwrap_or(0) as f64;
    let (x, y) = (
        scale(cases.iter().map(|case| at(case))),
        scale(
            cases
                .iter()
                .flat_map(|case| case.median.into_iter().chain(case.ci95.into_iter().flatten()))
                .chain(cases.iter().filter_map(|case| Some(reported(record, case)?.value))),
        ),
    );
    let format = format_of(unit);
    let mut series = Vec::new();
    let mut legend = Vec::new();
    for (number, (others, group)) in groups.iter().enumerate() {
        let colour = Colour(number);
        let label = series_name(others, &groups);
        let point = |case: &&Case| {
            let median = case.median.unwrap_or(0.0);
            Point { x: at(case), y: median, interval: case.ci95, text: case_text(case, format) }
        };
        let mut points: Vec<Point> = group.iter().map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let models = models::models(record, name, over, others, &points, &x);
        let names: Vec<&str> = models.iter().map(|model| model.name).collect();
        if groups.len() > 1 || !models.is_empty() {
            let fitted = if models.is_empty() {
                String::new()
            } else {
                format!(" (dashed: {})", names.join(", "))
            };
            legend.push((colour, format!("{label}{fitted}")));
        }
        let line = if models.is_empty() {
            points.iter().map(|point| (point.x, point.y)).collect()
        } else {
            Vec::new()
        };
        series.push(Series { colour, points, line, style: Style::Joined });
        for models::Model { line, bounds, .. } in models {
            series.push(Series { colour, points: Vec::new(), line, style: Style::Model });
            series.extend(bounds.into_iter().map(|line| Series {
                colour,
                points: Vec::new(),
                line,
                style: Style::Bound,
            }));
        }
    }
    let document = documented(record, cases, &at, format);
    if !document.is_empty() {
        legend.push((Colour::NEUTRAL, "the source document's figure".to_owned()));
        let line = Vec::new();
        series.push(Series {
            colour: Colour::NEUTRAL,
            points: document,
            line,
            style: Style::Joined,
        });
    }
    let alternative = format!(
        "Points of {name} over {over}, in {}. {}",
        number_of(groups.len(), "series").replace("serieses", "series"),
        extremes(cases, format)
    );
    let y_label = title(name, unit);
    let x_axis = Axis { label: over, scale: x, format: x_format(over) };
    let y_axis = Axis { label: &y_label, scale: y, format };
    (legend, plot::draw(&series, &x_axis, &y_axis, &alternative))
}

/// Returns the format of values of a parameter.
fn x_format(name: &str) -> Format {
    if name.contains("bytes") || name == "size" || name == "length" { bytes } else { count }
}

/// Returns a logarithmic scale if the values need one, or else a linear one from 0.
fn scale(values: impl Iterator<Item = f64> + Clone) -> Scale {
    let least = values.clone().fold(f64::MAX, f64::min);
    let most = values.clone().fold(f64::MIN, f64::max);
    if least > 0.0 && most / least >= MIN_LOG_RATIO {
        Scale::log(values)
    } else {
        Scale::from_zero(values)
    }
}

/// Names a series by the parameters in which the series differ.
fn series_name(parameters: &Parameters, groups: &[(Parameters, Vec<&Case>)]) -> String {
    let differs =
        |name: &str| groups.iter().any(|(others, _)| others.get(name) != parameters.get(name));
    let own = parameters.iter().filter(|(name, _)| differs(name));
    let words: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() { "median".to_owned() } else { printable(&words.join(" ")) }
}

/// What marks of source documents are.
const DOCUMENT: &str =
    " Marks without an interval are figures of the source document, from other hardware.";

/// Returns the figures of the source document at the positions of their cases.
fn documented(
    record: &RunRecord,
    cases: &[&Case],
    at: &impl Fn(&Case) -> f64,
    format: Format,
) -> Vec<Point> {
    let point = |case: &&Case| {
        let reported = reported(record, case)?;
        let text = format!("{}: {}, {}", case_name(case), format(reported.value), reported.source);
        Some(Point { x: at(case), y: reported.value, interval: None, text })
    };
    cases.iter().filter_map(point).collect()
}

/// Draws a bar for each case.
fn bars(record: &RunRecord, name: &str, cases: &[&Case], format: Format) -> Markup {
    let bars: Vec<Row> = cases
        .iter()
        .take(MAX_BARS)
        .map(|case| {
            let median = case.median.unwrap_or(0.0);
            let reference = reported(record, case).map(|Reported { value, source }| {
                (value, format!("{}: {}, {source}", short_name(case, cases), format(value)))
            });
            Row {
                interval: case.ci95,
                reference,
                ..Row::bar(
                    short_name(case, cases),
                    median.max(0.0),
                    interval_text(case, format),
                    Colour(0),
                )
            }
        })
        .collect();
    let alternative = format!("Bars of {name} for each case. {}", extremes(cases, format));
    let scale = rows::scale(&bars);
    html! {
        (rows::draw(&bars, &scale, format, &[], &alternative))
        @if cases.len() > MAX_BARS { p { (cases.len() - MAX_BARS) " more cases are in the table." } }
    }
}

/// Draws a heat map for each mechanism.
fn cpu_pairs(cases: &[&Case], format: Format) -> Markup {
    let mechanism = |case: &&Case| case.parameters.text(names::MECHANISM).unwrap_or("").to_owned();
    let by_mechanism = grouped(cases.iter().map(|case| (mechanism(case), *case)));
    html! {
        @for (mechanism, cases) in &by_mechanism {
            p.axis { (printable(mechanism)) }
            (one_map(cases, format))
        }
    }
}

fn one_map(cases: &[&Case], format: Format) -> Markup {
    let ends = |case: &Case| {
        Some([case.parameters.number(names::FROM)?, case.parameters.number(names::TO)?])
    };
    let mut cpus: Vec<u64> = cases.iter().filter_map(|case| ends(case)).flatten().collect();
    cpus.sort_unstable();
    cpus.dedup();
    let way = |wanted: [u64; 2]| cases.iter().find(|case| ends(case) == Some(wanted));
    let cell = |from: u64, to: u64| {
        // A pair measured in one direction is shown for the other direction, too.
        way([from, to]).or_else(|| way([to, from])).and_then(|case| case.median)
    };
    let rows: Vec<(String, Vec<Option<f64>>)> = cpus
        .iter()
        .map(|&from| (from.to_string(), cpus.iter().map(|&to| cell(from, to)).collect()))
        .collect();
    let headings: Vec<String> = cpus.iter().map(u64::to_string).collect();
    heat_map::draw("from \\ to CPU", &headings, &rows, format)
}

fn extremes(cases: &[&Case], format: Format) -> String {
    let medians = || cases.iter().filter_map(|case| Some((*case, case.median?)));
    let least = medians().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = medians().max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some((least, low)), Some((most, high))) = (least, most) else { return String::new() };
    format!(
        "The smallest is {} for {}, the largest {} for {}.",
        format(low),
        case_name(least),
        format(high),
        case_name(most)
    )
}

/// Names a case by the parameters in which the cases differ.
fn short_name(case: &Case, cases: &[&Case]) -> String {
    let differs = |name: &str| {
        cases.iter().any(|other| other.parameters.get(name) != case.parameters.get(name))
    };
    let own = case.parameters.iter().filter(|(name, _)| differs(name));
    let words: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() { case_name(case) } else { printable(&words.join(" ")) }
}

fn case_name(case: &Case) -> String {
    let name = printable(&case.parameters.to_string());
    if name.is_empty() { "the only case".to_owned() } else { name }
}

fn interval_text(case: &Case, format: Format) -> String {
    let median = case.median.map(format).unwrap_or_default();
    match case.ci95 {
        Some([low, high]) => format!("{median} [{}, {}]", format(low), format(high)),
        None => median,
    }
}

fn case_text(case: &Case, format: Format) -> String {
    format!("{}: {}", case_name(case), interval_text(case, format))
}

/// Returns a table with a row for each case: its parameters, its figures and its other metrics.
fn table(record: &RunRecord, cases: &[&Case]) -> Table {
    let mut parameters: Vec<String> = Vec::new();
    let mut metrics: Vec<String> = Vec::new();
    for case in cases {
        let own = case.parameters.iter().map(|(name, _)| name.to_owned());
        parameters.extend(own.filter(|name| !parameters.contains(name)).collect::<Vec<_>>());
        let own = case.metrics.keys().cloned();
        metrics.extend(own.filter(|name| !metrics.contains(name)).collect::<Vec<_>>());
    }
    let is_number = |name: &String| {
        cases
            .iter()
            .all(|case| !matches!(case.parameters.get(name), Some(Value::Text(_) | Value::Flag(_))))
    };
    let numbers: Vec<bool> = parameters.iter().map(is_number).collect();
    let mut headings: Vec<String> = parameters
        .iter()
        .zip(&numbers)
        .map(|(name, is_number)| {
            format!("{}{}", if *is_number { "#" } else { "" }, printable(name))
        })
        .collect();
    headings
        .extend(["#median", "#95 % interval", "#least", "#most", "#samples"].map(str::to_owned));
    headings.extend(metrics.iter().map(|name| format!("#{}", printable(name).replace('_', " "))));
    let has_document = cases.iter().any(|case| reported(record, case).is_some());
    headings.extend(has_document.then(|| "#document".to_owned()));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings);
    for case in cases {
        let figure = |value: Option<f64>, unit| {
            value.map_or_else(Cell::default, |value| Cell::number(shown(value, unit), value))
        };
        let mut row: Vec<Cell> = parameters
            .iter()
            .map(|name| match case.parameters.get(name) {
                Some(Value::Number(number)) => Cell::number(number.to_string(), *number as f64),
                Some(value) => printable(&value.to_string()).into(),
                None => Cell::default(),
            })
            .collect();
        row.push(figure(case.median, case.unit));
        row.push(case.ci95.map_or_else(Cell::default, |[low, high]| {
            Cell::number(format!("{} – {}", shown(low, case.unit), shown(high, case.unit)), low)
        }));
        row.extend([case.min, case.max].map(|value| figure(value, case.unit)));
        row.push(Cell::number(case.samples.len().to_string(), case.samples.len() as f64));
        row.extend(metrics.iter().map(|name| {
            let metric = case.metrics.get(name);
            metric.map_or_else(Cell::default, |metric| figure(Some(metric.median), metric.unit))
        }));
        if has_document {
            row.push(figure(reported(record, case).map(|reported| reported.value), case.unit));
        }
        table.push(row);
    }
    table
}
