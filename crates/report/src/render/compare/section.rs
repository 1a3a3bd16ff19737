//! Renders the cases measured by at least two runs, with a row for each case and a column for each
//! run.

use std::cmp::Ordering;
use std::fmt::Write as _;

use contend_record::compare::{Case, CompareRecord, Figure, Run, Side};
use contend_record::lab::{View, family_and_name};
use contend_record::stats::Ratio;

use super::super::lab::disturbance::{Disturbed, MARK};
use super::super::lab::shown;
use super::super::lab::table::{groups, parameter, parameter_names, spread, text_columns};
use super::super::layout::{BOLD, grouped, paragraph_after};
use super::super::picture::{axis, interval};
use super::super::text::printable;
use super::super::units;
use super::table::{Block, Cases, Column};

/// Layout of the tables of experiments with the same view.
#[derive(Debug)]
struct Layout {
    /// Whether a family of experiments shares one table, whose first column has their names.
    together: bool,
    /// The measured quantity, with notes on further columns; empty if the name of the experiment
    /// says enough.
    what: &'static str,
    /// Metrics shown in addition to the value of each run: heading of the column, and name of the
    /// metric.
    metrics: &'static [(&'static str, &'static str)],
}

const MECHANISMS: Layout = Layout { together: false, what: "one hand-off", metrics: &[] };

const PRESETS: Layout = Layout {
    together: true,
    what: "10,000 turns; load: largest CPU load over 50 ms, in percent of all CPUs",
    metrics: &[("load", "load_max")],
};

const STANDARD: Layout = Layout { together: false, what: "", metrics: &[] };

fn layout_of(case: &Case) -> &'static Layout {
    match case.view {
        View::HandoffMechanisms => &MECHANISMS,
        View::HandoffPreset => &PRESETS,
        _ => &STANDARD,
    }
}

/// Returns the cases measured by at least two runs. Only these are in tables.
pub fn in_tables(record: &CompareRecord) -> impl Iterator<Item = &Case> {
    record.cases.iter().filter(|case| case.measured() > 1)
}

/// Renders all tables, each under the name of its experiment, or of the family of experiments that
/// share the table.
pub fn all(record: &CompareRecord, width: usize) -> String {
    let titled = in_tables(record).map(|case| {
        let (family, _) = family_and_name(&case.experiment);
        let title = if layout_of(case).together { family } else { &case.experiment };
        (printable(title), case)
    });
    let mut out = String::new();
    for (title, cases) in grouped(titled) {
        let Some(layout) = cases.first().map(|case| layout_of(case)) else { continue };
        heading(&mut out, &title, layout.what, width);
        let tables = if layout.together { vec![cases] } else { groups(&cases) };
        let tables = tables.iter().map(|cases| table(record, layout, cases).pieces(width));
        out.push_str(&tables.collect::<Vec<_>>().join("\n"));
    }
    out
}

fn heading(out: &mut String, title: &str, what: &str, width: usize) {
    let _ = write!(out, "\n{BOLD}{title}{BOLD:#}");
    if what.is_empty() {
        out.push('\n');
    } else {
        paragraph_after(out, title.len(), &format!(": {what}"), width);
    }
}

fn table(record: &CompareRecord, layout: &Layout, cases: &[&Case]) -> Cases {
    let names = parameter_names(cases);
    let of_name = |name: &&str| {
        Column::new(&printable(name), cases.iter().map(|case| parameter(*case, name)))
    };
    let mut left: Vec<Column> = names.iter().map(of_name).collect();
    let mut words = text_columns(&names, cases);
    if layout.together {
        let name = |case: &&Case| printable(family_and_name(&case.experiment).1);
        left.insert(0, Column::new("case", cases.iter().map(name)));
        words += 1;
    }
    let runs = || record.runs.iter().enumerate();
    let baseline = record.runs.first().map_or("", |run| &run.name);
    let heading = |run: &Run| format!("{}/{baseline}", run.name);
    Cases {
        left,
        words,
        values: runs().filter_map(|(index, run)| values(layout, cases, index, &run.name)).collect(),
        ratios: runs().filter_map(|(index, run)| ratios(cases, index, &heading(run))).collect(),
        picture: (record.runs.len() == 2).then(|| picture(cases)).flatten(),
    }
}

/// Returns the columns with the values and metrics of the run with the index `run`, or `None` if it
/// has measured none of the given cases.
fn values(layout: &Layout, cases: &[&Case], run: usize, name: &str) -> Option<Block> {
    if !cases.iter().any(|case| case.sides.get(run).is_some_and(Side::is_measured)) {
        return None;
    }
    let cell =
        |case: &&Case| (median(case.value.as_ref(), run), disturbed(case, run).map(|_| MARK));
    let value = Column::marked(name, &cases.iter().map(cell).collect::<Vec<_>>());
    let metrics = layout.metrics.iter().map(|(heading, metric)| {
        Column::new(heading, cases.iter().map(|case| median(case.metrics.get(*metric), run)))
    });
    Some([value].into_iter().chain(metrics).collect())
}

/// Returns the metrics that the tables with a case show in addition to its value: heading of the column, and
/// name of the metric.
pub fn metrics_of(case: &Case) -> &'static [(&'static str, &'static str)] {
    layout_of(case).metrics
}

/// Returns the measured quantity of a case, with notes on further columns; empty if the name of the
/// experiment says enough.
pub fn quantity_of(case: &Case) -> &'static str {
    layout_of(case).what
}

fn median(figure: Option<&Figure>, run: usize) -> String {
    let value = figure.and_then(|figure| Some((figure.medians.get(run).copied()??, figure.unit)));
    value.map_or_else(|| MISSING.to_owned(), |(value, unit)| shown(value, unit))
}

/// Width of the picture of a ratio, in columns. It is odd, so that equality is in the middle.
const PICTURE_COLUMNS: usize = 21;

/// Placeholder for the missing value of a run, or the missing ratio of two runs.
pub const MISSING: &str = "-";

/// Returns how many samples of the case were disturbed in the run with the index `run`, or `None`
/// if none were.
pub fn disturbed(case: &Case, run: usize) -> Option<Disturbed> {
    match case.sides.get(run)? {
        Side::Measured { samples, disturbed, .. } => Disturbed::of(*disturbed, *samples),
        _ => None,
    }
}

/// Returns the mark of a ratio that shows no difference, or that has too few samples to show one.
pub fn doubt(ratio: &Ratio) -> Option<char> {
    match ratio.compare_to_one() {
        None => Some('?'),
        Some(Ordering::Equal) => Some('~'),
        Some(_) => None,
    }
}

/// Returns the columns with the ratios of the run with the index `run` to the first one, and their
/// intervals if there are any, or `None` if there are no ratios.
fn ratios(cases: &[&Case], run: usize, heading: &str) -> Option<Block> {
    let found: Vec<Option<&Ratio>> =
        cases.iter().map(|case| case.value.as_ref()?.ratios.get(run)?.as_ref()).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let cell = |ratio: Option<&Ratio>| match ratio {
        Some(ratio) => (units::ratio(ratio.ratio), doubt(ratio)),
        None => (MISSING.to_owned(), None),
    };
    let interval = |ratio: Option<&Ratio>| {
        ratio.map_or_else(String::new, |ratio| spread(ratio.ci95, ratio.range, units::ratio))
    };
    let intervals = Column::new("[interval]", found.iter().copied().map(interval));
    let column = Column::marked(heading, &found.iter().copied().map(cell).collect::<Vec<_>>());
    Some(if intervals.is_empty() { vec![column] } else { vec![column, intervals] })
}

/// Returns a column with a picture of each ratio of the second run to the first and of its interval, on a
/// logarithmic scale with equality in its middle; `None` if no ratio has an interval.
fn picture(cases: &[&Case]) -> Option<Column> {
    let ratio = |case: &&Case| case.value.as_ref()?.ratios.get(1)?.clone();
    let found: Vec<Option<Ratio>> = cases.iter().map(ratio).collect();
    let ends = |ratio: &Ratio| ratio.ci95.or(ratio.range);
    let all = found.iter().flatten().filter_map(ends).flatten().filter(|end| *end > 0.0);
    let most = all.map(|end| end.ln().abs()).fold(f64::NAN, f64::max);
    if most.is_nan() {
        return None;
    }
    // An even scale is easier to read, and small differences stay small.
    let scales = [1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0];
    let scale = scales.into_iter().find(|scale: &f64| scale.ln() >= most).unwrap_or(10.0);
    let place = |ratio: f64| 0.5 + 0.5 * ratio.max(1e-9).ln() / scale.ln();
    let cell = |ratio: &Option<Ratio>| {
        let Some((ratio, [low, high])) = ratio.as_ref().and_then(|r| Some((r.ratio, ends(r)?)))
        else {
            return String::new();
        };
        interval([low, ratio, high].map(place), 0.5, PICTURE_COLUMNS)
    };
    let heading = axis(&units::ratio(1.0 / scale), &units::ratio(scale), PICTURE_COLUMNS);
    Some(Column::new(&heading, found.iter().map(cell)))
}

/// Returns whether the first run and another run have values of the case, but no ratio.
fn lacks_ratio(case: &Case) -> bool {
    case.value.as_ref().is_some_and(|value| {
        let mut pairs = value.medians.iter().zip(&value.ratios).skip(1);
        let lacking =
            |(median, ratio): (&Option<f64>, &Option<Ratio>)| median.is_some() && ratio.is_none();
        value.medians.first().is_some_and(Option::is_some) && pairs.any(lacking)
    })
}

/// Explains the signs that occur in the tables; empty if none does.
pub fn legend(record: &CompareRecord) -> String {
    let ratios: Vec<&Ratio> = in_tables(record)
        .filter_map(|case| case.value.as_ref())
        .flat_map(|value| value.ratios.iter().flatten())
        .collect();
    let any = |holds: fn(&Ratio) -> bool| ratios.iter().any(|ratio| holds(ratio));
    let spoiled: Vec<Disturbed> = in_tables(record)
        .flat_map(|case| (0..case.sides.len()).filter_map(|run| disturbed(case, run)))
        .collect();
    let parts = [
        (!ratios.is_empty(), "B/A: median of B divided by median of A."),
        (
            any(|ratio| ratio.ci95.is_some()),
            "[Brackets]: 95 % interval, from the scatter within each run; runs may differ by more.",
        ),
        (
            any(|ratio| ratio.ci95.is_none() && ratio.range.is_some()),
            "(Parentheses): range, if a run has fewer than six samples.",
        ),
        (any(|ratio| doubt(ratio) == Some('~')), "~: within noise."),
        (
            any(|ratio| doubt(ratio) == Some('?')),
            "?: too few samples for an interval; the difference may be chance.",
        ),
        (in_tables(record).any(lacks_ratio), "-: no ratio, as A may be 0 or less."),
        (!spoiled.is_empty(), Disturbed::legend(&spoiled)),
    ];
    let said: Vec<&str> = parts.into_iter().filter(|part| part.0).map(|part| part.1).collect();
    said.join(" ")
}
