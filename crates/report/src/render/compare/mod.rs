//! Renders a comparison of several runs of the lab as text.

pub(super) mod runs;
pub(super) mod section;
mod table;
#[cfg(test)]
mod tests;
pub(super) mod unequal;

use std::fmt::Write as _;

use contend_record::compare::{Case, CompareRecord, Side};

use super::lab;
use super::layout::{BOLD, dimmed, paragraph_after, warn};
use super::text::printable;
use super::units::counted;

/// Minimum width of a report, in columns. A narrower terminal may wrap or cut the lines.
const MIN_COMPARISON_COLUMNS: usize = 40;

/// Returns the report of a comparison: the runs, the tables, the cases that not all runs have
/// measured, the warnings, and a legend. The report fits a terminal with `width` columns, or with
/// 40 if `width` is smaller.
pub fn report(record: &CompareRecord, width: usize) -> String {
    let width = width.max(MIN_COMPARISON_COLUMNS);
    let mut out = String::new();
    headline(&mut out, record, width);
    runs::described(&mut out, record, width);
    out.push_str(&section::all(record, width));
    unequal::listed(&mut out, record, width);
    let warnings = warnings(record);
    if !warnings.is_empty() {
        out.push('\n');
    }
    for warning in warnings {
        warn(&mut out, &warning, width);
    }
    let legend = section::legend(record);
    if !legend.is_empty() {
        out.push('\n');
        dimmed(&mut out, &legend, width);
    }
    out
}

fn headline(out: &mut String, record: &CompareRecord, width: usize) {
    let what = counted(record.runs.len() as u64, "run");
    let _ = write!(out, "{BOLD}{what}{BOLD:#}");
    let in_several = record.cases.iter().filter(|case| case.measured() > 1).count();
    let in_all = record.cases.iter().filter(|case| is_in_all(case)).count();
    let cases = counted(record.cases.len() as u64, "case");
    let rest = match in_several {
        0 if record.runs.len() == 2 => format!(", {cases}: none was measured in both runs"),
        0 => format!(", {cases}: none was measured in more than one run"),
        _ if in_several == in_all => format!(", {cases}: {in_all} measured in all runs"),
        _ => format!(", {cases}: {in_all} measured in all runs, {in_several} in two or more"),
    };
    paragraph_after(out, what.len(), &rest, width);
}

fn is_in_all(case: &Case) -> bool {
    case.sides.iter().all(Side::is_measured)
}

/// Joins names of runs for a sentence, as in `A, B and C`; empty without names.
fn words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Returns the warnings of each run and of the cases that it has measured, each with the name of the run.
pub(super) fn warnings(record: &CompareRecord) -> Vec<String> {
    let mut found = Vec::new();
    for (index, run) in record.runs.iter().enumerate() {
        let of_run = run.warnings.iter().map(|warning| printable(&warning.message));
        let of_cases = record.cases.iter().flat_map(|case| match case.sides.get(index) {
            Some(Side::Measured { warnings, .. }) => {
                warnings.iter().map(|warning| (about(case), warning)).collect()
            }
            _ => Vec::new(),
        });
        let messages = of_run.chain(lab::warnings(of_cases));
        found.extend(messages.map(|message| format!("{}: {message}", run.name)));
    }
    found
}

/// Returns the name of a case: its experiment and its parameters.
fn about(case: &Case) -> String {
    format!("{} {}", case.experiment, case.parameters).trim_end().to_owned()
}
