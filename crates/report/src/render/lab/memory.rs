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

/// Metric of the memory of kernel objects. It is the growth of a counter of the whole machine.
const OBJECTS: &str = "kernel_objects";

/// Returns the error of the growth of a kernel counter of the whole machine, in bytes. The kernel
/// counts for each CPU, and adds the result to the total in batches of at most 125 pages.
fn counter_error(record: &RunRecord) -> f64 {
    const MAX_BATCH_BYTES: f64 = 125.0 * 4096.0;
    MAX_BATCH_BYTES * record.host.cpus_online as f64
}

/// Formats a figure in bytes whose error is `error`: below it, only the error is known.
fn above_error(value: f64, error: f64) -> String {
    if value < error { format!("<{}", bytes(error)) } else { bytes(value) }
}

/// Renders a table of the cases, a sentence for each line that was fitted to their memory, and a
/// note if other programs affected the figures.
pub fn section(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let error = counter_error(record);
    let cell = |case: &Case, name: &str| match case.metric(name) {
        Some(value) if name == OBJECTS => above_error(value, error),
        _ => table::metric(case, name),
    };
    let mut out = table::with_metrics_shown(cases, "total", &COLUMNS, &cell, width);
    let is_hidden = |case: &&Case| case.metric(OBJECTS).is_some_and(|value| value < error);
    if out.contains('<') && cases.iter().any(is_hidden) {
        let note = format!(
            "Objects are counted for the whole machine, with an error of up to {}: divided by the number \
             of units, only large numbers give the size of one.",
            bytes(error)
        );
        paragraph(&mut out, "- ", &note, width);
    }
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

/// Describes how much memory each further unit takes, in total and by kind of memory, from the slope
/// of `fit` and the slopes of the other metrics of the same cases. Adds the naive sum of RSS if that
/// is much larger than user memory.
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
    let numbers = record.cases.iter().filter(|case| {
        case.experiment == fit.experiment
            && case.median.is_some()
            && case.parameters.without(&fit.over) == fit.parameters
    });
    let numbers = numbers.filter_map(|case| case.parameters.number(&fit.over));
    let span = numbers.clone().max().zip(numbers.min()).map_or(0, |(most, least)| most - least);
    let error = counter_error(record) / span.max(1) as f64;
    let parts: Vec<String> = [
        ("user", "user memory"),
        ("kernel_stacks", "kernel stack"),
        ("page_tables", "page tables"),
        (OBJECTS, "kernel objects"),
    ]
    .into_iter()
    .filter_map(|(metric, what)| Some((metric, slope(metric)?, what)))
    .filter(|(_, part, _)| part.abs() >= MIN_MENTIONED_SHARE * fit.line.slope.abs())
    .map(|(metric, part, what)| match metric {
        OBJECTS => format!("{} {what}", above_error(part, error)),
        _ => format!("{} {what}", shown(part, Unit::Bytes)),
    })
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

#[cfg(test)]
mod tests {
    use contend_record::lab::{Metric, View};
    use contend_record::parameters::Parameters;

    use super::super::sample;
    use super::*;

    #[test]
    fn growth_within_the_error_of_the_counter_is_no_memory() {
        let case = |n: u64, objects: f64| {
            let parameters = Parameters::new().with("kind", "process").with("n", n);
            let about = ("units/memory", View::UnitMemory);
            let mut case = sample::case(about, parameters, 1e8, &[]);
            case.unit = Unit::Bytes;
            case.metrics.insert(OBJECTS.to_owned(), Metric::of(Unit::Bytes, vec![objects]));
            case
        };
        let shown = |objects: &[f64]| {
            let cases = objects.iter().zip(1..).map(|(&objects, n)| case(100 * n, objects));
            let mut record = sample::record(None, cases.collect());
            record.host.cpus_online = 2;
            let cases: Vec<&Case> = record.cases.iter().collect();
            anstream::adapter::strip_str(&section(&record, &cases, 120)).to_string()
        };
        let text = shown(&[-123e3, 0.0, 6.26e6]);
        assert_eq!(text.matches("<1.02MB").count(), 2, "{text}");
        assert!(text.contains("6.26MB") && text.contains("an error of up to 1.02MB"), "{text}");
        assert!(!text.contains("-123kB") && !text.contains(" 0B"), "{text}");
        assert!(!shown(&[6.26e6]).contains("error of"), "all figures are above the error");
    }
}
