//! Servers and their connections.

use contend_record::lab::{Case, RunRecord, Unit};
use contend_record::parameters::Value;

use super::super::layout::paragraph;
use super::super::text::printable;
use super::super::units::count;
use super::shown;
use super::table::{figure, grid, parameter, row};

/// The table of requests.
pub fn requests(cases: &[&Case], width: usize) -> String {
    let is_wide = width >= 90;
    let mut headings = row([
        "model",
        "connections",
        "answered",
        "a second",
        "CPU of one",
        "half of that: p50",
        "p99",
    ]);
    if is_wide {
        headings.extend(row(["p99.9", "errors"]));
    }
    let mut rows = vec![headings];
    for case in cases {
        let number = |name: &str| case.metric(name).map_or_else(String::new, count);
        let mut cells = vec![
            parameter(*case, "model"),
            parameter(*case, "connections"),
            number("answered"),
            number("requests_per_s"),
            figure(case.median),
            figure(case.metric("p50")),
            figure(case.metric("p99")),
        ];
        if is_wide {
            cells.extend([figure(case.metric("p99.9")), number("errors")]);
        }
        rows.push(cells);
    }
    let mut out = grid(&rows, 1, width);
    let note = "Requests a second are as many as the server answers; CPU of one is the server's for a request, and \
                p50 to p99.9 are times from when a request was due, both at half that rate. Load and server \
                share the machine.";
    paragraph(&mut out, "", note, width);
    out.push_str(&stopped(cases, width));
    out
}

/// The table of what connections take on which nothing happens.
pub fn idle(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let mut rows =
        vec![row(["model", "connections", "answered", "in all", "one", "in the kernel", "left"])];
    for case in cases {
        let size =
            |value: Option<f64>| value.map_or_else(String::new, |value| shown(value, Unit::Bytes));
        rows.push(vec![
            parameter(*case, "model"),
            parameter(*case, "connections"),
            case.metric("answered").map_or_else(String::new, count),
            size(case.median),
            size(case.metric("each")),
            size(case.metric("kernel")),
            size(case.metric("left")),
        ]);
    }
    let mut out = grid(&rows, 1, width);
    for fit in &record.fits {
        if fit.experiment == "server/idle" && fit.metric == "value" {
            let interval = fit.line.slope_ci95.map_or_else(String::new, |[low, high]| {
                format!(" [{}, {}]", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
            });
            let model = fit.parameters.text("model").unwrap_or("model");
            let text = format!(
                "One connection more: {}{interval} by {model}.",
                shown(fit.line.slope, Unit::Bytes)
            );
            paragraph(&mut out, "- ", &text, width);
        }
    }
    out.push_str(&stopped(cases, width));
    out
}

/// Where a model did not serve all, and by which limit.
fn stopped(cases: &[&Case], width: usize) -> String {
    let mut out = String::new();
    for case in cases {
        let Some(Value::Text(reason)) = case.facts.get("stopped_by") else { continue };
        let (model, connections) = (parameter(*case, "model"), parameter(*case, "connections"));
        let answered = case.metric("answered").map_or_else(String::new, count);
        let text = format!(
            "{model}, {connections} connections: {answered} were served. {}",
            printable(reason)
        );
        paragraph(&mut out, "- ", &text, width);
    }
    out
}
