//! Renders the cases that not all runs have measured, with the reasons.

use std::fmt::Write as _;

use contend_record::compare::{Case, CompareRecord, Side};
use contend_record::lab::Unit;

use super::super::lab::table::parameter_names;
use super::super::lab::why_ended;
use super::super::layout::{BOLD, grouped, paragraph};
use super::super::text::printable;
use super::{is_in_all, words};

/// Maximum size of a group whose cases are listed individually, by their parameters.
const MAX_NAMED_CASES: usize = 3;

/// Heading of the list of cases that not all runs have measured.
pub const HEADING: &str = "Not measured in all runs";

/// Cases with the same state in each run.
#[derive(Debug)]
pub struct Unequal {
    /// The state in each run, as in `measured in A; not part of B:`.
    pub standing: String,
    /// The cases, in a line for each experiment.
    pub cases: Vec<String>,
}

/// Writes the cases that not all runs have measured. Writes nothing if there are none.
pub fn listed(out: &mut String, record: &CompareRecord, width: usize) {
    let kinds = unequal(record);
    if kinds.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}{HEADING}{BOLD:#}");
    for Unequal { standing, cases } in kinds {
        paragraph(out, "", &standing, width);
        for cases in cases {
            paragraph(out, "- ", &cases, width);
        }
    }
}

/// Returns the cases that not all runs have measured, grouped by their state in each run.
pub fn unequal(record: &CompareRecord) -> Vec<Unequal> {
    let unequal = record.cases.iter().filter(|case| !is_in_all(case));
    let kinds = grouped(unequal.map(|case| (standing(record, case), case)));
    let lines = |cases: Vec<&Case>| {
        let by_name = cases.into_iter().map(|case| (case.experiment.as_str(), case));
        let line = |(experiment, cases): (&str, Vec<&Case>)| {
            printable(&format!("{experiment}{}", which(&cases)))
        };
        grouped(by_name).into_iter().map(line).collect()
    };
    let kinds = kinds.into_iter().map(|(standing, cases)| Unequal {
        standing: printable(&format!("{standing}:")),
        cases: lines(cases),
    });
    kinds.collect()
}

/// Describes the state of a case in each run. Runs with equal states are grouped: first those that
/// have measured the case, and last those that do not include it.
fn standing(record: &CompareRecord, case: &Case) -> String {
    let mut sides: Vec<_> = record.runs.iter().zip(&case.sides).collect();
    sides.sort_by_key(|(_, side)| match side {
        Side::Measured { .. } => 0,
        Side::OtherUnit { .. } | Side::Skipped { .. } | Side::NoSamples { .. } => 1,
        Side::Absent => 2,
    });
    let said = sides.into_iter().map(|(run, side)| (described(side, case), run.name.as_str()));
    let parts = grouped(said)
        .into_iter()
        .map(|((before, after), names)| format!("{before} {}{after}", words(&names)));
    parts.collect::<Vec<_>>().join("; ")
}

/// Describes a run's result for a case, as the words before and after the names of the runs with
/// this result.
fn described(side: &Side, case: &Case) -> (&'static str, String) {
    match side {
        Side::Measured { .. } => ("measured in", String::new()),
        Side::Absent => ("not part of", String::new()),
        Side::Skipped { reason } => ("not measured in", format!(" ({reason})")),
        Side::NoSamples { stopped } => ("no samples in", format!(" ({})", why_ended(*stopped))),
        Side::OtherUnit { unit } => {
            let first = case.value.as_ref().map_or("", |value| counts(value.unit));
            ("left out in", format!(" (counts {}, not {first})", counts(*unit)))
        }
    }
}

fn counts(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Units => "units",
        Unit::Count => "events",
    }
}

/// Describes cases of one experiment. Lists the parameters of each case if there are at most
/// `MAX_NAMED_CASES`, and otherwise the values of each parameter over all cases.
fn which(cases: &[&Case]) -> String {
    if cases.len() <= MAX_NAMED_CASES {
        let named: Vec<_> = cases.iter().map(|case| case.parameters.to_string()).collect();
        let named = named.join("; ");
        return if named.is_empty() { named } else { format!(" {named}") };
    }
    let values = parameter_names(cases).into_iter().map(|name| {
        let values = cases.iter().filter_map(|case| Some((case.parameters.get(name)?, ())));
        let values: Vec<_> = grouped(values).iter().map(|(value, _)| value.to_string()).collect();
        format!("{name}: {}", values.join(", "))
    });
    format!(", {} cases ({})", cases.len(), values.collect::<Vec<_>>().join("; "))
}
