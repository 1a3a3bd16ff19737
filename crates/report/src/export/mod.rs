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

/// A median, and how far the samples are spread around it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    /// The 95 % interval of the median; `None` with too few samples.
    ci95: Option<[f64; 2]>,
    /// The smallest and the largest sample; `None` without samples, and if not all of them are known.
    range: Option<[f64; 2]>,
}

impl Spread {
    /// Returns the median, the ends of the interval, and those of the range.
    fn figures(self) -> [Option<f64>; 5] {
        let ends = |ends: Option<[f64; 2]>| ends.map_or([None; 2], |ends| ends.map(Some));
        let ([low, high], [min, max]) = (ends(self.ci95), ends(self.range));
        [Some(self.median), low, high, min, max]
    }
}

impl From<&Estimate> for Spread {
    fn from(estimate: &Estimate) -> Self {
        let samples = || estimate.samples.iter().copied();
        let range =
            [samples().fold(f64::INFINITY, f64::min), samples().fold(f64::NEG_INFINITY, f64::max)];
        Self {
            median: estimate.median,
            ci95: (estimate.samples.len() >= MIN_CI95_SAMPLES).then_some(estimate.ci95),
            range: (!estimate.samples.is_empty()).then_some(range),
        }
    }
}

/// Returns five columns for an estimate: its median, the ends of its 95 % interval, and the smallest and
/// the largest sample. The range is for programs, except after `runs` runs that are too few for an
/// interval, of which people see it.
fn estimate<'a, T>(
    quantity: (&str, Quantity),
    help: [&'static str; 5],
    runs: usize,
    value: impl Fn(&T) -> Option<Spread> + Copy + 'a,
) -> [Field<'a, T>; 5] {
    let (name, quantity) = quantity;
    let unit = quantity.unit().unwrap_or_default();
    let statistics = ["", "_ci95_low", "_ci95_high", "_min", "_max"];
    std::array::from_fn(|place| {
        let name = format!("{name}{}_{unit}", statistics[place]);
        let field =
            Field::figure(name, quantity, help[place], move |item| value(item)?.figures()[place]);
        let is_for_people = place < 3 || (2..MIN_CI95_SAMPLES).contains(&runs);
        if is_for_people { field } else { field.for_programs() }
    })
}

/// Returns the name of a variant without fields, as JSON has it; empty for other values.
fn name(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
