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
        "at a rate",
        "CPU of one",
        "p50",
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
            number("rate_per_s"),
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
    let note = "A second are as many requests as the server answers. The rest is at a fixed rate: CPU of one is \
                the server's for a request, and p50 to p99.9 are times from when a request was due. Load and \
                server share the machine.";
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

#[cfg(test)]
mod tests {
    use contend_record::lab::Fit;
    use contend_record::parameters::Parameters;
    use contend_record::stats::Line;

    use super::super::sample::{case, record};
    use super::*;

    fn served(
        experiment: &str,
        model: &str,
        connections: u64,
        value: f64,
        metrics: &[(&str, f64)],
    ) -> Case {
        let parameters = Parameters::new().with("model", model).with("connections", connections);
        case(experiment, parameters, value, metrics)
    }

    fn words(text: &str) -> String {
        let plain = anstream::adapter::strip_str(text).to_string();
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_row_has_what_was_measured_and_a_limit_has_a_line() {
        let metrics = [
            ("answered", 64.0),
            ("requests_per_s", 65_000.0),
            ("rate_per_s", 32_500.0),
            ("p50", 1e5),
            ("p99", 2e6),
            ("errors", 0.0),
        ];
        let mut pool = served("server/hello", "prefork", 100, 20_000.0, &metrics);
        let reason = "the pool has 64 members";
        pool.facts.insert("stopped_by".to_owned(), reason.into());
        let text = words(&requests(&[&pool], 110));
        assert!(text.contains("prefork 100 64 65.0k 32.5k 20.0µs 100µs 2.00ms 0"), "{text}");
        assert!(
            text.contains("- prefork, 100 connections: 64 were served. the pool has 64 members"),
            "{text}"
        );
    }

    #[test]
    fn memory_of_a_connection_is_the_slope() {
        let metrics = [("answered", 1000.0), ("each", 100.0), ("kernel", 5e6), ("left", 0.0)];
        let case = served("server/idle", "callback", 1000, 1e5, &metrics);
        let mut record = record("", vec![case]);
        record.fits.push(Fit {
            experiment: "server/idle".to_owned(),
            parameters: Parameters::new().with("model", "callback"),
            over: "connections".to_owned(),
            metric: "value".to_owned(),
            unit: Unit::Bytes,
            line: Line::through(&[(0.0, 0.0), (1000.0, 1e5), (2000.0, 2e5)]).expect("a line"),
        });
        let cases: Vec<_> = record.cases.iter().collect();
        let text = words(&idle(&record, &cases, 100));
        assert!(text.contains("callback 1000 1.00k 100kB 100B 5.00MB 0B"), "{text}");
        assert!(text.contains("One connection more: 100B"), "{text}");
    }
}
