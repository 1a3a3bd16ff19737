//! Columns for the parameters of cases, and for figures in the units of the lab.

use contend_record::lab::Unit;
use contend_record::parameters::{Parameters, Value};

use super::sheet::{Cell, Field, Quantity};

/// Returns a column for each parameter of `all`, in order of first appearance. `of` returns the
/// parameters of an item.
pub(super) fn columns<'p, 'f, T: 'f>(
    all: impl Iterator<Item = &'p Parameters>,
    of: fn(&T) -> &Parameters,
) -> Vec<Field<'f, T>> {
    let names = distinct(all.flat_map(Parameters::iter).map(|(name, _)| name.to_owned()));
    let column = |name: String| {
        Field::detail(format!("parameter_{name}"), move |item| {
            of(item).get(&name).map_or(Cell::Empty, |value| match value {
                Value::Flag(flag) => (*flag).into(),
                Value::Number(number) => (*number).into(),
                Value::Text(text) => text.as_str().into(),
            })
        })
    };
    names.into_iter().map(column).collect()
}

/// Returns each of `values` once, in order of first appearance.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Returns the name of a column with a statistic of figures in `unit`, such as `median_seconds`.
pub(super) fn heading(statistic: &str, unit: Unit) -> String {
    let unit = match unit {
        Unit::Nanoseconds => "seconds",
        Unit::Bytes => "bytes",
        Unit::Units => "units",
        // `count` at the end of a name is that of a histogram in OpenMetrics.
        Unit::Count => "events",
    };
    format!("{statistic}_{unit}")
}

/// Returns what figures in `unit` measure.
pub(super) fn quantity(unit: Unit) -> Quantity {
    match unit {
        Unit::Nanoseconds => Quantity::Seconds,
        Unit::Bytes => Quantity::Bytes,
        Unit::Units | Unit::Count => Quantity::Count,
    }
}

/// Converts a value in `unit` to seconds if it is a time.
pub(super) fn in_base_unit(value: f64, unit: Unit) -> f64 {
    match unit {
        Unit::Nanoseconds => value / 1e9,
        Unit::Bytes | Unit::Units | Unit::Count => value,
    }
}
