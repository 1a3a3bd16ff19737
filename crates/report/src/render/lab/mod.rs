//! A run of the lab as text.

mod handoff;
mod heat_map;
mod limit;
mod memory;
mod pipeline;
mod process_thread;
#[cfg(test)]
mod sample;
mod saturation;
mod synchronisation;
mod table;
pub mod timeline;
mod verdict;

use std::fmt::Write as _;

use contend_record::lab::{Case, Ending, RunRecord, Stopped, Unit};
use contend_record::warning::WarningId;

use super::layout::{BOLD, NARROWEST, WARN, dimmed, paragraph, paragraph_after};
use super::text::printable;
use super::units::{bytes, count, nanoseconds, seconds};

/// The whole report.
pub fn report(record: &RunRecord, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut out = String::new();
    for case in record.cases.iter().filter(|case| !case.timeline.is_empty()) {
        out.push_str(&timeline::heading(&case.experiment));
        for step in &case.timeline {
            out.push_str(&timeline::step(step, width));
        }
        out.push('\n');
    }
    out.push_str(&figures(record, width));
    out
}

/// The report without the demonstrations, which were told while they went on.
pub fn figures(record: &RunRecord, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut out = String::new();
    headline(&mut out, record, width);
    for name in experiments(record) {
        out.push('\n');
        let cases: Vec<_> = record.cases.iter().filter(|case| case.experiment == name).collect();
        let _ = writeln!(out, "{BOLD}{name}{BOLD:#}");
        out.push_str(&section(record, &cases, width));
        for skipped in skipped(&cases) {
            paragraph(&mut out, "- ", &skipped, width);
        }
        for message in warnings(&cases) {
            warn(&mut out, &message, width);
        }
    }
    out.push_str(&match record.suite.as_deref() {
        Some("process-thread") => process_thread::chapter(record, width),
        Some("pipeline") => pipeline::chapter(record, width),
        Some("synchronisation") => synchronisation::chapter(record, width),
        _ => String::new(),
    });
    out.push('\n');
    for warning in &record.warnings {
        warn(&mut out, &warning.message, width);
    }
    footer(&mut out, record, width);
    out
}

fn headline(out: &mut String, record: &RunRecord, width: usize) {
    let what =
        record.suite.as_ref().map_or_else(|| "lab".to_owned(), |name| format!("suite {name}"));
    let measured = record.cases.iter().filter(|case| !case.samples.is_empty()).count();
    let all = record.cases.len();
    let cases = if all == 1 { "case" } else { "cases" };
    let ending = match record.ending {
        Ending::Complete => "",
        Ending::Interrupted => ", interrupted",
        Ending::Unfinished => ", unfinished",
    };
    let _ = write!(out, "{BOLD}{what}{BOLD:#}");
    let rest = format!(
        ": {measured} of {all} {cases} measured in {}{ending}, seed {}",
        seconds(record.wall_seconds),
        record.seed
    );
    paragraph_after(out, what.len(), &rest, width);
}

/// Names in the order in which they appear.
fn experiments(record: &RunRecord) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for case in &record.cases {
        if !names.contains(&case.experiment.as_str()) {
            names.push(&case.experiment);
        }
    }
    names
}

fn section(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let measured: Vec<&Case> =
        cases.iter().copied().filter(|case| !case.samples.is_empty()).collect();
    match cases.first().map(|case| case.experiment.as_str()) {
        _ if measured.is_empty() => String::new(),
        Some("units/memory" | "units/callback") => memory::section(record, &measured, width),
        Some("units/limit") => limit::section(&measured, width),
        Some("sharing/process" | "sharing/thread") => timeline::closing(&measured, width),
        Some(name) if name.starts_with("handoff/") => handoff::section(&measured, width),
        Some("placement/cpus") => heat_map::section(&measured, width),
        Some(name) if name.starts_with("saturation/") => {
            saturation::section(record, &measured, width)
        }
        _ => table::generic(&measured, width),
    }
}

/// Reasons, each with the cases that share it.
fn skipped(cases: &[&Case]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for case in cases {
        let Some(reason) = &case.skipped else { continue };
        let parameters = case.parameters.to_string();
        match reasons.iter_mut().find(|(other, _)| other == reason) {
            Some((_, cases)) => cases.push(parameters),
            None => reasons.push((reason, vec![parameters])),
        }
    }
    let sentence = |(reason, cases): (&str, Vec<String>)| {
        let which = match cases.len() {
            1..=3 => cases.join("; "),
            many => format!("{many} cases"),
        };
        let which = if which.is_empty() { String::new() } else { format!(" {which}:") };
        format!("not measured:{which} {}", printable(reason))
    };
    reasons.into_iter().map(sentence).collect()
}

/// Warnings of cases; where many are of one kind, the first stands for all.
fn warnings(cases: &[&Case]) -> Vec<String> {
    const FEW: usize = 2;
    let mut kinds: Vec<(WarningId, Vec<String>)> = Vec::new();
    for (case, warning) in cases.iter().flat_map(|c| c.warnings.iter().map(move |w| (c, w))) {
        let parameters = case.parameters.to_string();
        let gap = if parameters.is_empty() { "" } else { ": " };
        let message = format!("{parameters}{gap}{}", printable(&warning.message));
        match kinds.iter_mut().find(|(id, _)| *id == warning.id) {
            Some((_, messages)) => messages.push(message),
            None => kinds.push((warning.id, vec![message])),
        }
    }
    let shown = |(_, messages): (WarningId, Vec<String>)| match messages.len() {
        ..=FEW => messages,
        many => vec![format!("{} (and so in {} other cases)", messages[0], many - 1)],
    };
    kinds.into_iter().flat_map(shown).collect()
}

fn warn(out: &mut String, message: &str, width: usize) {
    let _ = write!(out, "{WARN}warning:{WARN:#} ");
    paragraph_after(out, "warning: ".len(), message, width);
}

fn footer(out: &mut String, record: &RunRecord, width: usize) {
    let host = &record.host;
    let timed = record.cases.iter().filter(|case| case.metrics.contains_key("cpu_self"));
    let narrow = timed.clone().filter(|case| case.stopped == Some(Stopped::Interval)).count();
    let note = match timed.count() {
        0 => String::new(),
        all => format!(
            "Of {all} timed cases {narrow} came to an interval narrower than 2 %; a longer --budget \
             narrows the others. In [brackets] 95 % intervals of the median, in (parentheses) the \
             range of fewer than six samples."
        ),
    };
    dimmed(out, &note, width);
    let mut note = format!(
        "{}, {} of {} CPUs, {}, {}",
        host.cpu_model,
        host.cpus_allowed,
        host.cpus_online,
        bytes(host.memory_bytes as f64),
        host.kernel
    );
    if let Some(calibration) = &record.calibration {
        let _ = write!(
            note,
            "; subtracted: clock {}, loop {}",
            nanoseconds(calibration.clock_nanoseconds),
            nanoseconds(calibration.empty_loop_nanoseconds)
        );
        if let Some(line) = calibration.cache_line_nanoseconds {
            let _ = write!(note, "; cache line to another CPU and back {}", nanoseconds(line));
        }
    }
    dimmed(out, &printable(&note), width);
}

/// A figure in its unit.
fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => nanoseconds(value),
        Unit::Bytes if value < 0.0 => format!("-{}", bytes(-value)),
        Unit::Bytes => bytes(value),
        Unit::Units | Unit::Count => count(value),
    }
}

/// The case with these parameters, if it was measured.
fn find<'a>(
    record: &'a RunRecord,
    experiment: &str,
    parameters: &[(&str, &str)],
) -> Option<&'a Case> {
    record.cases.iter().find(|case| {
        case.experiment == experiment
            && case.median.is_some()
            && case.parameters.iter().count() >= parameters.len()
            && parameters.iter().all(|&(name, value)| {
                case.parameters.get(name).map(ToString::to_string).as_deref() == Some(value)
            })
    })
}
