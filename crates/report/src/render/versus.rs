//! Renders a comparison of pipelines as text.
//!
//! ```text
//! VersusRecord ─┬─ headline ──── the ratio of the best pipeline, or of the only other one
//!               ├─ rows ──────── a row for each pipeline
//!               ├─ outputs ───── whether they are the same
//!               ├─ reasons ───── the stages that make the difference
//!               └─ conditions ── the results of --fail-if
//! ```

mod reason;

use std::fmt::Write as _;

use contend_record::stats::{Estimate, MIN_CI95_SAMPLES};
use contend_record::units::time;
use contend_record::versus::{Variant, VersusRecord};

use super::layout::{
    BOLD, GOOD, MIN_REPORT_COLUMNS, WARN, aligned_left, paragraph, paragraph_after, plain_table,
    styled_lines, warn,
};
use super::pipe::Detail;
use super::text::printable;
use super::units::{bytes, counted, ratio, seconds};

/// Number of pipelines, besides the first, for which reasons are given without `--verbose`.
const MAX_REASONS: usize = 2;

/// Returns the report of a comparison, for a terminal with `width` columns, or with 60 if `width`
/// is smaller.
pub fn report(record: &VersusRecord, detail: Detail, width: usize) -> String {
    let record = &visible(record);
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    headline(&mut out, record, width);
    circumstances(&mut out, record, width);
    out.push('\n');
    out.push_str(&rows(record, width));
    out.push('\n');
    for variant in &record.variants {
        paragraph(&mut out, &format!("{}  ", variant.name), &variant.command, width);
        if let Some(origin) = &variant.origin {
            paragraph(&mut out, "   ", origin, width);
        }
    }
    out.push('\n');
    outputs(&mut out, record, width);
    reasons(&mut out, record, detail, width);
    for warning in &record.warnings {
        warn(&mut out, &warning.message, width);
    }
    conditions(&mut out, record, width);
    out
}

/// Returns the record without control characters in its commands and messages.
pub(super) fn visible(record: &VersusRecord) -> VersusRecord {
    let mut record = record.clone();
    for variant in &mut record.variants {
        variant.command = printable(&variant.command);
        variant.difference = variant.difference.as_deref().map(printable);
        variant.origin = variant.origin.as_deref().map(printable);
        variant.parameters.values_mut().for_each(|value| *value = printable(value));
        for stage in &mut variant.profile.stages {
            stage.command = printable(&stage.command);
        }
    }
    for tested in &mut record.conditions {
        tested.condition = printable(&tested.condition);
    }
    for warning in &mut record.warnings {
        warning.message = printable(&warning.message);
    }
    record
}

/// Writes how the fastest pipeline compares with the first one or, if that is the fastest, how the
/// second fastest does; for a single pipeline, its wall time.
fn headline(out: &mut String, record: &VersusRecord, width: usize) {
    let Some((headline, rest)) = result(record) else { return };
    let _ = write!(out, "{BOLD}{headline}{BOLD:#}");
    let length = unicode_width::UnicodeWidthStr::width(headline.as_str());
    paragraph_after(out, length, &format!("{rest}."), width);
}

/// Returns how the fastest pipeline compares with the first one in a sentence without its full stop,
/// divided into its main clause and the figures; for a single pipeline, its wall time. `None` if there is
/// no pipeline.
pub(super) fn result(record: &VersusRecord) -> Option<(String, String)> {
    let first = record.variants.first()?;
    let wall = &first.wall_seconds;
    let of_one = || {
        let interval = interval(ends(wall, record.rounds), time);
        (format!("{} wall", time(wall.median)), after_space(&interval))
    };
    Some(comparison(record, first).unwrap_or_else(of_one))
}

/// Returns the comparison with `first` in a sentence, divided into its main clause and the figures.
/// Returns `None` if there is no other pipeline.
fn comparison(record: &VersusRecord, first: &Variant) -> Option<(String, String)> {
    let ratio_of = |variant: &Variant| variant.ratios.as_ref().map_or(1.0, |of| of.wall.median);
    // A pipeline that fails may be fast for that reason.
    let order = |variant: &Variant| (has_failed(variant, first), ratio_of(variant));
    let best = record.variants[1..].iter().min_by(|a, b| {
        let (a, b) = (order(a), order(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let best = best?;
    let ratios = best.ratios.as_ref()?;
    let with_interval =
        |of: &Estimate| (ratio(of.median), after_space(&interval(ratio_ends(of, record), ratio)));
    let ((wall, interval), (cpu, of_cpu)) =
        (with_interval(&ratios.wall), with_interval(&ratios.cpu));
    let cpu = format!("{cpu} times the CPU time{of_cpu}");
    let (a, b) = (&first.name, &best.name);
    Some(match side(&ratios.wall, record) {
        _ if has_failed(best, first) => (
            format!("{b} fails (exit status {})", best.exit_code),
            format!(": {b} takes {wall} times as long{interval} and {cpu}"),
        ),
        Side::Below => {
            let times = ratio(1.0 / ratios.wall.median);
            let but = match best.output_equal {
                Some(false) => ", but its output differs",
                _ => "",
            };
            (
                format!("{b} is {times} times as fast as {a}{but}"),
                format!(": {wall} times the wall time{interval}, {cpu}"),
            )
        }
        Side::Above => (
            match record.variants.len() {
                2 => format!("{a} is faster: {b} takes {wall} times as long"),
                _ => format!("{a} is the fastest: {b} takes {wall} times as long"),
            },
            format!("{interval} and {cpu}"),
        ),
        Side::Unclear => (
            match record.rounds {
                ..MIN_RUNS => format!("Too few runs to compare {a} and {b}"),
                _ => format!("No clear difference between {a} and {b}"),
            },
            format!(": {b} takes {wall} times as long{interval} and {cpu}"),
        ),
    })
}

/// Writes how many runs there were, in which order, and what the brackets in the table are.
fn circumstances(out: &mut String, record: &VersusRecord, width: usize) {
    let runs = counted(record.rounds as u64, "run");
    let mut note = if record.in_turn {
        format!("{runs} each, in random order")
    } else {
        format!("saved runs, measured at different times, of at least {runs} each")
    };
    if record.warmup_rounds > 0 {
        let _ = write!(note, ", after {}", counted(record.warmup_rounds as u64, "warm-up round"));
    }
    if record.interrupted {
        note += "; interrupted";
    }
    if let Some(brackets) = brackets(record) {
        let _ = write!(note, "; median [{brackets}]");
    }
    super::layout::dimmed(out, &note, width);
}

/// Returns whether a pipeline fails that is compared with `first`, but `first` does not fail in the
/// same way.
fn has_failed(variant: &Variant, first: &Variant) -> bool {
    variant.exit_code != 0 && variant.exit_code != first.exit_code
}

/// On which side of 1 a ratio lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
    Unclear,
}

/// Minimum number of runs for a claim that one pipeline is faster.
const MIN_RUNS: usize = 3;
/// Difference from 1 that all ratios must exceed for such a claim if there are too few for an
/// interval.
const CLEAR_DIFFERENCE: f64 = 0.05;

/// Returns on which side of 1 the interval of a ratio lies. A few runs show only a large difference.
fn side(ratio: &Estimate, record: &VersusRecord) -> Side {
    let margin = if record.rounds < MIN_CI95_SAMPLES { CLEAR_DIFFERENCE } else { 0.0 };
    match ratio_ends(ratio, record) {
        _ if record.rounds < MIN_RUNS => Side::Unclear,
        Some([_, high]) if high < 1.0 - margin => Side::Below,
        Some([low, _]) if low > 1.0 + margin => Side::Above,
        _ => Side::Unclear,
    }
}

/// Returns what the ends in brackets after the medians of a comparison are, in words; `None` after a single
/// round, which has no brackets.
pub(super) fn brackets(record: &VersusRecord) -> Option<&'static str> {
    match record.rounds {
        ..2 => None,
        2..MIN_CI95_SAMPLES => Some("minimum and maximum"),
        _ => Some("95 % interval"),
    }
}

/// Returns the ends of the interval of a median, or the smallest and the largest sample if the comparison has too
/// few rounds. Returns `None` with a single round or sample. Of saved runs, a pipeline may have more than `rounds`
/// samples; its brackets still have to be what the words for all of them say.
pub(super) fn ends(estimate: &Estimate, rounds: usize) -> Option<[f64; 2]> {
    if rounds.min(estimate.samples.len()) < 2 {
        return None;
    }
    if rounds.min(estimate.samples.len()) >= MIN_CI95_SAMPLES {
        return Some(estimate.ci95);
    }
    let samples = || estimate.samples.iter().copied();
    Some([samples().fold(f64::INFINITY, f64::min), samples().fold(f64::NEG_INFINITY, f64::max)])
}

/// Returns the ends of a ratio, as [`ends`] does. For a few saved runs, `ci95` is the range of the ratios of all
/// pairs of runs.
pub(super) fn ratio_ends(ratio: &Estimate, record: &VersusRecord) -> Option<[f64; 2]> {
    ends(ratio, record.rounds).map(|ends| if record.in_turn { ends } else { ratio.ci95 })
}

/// Returns the ends of an interval in brackets, or nothing without them.
fn interval(ends: Option<[f64; 2]>, shown: fn(f64) -> String) -> String {
    ends.map_or_else(String::new, |[low, high]| format!("[{}, {}]", shown(low), shown(high)))
}

/// Formats a median with its ends in brackets, if it has any.
pub(super) fn with_ends(median: f64, ends: Option<[f64; 2]>, shown: fn(f64) -> String) -> String {
    shown(median) + &after_space(&interval(ends, shown))
}

fn after_space(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

/// Renders a table with a row for each pipeline.
fn rows(record: &VersusRecord, width: usize) -> String {
    let mut names: Vec<_> = record.variants.iter().flat_map(|one| one.parameters.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut table = plain_table();
    let mut headings = vec![String::new()];
    headings.extend(names.iter().map(|name| (*name).clone()));
    let keys = headings.len();
    let is_compared = record.variants.len() > 1;
    headings.extend(["wall", ""].map(str::to_owned));
    if is_compared {
        headings.extend(["ratio", ""].map(str::to_owned));
    }
    headings.push("CPU".to_owned());
    if is_compared {
        headings.push("ratio".to_owned());
    }
    headings.push("memory".to_owned());
    let has_status = record.variants.iter().any(|variant| variant.exit_code != 0);
    if has_status {
        headings.push("exit".to_owned());
    }
    table.add_row(headings.into_iter().enumerate().map(|(i, t)| aligned_left(i, keys, t)));
    let mut fastest: Option<(usize, f64)> = None;
    for (place, variant) in record.variants.iter().enumerate() {
        let mut cells = vec![variant.name.clone()];
        cells.extend(
            names.iter().map(|name| variant.parameters.get(*name).cloned().unwrap_or_default()),
        );
        let median = variant.wall_seconds.median;
        let of_wall = ends(&variant.wall_seconds, record.rounds);
        cells.extend([seconds(median), interval(of_wall, seconds)]);
        let ratios = variant.ratios.as_ref();
        if is_compared {
            cells.extend(match ratios {
                Some(ratios) => {
                    [ratio(ratios.wall.median), interval(ratio_ends(&ratios.wall, record), ratio)]
                }
                None => ["1".to_owned(), String::new()],
            });
        }
        cells.push(seconds(variant.cpu_seconds.median));
        if is_compared {
            let of_cpu = ratios.map(|ratios| ratio(ratios.cpu.median));
            cells.push(of_cpu.unwrap_or_else(|| "1".to_owned()));
        }
        cells.push(bytes(variant.max_rss_bytes.median));
        if has_status {
            cells.push(variant.exit_code.to_string());
        }
        table.add_row(cells.into_iter().enumerate().map(|(i, t)| aligned_left(i, keys, t)));
        if fastest.is_none_or(|(_, least)| median < least) {
            fastest = Some((place, median));
        }
    }
    let marked = fastest.filter(|_| is_compared).map(|(place, _)| place + 1);
    styled_lines(table, marked, width)
}

/// Writes whether all outputs are the same, or how they differ.
fn outputs(out: &mut String, record: &VersusRecord, width: usize) {
    if let Some(same) = same_outputs(record) {
        paragraph(out, "", &same, width);
    }
    for difference in output_differences(record) {
        let _ = write!(out, "{WARN}!{WARN:#} ");
        paragraph_after(out, 2, &difference, width);
    }
}

/// Says in a sentence that all outputs are the same. `None` if they are not, or if any is unknown, as those of
/// saved runs are.
pub(super) fn same_outputs(record: &VersusRecord) -> Option<String> {
    let are_same = record.variants.iter().all(|one| one.output_equal == Some(true));
    let what = if record.variants.len() > 1 { "All outputs" } else { "The outputs of all runs" };
    are_same.then(|| format!("{what} are the same, byte for byte."))
}

/// Returns how each output differs that does, in a sentence. Empty if any output is unknown.
pub(super) fn output_differences(record: &VersusRecord) -> Vec<String> {
    if record.variants.iter().any(|one| one.output_equal.is_none()) {
        return Vec::new();
    }
    let different = record.variants.iter().filter(|one| one.output_equal == Some(false));
    let sentence = |variant: &Variant| {
        let is_first = variant.ratios.is_none();
        let what = if is_first { "changes from run to run" } else { "differs" };
        let difference = variant.difference.as_deref().unwrap_or_default();
        format!("The output of {} {what}: {difference}.", variant.name)
    };
    different.map(sentence).collect()
}

/// Writes which stages make the difference between the first pipeline and each other one.
fn reasons(out: &mut String, record: &VersusRecord, detail: Detail, width: usize) {
    let others = record.variants.len().saturating_sub(1);
    let most = if detail == Detail::Full { others } else { MAX_REASONS };
    for reason in reasons_for(record, most) {
        paragraph(out, "- ", &reason, width);
    }
    if let Some(more @ 1..) = others.checked_sub(most) {
        let text =
            format!("  the stages of {} with --verbose", counted(more as u64, "more pipeline"));
        super::layout::dimmed(out, &text, width);
    }
}

/// Returns sentences about the bottlenecks of the pipelines, and about the stages that make the difference between
/// the first pipeline and each other one, for at most `most` others.
pub(super) fn reasons_for(record: &VersusRecord, most: usize) -> Vec<String> {
    let Some((first, others)) = record.variants.split_first() else { return Vec::new() };
    others.iter().take(most).flat_map(|variant| reason::reasons(first, variant)).collect()
}

/// Writes the results of the conditions.
fn conditions(out: &mut String, record: &VersusRecord, width: usize) {
    for tested in &record.conditions {
        let of = |names: &[String]| match names {
            [only] if record.variants.len() <= 2 => only.clone(),
            names => names.join(", "),
        };
        let condition = &tested.condition;
        if !tested.holds_for.is_empty() {
            let _ = write!(out, "{WARN}Failed{WARN:#}");
            let text = format!(": '{condition}' holds for {}.", of(&tested.holds_for));
            paragraph_after(out, "Failed".len(), &text, width);
        } else if tested.may_hold_for.is_empty() {
            let _ = write!(out, "{GOOD}Passed{GOOD:#}");
            paragraph_after(out, "Passed".len(), &format!(": '{condition}' does not hold."), width);
        } else {
            let text = format!(
                "Passed: '{condition}' holds for the median of {}, but not for its whole interval; \
                 more --runs may decide it.",
                of(&tested.may_hold_for)
            );
            paragraph(out, "", &text, width);
        }
    }
}

#[cfg(test)]
mod tests;
