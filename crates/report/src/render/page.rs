//! Renders the part of a documentation page that names the machine and the warnings of its
//! measurements.

use std::fmt::Write as _;

use contend_record::lab::RunRecord;

use super::units::bytes;

/// Maximum width of prose on documentation pages, in columns.
pub const TEXT_COLUMNS: usize = 118;

/// Writes, as Markdown, a paragraph that names the machine on which the run was measured, followed
/// by `more`, and a list of the warnings of the run.
pub fn measured_on(out: &mut String, record: &RunRecord, more: &str) {
    let host = &record.host;
    let gap = if more.is_empty() { "" } else { " " };
    let text = format!(
        "Measured on: {}, {} of {} CPUs, {} of memory, {}.{gap}{more}",
        host.cpu_model,
        host.cpus_allowed,
        host.cpus_online,
        bytes(host.memory_bytes as f64),
        host.kernel
    );
    let _ = writeln!(out, "\n{}\n", textwrap::fill(&text, TEXT_COLUMNS));
    for warning in &record.warnings {
        let _ = writeln!(out, "- warning: {}", warning.message);
    }
    if !record.warnings.is_empty() {
        out.push('\n');
    }
}
