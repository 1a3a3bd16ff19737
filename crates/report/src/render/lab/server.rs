//! Renders the experiments with servers and their connections.

use contend_record::lab::{Case, RunRecord, Unit, View};
use contend_record::parameters::{Value, names};

use super::super::layout::{columns_left_out, grouped, paragraph};
use super::super::text::printable;
use super::super::units::count;
use super::shown;
use super::table::{figure, grid, parameter};

/// A column of a table: the heading, and a function that formats the cell of a case.
type Column = (&'static str, fn(&Case) -> String);

/// Headings of columns that are left out if all their cells are empty.
const OPTIONAL: [&str; 6] = ["oha", "processes", "threads", "keep-alive", "served by", "memory"];

/// Renders the table of throughput, CPU time and latency of requests, and then notes on the columns
/// and on each server. A narrow table has fewer columns.
pub fn requests(cases: &[&Case], width: usize) -> String {
    let mut columns: Vec<Column> = vec![
        ("server", server),
        ("served by", |case| fact(case, "served_by")),
        ("processes", |case| parameter(case, names::PROCESSES)),
        ("threads", |case| parameter(case, names::THREADS)),
        ("keep-alive", |case| parameter(case, names::KEEP_ALIVE)),
        ("connections", |case| parameter(case, names::CONNECTIONS)),
        ("req/s", |case| number(case, "requests_per_s")),
        ("oha", |case| number(case, "oha_requests_per_s")),
        ("rate", |case| number(case, "rate_per_s")),
        ("CPU/req", |case| figure(case.median)),
        ("p50", |case| figure(case.metric("p50"))),
        ("p99", |case| figure(case.metric("p99"))),
        ("p99.9", |case| figure(case.metric("p99.9"))),
        ("errors", |case| number(case, "errors")),
        ("memory", |case| size(case.metric("memory"))),
    ];
    columns.retain(|(heading, cell)| {
        !OPTIONAL.contains(heading) || cases.iter().any(|case| !cell(case).is_empty())
    });
    let least_width = |heading| match heading {
        "served by" => 120,
        "p99.9" => 110,
        "errors" => 90,
        _ => 0,
    };
    let mut hidden = Vec::new();
    columns.retain(|(heading, _)| {
        let is_shown = width >= least_width(*heading);
        hidden.extend((!is_shown).then_some(*heading));
        is_shown
    });
    let mut out = table(&columns, cases, width);
    columns_left_out(&mut out, &hidden, width);
    let has = |heading: &str| columns.iter().any(|(other, _)| *other == heading);
    let has_errors = has("errors") && cases.iter().any(|case| case.metric("errors") > Some(0.0));
    paragraph(&mut out, "", &legend(has("oha"), has("memory"), has_errors), width);
    out.push_str(&servers(cases, width));
    out.push_str(&stopped(cases, width));
    out
}

/// Returns an explanation of the columns of the table of requests. The arguments tell whether the
/// table shows figures of oha, memory, and errors above 0.
fn legend(has_oha: bool, has_memory: bool, has_errors: bool) -> String {
    let oha =
        if has_oha { " oha: the same, measured by oha including connection set-up." } else { "" };
    let memory =
        if has_memory { " memory: PSS of all processes of the server after the load." } else { "" };
    let errors = if has_errors {
        " errors: requests that failed, or got no response within a second after the load."
    } else {
        ""
    };
    format!(
        "req/s: completed requests per second under full load.{oha} The other columns are at the fixed rate: \
         CPU/req is the server's CPU time for a request, p50 to p99.9 are latencies from when a request was \
         due.{errors}{memory} The load generator runs on the same machine."
    )
}

/// Renders, for each configuration of a server whose memory was measured, its version, its
/// processes and threads, and its memory, from the last of its cases.
fn servers(cases: &[&Case], width: usize) -> String {
    let with_memory = cases.iter().filter(|case| case.metric("memory").is_some());
    let by_server = with_memory.map(|&case| ((identity(case), fact(case, "configured")), case));
    let mut out = String::new();
    for ((name, configured), cases) in grouped(by_server) {
        let Some(case) = cases.last() else { continue };
        let connections = parameter(case, names::CONNECTIONS);
        let processes = plural(case, "processes", "process");
        let threads = plural(case, "threads", "thread");
        let memory = size(case.metric("memory"));
        let private = size(case.metric("private"));
        let workers = workers(case).map_or_else(String::new, |(workers, each)| {
            let (unit, each) = (fact(case, "served_by"), shown(each, Unit::Bytes));
            match (workers, unit.as_str()) {
                (1, unit) => format!("; one {unit} serves requests"),
                (_, "process") => format!("; {workers} processes serve requests, {each} each"),
                (_, unit) => format!("; {workers} {unit}s serve requests, {each} each"),
            }
        });
        let configured =
            if configured.is_empty() { String::new() } else { format!(" ({configured})") };
        let text = format!(
            "{name}{configured}, {connections} connections: {memory} in {processes} with {threads}, \
             {private} of it private{workers}."
        );
        paragraph(&mut out, "- ", &text, width);
    }
    out
}

/// Formats the metric `name` followed by its name, or by the singular `one` if it is 1.
fn plural(case: &Case, name: &str, one: &str) -> String {
    match number(case, name) {
        number if number == "1" => format!("1 {one}"),
        number => format!("{number} {name}"),
    }
}

/// Returns the number of processes or threads that serve requests, and the server's memory in bytes
/// divided by that number. Returns `None` if the number is not fixed or memory was not measured.
fn workers(case: &Case) -> Option<(u64, f64)> {
    match case.facts.get("workers")? {
        Value::Number(workers @ 1..) => Some((*workers, case.metric("memory")? / *workers as f64)),
        _ => None,
    }
}

/// Returns the name of the web server, or of the concurrency model if the server is contend's own.
fn server(case: &Case) -> String {
    match parameter(case, names::PROGRAM) {
        program if program.is_empty() => parameter(case, names::MODEL),
        program => program,
    }
}

/// Returns the name and version that the server reports, or its name from the parameters if it
/// reports none.
fn identity(case: &Case) -> String {
    match fact(case, "version") {
        version if version.is_empty() => server(case),
        version => version,
    }
}

fn fact(case: &Case, name: &str) -> String {
    case.facts.get(name).map_or_else(String::new, |value| printable(&value.to_string()))
}

/// Formats a growth of memory in bytes; empty if it was not measured. If a sample or the median is
/// negative, the growth is within noise, because other changes in memory were larger.
fn growth(median: Option<f64>, samples: &[f64]) -> String {
    match median {
        Some(value) if value < 0.0 || samples.iter().any(|&sample| sample < 0.0) => {
            WITHIN_NOISE.to_owned()
        }
        value => size(value),
    }
}

/// Description of a growth that other changes in memory hide.
const WITHIN_NOISE: &str = "within noise";

/// Formats the growth measured by the metric `name`; empty without it.
fn growth_of(case: &Case, name: &str) -> String {
    let samples = case.metrics.get(name).map_or(&[][..], |metric| &metric.samples);
    growth(case.metric(name), samples)
}

/// Renders the table of memory used by idle connections, and then notes on the cost of each further
/// connection and on servers that did not answer on every connection.
pub fn idle(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let columns: [Column; 7] = [
        ("server", server),
        ("connections", |case| parameter(case, names::CONNECTIONS)),
        ("answered", |case| number(case, "answered")),
        ("memory", |case| growth(case.median, &case.samples)),
        ("each", |case| growth_of(case, "each")),
        ("in the kernel", |case| growth_of(case, "kernel")),
        ("after close", |case| growth_of(case, "left")),
    ];
    let mut out = table(&columns, cases, width);
    for fit in record.fits_of(View::IdleConnections) {
        let name = [names::PROGRAM, names::MODEL].iter().find_map(|name| fit.parameters.text(name));
        let name = name.unwrap_or("server");
        if fit.metric == "value" && serves_all(cases, name) {
            let interval = fit.line.slope_ci95.map_or_else(String::new, |[low, high]| {
                format!(" [{}, {}]", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
            });
            let slope = shown(fit.line.slope, Unit::Bytes);
            let text = format!("{name}: {slope}{interval} for each further connection.");
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

/// Returns whether the server `name` answered on every connection in all of its measured cases.
/// Connections that are not served use no memory, so a line through such cases would not show the
/// cost of another connection.
fn serves_all(cases: &[&Case], name: &str) -> bool {
    cases.iter().filter(|case| server(case) == name).all(|case| {
        let connections = case.parameters.number(names::CONNECTIONS).map(|n| n as f64);
        case.median.is_none() || case.metric("answered") == connections
    })
}

/// Renders a line for each server that did not answer on all connections, with the limit that
/// stopped it.
fn stopped(cases: &[&Case], width: usize) -> String {
    let stopped = cases.iter().filter_map(|case| {
        let Some(Value::Text(reason)) = case.facts.get("stopped_by") else { return None };
        let served = format!("{} were answered: {}", number(case, "answered"), printable(reason));
        Some(((server(case), served), parameter(case, names::CONNECTIONS)))
    });
    let mut out = String::new();
    for ((server, served), connections) in grouped(stopped) {
        let text = format!("{server}, {} connections: {served}", connections.join(" or "));
        paragraph(&mut out, "- ", &text, width);
    }
    out
}

#[cfg(test)]
mod tests {
    use contend_record::lab::{Fit, Metric};
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
        assert!(text.contains("prefork 100 65.0k 32.5k 20.0µs 100µs 2.00ms 0"), "{text}");
        assert!(
            text.contains(
                "- prefork, 100 or 1000 connections: 64 were answered: the pool has 64 members"
            ),
            "{text}"
        );
        assert!(!text.contains("oha"), "{text}");
        let metrics = [("requests_per_s", 65_000.0), ("oha_requests_per_s", 44_000.0)];
        let both = served(("server/hello", View::Requests), "tokio", 100, 20_000.0, &metrics);
        let text = words(&requests(&[&both], 110));
        assert!(text.contains("req/s oha rate"), "{text}");
        assert!(text.contains("tokio 100 65.0k 44.0k"), "{text}");
    }

    #[test]
    fn a_program_is_shown_beside_the_models_with_its_workers() {
        let metrics = [
            ("requests_per_s", 5_000.0),
            ("p50", 3e5),
            ("p99", 2e6),
            ("memory", 128e6),
            ("private", 64e6),
            ("processes", 65.0),
            ("threads", 130.0),
        ];
        let model = served(("server/hello", View::Requests), "prefork", 100, 2e4, &metrics[..3]);
        let mut unicorn = model.clone();
        unicorn.parameters = Parameters::new()
            .with("program", "unicorn")
            .with("connections", 100_u64)
            .with("processes", 64_u64);
        for (name, value) in metrics {
            unicorn.metrics.insert(name.to_owned(), Metric::of(Unit::Count, vec![value; 2]));
        }
        for (name, value) in [
            ("served_by", "process"),
            ("version", "unicorn 6.0.0, ruby 3.1.2"),
            ("configured", "worker_processes 64"),
        ] {
            unicorn.facts.insert(name.to_owned(), value.into());
        }
        unicorn.facts.insert("workers".to_owned(), 64_u64.into());
        let text = words(&requests(&[&model, &unicorn], 120));
        assert!(text.contains("unicorn process 64 100 5.00k"), "{text}");
        assert!(
            text.contains(
                "- unicorn 6.0.0, ruby 3.1.2 (worker_processes 64), 100 connections: 128MB in 65 \
                 processes with 130 threads, 64.0MB of it private; 64 processes serve requests, 2.00MB each."
            ),
            "{text}"
        );
        assert!(!text.contains("- prefork"), "its memory is unknown: {text}");
        let text = words(&requests(&[&model], 120));
        assert!(!text.contains("memory") && !text.contains("processes"), "{text}");
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
        let metrics = [("answered", 1000.0), ("each", 100.0), ("kernel", -5e6), ("left", 2048.0)];
        let mut small = served(("server/idle", View::IdleConnections), "fork", 1, 1e5, &metrics);
        small.metrics.insert("left".to_owned(), Metric::of(Unit::Bytes, vec![8192.0, -4096.0]));
        let text = words(&idle(&record, &[&small], 100));
        assert!(text.contains("fork 1 1.00k 100kB 100B within noise within noise"), "{text}");
        assert!(
            text.contains("- callback: 100B [100B, 100B] for each further connection."),
            "{text}"
        );
        let metrics = [("answered", 64.0), ("each", 1562.5), ("kernel", 5e6), ("left", 0.0)];
        let pool = served(("server/idle", View::IdleConnections), "callback", 2000, 1e5, &metrics);
        let text = words(&idle(&record, &[&pool], 100));
        assert!(!text.contains("each further connection"), "not all were served: {text}");
    }
}
