//! Renders records as web pages. A page is one file without references to others, and contains its record.
//!
//! ```text
//! record ─┬─ pipe, run, doctor, … ── the figures of a record of this kind
//!         └─ frame ───────────────── the page around them: heading, result, warnings, origin, the record
//!               ├─ chart ──── SVG
//!               └─ table ──── sortable tables
//! ```
//!
//! Every text of a record is escaped, and control characters in it are made visible. Quantities have the
//! formats of the reports in the terminal ([`super::units`]).

mod chart;
mod command;
mod compare;
mod doctor;
mod frame;
mod gains;
mod lab;
mod pipe;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod versus;

pub use compare::page as compare;
pub use doctor::page as doctor;
pub use frame::{STYLE, embedded_record, script_source, served, style_source};
pub use lab::machines::{MAX_RUNS, page as lab_runs};
pub use lab::page as lab;
pub use pipe::page as pipe;
pub use run::page as run;
pub use versus::page as versus;

use contend_record::{Host, Writer};
use maud::{Markup, html};

use super::text::printable;
use super::units::{bytes, counted, cpus};

/// Returns the machine, the version of contend, and the time of a record, for the end of its page.
fn origin(host: &Host, contend: Option<&Writer>, started_at: &str) -> Vec<(&'static str, String)> {
    let mut origin = vec![("Machine", machine(host)), ("Started at", started_at.to_owned())];
    origin.extend(contend.map(|writer| ("Measured with", writer.to_string())));
    origin
}

/// Describes a machine in a line.
fn machine(host: &Host) -> String {
    let name = if host.name.is_empty() { String::new() } else { format!("{}: ", host.name) };
    format!(
        "{name}{}, {} of {} CPUs, {}, {}{}",
        host.cpu_model,
        cpus(host.usable_cpus()),
        host.cpus_online,
        bytes(host.memory_bytes as f64),
        host.kernel,
        if host.virtual_machine { ", virtual machine" } else { "" },
    )
}

/// Returns a command line as a label of a chart: made visible and shortened.
fn label(command: &str) -> String {
    const MAX_COLUMNS: usize = 48;
    super::layout::cut(&printable(command), MAX_COLUMNS)
}

/// Renders a sentence of a record: made visible, with the texts between two backticks as code. A sentence with an odd number
/// of backticks, such as one that quotes a command with backticks, stays as it is.
fn prose(text: &str) -> Markup {
    let text = printable(text);
    let pieces: Vec<&str> = text.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (index, piece) in pieces.iter().enumerate() {
            @if index % 2 == 0 { (piece) } @else { code { (piece) } }
        }
    }
}

/// Returns an exit code in words; `None` for success.
fn exit(code: i32) -> Option<String> {
    (code != 0).then(|| format!("exit code {code}"))
}

/// Returns a number of things of a kind, such as `3 stages`.
fn number_of(count: usize, name: &str) -> String {
    counted(count as u64, name)
}
