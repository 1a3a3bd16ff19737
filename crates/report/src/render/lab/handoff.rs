//! Renders experiments in which partners hand turns to each other.

use contend_record::lab::Case;
use contend_record::parameters::names;

use super::super::layout::paragraph;
use super::table::{self, MetricColumn, TimeOf, figure, matrix};

/// Columns of the table that is shown instead of the matrices if the cases have other parameters.
const MECHANISMS: [MetricColumn; 5] = [
    ("p50", "p50", 90),
    ("p99", "p99", 0),
    ("p99.9", "p99.9", 0),
    ("CPU time", "cpu", 0),
    ("switches", "switches", 80),
];

/// Columns of the table of cases that reproduce programs of the source document.
const PRESETS: [MetricColumn; 8] = [
    ("predicted", "predicted", 0),
    ("not ready %", "not_ready", 76),
    ("load %", "load_mean", 0),
    ("peak load %", "load_max", 0),
    ("CPU time", "cpu", 60),
    ("p50", "p50", 110),
    ("p99.9", "p99.9", 90),
    ("switches", "voluntary_switches", 100),
];

/// Renders the table of cases that reproduce programs of the source document.
pub fn presets(cases: &[&Case], width: usize) -> String {
    table::with_metrics(cases, "10,000 turns", &PRESETS, width)
}

/// Titles of the matrices, and the time of a case that each one shows.
const MATRICES: [(&str, TimeOf); 3] = [
    ("median", |case| case.median),
    ("99.9th percentile", |case| case.metric("p99.9")),
    ("CPU time", |case| case.metric("cpu")),
];

/// Renders matrices of mechanisms by placement, for processes and for threads, or a table if the
/// cases have other parameters.
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

#[cfg(test)]
mod tests {
    use contend_record::lab::View;
    use contend_record::parameters::Parameters;

    use super::super::sample;
    use super::*;

    #[test]
    fn every_column_names_its_figure() {
        let metrics = [("load_max", 40.0), ("load_mean", 5.0), ("cpu", 1e6)];
        let parameters = Parameters::new().with("placement", "free");
        let case = sample::case(("handoff/0", View::HandoffPreset), parameters, 1e9, &metrics);
        let text = anstream::adapter::strip_str(&presets(&[&case], 100)).to_string();
        let rows: Vec<Vec<_>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0], ["placement", "10,000 turns", "load %", "peak load %", "CPU time"]);
        assert_eq!(rows[1][2..4], ["5", "40"]);
    }
}
