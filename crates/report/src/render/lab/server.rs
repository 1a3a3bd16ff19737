//! Renders servers and their connections.

use contend_record::lab::{Case, RunRecord, Unit, View};
use contend_record::parameters::{Value, names};

use super::super::layout::{grouped, paragraph};
use super::super::text::printable;
use super::super::units::count;
use super::shown;
use super::table::{figure, grid, parameter};

/// A column of a table: its heading, and its text for a case.
type Column = (&'static str, fn(&Case) -> String);

/// Throughput as measured by another load generator, `oha`.
const BY_OHA: Column = ("by oha", |case| number(case, "oha_requests_per_s"));

/// Renders the table of requests.
pub fn requests(cases: &[&Case], width: usize) -> String {
    let mut columns: Vec<Column> = vec![
        ("model", |case| parameter(case, names::MODEL)),
        ("connections", |case| parameter(case, names::CONNECTIONS)),
        ("answered", |case| number(case, "answered")),
        ("a second", |case| number(case, "requests_per_s")),
        BY_OHA,
        ("at a rate", |case| number(case, "rate_per_s")),
        ("CPU of one", |case| figure(case.median)),
        ("p50", |case| figure(case.metric("p50"))),
        ("p99", |case| figure(case.metric("p99"))),
        ("p99.9", |case| figure(case.metric("p99.9"))),
        ("errors", |case| number(case, "errors")),
    ];
    let has_oha = cases.iter().any(|case| !(BY_OHA.1)(case).is_empty());
    columns.retain(|(heading, _)| has_oha || *heading != BY_OHA.0);
    if width < 90 {
        columns.retain(|(heading, _)| !["p99.9", "errors"].contains(heading));
    }
    let mut out = table(&columns, cases, width);
    let by_oha = if has_oha {
        " By oha are as many a second as that generator had answered on connections that it made in this time."
    } else {
        ""
    };
    let note = format!(
        "A second are as many requests as the server answers. The rest is at a fixed rate: CPU of one is the \
         server's for a request, and p50 to p99.9 are times from when a request was due.{by_oha} Load and server \
         share the machine."
    );
    paragraph(&mut out, "", &note, width);
    out.push_str(&stopped(cases, width));
    out
}

/// Renders the table of the memory of idle connections.
pub fn idle(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let columns: [Column; 7] = [
        ("model", |case| parameter(case, names::MODEL)),
        ("connections", |case| parameter(case, names::CONNECTIONS)),
        ("answered", |case| number(case, "answered")),
        ("in all", |case| size(case.median)),
        ("one", |case| size(case.metric("each"))),
        ("in the kernel", |case| size(case.metric("kernel"))),
        ("left", |case| size(case.metric("left"))),
    ];
    let mut out = table(&columns, cases, width);
    for fit in record.fits_of(View::IdleConnections) {
        let model = fit.parameters.text(names::MODEL).unwrap_or("model");
        if fit.metric == "value" && serves_all(cases, model) {
            let interval = fit.line.slope_ci95.map_or_else(String::new, |[low, high]| {
                format!(" [{}, {}]", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
            });
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

fn table(columns: &[Column], cases: &[&Case], width: usize) -> String {
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let row = |case: &&Case| columns.iter().map(|(_, cell)| cell(case)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(cases.iter().map(row)).collect();
    grid(&rows, 1, width)
}

fn number(case: &Case, metric: &str) -> String {
    case.metric(metric).map_or_else(String::new, count)
}

fn size(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| shown(value, Unit::Bytes))
}

/// Whether a model served every connection. Connections that are not served use no memory, so a
/// line through them would not show the cost of another connection.
fn serves_all(cases: &[&Case], model: &str) -> bool {
    let of_model = |case: &&&Case| case.parameters.text(names::MODEL) == Some(model);
    cases.iter().filter(of_model).all(|case| {
        let connections = case.parameters.number(names::CONNECTIONS).map(|n| n as f64);
        case.median.is_none() || case.metric("answered") == connections
    })
}

/// Writes where a model did not serve all connections, and because of which limit.
fn stopped(cases: &[&Case], width: usize) -> String {
    let stopped = cases.iter().filter_map(|case| {
        let Some(Value::Text(reason)) = case.facts.get("stopped_by") else { return None };
        let served = format!("{} were served: {}", number(case, "answered"), printable(reason));
        Some(((parameter(case, names::MODEL), served), parameter(case, names::CONNECTIONS)))
    });
    let mut out = String::new();
    for ((model, served), connections) in grouped(stopped) {
        let text = format!("{model}, {} connections: {served}", connections.join(" or "));
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
        experiment: (&str, View),
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
        let mut pool = served(("server/hello", View::Requests), "prefork", 100, 20_000.0, &metrics);
        let reason = "the pool has 64 members";
        pool.facts.insert("stopped_by".to_owned(), reason.into());
        let mut larger = pool.clone();
        larger.parameters = larger.parameters.with("connections", 1000_u64);
        let text = words(&requests(&[&pool, &larger], 110));
        assert!(text.contains("prefork 100 64 65.0k 32.5k 20.0µs 100µs 2.00ms 0"), "{text}");
        assert!(
            text.contains(
                "- prefork, 100 or 1000 connections: 64 were served: the pool has 64 members"
            ),
            "{text}"
        );
        assert!(!text.contains("oha"), "{text}");
        let metrics = [("requests_per_s", 65_000.0), ("oha_requests_per_s", 44_000.0)];
        let both = served(("server/hello", View::Requests), "tokio", 100, 20_000.0, &metrics);
        let text = words(&requests(&[&both], 110));
        assert!(text.contains("a second by oha at a rate"), "{text}");
        assert!(text.contains("tokio 100 65.0k 44.0k"), "{text}");
    }

    #[test]
    fn memory_of_a_connection_is_the_slope() {
        let metrics = [("answered", 1000.0), ("each", 100.0), ("kernel", 5e6), ("left", 0.0)];
        let case = served(("server/idle", View::IdleConnections), "callback", 1000, 1e5, &metrics);
        let mut record = record(None, vec![case]);
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
        let metrics = [("answered", 64.0), ("each", 1562.5), ("kernel", 5e6), ("left", 0.0)];
        let pool = served(("server/idle", View::IdleConnections), "callback", 2000, 1e5, &metrics);
        let text = words(&idle(&record, &[&pool], 100));
        assert!(!text.contains("One connection more"), "not all were served: {text}");
    }
}
