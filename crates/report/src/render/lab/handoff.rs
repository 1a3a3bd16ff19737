//! Turns that are handed to a partner.

use contend_record::lab::Case;

use super::table::{self, MetricColumn};

/// For mechanisms beside each other.
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
        Some("handoff/mechanisms") => table::with_metrics(cases, "hand-off", &MECHANISMS, width),
        _ => table::with_metrics(cases, "10,000 turns", &PRESETS, width),
    }
}
