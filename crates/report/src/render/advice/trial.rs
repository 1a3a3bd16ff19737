//! Renders a trial (`--try`): the rewrite to use, if any, and a row for each rewrite that was
//! tried.

use std::fmt::Write as _;

use contend_record::advice::{Candidate, RewriteId, Trial, TrialInput, Verdict};
use contend_record::pipe::PipeRecord;
use contend_record::stats::Estimate;
use contend_record::warning::WarningId;

use super::super::layout::{
    BOLD, GOOD, WARN, aligned_left, cut, dimmed, paragraph, plain_table, styled_lines,
};
use super::super::pipe::Detail;
use super::super::text::printable;
use super::super::units::{bytes, counted, seconds};
use super::suggestions::predicted;
use super::{
    brackets, candidate_name, change, change_of, change_with_interval, indented, load, output_name,
    pasted, verdict_name,
};

/// Writes the result of the trial, with the winner first, and the heading of the profile that
/// follows. Writes nothing without a trial.
pub fn trial(out: &mut String, record: &PipeRecord, detail: Detail, width: usize) {
    let Some(trial) = &record.trial else { return };
    let winner = trial.winner.and_then(|place| record.candidates.get(place));
    match winner {
        Some(winner) => use_this(out, record, trial, winner, width),
        None => paragraph(out, "", &no_winner(record, trial), width),
    }
    if trial.rounds > 0 {
        out.push('\n');
        rows(out, record, trial, width);
        dimmed(out, &effort(record, trial), width);
        left_out(out, record, width);
    }
    if detail == Detail::Full {
        details(out, record, width);
    }
    load::section(out, record, trial, width);
    let _ = writeln!(out, "\n{BOLD}Profile of the original{BOLD:#}");
}

fn use_this(
    out: &mut String,
    record: &PipeRecord,
    trial: &Trial,
    winner: &Candidate,
    width: usize,
) {
    let failed = record.warnings.iter().any(|warning| warning.id == WarningId::FailedStage);
    let advice = if failed { "Fastest form of the failing pipeline" } else { "Use this instead" };
    let ratio =
        |ratio: &Option<Estimate>, of: &str| ratio.as_ref().map(|ratio| change_of(ratio, of));
    let gains =
        [ratio(&winner.measured.wall_ratio, "wall"), ratio(&winner.measured.cpu_ratio, "CPU")];
    let gains = gains.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "{GOOD}{advice}: {gains}{GOOD:#}\n");
    let _ = writeln!(out, "  {BOLD}{}{BOLD:#}\n", pasted(&winner.command));
    let mut compared = match trial.confirmed_on_whole_input {
        Some(_) => "Output identical, compared byte for byte on the sample and the whole input",
        None if is_part(&trial.input) => "Output identical on the sample, compared byte for byte",
        None => "Output identical, compared byte for byte",
    }
    .to_owned();
    if let Some([own, new]) = trial.whole_wall_seconds {
        let by = change(new / own.max(f64::MIN_POSITIVE));
        compared.push_str(&format!(" ({} instead of {}, {by})", seconds(new), seconds(own)));
    }
    paragraph(out, "", &format!("{compared}."), width);
    without_contend(out, record, winner, width);
}

/// Writes the best rewrite that does not need contend, if the winner needs it.
fn without_contend(out: &mut String, record: &PipeRecord, winner: &Candidate, width: usize) {
    if winner.rewrite != RewriteId::ParallelRun {
        return;
    }
    let is_other = |one: &&Candidate| {
        one.rewrite != RewriteId::ParallelRun
            && one.measured.verdict.recommends()
            && one.measured.wall_ratio.is_some()
    };
    let Some(other) = record.candidates.iter().find(is_other) else { return };
    let gain = other.measured.wall_ratio.as_ref().map(|ratio| change_of(ratio, "wall"));
    paragraph(out, "", &format!("Without contend: {}", gain.unwrap_or_default()), width);
    let _ = writeln!(out, "\n  {BOLD}{}{BOLD:#}", pasted(&other.command));
}

fn no_winner(record: &PipeRecord, trial: &Trial) -> String {
    if record.candidates.is_empty() {
        return "No rewrite applies to this pipeline, so nothing was tried.".to_owned();
    }
    if trial.rounds == 0 {
        let line = match (trial.interrupted, trial.settled) {
            (true, _) => "Nothing was tried: interrupted before the first round was complete.",
            (_, true) => "Nothing was tried: no rewrite is expected to help.",
            _ => "Nothing was tried: the first round did not end within the budget.",
        };
        return line.to_owned();
    }
    let open = record.candidates.iter().any(|one| one.measured.verdict == Verdict::Unclear);
    let failed = record.warnings.iter().any(|warning| warning.id == WarningId::FailedStage);
    let line = if failed {
        "No rewrite was measurably faster, but the pipeline failed: see the exit codes below."
    } else if open && trial.interrupted {
        "Interrupted before any rewrite was measurably faster."
    } else if open && !trial.settled {
        "No rewrite was measurably faster. Try a larger --budget, or a quieter machine."
    } else {
        "No rewrite was measurably faster: keep the pipeline."
    };
    line.to_owned()
}

/// Writes a table with a row for each candidate that was timed or has a different output, and below
/// it how the outputs differ.
fn rows(out: &mut String, record: &PipeRecord, trial: &Trial, width: usize) {
    const WORDS: usize = 3;
    let mut table = plain_table();
    let headings = ["#", "result", "rewrite", "wall", "CPU"];
    // The other columns are about 48 wide.
    let room = width.saturating_sub(48).max(16);
    let cell = |(place, text): (usize, String)| aligned_left(place, WORDS, text);
    table.add_row(headings.map(str::to_owned).into_iter().enumerate().map(cell));
    let mut marked = None;
    let tried = record.candidates.iter().enumerate().filter(|(_, one)| was_tried(one));
    for (row, (place, candidate)) in tried.enumerate() {
        if trial.winner == Some(place) {
            marked = Some(row + 1);
        }
        let ratio = |ratio: &Option<Estimate>, show: fn(&Estimate) -> String| {
            ratio.as_ref().map_or_else(|| "-".to_owned(), show)
        };
        let cells = [
            (place + 1).to_string(),
            verdict_name(candidate.measured.verdict).to_owned(),
            cut(&candidate_name(candidate), room),
            ratio(&candidate.measured.wall_ratio, change_with_interval),
            ratio(&candidate.measured.cpu_ratio, |cpu| change(cpu.median)),
        ];
        table.add_row(cells.into_iter().enumerate().map(cell));
    }
    out.push_str(&styled_lines(table, marked, width));
    for candidate in record.candidates.iter().filter(|one| one.measured.verdict == Verdict::Wrong) {
        if let Some(difference) = &candidate.measured.difference {
            let name = candidate_name(candidate);
            let _ = write!(out, "{WARN}!{WARN:#}");
            paragraph(out, " ", &format!("{name}: {}", printable(difference)), width);
        }
    }
}

/// Returns whether the candidate was timed, or is known to have a different output.
fn was_tried(candidate: &Candidate) -> bool {
    candidate.measured.wall_ratio.is_some() || candidate.measured.verdict == Verdict::Wrong
}

/// Describes how many rounds ran, on which input, why the trial ended, and what the brackets in the
/// table are.
fn effort(record: &PipeRecord, trial: &Trial) -> String {
    let original = trial.original_wall_seconds.as_ref().map(|wall| seconds(wall.median));
    let end = if trial.interrupted {
        "interrupted"
    } else if trial.settled {
        "every difference is clear or too small to matter"
    } else {
        "budget reached"
    };
    let ratios = record.candidates.iter().filter_map(|one| one.measured.wall_ratio.as_ref());
    let brackets = brackets(ratios).map(|words| format!(" Median [{words}]."));
    format!(
        "{} in {} ({end}) on {}, where the original takes {}.{}",
        counted(trial.rounds as u64, "round"),
        seconds(trial.seconds),
        input_name(&trial.input),
        original.unwrap_or_else(|| "?".to_owned()),
        brackets.unwrap_or_default(),
    )
}

fn left_out(out: &mut String, record: &PipeRecord, width: usize) {
    let names: Vec<_> =
        record.candidates.iter().filter(|one| !was_tried(one)).map(candidate_name).collect();
    if !names.is_empty() {
        dimmed(
            out,
            &format!("Not tried, because not expected to help: {}.", names.join("; ")),
            width,
        );
    }
}

/// Writes the command of every candidate, tried or not, with its predictions and measurements.
fn details(out: &mut String, record: &PipeRecord, width: usize) {
    for (place, candidate) in record.candidates.iter().enumerate() {
        let _ = writeln!(out, "\n{}. {}", place + 1, candidate_name(candidate));
        let _ = writeln!(out, "   {BOLD}{}{BOLD:#}", pasted(&candidate.command));
        let lines = [
            predicted(record, candidate, Detail::Full),
            measured(candidate),
            Some(output_name(candidate).to_owned()),
            Some(printable(&candidate.reason)),
        ];
        for line in lines.into_iter().flatten() {
            indented(out, 3, &line, width);
        }
    }
}

fn measured(candidate: &Candidate) -> Option<String> {
    let wall = candidate.measured.measured_wall_seconds?;
    let ratio = candidate.measured.wall_ratio.as_ref()?;
    let mut line = format!("measured {} ({})", change_of(ratio, "wall"), seconds(wall));
    if let Some((cpu, time)) =
        candidate.measured.cpu_ratio.as_ref().zip(candidate.measured.measured_cpu_seconds)
    {
        line.push_str(&format!(", {} ({})", change_of(cpu, "CPU"), seconds(time)));
    }
    Some(line)
}

fn is_part(input: &TrialInput) -> bool {
    matches!(input, TrialInput::Sample { .. } | TrialInput::Beginning { complete: false, .. })
}

fn input_name(input: &TrialInput) -> String {
    let size = |count: u64| bytes(count as f64);
    match *input {
        TrialInput::Own => "the pipeline's own input".to_owned(),
        TrialInput::Whole { bytes } => format!("the whole input ({})", size(bytes)),
        TrialInput::Sample { bytes, of_bytes } => format!(
            "a sample of {} from the head, the middle and the tail of {}",
            size(bytes),
            size(of_bytes)
        ),
        TrialInput::Beginning { bytes, complete: true } => {
            format!("all of standard input ({})", size(bytes))
        }
        TrialInput::Beginning { bytes, complete: false } => {
            format!("the first {} of standard input, without the rest", size(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::tests::{candidate, record};
    use super::*;
    use contend_record::advice::Measurement;

    fn ratio(median: f64) -> Option<Estimate> {
        Estimate::from_samples(vec![median * 0.98, median, median, median * 1.02], 1)
    }

    fn tried() -> PipeRecord {
        let one = |wall: f64, verdict: Verdict| Candidate {
            measured: Measurement {
                wall_ratio: ratio(wall),
                cpu_ratio: ratio(wall),
                measured_wall_seconds: Some(wall),
                measured_cpu_seconds: Some(wall),
                output_equal: Some(verdict != Verdict::Wrong),
                verdict,
                ..Measurement::default()
            },
            ..candidate(Some(3.0), 4.0)
        };
        let mut record = record(Some(4.0), candidate(Some(4.0), 5.0));
        record.candidates.extend([one(0.9, Verdict::Unclear), one(0.6, Verdict::Faster)]);
        let mut wrong = one(0.5, Verdict::Wrong);
        wrong.measured.difference = Some("line 3, byte 7: `b` instead of `a`".to_owned());
        record.candidates.push(wrong);
        let input = TrialInput::Sample { bytes: 112_000_000, of_bytes: 250_000_000 };
        record.trial = Some(Trial {
            rounds: 20,
            seconds: 30.4,
            winner: Some(2),
            settled: false,
            original_wall_seconds: ratio(0.32),
            confirmed_on_whole_input: Some(true),
            whole_wall_seconds: Some([0.71, 0.394]),
            ..Trial::without_candidates(input, 30.0)
        });
        record
    }

    #[test]
    fn the_winner_comes_first_and_then_a_row_for_each_rewrite() {
        insta::assert_snapshot!(plain_output(|out| trial(out, &tried(), Detail::Summary, 100)));
    }

    #[test]
    fn without_a_winner_the_reason_comes_first() {
        let mut record = tried();
        if let Some(trial) = &mut record.trial {
            trial.winner = None;
        }
        let text = plain_output(|out| trial(out, &record, Detail::Summary, 100));
        assert!(text.starts_with("No rewrite was measurably faster. Try a larger"), "{text}");
        record.candidates.clear();
        let text = plain_output(|out| trial(out, &record, Detail::Summary, 100));
        assert!(text.starts_with("No rewrite applies"), "{text}");
    }
}
