//! Writes figures in the [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) text
//! format, for Prometheus and others that observe figures over time.
//!
//! Each figure is a gauge. The context's are named after the kind of record (`contend_pipe_wall_seconds`),
//! those of rows also after what a row describes (`contend_pipe_stage_wall_seconds`). Labels tell the
//! machine, the record and the row.
//!
//! There is one series for each figure of a stage, variant, case, cause, state or finding, and none for
//! what a program may have any number of, such as threads. The text is also valid in the older format of
//! Prometheus, as which `node_exporter`'s textfile collector reads it. It has no timestamps, which that
//! collector refuses; a gauge has the start of the measurement instead.

use std::collections::HashSet;

use jiff::Timestamp;

use super::ExportError;
use super::sheet::{Cell, Column, Quantity, Role, Workbook};
use super::text::printable_lines;

/// Largest number of characters of a label's value. Command lines may be longer. The rest becomes a hash, so that
/// two that differ stay different.
const MAX_LABEL_CHARS: usize = 200;

/// All samples of one metric.
struct Family {
    name: String,
    unit: Option<&'static str>,
    help: &'static str,
    /// Labels with braces, or nothing without labels, and the value.
    samples: Vec<(String, f64)>,
}

/// Returns the figures of records in the OpenMetrics text format.
///
/// # Errors
/// Returns an error if two figures would have the same name and labels, as with two records of the same
/// pipeline from the same machine.
pub fn openmetrics(workbooks: &[Workbook]) -> Result<String, ExportError> {
    let mut families: Vec<Family> = Vec::new();
    for book in workbooks {
        let outer = labels(book.context.iter().map(|(column, cell)| (column, cell)));
        let prefix = format!("contend_{}", book.kind);
        for (column, cell) in &book.context {
            add(&mut families, &prefix, column, cell, &outer);
        }
        for sheet in &book.sheets {
            let prefix = format!("{prefix}_{}", sheet.row);
            for row in &sheet.rows {
                let mut labels = outer.clone();
                labels.extend(self::labels(sheet.columns.iter().zip(row)));
                for (column, cell) in sheet.columns.iter().zip(row) {
                    add(&mut families, &prefix, column, cell, &labels);
                }
            }
        }
    }
    families.iter().try_for_each(check)?;
    let mut out: String = families.iter().map(text).collect();
    out.push_str("# EOF\n");
    Ok(out)
}

/// Returns the labels among the cells, as `name="value"`. Empty ones are left out.
fn labels<'a>(cells: impl Iterator<Item = (&'a Column, &'a Cell)>) -> Vec<String> {
    let label = |(column, cell): (&Column, &Cell)| {
        let value = match cell {
            Cell::Empty => return None,
            Cell::Flag(flag) => flag.to_string(),
            Cell::Text(text) => escaped(text),
            Cell::Number(number) => number.to_string(),
        };
        Some(format!("{}=\"{value}\"", column.name))
    };
    cells.filter(|(column, _)| column.role == Role::Label).filter_map(label).collect()
}

/// Adds the figure in a cell to its family, if there is one.
fn add(families: &mut Vec<Family>, prefix: &str, column: &Column, cell: &Cell, labels: &[String]) {
    if column.role != Role::Figure {
        return;
    }
    let (name, unit, value) = match cell {
        Cell::Number(number) => (column.name.clone(), column.quantity.unit(), *number),
        Cell::Text(text) if column.quantity == Quantity::Instant => {
            let Ok(time) = text.parse::<Timestamp>() else { return };
            let name = column.name.strip_suffix("_at").unwrap_or(&column.name);
            let name = format!("{name}_timestamp_seconds");
            (name, Quantity::Seconds.unit(), time.as_second() as f64)
        }
        Cell::Text(_) | Cell::Flag(_) | Cell::Empty => return,
    };
    let name = format!("{prefix}_{name}");
    let labels = match labels {
        [] => String::new(),
        labels => format!("{{{}}}", labels.join(",")),
    };
    let sample = (labels, value);
    match families.iter_mut().find(|family| family.name == name) {
        Some(family) => family.samples.push(sample),
        None => families.push(Family { name, unit, help: column.help, samples: vec![sample] }),
    }
}

/// Checks that no two samples of a family have the same labels.
fn check(family: &Family) -> Result<(), ExportError> {
    let mut known = HashSet::new();
    for (labels, _) in &family.samples {
        if !known.insert(labels) {
            return Err(ExportError::SameSeries { series: format!("{}{labels}", family.name) });
        }
    }
    Ok(())
}

fn text(family: &Family) -> String {
    let Family { name, unit, help, samples } = family;
    let mut out = format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
    out.extend(unit.map(|unit| format!("# UNIT {name} {unit}\n")));
    out.extend(samples.iter().map(|(labels, value)| format!("{name}{labels} {value}\n")));
    out
}

/// Returns the text as the value of a label, shortened if it is long.
fn escaped(text: &str) -> String {
    let mut kept = text.to_owned();
    if let Some((end, _)) = text.char_indices().nth(MAX_LABEL_CHARS) {
        kept = format!("{}…{:08x}", &text[..end], hash(&text[end..]));
    }
    printable_lines(&kept).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the hash of a text by FNV-1a, which is the same in every version.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped_and_short() {
        assert_eq!(escaped("a \"b\" \\n\nc"), "a \\\"b\\\" \\\\n\\nc");
        let long = "x".repeat(500);
        assert_eq!(escaped(&long).chars().count(), MAX_LABEL_CHARS + 9);
        assert_ne!(escaped(&long), escaped(&format!("{long}x")));
        assert_eq!(hash("foobar"), 0xbf9c_f968); // a published test value
        assert_eq!(escaped("\u{1b}[2J"), "␛[2J");
    }
}
