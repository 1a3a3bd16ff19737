//! The page of a run of the lab. Each experiment has a figure, whose chart suits its cases:
//!
//! ```text
//! hand-offs between CPUs ─────────────▶ heat map
//! a number that takes many values ────▶ points over it, a series for each of the other parameters,
//!                                       and the lines or scaling laws through them
//! otherwise ──────────────────────────▶ a bar for each case, or a point on a logarithmic axis
//! percentiles ────────────────────────▶ a second figure with the parts up to each
//! ```
//!
//! Figures of source documents are marks next to those of the run. Below its figures, an experiment has its
//! cases without measurements, its warnings, and what else its cases found: limits, stages, steps, facts,
//! lines and laws.

mod chapter;
mod cpu_pairs;
mod details;
pub(super) mod machines;
mod models;
mod percentiles;
mod table;
#[cfg(test)]
pub(super) mod tests;

use contend_record::lab::{Case, Ending, Metric, RunRecord, Unit, View};
use contend_record::parameters::{Parameters, Value};
use contend_record::stats::{Estimate, MIN_CI95_SAMPLES};
use maud::{Markup, html};

use super::chart::plot::{self, Axis, Point, Series, Style};
use super::chart::rows::{self, Row};
use super::chart::{Colour, Format, Scale};
use super::frame::{Figure, Page};
use super::{number_of, origin};
use crate::render::lab::disturbance::{Disturbed, MARK};
use crate::render::lab::table::spread;
use crate::render::lab::{
    Reported, case_warnings, notes, reported, run_warnings, shown, skipped, without_samples,
};
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
    let mut sections = chapter::sections(record);
    sections.extend(
        record
            .experiments()
            .into_iter()
            .map(|name| (name.to_owned(), experiment(record, name, &cases_of(record, name)))),
    );
    let page = Page {
        subject: &subject,
        kind: "lab",
        facts: facts(record),
        result: html! { p { (result(record)) } },
        sections,
        warnings: run_warnings(record),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

/// Returns the cases of an experiment.
fn cases_of<'a>(record: &'a RunRecord, name: &str) -> Vec<&'a Case> {
    record.cases.iter().filter(|case| case.experiment == name).collect()
}

/// Returns what a run measured, how long it took, and how it ended, each in a few words.
fn facts(record: &RunRecord) -> Vec<String> {
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
    facts
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
    let what =
        format!("Measurements of {experiments} on this machine. Figures are medians.{overhead}");
    [what].into_iter().chain(notes(record)).collect::<Vec<_>>().join(" ")
}

fn experiment(record: &RunRecord, name: &str, cases: &[&Case]) -> Markup {
    let measured: Vec<&Case> = cases.iter().copied().filter(|case| case.median.is_some()).collect();
    html! {
        @for figure in figures(record, name, &measured) { (figure.markup()) }
        @if let Some(figure) = percentiles::figure(name, &measured, record.seed) { (figure.markup()) }
        (unmeasured(None, cases))
        (details::markup(record, cases))
        (models::markup(&[("", record)], name))
        @if !measured.is_empty() {
            p.method {
                "Command: " code { "contend lab run " (name) @if record.quick { " --quick" } }
                ", with the --set and --only of this run, which its record does not keep."
            }
        }
    }
}

/// Returns the cases of an experiment that were not measured, and the warnings about others. On a page of
/// several runs, `run` is the name of this one.
fn unmeasured(run: Option<&str>, cases: &[&Case]) -> Markup {
    let of_run = run.map_or_else(String::new, |name| format!("{}: ", printable(name)));
    html! {
        @for sentence in skipped(cases).iter().chain(&without_samples(cases)) {
            p { (of_run) (sentence) }
        }
        @for warning in case_warnings(cases) {
            p.warning { strong { "Warning: " } (of_run) (warning) }
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
    let mut method = method(cases);
    let plotted = match cases.first().map(|case| case.view) {
        Some(View::CpuPairs) => Some((Vec::new(), cpu_pairs::draw(cases, format))),
        _ => swept(cases).map(|over| plotted(record, name, &over, unit, cases)),
    };
    let (legend, chart) = plotted.unwrap_or_else(|| {
        let (chart, scale) = bars(record, name, cases, format);
        method.push_str(axis(&scale));
        (Vec::new(), chart)
    });
    if has_document {
        method.push_str(DOCUMENT);
    }
    Figure {
        title: title(name, unit),
        legend,
        chart,
        table: table::of_cases(record, cases),
        method,
    }
}

/// Returns a sentence about a logarithmic axis of rows, after a space; empty for a linear one.
fn axis(scale: &Scale) -> &'static str {
    if scale.is_log() { " The axis is logarithmic." } else { "" }
}

/// Returns what the marks of rows on a scale are.
fn marks(scale: &Scale) -> &'static str {
    if scale.is_log() { "Points" } else { "Bars" }
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
    let number = number_of_samples(cases.iter().map(|case| case.samples.len()));
    let interval = if cases.iter().any(|case| case.ci95.is_some()) {
        "; lines show the 95 % interval of the median (percentile bootstrap)"
    } else {
        ""
    };
    format!("Medians of {number} for each case{interval}.{}", disturbances(cases))
}

/// Returns a number of samples in words; the smallest and the largest, if there are several.
fn number_of_samples(counts: impl Iterator<Item = usize> + Clone) -> String {
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} samples"),
        (_, most) => counted(most.unwrap_or(0) as u64, "sample"),
    }
}

/// Says how many of the cases were disturbed, and explains their mark, after a space; empty if none were.
fn disturbances(cases: &[&Case]) -> String {
    let found: Vec<Disturbed> = cases.iter().filter_map(|case| Disturbed::of_case(case)).collect();
    if found.is_empty() {
        return String::new();
    }
    let cases = number_of(cases.len(), "case");
    format!(" Disturbed: {} of {cases}. {}", found.len(), Disturbed::legend(&found))
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
    let series = by_others(cases, name)?.len();
    // A series with a single point shows nothing over the axis.
    let is_useful = count >= MIN_VALUES && 2 * series <= cases.len();
    is_useful.then(|| name.to_owned())
}

/// Groups cases by their parameters other than `over`; `None` if there are more than [`MAX_SERIES`] groups.
fn by_others<'a>(cases: &[&'a Case], over: &str) -> Option<Vec<(Parameters, Vec<&'a Case>)>> {
    let mut groups: Vec<(Parameters, Vec<&Case>)> = Vec::new();
    for case in cases {
        let others = case.parameters.without(over);
        let is_full = groups.len() == MAX_SERIES;
        match groups.iter_mut().find(|(known, _)| known.has_same_entries(&others)) {
            Some((_, group)) => group.push(case),
            None if is_full => return None,
            None => groups.push((others, vec![case])),
        }
    }
    Some(groups)
}

/// Draws points over a parameter, with the models through them.
fn plotted(
    record: &RunRecord,
    name: &str,
    over: &str,
    unit: Unit,
    cases: &[&Case],
) -> (Vec<(Colour, String)>, Markup) {
    let groups = by_others(cases, over).unwrap_or_default();
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

/// Returns a logarithmic scale if the values need one, or else a linear one from 0, or from the smallest value
/// if it is negative.
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

/// Draws a bar or a point for each case. Also returns the scale.
fn bars(record: &RunRecord, name: &str, cases: &[&Case], format: Format) -> (Markup, Scale) {
    let mut bars: Vec<Row> = cases
        .iter()
        .take(MAX_BARS)
        .map(|case| {
            let median = case.median.unwrap_or(0.0);
            let reference = reported(record, case).map(|Reported { value, source }| {
                (value, format!("{}: {}, {source}", short_name(*case, cases), format(value)))
            });
            Row {
                interval: case.ci95,
                reference,
                ..Row::bar(short_name(*case, cases), median, interval_text(case, format), Colour(0))
            }
        })
        .collect();
    let scale = rows::bars_or_points(&mut bars);
    let alternative =
        format!("{} of {name} for each case. {}", marks(&scale), extremes(cases, format));
    let chart = html! {
        (rows::draw(&bars, &scale, format, &[], &alternative))
        @if cases.len() > MAX_BARS { p { (cases.len() - MAX_BARS) " more cases are in the table." } }
    };
    (chart, scale)
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
pub(super) fn short_name<T: AsRef<Parameters>>(case: &T, cases: &[&T]) -> String {
    let parameters = case.as_ref();
    let differs =
        |name: &str| cases.iter().any(|other| T::as_ref(other).get(name) != parameters.get(name));
    let own = parameters.iter().filter(|(name, _)| differs(name));
    let words: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() { case_name(case) } else { printable(&words.join(" ")) }
}

fn case_name(case: &impl AsRef<Parameters>) -> String {
    let name = printable(&case.as_ref().to_string());
    if name.is_empty() { "the only case".to_owned() } else { name }
}

/// Returns the median of a case with its mark, if the case was disturbed; empty without a median.
fn median_text(case: &Case, format: Format) -> String {
    let Some(median) = case.median else { return String::new() };
    let mark = Disturbed::of_case(case).map(|_| MARK);
    format(median).chars().chain(mark).collect()
}

fn interval_text(case: &Case, format: Format) -> String {
    let median = median_text(case, format);
    match case.ci95 {
        Some([low, high]) => format!("{median} [{}, {}]", format(low), format(high)),
        None => median,
    }
}

fn case_text(case: &Case, format: Format) -> String {
    format!("{}: {}", case_name(case), interval_text(case, format))
}

/// Formats the 95 % interval of the median of a metric in brackets, or the range of its samples in parentheses
/// if these are too few; empty for a single sample.
fn spread_of(metric: &Metric, seed: u64) -> String {
    let samples = &metric.samples;
    let end = |of: fn(f64, f64) -> f64| samples.iter().copied().reduce(of);
    let range = end(f64::min).zip(end(f64::max)).filter(|_| samples.len() > 1);
    let estimate = (samples.len() >= MIN_CI95_SAMPLES)
        .then(|| Estimate::from_samples(samples.clone(), seed))
        .flatten();
    let interval = estimate.map(|estimate| estimate.ci95);
    spread(interval, range.map(|(least, most)| [least, most]), |value| shown(value, metric.unit))
}
