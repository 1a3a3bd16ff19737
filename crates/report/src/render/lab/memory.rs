//! Renders the memory that waiting units of concurrency take.

use contend_record::lab::{Case, Fit, RunRecord, Unit};
use contend_record::parameters::names;

use super::super::layout::paragraph;
use super::super::units::bytes;
use super::shown;
use super::table::{self, MetricColumn};

const COLUMNS: [MetricColumn; 8] = [
    ("user", "user", 0),
    ("kernel stacks", "kernel_stacks", 110),
    ("page tables", "page_tables", 100),
    ("objects", "kernel_objects", 100),
    ("sum of RSS", "rss_sum", 0),
    ("private", "uss_sum", 76),
    ("create", "create", 0),
    ("end", "end", 0),
];

/// Renders a table of the cases, a sentence for each line that was fitted to their memory, and a
/// note if other programs affected the figures.
pub fn section(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let mut out = table::with_metrics(cases, "total", &COLUMNS, width);
    let experiment = cases.first().map_or("", |case| case.experiment.as_str());
    for fit in
        record.fits.iter().filter(|fit| fit.experiment == experiment && fit.metric == "value")
    {
        paragraph(&mut out, "- ", &sentence(record, fit), width);
    }
    if cases.iter().any(|case| case.facts.contains_key("others_created_tasks")) {
        let note = "Other programs created or ended many tasks during three attempts: kernel stacks \
                    and objects are counted for the whole machine, so these figures include theirs.";
        paragraph(&mut out, "- ", note, width);
    }
    out
}

/// Minimum share of a unit's memory for a part of it, such as the page tables, to be mentioned.
const MIN_MENTIONED_SHARE: f64 = 0.002;

/// Describes the memory of one more unit and its parts, from the slopes of `fit` and of the lines
/// through the other metrics of the same cases.
fn sentence(record: &RunRecord, fit: &Fit) -> String {
    let slope = |metric: &str| {
        let of = |other: &&Fit| {
            other.experiment == fit.experiment
                && other.parameters == fit.parameters
                && other.metric == metric
        };
        record.fits.iter().find(of).map(|fit| fit.line.slope)
    };
    let interval = fit.line.slope_ci95.map_or_else(String::new, |[low, high]| {
        format!(" [{}, {}]", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
    });
    let parts: Vec<String> = [
        ("user", "user memory"),
        ("kernel_stacks", "kernel stack"),
        ("page_tables", "page tables"),
        ("kernel_objects", "kernel objects"),
    ]
    .into_iter()
    .filter_map(|(metric, what)| Some((slope(metric)?, what)))
    .filter(|(part, _)| part.abs() >= MIN_MENTIONED_SHARE * fit.line.slope.abs())
    .map(|(part, what)| format!("{} {what}", shown(part, Unit::Bytes)))
    .collect();
    let kind = fit.parameters.text(names::KIND).unwrap_or("unit");
    let parent = fit
        .parameters
        .number(names::PARENT_MIB)
        .map_or_else(String::new, |mib| format!(" of a parent with {mib} MiB"));
    let mut text = format!(
        "Each further {kind}{parent}: {}{interval}, of which {}.",
        shown(fit.line.slope, Unit::Bytes),
        parts.join(", ")
    );
    if let (Some(naive), Some(user)) = (slope("rss_sum"), slope("user"))
        && naive > 1.5 * user.max(1.0)
    {
        text.push_str(&format!(
            " Summing RSS gives {}, {:.0} times its user memory, because shared pages are \
             counted for each process.",
            bytes(naive),
            naive / user.max(1.0)
        ));
    }
    text
}
