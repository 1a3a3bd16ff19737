//! The processes that were observed.

use contend_record::doctor::{DoctorRecord, Process};
use maud::{Markup, html};

use super::super::table::{Cell, Table};
use super::not_listed;
use crate::render::doctor::{observed, relation_name, runtime_name};
use crate::render::text::printable;
use crate::render::units::{bytes, count, seconds};

/// Returns the processes with the most CPU time, as a folded table.
pub(super) fn section(record: &DoctorRecord) -> Markup {
    let headings = [
        "process",
        "#id",
        "runtime",
        "observed as",
        "#threads",
        "#CPU time",
        "#bytes read",
        "#bytes written",
        "#reads",
        "#writes",
    ];
    let mut table = Table::new(&headings);
    for process in &record.processes {
        table.push(row(process));
    }
    let left_out = not_listed(record.processes.len(), observed(record).processes, "process");
    html! {
        details {
            summary { "Table" }
            (table.markup("Processes with the most CPU time"))
        }
        p.method {
            "CPU time includes that of threads that have ended. Bytes are those of read and write calls; they are "
            "left out where they may not be read." (left_out)
        }
    }
}

fn row(process: &Process) -> Vec<Cell> {
    let quantity = |value: Option<u64>, format: fn(f64) -> String| {
        value.map_or_else(Cell::default, |value| Cell::number(format(value as f64), value as f64))
    };
    vec![
        printable(&process.command).into(),
        Cell::number(process.pid.to_string(), f64::from(process.pid)),
        process.runtime.map_or("", runtime_name).into(),
        relation_name(process.relation).into(),
        Cell::number(process.threads.to_string(), process.threads as f64),
        Cell::number(seconds(process.cpu_seconds), process.cpu_seconds),
        quantity(process.read_bytes, bytes),
        quantity(process.write_bytes, bytes),
        quantity(process.reads, count),
        quantity(process.writes, count),
    ]
}
