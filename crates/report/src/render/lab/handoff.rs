//! Turns that are handed to a partner.

use contend_record::lab::Case;

use super::super::layout::paragraph;
use super::table::{self, MetricColumn, figure, grid};

/// For mechanisms beside each other, where they differ in more than mechanism and place.
const MECHANISMS: [MetricColumn; 5] = [
    ("p50", "p50", 90),
    ("p99", "p99", 0),
    ("p99.9", "p99.9", 0),
    ("cpu", "cpu", 0),
    ("switches", "switches", 80),
];

/// For the document's cases.
const PRESETS: [MetricColumn; 8] = [
    ("predicted", "predicted", 0),
    ("not ready %", "not_ready", 76),
    ("load %", "load_max", 0),
    ("mean", "load_mean", 0),
    ("cpu", "cpu", 60),
    ("p50", "p50", 110),
    ("p99.9", "p99.9", 90),
    ("switches", "voluntary_switches", 100),
];

/// The table.
pub fn section(cases: &[&Case], width: usize) -> String {
    match cases.first().map(|case| case.experiment.as_str()) {
        Some("handoff/mechanisms") => mechanisms(cases, width),
        _ => table::with_metrics(cases, "10,000 turns", &PRESETS, width),
    }
}

/// A figure of a case, in nanoseconds.
type Figure = fn(&Case) -> Option<f64>;

/// What the matrices show of each mechanism and place.
const MATRICES: [(&str, Figure); 3] = [
    ("median", |case| case.median),
    ("99.9 %", |case| case.metric("p99.9")),
    ("CPU time", |case| case.metric("cpu")),
];

/// Matrices of mechanisms by places, for processes and for threads.
fn mechanisms(cases: &[&Case], width: usize) -> String {
    let names = table::parameter_names(cases);
    if names != ["mechanism", "partners", "placement"] {
        return table::with_metrics(cases, "hand-off", &MECHANISMS, width);
    }
    let mut out = String::new();
    for (partners, plural) in [("process", "processes"), ("thread", "threads")] {
        let of: Vec<&Case> = cases
            .iter()
            .copied()
            .filter(|case| case.parameters.text("partners") == Some(partners))
            .collect();
        for (title, figure) in MATRICES {
            if !of.is_empty() {
                let title = format!("{plural}, {title}");
                out.push_str(&matrix(&of, &title, figure, width));
            }
        }
    }
    let text = "One way: half of a round trip. CPU time is that of both partners for it.";
    paragraph(&mut out, "", text, width);
    out
}

/// The values of a parameter, in the order in which they come.
fn values<'a>(cases: &[&'a Case], name: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for value in cases.iter().filter_map(|case| case.parameters.text(name)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Mechanisms by places.
fn matrix(cases: &[&Case], title: &str, of: Figure, width: usize) -> String {
    let places = values(cases, "placement");
    let mut rows =
        vec![std::iter::once(title).chain(places.iter().copied()).map(str::to_owned).collect()];
    for mechanism in values(cases, "mechanism") {
        let cell = |place: &&str| {
            let case = cases.iter().find(|case| {
                case.parameters.text("mechanism") == Some(mechanism)
                    && case.parameters.text("placement") == Some(place)
            });
            figure(case.and_then(|case| of(case)))
        };
        let row: Vec<String> =
            std::iter::once(mechanism.to_owned()).chain(places.iter().map(cell)).collect();
        rows.push(row);
    }
    grid(&rows, 1, width)
}
