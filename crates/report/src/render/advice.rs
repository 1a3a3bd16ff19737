//! Renders candidates, trials and answers to `--what-if` as text.

mod load;

use std::fmt::Write as _;

use comfy_table::Cell;
use contend_record::advice::{
    Basis, Candidate, Prediction, RewriteId, Safety, Trial, TrialInput, Verdict, WhatIf,
};
use contend_record::pipe::PipeRecord;
use contend_record::stats::Estimate;
use contend_record::warning::WarningId;
use unicode_width::UnicodeWidthStr as _;

use super::layout::{
    BOLD, PACE, WARN, aligned_left, cut, dimmed, paragraph, plain_table, styled_lines, wrapped,
};
use super::text::printable;
use super::units::{bytes, counted, nanoseconds, seconds};

/// Smallest predicted gain that is shown, as a share of the original's time.
const WORTH_SHOWING: f64 = 0.02;
/// Columns that two times take up in a table, including the gaps around them.
const FIGURES: usize = 20;

/// Returns everything that a record says about changes; empty if there is nothing.
pub(super) fn section(record: &PipeRecord, width: usize) -> String {
    let mut out = String::new();
    candidates(&mut out, record, width);
    if let Some(trial) = &record.trial {
        tried(&mut out, record, trial, width);
        load::section(&mut out, record, trial, width);
    }
    answers(&mut out, record, width);
    if !out.is_empty() {
        basis(&mut out, record, width);
    }
    out
}

/// Returns only the answers to questions about a pipeline that ran earlier.
pub fn answers_only(record: &PipeRecord, width: usize) -> String {
    let mut out = String::new();
    answers(&mut out, record, width);
    basis(&mut out, record, width);
    out
}

/// Writes what predictions use besides the profile.
fn basis(out: &mut String, record: &PipeRecord, width: usize) {
    let Some(calibration) = &record.calibration else { return };
    let from = calibration
        .start_up_from_run
        .map_or_else(String::new, |run| format!(", by run {run} of the lab"));
    let note = format!(
        "Predictions rest on the stages' service times{}, and on what a pipe ({} a byte, {} a \
         call) and starting a program ({}{from}) cost here.",
        if record.candidates.iter().any(|one| one.basis == Some(Basis::Pilot)) {
            ", changed stages run alone on a small part of their input"
        } else {
            ""
        },
        nanoseconds(1e9 * calibration.pipe_byte_seconds),
        nanoseconds(1e9 * calibration.pipe_call_seconds),
        nanoseconds(1e9 * calibration.start_up_seconds),
    );
    out.push('\n');
    dimmed(out, &note, width);
}

fn candidates(out: &mut String, record: &PipeRecord, width: usize) {
    let tried = record.trial.as_ref().is_some_and(|trial| trial.rounds > 0);
    let shown: Vec<(usize, &Candidate)> = record
        .candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| was_tried(record, candidate) || is_promising(record, candidate))
        .collect();
    if shown.is_empty() {
        if record.trial.is_some() {
            left_out(out, record, &shown, width);
        }
        return;
    }
    let heading = if tried { "Changes that were tried" } else { "Worth trying" };
    let _ = writeln!(out, "\n{BOLD}{heading}{BOLD:#}");
    for (number, candidate) in &shown {
        one(out, record, number + 1, candidate, width);
    }
    left_out(out, record, &shown, width);
    if let Some(why) = why_no_wall_times(record) {
        paragraph(out, "", &why, width);
    }
    let can_be_tried = !record.warnings.iter().any(|w| w.id == WarningId::NotRepeatable);
    if record.trial.is_none()
        && can_be_tried
        && !shown.iter().any(|(_, one)| was_tried(record, one))
    {
        let note = "Predicted, not measured: --try runs them on the same input, compares every \
                    byte and says which is best.";
        dimmed(out, note, width);
    }
}

/// Writes why the other candidates are not shown.
fn left_out(out: &mut String, record: &PipeRecord, shown: &[(usize, &Candidate)], width: usize) {
    let hidden = record.candidates.iter().enumerate();
    let hidden: Vec<(usize, &Candidate)> =
        hidden.filter(|(place, _)| !shown.iter().any(|(other, _)| other == place)).collect();
    let of = |why: fn(&Candidate) -> bool| -> Vec<usize> {
        hidden.iter().filter(|(_, one)| why(one)).map(|(place, _)| place + 1).collect()
    };
    let wrong = of(|one| one.verdict == Verdict::Wrong);
    let unknown = of(|one| one.verdict != Verdict::Wrong && one.predicted_cpu_seconds.is_none());
    let useless = of(|one| one.verdict != Verdict::Wrong && one.predicted_cpu_seconds.is_some());
    let reasons = [
        (useless, "not expected to help (see --json)"),
        (wrong, "known to give another output (see --json)"),
        (unknown, "of which nothing can be predicted here (--try tells)"),
    ];
    let notes: Vec<String> = reasons
        .iter()
        .filter(|(numbers, _)| !numbers.is_empty())
        .map(|(numbers, why)| {
            let plural = if numbers.len() == 1 { "" } else { "s" };
            format!("change{plural} {}, {why}", listed(numbers))
        })
        .collect();
    if !notes.is_empty() {
        dimmed(out, &format!("Left out: {}.", notes.join("; ")), width);
    }
}

/// Formats numbers as a list, with ranges by their ends: `2, 4 to 7`.
fn listed(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] if run.len() > 2 => format!("{first} to {last}"),
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    });
    runs.collect::<Vec<_>>().join(", ")
}

fn was_tried(record: &PipeRecord, candidate: &Candidate) -> bool {
    candidate.wall_ratio.is_some() || record.trial.is_some() && candidate.verdict == Verdict::Wrong
}

/// Whether the candidate is predicted to save wall time, or at least a tenth of the CPU time
/// without a longer wall time; an unknown wall time counts as not longer.
fn is_promising(record: &PipeRecord, candidate: &Candidate) -> bool {
    if candidate.verdict == Verdict::Wrong {
        return false;
    }
    let now = now(record);
    let ratio = |new: Option<f64>, old: Option<f64>| new.zip(old).map(|(new, old)| new / old);
    let wall = ratio(candidate.predicted_wall_seconds, now.wall_seconds);
    let cpu = ratio(candidate.predicted_cpu_seconds, Some(now.cpu_seconds));
    let less = |ratio: Option<f64>, part| ratio.is_some_and(|r| r < part * (1.0 - WORTH_SHOWING));
    let not_slower = wall.is_none_or(|wall| wall < 1.0 + WORTH_SHOWING);
    less(wall, 1.0) || not_slower && less(cpu, 0.9)
}

/// Returns what the model predicts of the unchanged pipeline; for older records, what was measured.
fn now(record: &PipeRecord) -> Prediction {
    record.predicted_unchanged.clone().unwrap_or(Prediction {
        wall_seconds: Some(record.wall_seconds),
        cpu_seconds: record.total.user_seconds + record.total.system_seconds,
    })
}

/// Returns the reason if only CPU times are predicted.
fn why_no_wall_times(record: &PipeRecord) -> Option<String> {
    if now(record).wall_seconds.is_some() {
        return None;
    }
    let observed = &record.observation;
    let percent = |share: Option<f64>| 100.0 * share.unwrap_or(0.0);
    let (others, steal) = (percent(observed.others_cpu_share), percent(observed.steal_share));
    let cause = if steal > others {
        format!("the hypervisor took {steal:.0} % of the CPU time")
    } else if others > 0.0 {
        format!("other processes used {others:.0} % of the CPU time")
    } else {
        "other processes used the CPUs".to_owned()
    };
    Some(format!("No wall times are predicted: {cause} during the profile."))
}

fn one(out: &mut String, record: &PipeRecord, number: usize, candidate: &Candidate, width: usize) {
    let stages: Vec<_> = candidate.stages.iter().map(usize::to_string).collect();
    let verdict = match candidate.verdict {
        Verdict::NotTried => String::new(),
        Verdict::Wrong => format!("{WARN}{}{WARN:#}: ", verdict_name(candidate.verdict)),
        verdict if verdict.recommends() => format!("{PACE}{}{PACE:#}: ", verdict_name(verdict)),
        verdict => format!("{}: ", verdict_name(verdict)),
    };
    let title = format!(
        "{verdict}{} (stage{} {}), {}",
        rewrite_name(candidate.rewrite),
        if stages.len() == 1 { "" } else { "s" },
        stages.join(", "),
        match candidate.output_equal {
            Some(true) => "compared: the same output",
            Some(false) => "compared",
            None => safety_name(candidate.safety),
        },
    );
    paragraph(out, &format!("{number}. "), &title, width);
    let _ = writeln!(out, "   {BOLD}{}{BOLD:#}", pasted(&candidate.command));
    for line in [expected(record, candidate), measured(candidate)].into_iter().flatten() {
        indented(out, &line, width);
    }
    indented(out, &printable(&candidate.reason), width);
    if let Some(difference) = &candidate.difference {
        indented(out, &format!("differs: {}", printable(difference)), width);
    }
}

fn indented(out: &mut String, text: &str, width: usize) {
    let options = textwrap::Options::new(width).initial_indent("   ").subsequent_indent("   ");
    let _ = writeln!(out, "{}", wrapped(text, options).join("\n"));
}

/// Returns a command so that it can be pasted. Control characters are replaced, except tabs and
/// line breaks.
fn pasted(command: &str) -> String {
    let harmless = |c: char| c == '\t' || c == '\n' || !c.is_control();
    if command.chars().all(harmless) { command.to_owned() } else { printable(command) }
}

fn expected(record: &PipeRecord, candidate: &Candidate) -> Option<String> {
    let now = now(record);
    let wall = || {
        let (new, old) = (candidate.predicted_wall_seconds?, now.wall_seconds?);
        let [low, high] = candidate.predicted_interval?;
        let range = format!("[{}, {}]", seconds(low), seconds(high));
        Some(format!("real {} {range}, {} of {}", seconds(new), change(new / old), seconds(old)))
    };
    let cpu = || {
        let new = candidate.predicted_cpu_seconds?;
        let of = if now.wall_seconds.is_some() {
            String::new()
        } else {
            format!(" of {}", seconds(now.cpu_seconds))
        };
        Some(format!("CPU {}, {}{of}", seconds(new), change(new / now.cpu_seconds)))
    };
    let parts: Vec<String> = [wall(), cpu()].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("predicted: {}", parts.join("; ")))
}

fn measured(candidate: &Candidate) -> Option<String> {
    let wall = candidate.measured_wall_seconds?;
    let ratio = candidate.wall_ratio.as_ref()?;
    let mut line = format!("measured: real {}, {}", seconds(wall), ratio_with_interval(ratio));
    if let Some(cpu) = &candidate.cpu_ratio {
        let time = candidate.measured_cpu_seconds.map(seconds).unwrap_or_default();
        line.push_str(&format!("; CPU {time}, {}", ratio_with_interval(cpu)));
    }
    Some(line)
}

fn ratio_with_interval(ratio: &Estimate) -> String {
    let [low, high] = ratio.ci95;
    if ratio.samples.len() < 3 {
        return change(ratio.median); // nothing is known of its scatter
    }
    format!("{} [{}, {}]", change(ratio.median), change(low), change(high))
}

/// Formats a ratio as a change in percent.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    if percent.abs() < 0.5 {
        "±0 %".to_owned()
    } else {
        format!("{percent:+.0} %").replace('-', "−")
    }
}

fn tried(out: &mut String, record: &PipeRecord, trial: &Trial, width: usize) {
    out.push('\n');
    if record.candidates.is_empty() {
        paragraph(out, "", "No rewrite applies to this pipeline: nothing was tried.", width);
        return;
    }
    if trial.rounds == 0 {
        let line = match (trial.interrupted, trial.settled) {
            (true, _) => "Nothing was tried: interrupted before the first round was complete.",
            (_, true) => "Nothing was tried: no change is expected to help.",
            _ => "Nothing was tried: the first round was not complete within the budget.",
        };
        paragraph(out, "", line, width);
        return;
    }
    let original = trial.original_wall_seconds.as_ref().map(|wall| seconds(wall.median));
    let how = format!(
        "Tried on {}: {} in {}, {}. The original took {} there.",
        input_name(&trial.input),
        counted(trial.rounds as u64, "round"),
        seconds(trial.seconds),
        if trial.interrupted {
            "until it was interrupted".to_owned()
        } else if trial.settled {
            "until every difference was clear or too small to matter".to_owned()
        } else {
            format!("until the budget of {} was used", seconds(trial.budget_seconds))
        },
        original.unwrap_or_else(|| "?".to_owned()),
    );
    paragraph(out, "", &how, width);
    match trial.winner.and_then(|place| record.candidates.get(place)) {
        None => {
            let open = record.candidates.iter().any(|one| one.verdict == Verdict::Unclear);
            let line = if open && trial.settled {
                "None of the changes tried was shown to be better than the pipeline as it is."
            } else if open && trial.interrupted {
                "Nothing was shown to be better until then."
            } else if open {
                "Nothing was shown to be better within the budget; a larger --budget can tell."
            } else {
                "None of the changes tried is better than the pipeline as it is."
            };
            paragraph(out, "", line, width);
        }
        Some(winner) => {
            let checked = match trial.confirmed_on_whole_input {
                Some(_) => "compared byte for byte on the sample and on the whole input",
                None if is_part(&trial.input) => "compared byte for byte on the sample only",
                None => "compared byte for byte",
            };
            let ratio = winner.wall_ratio.as_ref().map(ratio_with_interval).unwrap_or_default();
            let where_ = if is_part(&trial.input) { " on the sample" } else { "" };
            let whole = trial.whole_wall_seconds.map_or_else(String::new, |[own, new]| {
                let by = change(new / own.max(f64::MIN_POSITIVE));
                format!(" ({} instead of {} there, {by})", seconds(new), seconds(own))
            });
            let failed = record.warnings.iter().any(|w| w.id == WarningId::FailedStage);
            let advice = if failed {
                "Of the pipeline as it fails, this is the fastest form"
            } else {
                "Use this instead"
            };
            let line =
                format!("{advice}: real {ratio}{where_}, the same output, {checked}{whole}.");
            paragraph(out, "", &line, width);
            let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}", pasted(&winner.command));
        }
    }
}

fn is_part(input: &TrialInput) -> bool {
    matches!(input, TrialInput::Sample { .. } | TrialInput::Beginning { complete: false, .. })
}

fn input_name(input: &TrialInput) -> String {
    let size = |count: u64| bytes(count as f64);
    match *input {
        TrialInput::Own => "what the pipeline reads by itself".to_owned(),
        TrialInput::Whole { bytes } => format!("the whole input ({})", size(bytes)),
        TrialInput::Sample { bytes, of_bytes } => format!(
            "a sample of {} from the head, the middle and the tail of {}",
            size(bytes),
            size(of_bytes)
        ),
        TrialInput::Beginning { bytes, complete: true } => {
            format!("all that came through standard input ({})", size(bytes))
        }
        TrialInput::Beginning { bytes, complete: false } => {
            format!("the first {} of standard input; the rest was not read", size(bytes))
        }
    }
}

fn answers(out: &mut String, record: &PipeRecord, width: usize) {
    if record.what_if.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}What if{BOLD:#}");
    let now = now(record);
    let mut headings = vec!["question", "CPU", "pace set by"];
    let mut unchanged = vec!["as it is".to_owned(), seconds(now.cpu_seconds), String::new()];
    if let Some(wall) = now.wall_seconds {
        headings.insert(1, "real");
        unchanged.insert(1, seconds(wall));
    }
    let last = headings.len() - 1;
    let aligned = |(position, text): (usize, String)| {
        if position == last { Cell::new(text) } else { aligned_left(position, 1, text) }
    };
    let mut table = plain_table();
    table.set_header(headings.iter().map(|h| (*h).to_owned()).enumerate().map(aligned));
    table.add_row(unchanged.into_iter().enumerate().map(aligned));
    // The questions get a third of the line, the figures what they need, and the last column the
    // rest.
    let widest = width / 3;
    let question = |answer: &WhatIf| cut(&printable(&answer.question), widest);
    let longest = record.what_if.iter().map(|answer| question(answer).width()).max().unwrap_or(0);
    let rest = width.saturating_sub(longest.max("question".len()) + FIGURES);
    for answer in &record.what_if {
        let mut row = vec![
            question(answer),
            seconds(answer.cpu_seconds),
            cut(&printable(&answer.bottleneck), rest.max("pace set by".len())),
        ];
        if now.wall_seconds.is_some() {
            row.insert(1, seconds(answer.wall_seconds));
        }
        table.add_row(row.into_iter().enumerate().map(aligned));
    }
    out.push_str(&styled_lines(table, None, width));
    let note = why_no_wall_times(record).unwrap_or_else(|| {
        "All rows are predictions; `as it is` took ".to_owned()
            + &seconds(record.wall_seconds)
            + "."
    });
    paragraph(out, "", &note, width);
}

fn rewrite_name(id: RewriteId) -> &'static str {
    match id {
        RewriteId::DropCat => "no cat",
        RewriteId::SortUnique => "sort -u",
        RewriteId::CountInGrep => "grep -c",
        RewriteId::FuseSed => "one sed",
        RewriteId::FuseGrep => "one grep",
        RewriteId::FuseTr => "one tr",
        RewriteId::FuseCut => "one cut",
        RewriteId::FuseHead => "one head",
        RewriteId::FilterEarly => "filter early",
        RewriteId::ReduceEarly => "reduce early",
        RewriteId::TopLines => "keep only the first while sorting",
        RewriteId::ByteLocale => "byte locale",
        RewriteId::AnotherAwk => "another awk",
        RewriteId::SortResources => "more for sort",
        RewriteId::LargerPipe => "larger pipe",
        RewriteId::SplitStage => "two stages for one",
        RewriteId::Combined => "several together",
    }
}

fn safety_name(safety: Safety) -> &'static str {
    match safety {
        Safety::Always => "same output always",
        Safety::ThisData => "same output on this data, to be checked",
        Safety::Environment => "changes the environment, to be checked",
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotTried => "not tried",
        Verdict::Faster => "faster",
        Verdict::Cheaper => "cheaper",
        Verdict::NoDifference => "no difference",
        Verdict::Slower => "slower",
        Verdict::Wrong => "WRONG OUTPUT",
        Verdict::Unclear => "unclear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_by_runs() {
        assert_eq!(listed(&[3]), "3");
        assert_eq!(listed(&[1, 2, 4, 5, 6, 9]), "1, 2, 4 to 6, 9");
    }

    fn candidate(wall: Option<f64>, cpu: f64) -> Candidate {
        Candidate {
            rewrite: RewriteId::DropCat,
            stages: vec![1],
            command: "sort <f".to_owned(),
            safety: Safety::Always,
            reason: "one copy less".to_owned(),
            predicted_wall_seconds: wall,
            predicted_interval: wall.map(|wall| [wall / 2.0, wall * 2.0]),
            predicted_cpu_seconds: Some(cpu),
            basis: Some(Basis::Costs),
            measured_wall_seconds: None,
            measured_interval: None,
            measured_cpu_seconds: None,
            wall_ratio: None,
            cpu_ratio: None,
            output_equal: None,
            difference: None,
            verdict: Verdict::NotTried,
        }
    }

    /// Returns the record of a pipeline that took 7 s, of which the model explains `wall`.
    fn record(wall: Option<f64>, candidate: Candidate) -> PipeRecord {
        let answer = WhatIf {
            question: "cpus 8".to_owned(),
            wall_seconds: 3.5,
            cpu_seconds: 5.0,
            bottleneck: "stage 1: sort".to_owned(),
        };
        PipeRecord {
            wall_seconds: 7.0,
            candidates: vec![candidate],
            what_if: vec![answer],
            predicted_unchanged: Some(Prediction { wall_seconds: wall, cpu_seconds: 5.0 }),
            ..PipeRecord::default()
        }
    }

    #[test]
    fn gains_are_of_what_the_model_expects_of_the_pipeline_as_it_is() {
        let text = section(&record(Some(4.0), candidate(Some(3.0), 4.0)), 100);
        assert!(
            text.contains("real 3.00s [1.50s, 6.00s], −25 % of 4.00s; CPU 4.00s, −20 %"),
            "{text}"
        );
        let as_it_is = text.lines().find(|line| line.starts_with("as it is")).expect("a row");
        assert!(as_it_is.contains("4.00s") && !as_it_is.contains("7.00s"), "{as_it_is}");
        assert!(text.contains("took 7.00s"), "{text}");
        // Time that the model does not explain is no gain.
        let none = section(&record(Some(3.0), candidate(Some(3.0), 5.0)), 100);
        assert!(!none.contains("Worth trying"), "{none}");
    }

    #[test]
    fn on_a_busy_machine_no_wall_time_is_predicted_and_it_says_why() {
        let mut busy = record(None, candidate(None, 4.0));
        busy.observation.others_cpu_share = Some(0.74);
        let text = section(&busy, 100);
        assert!(text.contains("predicted: CPU 4.00s, −20 % of 5.00s"), "{text}");
        let why = "No wall times are predicted: other processes used 74 % of the CPU time";
        assert!(text.contains(why), "{text}");
        assert!(!text.contains("real") && !text.contains("3.50s"), "{text}");
        busy.observation.steal_share = Some(0.8);
        assert!(section(&busy, 100).contains("the hypervisor took 80 %"));
    }

    #[test]
    fn ratios_are_shown_as_what_they_add() {
        assert_eq!([change(0.5), change(1.002), change(1.25)], ["−50 %", "±0 %", "+25 %"]);
    }
}
