//! Lines and scaling laws through the points of an experiment, as lines of a plot and as figures.

use contend_record::lab::{Fit, RunRecord, ScalingFit};
use contend_record::parameters::Parameters;
use contend_record::stats::{Law, Scaling};
use maud::{Markup, html};

use super::super::chart::Scale;
use super::super::chart::plot::Point;
use super::super::table::{Cell, Table};
use super::details::folded;
use super::table::whole_number;
use crate::render::lab::table::spread;
use crate::render::lab::{law, shown};
use crate::render::text::printable;

/// Number of corners of the line of a model.
const CORNERS: u32 = 60;

/// A model of a series.
pub(super) struct Model {
    pub name: &'static str,
    /// Corners of its line.
    pub line: Vec<(f64, f64)>,
    /// The same for the ends of the 95 % intervals of its coefficients, if they are known.
    pub bounds: Vec<Vec<(f64, f64)>>,
}

/// Returns the models of a series of `experiment` over the parameter `over`. `others` are the series' other
/// parameters, `x` is the scale on which the lines are even.
pub(super) fn models(
    record: &RunRecord,
    experiment: &str,
    over: &str,
    others: &Parameters,
    points: &[Point],
    x: &Scale,
) -> Vec<Model> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let within: Vec<f64> =
        x.samples(CORNERS).into_iter().filter(|at| (first.x..=last.x).contains(at)).collect();
    let is_of = |parameters: &Parameters, name: &str| {
        name == experiment && parameters.has_same_entries(others)
    };
    let is_line = |fit: &&Fit| {
        fit.over == over && fit.metric == "value" && is_of(&fit.parameters, &fit.experiment)
    };
    if let Some(fit) = record.fits.iter().find(is_line) {
        let at = |x: &f64| (*x, fit.line.intercept + fit.line.slope * x);
        let line = within.iter().map(at).collect();
        return vec![Model { name: "line", line, bounds: Vec::new() }];
    }
    let is_law = |fit: &&ScalingFit| {
        fit.over == over && fit.law.unfit.is_none() && is_of(&fit.parameters, &fit.experiment)
    };
    let Some(one) = points.iter().find(|point| (point.x - 1.0).abs() < 0.5) else {
        return Vec::new();
    };
    // Every worker does the same work, so that the time is that of one worker times workers per speed-up.
    let times = |law: &Scaling| -> Vec<(f64, f64)> {
        within.iter().map(|&workers| (workers, one.y * workers / law.speed_up(workers))).collect()
    };
    let model = |fit: &ScalingFit| Model {
        name: match fit.law.law {
            Law::Amdahl => "Amdahl's law",
            Law::Universal => "universal scalability law",
        },
        line: times(&fit.law),
        bounds: bounds(&fit.law).iter().map(times).collect(),
    };
    record.scaling.iter().filter(is_law).map(model).collect()
}

/// Returns the law with the lower and with the upper ends of its coefficients' intervals.
fn bounds(law: &Scaling) -> Vec<Scaling> {
    let at = |end: usize| {
        let mut law = law.clone();
        law.contention.value = law.contention.ci95?[end];
        if let Some(coherency) = &mut law.coherency {
            coherency.value = coherency.ci95?[end];
        }
        Some(law)
    };
    [at(0), at(1)].into_iter().flatten().collect()
}

/// Returns the lines of an experiment in a folded table, and its scaling laws as sentences. If there are several
/// runs, each has its name.
pub(super) fn markup(runs: &[(&str, &RunRecord)], experiment: &str) -> Markup {
    let table = lines(runs, experiment);
    html! {
        @for sentence in laws(runs, experiment) { p { (sentence) } }
        (folded("Lines through the cases", &table))
        @if !table.is_empty() {
            p.method { "Lines by least squares; intervals of slopes by Student's t." }
        }
    }
}

fn lines(runs: &[(&str, &RunRecord)], experiment: &str) -> Table {
    let has_several = runs.len() > 1;
    let headings =
        ["run", "cases", "figure", "over", "#slope", "[95 % interval]", "#at 0", "#points"];
    let mut table = Table::new(&headings[usize::from(!has_several)..]);
    for (run, record) in runs {
        for fit in record.fits.iter().filter(|fit| fit.experiment == experiment) {
            let figure = |value: f64| Cell::number(shown(value, fit.unit), value);
            let interval = spread(fit.line.slope_ci95, None, |value| shown(value, fit.unit));
            let mut row: Vec<Cell> = Vec::new();
            row.extend(has_several.then(|| Cell::from(printable(run))));
            row.extend([
                printable(&fit.parameters.to_string()).into(),
                printable(&fit.metric).replace('_', " ").into(),
                printable(&fit.over).into(),
                figure(fit.line.slope),
                interval.into(),
                figure(fit.line.intercept),
                whole_number(fit.line.points),
            ]);
            table.push(row);
        }
    }
    table
}

fn laws(runs: &[(&str, &RunRecord)], experiment: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for (run, record) in runs {
        let of_run = if runs.len() > 1 { format!("{run}: ") } else { String::new() };
        for fit in record.scaling.iter().filter(|fit| fit.experiment == experiment) {
            let sentence = law(fit, record.host.usable_cpus());
            if sentence.is_empty() {
                continue;
            }
            let cases = match fit.parameters.to_string() {
                none if none.is_empty() => none,
                some => format!("{some}: "),
            };
            sentences.push(printable(&format!("{of_run}{cases}{sentence}")));
        }
    }
    sentences
}
