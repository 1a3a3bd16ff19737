//! Exports the figures of records to other programs: spreadsheets, documents and monitoring.
//!
//! ```text
//! record ── pipe, lab, doctor, … ──▶ Workbook ─┬─ csv ──────────▶ one table with all digits
//!           one module for each kind           ├─ markdown ─────▶ tables for people
//!                                              └─ openmetrics ──▶ gauges
//! ```
//!
//! The modules of the kinds choose the figures and name them; the formats do not know the kinds. A column
//! has the name of the record's field where there is one, with the unit at its end.
//! [`crate::render::json`] has the whole record.

mod compare;
mod csv;
mod doctor;
mod folded;
mod history;
mod lab;
mod markdown;
mod openmetrics;
mod parameters;
mod pipe;
mod run;
mod sheet;
#[cfg(test)]
mod tests;
mod text;
mod versus;

pub use self::csv::csv;
pub use compare::workbook as compare;
pub use doctor::workbook as doctor;
pub use folded::folded;
pub use history::workbook as history;
pub use lab::workbook as lab;
pub use markdown::markdown;
pub use openmetrics::openmetrics;
pub use pipe::workbook as pipe;
pub use run::workbook as run;
pub use sheet::Workbook;
pub use versus::workbook as versus;

use contend_record::stats::{Estimate, MIN_CI95_SAMPLES};
use contend_record::{Host, Writer};
use serde::Serialize;

use sheet::{Field, Quantity};

/// Why records cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Records of different kinds would be in one table.
    #[error("records of {first} and {other} have different columns: export them separately")]
    Kinds {
        /// Kind of the first record.
        first: &'static str,
        /// Kind of another record.
        other: &'static str,
    },
    /// Two figures would have the same name and labels.
    #[error(
        "two records have the figure {series}: export only one of them, or saved runs with different \
         labels"
    )]
    SameSeries {
        /// Name and labels of the figure.
        series: String,
    },
    /// The table cannot be written as CSV.
    #[error("cannot write CSV")]
    Csv(#[from] ::csv::Error),
}

/// Returns the columns for where and when a record was measured. The accessors return its machine, the
/// version of contend, and its start.
fn origin<T: 'static>(
    host: fn(&T) -> &Host,
    contend: fn(&T) -> Option<&Writer>,
    started_at: fn(&T) -> &str,
) -> Vec<Field<'static, T>> {
    vec![
        Field::instant("started_at", move |record| started_at(record).to_owned()),
        Field::label("host", move |record| host(record).name.clone()),
        Field::detail("contend", move |record| contend(record).map(ToString::to_string)),
    ]
}

/// Returns three columns for an estimate: its median, and the ends of its 95 % interval, which are
/// empty with too few samples.
fn estimate<'a, T>(
    quantity: (&str, Quantity),
    help: [&'static str; 3],
    value: impl Fn(&T) -> Option<&Estimate> + Copy + 'a,
) -> [Field<'a, T>; 3] {
    let (name, quantity) = quantity;
    let unit = quantity.unit().unwrap_or_default();
    let end = move |item: &T, end: usize| {
        let estimate = value(item).filter(|one| one.samples.len() >= MIN_CI95_SAMPLES);
        estimate.map(|estimate| estimate.ci95[end])
    };
    [
        Field::figure(format!("{name}_{unit}"), quantity, help[0], move |item| {
            value(item).map(|estimate| estimate.median)
        }),
        Field::figure(format!("{name}_ci95_low_{unit}"), quantity, help[1], move |item| {
            end(item, 0)
        }),
        Field::figure(format!("{name}_ci95_high_{unit}"), quantity, help[2], move |item| {
            end(item, 1)
        }),
    ]
}

/// Returns the name of a variant without fields, as JSON has it; empty for other values.
fn name(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
