//! Renders a run of the lab as text.

pub(super) mod chapter;
pub(super) mod conclusion;
mod copy;
pub(super) mod disturbance;
mod handoff;
mod heat_map;
pub(super) mod limit;
mod memory;
pub(super) mod messages;
mod pipeline;
mod process_thread;
mod reported;
pub(super) mod runtimes;
#[cfg(test)]
pub(crate) mod sample;
mod saturation;
mod server;
mod shared_memory;
pub(super) mod source;
pub(super) mod synchronisation;
pub(super) mod table;
pub mod timeline;
#[cfg(test)]
mod widths;

pub(super) use pipeline::stage_figures;
pub(super) use reported::{Reported, reported};
pub(super) use saturation::sentence as law;

use std::fmt::Write as _;

use contend_record::Warning;
use contend_record::lab::{Case, Ending, RunRecord, Stopped, Unit, View};
use contend_record::parameters::{Parameters, Value};
use contend_record::warning::WarningId;

use super::layout::{BOLD, MIN_REPORT_COLUMNS, dimmed, grouped, paragraph, paragraph_after, warn};
use super::text::printable;
use super::units::{bytes, count, nanoseconds, seconds};

/// Amount of detail in the report of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The conclusions, their meaning, and the tables that compare the run with the source
    /// document.
    Summary,
    /// The summary, further comparisons, all demonstrations, and the table of every experiment.
    Full,
}

/// Returns the report of a run, for a terminal with `width` columns, or with 60 if `width` is
/// smaller. The report of a run without a chapter always has the demonstrations and the tables of
/// all experiments.
pub fn report(record: &RunRecord, detail: Detail, width: usize) -> String {
    let mut out = String::new();
    if shows_experiments(record, detail) {
        out = demonstrations(record, width.max(MIN_REPORT_COLUMNS));
    }
    out.push_str(&figures(record, detail, width));
    out
}

/// Returns whether the report of a run, with the given amount of detail, has the demonstrations and
/// the tables of all experiments.
pub fn shows_experiments(record: &RunRecord, detail: Detail) -> bool {
    detail == Detail::Full || record.chapter.is_none()
}

fn demonstrations(record: &RunRecord, width: usize) -> String {
    let mut out = String::new();
    for case in record.cases.iter().filter(|case| !case.timeline.is_empty()) {
        out.push_str(&timeline::heading(&case.experiment));
        for step in &case.timeline {
            out.push_str(&timeline::step(step, width));
        }
        out.push('\n');
    }
    out
}

/// Returns the report as `report` does, but without the demonstrations, which the user has
/// already seen while they ran.
pub fn figures(record: &RunRecord, detail: Detail, width: usize) -> String {
    let width = width.max(MIN_REPORT_COLUMNS);
    let chapter =
        record.chapter.zip(record.chapter.and_then(|c| chapter::content(c, record, width)));
    let mut out = String::new();
    headline(&mut out, record, width);
    let mut complete = &[][..];
    if let Some((chapter, content)) = &chapter {
        out.push_str(&chapter::render(content, *chapter, record, detail, width));
        complete = content.complete;
    }
    let is_summary = chapter.is_some() && !shows_experiments(record, detail);
    if is_summary {
        out.push('\n');
        skipped_summary(&mut out, record, width);
    } else {
        if chapter.is_some() {
            let _ = writeln!(out, "\n{BOLD}All experiments{BOLD:#}");
        }
        out.push_str(&experiments(record, complete, width));
        out.push('\n');
    }
    footer(&mut out, record, width);
    for message in run_warnings(record) {
        warn(&mut out, &message, width);
    }
    if is_summary {
        let more =
            "More: --full shows the table of every experiment, --json FILE writes every sample.";
        paragraph(&mut out, "", more, width);
    }
    out
}

/// Renders the cases of each experiment: its table, the cases that were not measured, and warnings.
/// An experiment whose cases all have a view in `complete` has no table here, and does not appear
/// at all if none of its cases was skipped.
fn experiments(record: &RunRecord, complete: &[View], width: usize) -> String {
    let mut out = String::new();
    for name in record.experiments() {
        let cases: Vec<_> = record.cases.iter().filter(|case| case.experiment == name).collect();
        let skipped = skipped(&cases);
        let is_shown = cases.iter().all(|case| complete.contains(&case.view));
        if is_shown && skipped.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}", printable(name));
        if !is_shown {
            out.push_str(&section(record, &cases, width));
        }
        for skipped in skipped {
            paragraph(&mut out, "- ", &skipped, width);
        }
        for message in case_warnings(&cases) {
            warn(&mut out, &message, width);
        }
    }
    out
}

/// Returns the warnings about a whole run. Those about disturbances are one sentence, which counts the
/// disturbed cases.
pub(super) fn run_warnings(record: &RunRecord) -> Vec<String> {
    let others = record.warnings.iter().filter(|w| !conclusion::is_disturbance(w.id));
    let others = others.map(|warning| printable(&warning.message));
    others.chain(disturbance::sentence(record)).collect()
}

/// Returns the warnings about cases of an experiment, without those that [`run_warnings`] counts.
pub(super) fn case_warnings(cases: &[&Case]) -> Vec<String> {
    warnings(cases.iter().flat_map(|case| {
        let warnings = case.warnings.iter().filter(|w| !disturbance::is_counted(w.id));
        warnings.map(|warning| (case.parameters.to_string(), warning))
    }))
}

fn headline(out: &mut String, record: &RunRecord, width: usize) {
    let what = record
        .suite
        .as_ref()
        .map_or_else(|| "lab".to_owned(), |name| format!("suite {}", printable(name)));
    let measured = record.cases.iter().filter(|case| !case.samples.is_empty()).count();
    let all = record.cases.len();
    let cases = if all == 1 { "case" } else { "cases" };
    let ending = match record.ending {
        Ending::Complete | Ending::Empty => "",
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

fn section(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let measured: Vec<&Case> =
        cases.iter().copied().filter(|case| !case.samples.is_empty()).collect();
    let Some(first) = measured.first() else { return String::new() };
    match first.view {
        View::UnitMemory => memory::section(record, &measured, width),
        View::UnitLimit => limit::section(&measured, width),
        View::ProcessSharing | View::ThreadSharing => timeline::closing(&measured, width),
        View::HandoffMechanisms => handoff::mechanisms(record, &measured, width),
        View::HandoffPreset => handoff::presets(&measured, width),
        View::OneByte => messages::one_byte(&measured, width),
        View::OneWay => messages::one_way(&measured, width),
        View::RoundTrip => messages::round_trips(&measured, width),
        View::MessageRate => messages::at_a_rate(&measured, width),
        View::FileCopy => copy::section(&measured, width),
        View::Requests => server::requests(&measured, width),
        View::IdleConnections => server::idle(record, &measured, width),
        View::RuntimeMemory => runtimes::memory_section(record, width),
        View::RuntimeDocument => runtimes::document_section(&measured, width),
        View::RuntimeRoundTrip => runtimes::round_trip_section(&measured, width),
        View::CpuPairs => heat_map::section(record, &measured, width),
        View::Computing | View::Saturation => saturation::section(record, &measured, width),
        View::Table
        | View::CacheLine
        | View::Futex
        | View::HandedCopy
        | View::Creation
        | View::Startup
        | View::PipelineJson
        | View::PipelineSed
        | View::PipelineFilter
        | View::PipelineHold
        | View::PipelineStartup => table::generic(&measured, width),
    }
}

/// Returns, for each reason why cases were not measured, a line that names these cases and the
/// reason.
pub(super) fn skipped(all: &[&Case]) -> Vec<String> {
    let reasons = all.iter().filter_map(|case| Some((case.skipped.as_deref()?, *case)));
    let sentence = |(reason, cases): (&str, Vec<&Case>)| {
        format!("not measured:{} {}{}", which(&cases), printable(reason), narrowing(&cases, all))
    };
    grouped(reasons).into_iter().map(sentence).collect()
}

/// Returns, for each reason why cases that were not skipped have no samples, a line that names these cases
/// and the reason.
pub(super) fn without_samples(all: &[&Case]) -> Vec<String> {
    let missing = all.iter().filter(|case| case.median.is_none() && case.skipped.is_none());
    let reasons = missing.map(|case| (why_ended(case.stopped), *case));
    let sentence =
        |(reason, cases): (&str, Vec<&Case>)| format!("no samples:{} {reason}", which(&cases));
    grouped(reasons).into_iter().map(sentence).collect()
}

/// Describes why a case has no further samples, or none at all.
pub(super) fn why_ended(stopped: Option<Stopped>) -> &'static str {
    match stopped {
        Some(Stopped::Interrupt) => "the run was interrupted",
        Some(Stopped::Budget) => "the budget was used up",
        Some(Stopped::Failure) => "the experiment failed",
        Some(Stopped::Interval | Stopped::Count) => "for an unknown reason",
        None => "the run did not reach it",
    }
}

/// Names cases of an experiment, between a space and a colon; empty for a single case without parameters.
fn which(cases: &[&Case]) -> String {
    let which = match cases.len() {
        1..=3 => {
            let names: Vec<_> = cases.iter().map(|case| case.parameters.to_string()).collect();
            names.join("; ")
        }
        many => match common(cases) {
            common if common.iter().count() == 0 => {
                format!("{many} cases ({})", condensed(cases, &common))
            }
            common => format!("{many} cases with {common} ({})", condensed(cases, &common)),
        },
    };
    if which.is_empty() { which } else { printable(&format!(" {which}:")) }
}

/// Returns advice in parentheses for cases for which a run had no time: the condition that leaves
/// them out, if a parameter distinguishes them from the measured cases among `all`. Empty for cases
/// that were not measured for other reasons.
fn narrowing(unmeasured: &[&Case], all: &[&Case]) -> String {
    if !unmeasured.iter().all(|case| case.stopped == Some(Stopped::Budget)) {
        return String::new();
    }
    let measured: Vec<&Case> = all
        .iter()
        .copied()
        .filter(|case| !case.samples.is_empty())
        .filter(|case| unmeasured.iter().any(|other| other.experiment == case.experiment))
        .collect();
    let condition = |name: &&str| {
        let [without, with] = [&measured[..], unmeasured].map(|cases| table::values(cases, name));
        let is_distinct = !without.iter().any(|value| with.contains(value));
        (is_distinct && without.len() == 1).then(|| format!("--only {name}={}", without[0]))
    };
    let names = table::parameter_names(unmeasured);
    match names.iter().find_map(condition) {
        Some(condition) => format!(" ({condition} leaves them out; --budget N takes more time)"),
        None => " (--only selects fewer cases; --budget N takes more time)".to_owned(),
    }
}

/// Writes the first three reasons why cases were not measured, each with its cases, and the number
/// of further reasons.
fn skipped_summary(out: &mut String, record: &RunRecord, width: usize) {
    const MAX_SHOWN_REASONS: usize = 3;
    let cases: Vec<&Case> = record.cases.iter().collect();
    let all = skipped(&cases);
    for skipped in all.iter().take(MAX_SHOWN_REASONS) {
        paragraph(out, "- ", skipped, width);
    }
    if all.len() > MAX_SHOWN_REASONS {
        let text = format!("{} more reasons: see --full", all.len() - MAX_SHOWN_REASONS);
        paragraph(out, "- ", &text, width);
    }
}

/// Names cases by their parameters other than the `common` ones. Cases that differ only in one
/// number are named together, as in `kind=fork n=1, 10`.
fn condensed(cases: &[&Case], common: &Parameters) -> String {
    let mut groups: Vec<(Parameters, Vec<String>)> = Vec::new();
    for case in cases {
        let own = case.parameters.iter().filter(|(name, _)| common.get(name).is_none());
        let (mut words, mut number) = (Parameters::new(), None);
        for (name, value) in own {
            match value {
                Value::Number(_) if number.is_none() => number = Some((name, value)),
                _ => words = words.with(name, value.clone()),
            }
        }
        let size = number.map(|(name, value)| (format!("{name}={value}"), value.to_string()));
        match (groups.iter_mut().find(|(other, _)| *other == words), size) {
            (Some((_, sizes)), Some((_, value))) => sizes.push(value),
            (Some(_), None) => {}
            (None, size) => groups.push((words, size.into_iter().map(|size| size.0).collect())),
        }
    }
    let name = |(words, sizes): &(Parameters, Vec<String>)| {
        format!("{words} {}", sizes.join(", ")).trim().to_owned()
    };
    groups.iter().map(name).collect::<Vec<_>>().join("; ")
}

/// Returns the parameters that all given cases share with the same values; empty without cases.
fn common(cases: &[&Case]) -> Parameters {
    let Some((first, others)) = cases.split_first() else { return Parameters::new() };
    let is_shared = |name: &str| {
        others.iter().all(|case| case.parameters.get(name) == first.parameters.get(name))
    };
    first
        .parameters
        .iter()
        .filter(|(name, _)| is_shared(name))
        .fold(Parameters::new(), |all, (name, value)| all.with(name, value.clone()))
}

/// Returns the messages of the warnings, each with the name of its case. If there are more than two
/// warnings of one kind, returns only the first of them, with the number of the others.
pub(super) fn warnings<'a>(found: impl Iterator<Item = (String, &'a Warning)>) -> Vec<String> {
    const MAX_FULL_WARNINGS: usize = 2;
    let messages = found.map(|(about, warning)| {
        let gap = if about.is_empty() { "" } else { ": " };
        (warning.id, printable(&format!("{about}{gap}{}", warning.message)))
    });
    let shown = |(_, messages): (WarningId, Vec<String>)| match messages.len() {
        ..=MAX_FULL_WARNINGS => messages,
        many => vec![format!("{} (and {} other cases)", messages[0], many - 1)],
    };
    grouped(messages).into_iter().flat_map(shown).collect()
}

fn footer(out: &mut String, record: &RunRecord, width: usize) {
    let host = &record.host;
    let notes: Vec<String> = notes(record).into_iter().chain(legend(out)).collect();
    if !notes.is_empty() {
        dimmed(out, &notes.join(" "), width);
    }
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
            "; overhead subtracted: clock {}, loop {}",
            nanoseconds(calibration.clock_nanoseconds),
            nanoseconds(calibration.empty_loop_nanoseconds)
        );
        if let Some(line) = calibration.cache_line_nanoseconds {
            let _ = write!(note, "; cache line round trip {}", nanoseconds(line));
        }
    }
    if let Some(writer) = &record.contend {
        let _ = write!(note, "; {writer}");
    }
    dimmed(out, &printable(&note), width);
}

/// Returns sentences about the precision of the measurements.
pub(super) fn notes(record: &RunRecord) -> Vec<String> {
    [precision(record), single_samples(record)].into_iter().flatten().collect()
}

/// Explains the brackets and parentheses that a rendered report has. Returns `None` if it has
/// neither.
pub(super) fn legend(report: &str) -> Option<String> {
    let brackets = table::has_interval(report).then_some("[brackets]: 95 % interval");
    let parentheses = table::has_range(report)
        .then_some("(parentheses): range of the samples, which are too few for an interval");
    let notes: Vec<&str> = brackets.into_iter().chain(parentheses).collect();
    (!notes.is_empty()).then(|| format!("In {}.", notes.join("; in ")))
}

/// Describes the precision of the measurements. Returns `None` without timed cases, which are those
/// with the metric `cpu_self`.
fn precision(record: &RunRecord) -> Option<String> {
    let timed = record.cases.iter().filter(|case| case.metrics.contains_key("cpu_self"));
    let precise = timed.clone().filter(|case| case.stopped == Some(Stopped::Interval)).count();
    let all = timed.count();
    match (precise, all) {
        (_, 0) => None,
        (1, 1) => Some("The timed case reached the 2 % target.".to_owned()),
        (_, 1) => Some("The timed case did not reach the 2 % target; raise --budget.".to_owned()),
        _ if precise == all => Some(format!("All {all} timed cases reached the 2 % target.")),
        _ => Some(format!(
            "{precise} of {all} timed cases reached the 2 % target; raise --budget for more."
        )),
    }
}

/// Says how many cases have a single sample, although their experiment takes more. Returns `None`
/// if there are none.
fn single_samples(record: &RunRecord) -> Option<String> {
    let measured = record.cases.iter().filter(|case| !case.samples.is_empty());
    let all = measured.clone().count();
    let is_single = |case: &&Case| case.samples.len() == 1 && case.stopped != Some(Stopped::Count);
    match (measured.filter(is_single).count(), all) {
        (0, _) => None,
        (1, 1) => Some("The figures of the case are from a single sample.".to_owned()),
        (single, all) if single == all => {
            Some(format!("The figures of all {all} cases are from single samples."))
        }
        (single, all) => {
            Some(format!("The figures of {single} of {all} cases are from single samples."))
        }
    }
}

/// Formats a value that is given in `unit`.
pub(super) fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => nanoseconds(value),
        Unit::Bytes if value < 0.0 => format!("-{}", bytes(-value)),
        Unit::Bytes => bytes(value),
        Unit::Units | Unit::Count => count(value),
    }
}

/// Returns the first measured case with the given view and parameters. The values of parameters are
/// compared as formatted text. The case may have further parameters. Returns `None` if there is no
/// such case.
fn find<'a>(record: &'a RunRecord, view: View, parameters: &[(&str, &str)]) -> Option<&'a Case> {
    record.cases_of(view).find(|case| {
        case.median.is_some()
            && case.parameters.iter().count() >= parameters.len()
            && parameters.iter().all(|&(name, value)| {
                case.parameters.get(name).map(ToString::to_string).as_deref() == Some(value)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_parentheses_are_explained_where_they_occur() {
        let report = |samples: &[&[f64]]| {
            let cases = samples.iter().zip(0_u64..).map(|(samples, n)| {
                let parameters = Parameters::new().with("n", n);
                let mut case = sample::case(("units/create", View::Creation), parameters, 1.0, &[]);
                case.samples = samples.to_vec();
                case.min = samples.iter().copied().reduce(f64::min);
                case.max = samples.iter().copied().reduce(f64::max);
                case.ci95 = (samples.len() >= 6).then_some([1.0, 2.0]);
                case
            });
            let record = sample::record(None, cases.collect());
            anstream::adapter::strip_str(&figures(&record, Detail::Full, 100)).to_string()
        };
        let (few, enough): (&[f64], &[f64]) = (&[1.0, 2.0], &[1.0; 6]);
        let one = report(&[&[1.0]]);
        assert!(!one.contains("[brackets]") && !one.contains("(parentheses)"), "{one}");
        assert!(one.contains("1.00ns       (1 sample)"), "{one}");
        assert!(one.contains("The figures of the case are from a single sample."), "{one}");
        let some = report(&[&[1.0], few]);
        assert!(some.contains("The figures of 1 of 2 cases are from single samples."), "{some}");
        let range = report(&[few]);
        assert!(range.contains("(range)") && range.contains("In (parentheses): range"), "{range}");
        assert!(!range.contains("95 % interval"), "{range}");
        let interval = report(&[enough]);
        assert!(interval.contains("In [brackets]: 95 % interval."), "{interval}");
        assert!(!interval.contains("(parentheses)"), "{interval}");
        let both = report(&[few, enough]);
        assert!(both.contains("In [brackets]: 95 % interval; in (parentheses): range"), "{both}");
    }

    #[test]
    fn cases_without_time_come_with_the_condition_that_leaves_them_out() {
        let case = |n: u64, parent: Option<u64>, has_samples: bool| {
            let parameters = Parameters::new().with("n", n);
            let parameters =
                parent.into_iter().fold(parameters, |all, mib| all.with("parent_mib", mib));
            let mut case = sample::case(("units/create", View::Creation), parameters, 1.0, &[]);
            if !has_samples {
                case.samples.clear();
                case.stopped = Some(Stopped::Budget);
                case.skipped = Some("the budget was used up".to_owned());
            }
            case
        };
        let shown = |cases: &[Case]| skipped(&cases.iter().collect::<Vec<_>>()).join("|");
        let cases = [case(1, None, true), case(100, None, true), case(1, Some(64), false)];
        let text = shown(&cases);
        assert!(
            text.ends_with(
                "used up (--only parent_mib= leaves them out; --budget N takes more time)"
            ),
            "{text}"
        );
        let text = shown(&[case(1, None, true), case(9, None, false), case(10, None, false)]);
        assert!(text.contains("(--only n=1 leaves them out;"), "{text}");
        let cases = [case(1, None, true), case(2, None, true), case(9, None, false)];
        assert!(shown(&cases).contains("(--only selects fewer cases;"), "{}", shown(&cases));
        let mut absent = case(9, None, false);
        absent.stopped = None;
        assert!(shown(&[absent]).ends_with("used up"));
    }

    #[test]
    fn cases_without_samples_come_with_the_reason() {
        let case = |n: u64, stopped: Option<Stopped>| {
            let parameters = Parameters::new().with("n", n);
            let mut case = Case::new("units/create", View::Table, parameters, Unit::Nanoseconds);
            case.stopped = stopped;
            case
        };
        let mut skipped = case(3, None);
        skipped.skipped = Some("no room".to_owned());
        let mut measured = case(4, Some(Stopped::Failure));
        measured.median = Some(1.0);
        let cases = [case(1, Some(Stopped::Failure)), case(2, None), skipped, measured];
        let said = without_samples(&cases.iter().collect::<Vec<_>>());
        assert_eq!(
            said,
            ["no samples: n=1: the experiment failed", "no samples: n=2: the run did not reach it"]
        );
    }

    #[test]
    fn skipped_cases_are_named_by_what_they_do_not_share() {
        let case = |kind: &str, n: u64| {
            let parameters =
                Parameters::new().with("kind", kind).with("n", n).with("place", "tmpfs");
            let mut case = Case::new("units/create", View::Table, parameters, Unit::Nanoseconds);
            case.skipped = Some("no time".to_owned());
            case
        };
        let cases = [case("fork", 1), case("fork", 10), case("thread", 10), case("vfork", 100)];
        let named = |count: usize| skipped(&cases.iter().take(count).collect::<Vec<_>>());
        assert_eq!(
            named(4),
            ["not measured: 4 cases with place=tmpfs (kind=fork n=1, 10; kind=thread n=10; \
              kind=vfork n=100): no time"]
        );
        let two = "not measured: kind=fork n=1 place=tmpfs; kind=fork n=10 place=tmpfs: no time";
        assert_eq!(named(2), [two]);
    }
}
