//! Renders turns that are handed to a partner.

use contend_record::lab::Case;
use contend_record::parameters::names;

use super::super::layout::paragraph;
use super::table::{self, MetricColumn, TimeOf, figure, matrix};

/// Columns of the table of mechanisms, for cases that differ in more than mechanism and placement.
const MECHANISMS: [MetricColumn; 5] = [
    ("p50", "p50", 90),
    ("p99", "p99", 0),
    ("p99.9", "p99.9", 0),
    ("cpu", "cpu", 0),
    ("switches", "switches", 80),
];

/// Columns for the programs of the source document.
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

/// Renders the table of one of the document's programs.
pub fn presets(cases: &[&Case], width: usize) -> String {
    table::with_metrics(cases, "10,000 turns", &PRESETS, width)
}

/// Figures of each mechanism and placement that the matrices show.
const MATRICES: [(&str, TimeOf); 3] = [
    ("median", |case| case.median),
    ("99.9th percentile", |case| case.metric("p99.9")),
    ("CPU time", |case| case.metric("cpu")),
];

/// Renders matrices of mechanisms by placement, for processes and for threads.
pub fn mechanisms(cases: &[&Case], width: usize) -> String {
    let names = table::parameter_names(cases);
    if names != ["mechanism", "partners", "placement"] {
        return table::with_metrics(cases, "hand-off", &MECHANISMS, width);
    }
    let mut out = String::new();
    for (partners, plural) in [("process", "processes"), ("thread", "threads")] {
        let of: Vec<&Case> = cases
            .iter()
            .copied()
            .filter(|case| case.parameters.text(names::PARTNERS) == Some(partners))
            .collect();
        for (title, time) in MATRICES {
            if !of.is_empty() {
                let title = format!("{plural}, {title}");
                let cell = |case: &Case| figure(time(case));
                out.push_str(&matrix(&of, &title, ["mechanism", "placement"], &cell, width));
            }
        }
    }
    let text = "Half of a round trip; CPU time: both partners together.";
    paragraph(&mut out, "", text, width);
    out
}
