//! Renders the compared runs: each one with what is special about its machine, and the properties
//! that all machines share.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use contend_record::Host;
use contend_record::compare::{CompareRecord, Origin, Run, Side};
use contend_record::lab::Ending;
use contend_record::stats::Ratio;

use super::super::layout::{grouped, paragraph};
use super::super::text::printable;
use super::super::units::{bytes, counted};
use super::words;

/// Number of experiments that the description of a run names. Further experiments are only counted,
/// unless there is exactly one.
const MAX_NAMED_EXPERIMENTS: usize = 4;

/// A function that describes one property of a machine.
type Trait = fn(&Host) -> String;

const TRAITS: [Trait; 12] = [
    |host| bare("CPU", &host.cpu_model),
    |host| format!("{} of {} CPUs", host.cpus_allowed, host.cpus_online),
    |host| host.cores.map_or_else(|| unknown("cores"), |cores| counted(cores as u64, "core")),
    |host| host.cpu_quota.map_or("no CPU quota".into(), |quota| format!("CPU quota {quota}")),
    |host| format!("{} of memory", bytes(host.memory_bytes as f64)),
    |host| match host.memory_limit_bytes {
        Some(limit) => format!("memory limit {}", bytes(limit as f64)),
        None => "no memory limit".into(),
    },
    |host| bare("kernel", &host.kernel),
    |host| if host.virtual_machine { "virtual machine" } else { "no virtual machine" }.into(),
    |host| named("clocksource", &host.clocksource),
    |host| named("governor", host.governor.as_deref().unwrap_or_default()),
    |host| bare("C library", &host.libc),
    |host| named("huge pages", host.huge_pages.as_deref().unwrap_or_default()),
];

fn bare(name: &str, value: &str) -> String {
    if value.is_empty() { unknown(name) } else { value.to_owned() }
}

fn named(name: &str, value: &str) -> String {
    if value.is_empty() { unknown(name) } else { format!("{name} {value}") }
}

fn unknown(name: &str) -> String {
    format!("{name} unknown")
}

/// Writes each run with the properties that not all machines share, then the differences in
/// mitigations, and then the properties that all machines share.
pub fn described(out: &mut String, record: &CompareRecord, width: usize) {
    let (common, own): (Vec<Trait>, Vec<Trait>) =
        TRAITS.into_iter().partition(|&of| is_common(record, of));
    let words_for = |traits: &[Trait], host: &Host| {
        traits.iter().map(|of| of(host)).collect::<Vec<_>>().join(", ")
    };
    for (index, run) in record.runs.iter().enumerate() {
        let text = format!("{} {}", origin(run), describe_run(record, index, run));
        paragraph(out, &format!("{}  ", run.name), &printable(&text), width);
        if !own.is_empty() {
            paragraph(out, "   ", &printable(&words_for(&own, &run.host)), width);
        }
    }
    let (same, different) = mitigations(record);
    for flaw in different {
        paragraph(out, "- ", &printable(&flaw), width);
    }
    let Some(run) = record.runs.first() else { return };
    let flaws = match same {
        0 => String::new(),
        some => format!(", mitigations of {}", vulnerabilities(some)),
    };
    let text = format!("All machines: {}{flaws}.", words_for(&common, &run.host));
    paragraph(out, "", &printable(&text), width);
}

fn vulnerabilities(count: u64) -> String {
    if count == 1 { "1 vulnerability".to_owned() } else { format!("{count} vulnerabilities") }
}

fn is_common(record: &CompareRecord, of: Trait) -> bool {
    record.runs.windows(2).all(|runs| of(&runs[0].host) == of(&runs[1].host))
}

/// Returns where the record of a run was read from, in words.
pub fn origin(run: &Run) -> String {
    match &run.origin {
        Origin::File { path } => path.clone(),
        Origin::StandardInput => "standard input".to_owned(),
        Origin::Kept { number, label } if label.is_empty() => format!("run {number}"),
        Origin::Kept { number, label } => format!("run {number}, {label}"),
    }
}

/// Describes a run: its start, and what [`content_and_result`] says.
fn describe_run(record: &CompareRecord, index: usize, run: &Run) -> String {
    let started = run.started_at.replace('T', " ").replace('Z', " UTC");
    format!("({started}): {}", content_and_result(record, index, run))
}

/// Describes the run with the given index: its suite or experiments, its ending, the number of measured
/// cases, and how many values differ from those of the first run.
pub fn content_and_result(record: &CompareRecord, index: usize, run: &Run) -> String {
    let sides = || record.cases.iter().filter_map(|case| case.sides.get(index));
    let all = sides().filter(|side| !matches!(side, Side::Absent)).count();
    let measured = sides().filter(|side| side.is_measured()).count();
    let quick = if run.quick { "quick; " } else { "" };
    let ending = match run.ending {
        Ending::Complete | Ending::Empty => "",
        Ending::Interrupted => "interrupted; ",
        Ending::Unfinished => "unfinished; ",
    };
    let cases = if all == 1 { "case" } else { "cases" };
    format!(
        "{}; {quick}{ending}{measured} of {all} {cases} measured{}",
        content(run),
        against_the_first(record, index)
    )
}

fn content(run: &Run) -> String {
    if let Some(suite) = &run.suite {
        return format!("suite {suite}");
    }
    match run.experiments.split_at_checked(MAX_NAMED_EXPERIMENTS) {
        Some((first, rest)) if rest.len() > 1 => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ if run.experiments.is_empty() => "no experiments".to_owned(),
        _ => run.experiments.join(", "),
    }
}

/// Describes how many cases have values that are higher than in the first run, lower, within noise,
/// or based on too few samples. Returns an empty string for the first run, and if no case has a
/// ratio.
fn against_the_first(record: &CompareRecord, index: usize) -> String {
    let Some(first) = record.runs.first().filter(|_| index > 0) else { return String::new() };
    let values = record.cases.iter().filter_map(|case| case.value.as_ref());
    let ratios = values.filter_map(|value| value.ratios.get(index)?.as_ref());
    let found: Vec<Option<Ordering>> = ratios.map(Ratio::compare_to_one).collect();
    let kinds = [
        (Some(Ordering::Greater), "higher"),
        (Some(Ordering::Less), "lower"),
        (Some(Ordering::Equal), "within noise"),
        (None, "with too few samples"),
    ];
    let count = |kind| found.iter().filter(|&&other| other == kind).count();
    let parts: Vec<_> = kinds
        .into_iter()
        .filter(|(kind, _)| count(*kind) > 0)
        .map(|(kind, words)| format!("{} {words}", count(kind)))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("; against {}: {}", first.name, parts.join(", "))
}

/// Returns the number of processor vulnerabilities whose state is the same on all machines, and a
/// description of each vulnerability whose state differs. On a machine whose record does not
/// contain a vulnerability, its state counts as unknown.
fn mitigations(record: &CompareRecord) -> (u64, Vec<String>) {
    let flaws: BTreeSet<&String> =
        record.runs.iter().flat_map(|run| run.host.mitigations.keys()).collect();
    let mut same = 0;
    let mut different = Vec::new();
    for flaw in flaws {
        let by_text = record.runs.iter().map(|run| {
            let text = run.host.mitigations.get(flaw).map_or("unknown", String::as_str);
            (text, run.name.as_str())
        });
        let by_text = grouped(by_text);
        if by_text.len() < 2 {
            same += 1;
            continue;
        }
        let texts: Vec<_> =
            by_text.iter().map(|(text, names)| format!("\"{text}\" in {}", words(names))).collect();
        different.push(format!("{flaw}: {}", texts.join(", ")));
    }
    (same, different)
}
