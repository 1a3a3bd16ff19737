//! Renders the cost of units in every runtime, and the chapter of the suite `callback`.

pub mod chart;
mod conclusions;
mod document;
mod kinds;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, Unit};
use contend_record::parameters::names;

use self::chart::Series;
pub use self::document::{chapter, reported, section as document_section};
pub use self::kinds::{Kind, kinds};
use super::super::layout::{columns_left_out, paragraph};
use super::super::units::count;
use super::shown;
use super::table::{figure, grid, interval, parameter, row};

/// Note on what the memory of a unit includes, and why a callback thread takes more here than in
/// the experiment `units/callback`.
pub const PROBE_MEMORY_NOTE: &str = "What a probe needs to wake its units is counted with them: for a callback \
    thread the 8 bytes of its address, for which units/callback makes room before it measures.";

/// Renders the table of all kinds whose memory was measured, and the chart if there are enough
/// points.
pub fn memory_section(record: &RunRecord, width: usize) -> String {
    let chart = memory_chart(record, width);
    memory_table(record, width) + &chart.map_or_else(String::new, |chart| format!("\n{chart}"))
}

/// Renders the chart of all kinds with a heading, or returns `None` if there are too few points.
fn memory_chart(record: &RunRecord, width: usize) -> Option<String> {
    let kinds: Vec<_> = kinds(record).into_iter().filter(|kind| !kind.cases.is_empty()).collect();
    let chart = chart::bytes_over_numbers(&series(&kinds), width)?;
    Some(format!("Total bytes over the number of units (* several kinds)\n{chart}"))
}

fn memory_table(record: &RunRecord, width: usize) -> String {
    let kinds: Vec<_> = kinds(record).into_iter().filter(|kind| !kind.cases.is_empty()).collect();
    let (is_wide, is_widest) = (width >= 100, width >= 110);
    let mut headings = row(["", "unit", "bytes of one"]);
    if is_wide {
        headings.push("[95 % interval]".to_owned());
    }
    if is_widest {
        headings.push("by its own count".to_owned());
    }
    headings.extend(row(["in the kernel", "create", "end", "at most", "left"]));
    let mut rows = vec![headings];
    for kind in &kinds {
        let size =
            |value: Option<f64>| value.map_or_else(String::new, |value| shown(value, Unit::Bytes));
        let mut cells = vec![kind.mark.to_string(), kind.unit.clone(), kind.bytes_shown()];
        if is_wide {
            let interval = kind.memory_line.and_then(|line| line.slope_ci95);
            let text = interval.map(|[low, high]| {
                format!("[{}, {}]", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
            });
            cells.push(text.unwrap_or_default());
        }
        if is_widest {
            cells.push(size(kind.counted()));
        }
        cells.extend([
            size(kind.kernel()),
            figure(kind.metric("create")),
            figure(kind.metric("end")),
            kind.max_units().map_or_else(String::new, |most| count(most as f64)),
            size(kind.metric("left_1s")),
        ]);
        rows.push(cells);
    }
    let mut out = grid(&rows, 2, width);
    let hidden = [(is_wide, "[95 % interval]"), (is_widest, "by its own count")];
    let hidden = hidden.iter().filter(|(is_shown, _)| !is_shown).map(|(_, heading)| heading);
    columns_left_out(&mut out, &hidden.collect::<Vec<_>>(), width);
    let by_itself = if is_widest { "; by its own count: as the runtime reports it" } else { "" };
    let note = format!(
        "bytes of one: slope of the line through all numbers of units, from the proportional set size (PSS) of \
         the processes{by_itself}. in the kernel: additional kernel memory, if it is at least 2 % of that. \
         create, end: time for one unit, at the largest number. left: memory of all units that remains a \
         second after their end. {PROBE_MEMORY_NOTE}"
    );
    paragraph(&mut out, "", &note, width);
    out
}

/// Returns a series of points for each kind, for the chart.
pub fn series(kinds: &[Kind<'_>]) -> Vec<Series> {
    kinds.iter().map(|kind| Series { mark: kind.mark, points: points(kind) }).collect()
}

/// Returns the number of units and the bytes of each case, without values below 4,096 bytes, which
/// are too small for the chart.
fn points(kind: &Kind<'_>) -> Vec<(f64, f64)> {
    let point = |case: &&Case| Some((case.parameters.number(names::N)? as f64, case.median?));
    kind.cases.iter().filter_map(point).filter(|point| point.1 >= 4096.0).collect()
}

/// Renders the table of the round trips of a message to a unit, in ascending order of time.
pub fn round_trip_section(cases: &[&Case], width: usize) -> String {
    let mut cases = cases.to_vec();
    cases.sort_by(|a, b| a.median.unwrap_or(f64::MAX).total_cmp(&b.median.unwrap_or(f64::MAX)));
    let mut rows = vec![row(["unit", "round trip", "[95 % interval]"])];
    for case in cases {
        rows.push(vec![parameter(case, names::UNIT), figure(case.median), interval(case)]);
    }
    grid(&rows, 1, width)
}
