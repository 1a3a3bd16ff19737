//! Renders the trial of remedies, as a section of a diagnosis.

use std::fmt::Write as _;

use contend_record::advice::Verdict;
use contend_record::doctor::{DoctorRecord, Finding};
use contend_record::remedy::{RemedyTrial, TriedRemedy};
use contend_record::stats::Estimate;

use super::advice::{brackets, change, change_of, change_with_interval, pasted, verdict_name};
use super::doctor::symptom_name;
use super::layout::{
    BOLD, GOOD, WARN, aligned_left, cut, dimmed, paragraph, plain_table, styled_lines,
};
use super::pipe::Detail;
use super::text::printable;
use super::units::{counted, percent, seconds};

/// Number of columns beside the command line of a remedy in the table.
const FIGURES_COLUMNS: usize = 52;
/// Smallest number of columns of a command line.
const MIN_COMMAND_COLUMNS: usize = 16;

/// Writes the results of a trial: the best remedy, and a table of all. Writes nothing if there was none.
pub(super) fn section(out: &mut String, record: &DoctorRecord, detail: Detail, width: usize) {
    let Some(trial) = &record.trials else { return };
    let _ = writeln!(out, "\n{BOLD}Remedies tried{BOLD:#}");
    match trial.trial.winner.and_then(|place| trial.remedies.get(place)) {
        Some(winner) => use_this(out, trial, winner, width),
        None => paragraph(out, "", no_winner(trial), width),
    }
    if trial.trial.rounds > 0 {
        out.push('\n');
        rows(out, trial, width);
        dimmed(out, &effort(trial), width);
    }
    if !trial.output_compared {
        let note = "The output of the unchanged command differs from run to run, so only exit codes were \
                    compared.";
        paragraph(out, "", note, width);
    }
    left_out(out, trial, width);
    without_remedy(out, record, trial, width);
    if detail == Detail::Full {
        details(out, trial, width);
    }
}

fn use_this(out: &mut String, trial: &RemedyTrial, winner: &TriedRemedy, width: usize) {
    let ratio =
        |ratio: &Option<Estimate>, of: &str| ratio.as_ref().map(|ratio| change_of(ratio, of));
    let measured = &winner.measured;
    let gains = [ratio(&measured.wall_ratio, "wall"), ratio(&measured.cpu_ratio, "CPU")];
    let gains = gains.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "{GOOD}Use this instead: {gains}{GOOD:#}\n");
    let _ = writeln!(out, "  {BOLD}{}{BOLD:#}\n", pasted(&winner.command));
    let output = if trial.output_compared {
        "Output and exit code are the same, compared byte for byte."
    } else {
        "The exit code is the same."
    };
    paragraph(out, "", &format!("It {}. {output}", winner.effect), width);
}

fn no_winner(trial: &RemedyTrial) -> &'static str {
    let is_open = trial.remedies.iter().any(|one| one.measured.verdict == Verdict::Unclear);
    if trial.remedies.is_empty() {
        "None: no remedy without a change of code applies to what was found. `--try=all` tries those that \
         have an effect on the program anyway."
    } else if trial.trial.rounds == 0 && trial.trial.interrupted {
        "None: interrupted before the first round was complete."
    } else if trial.trial.interrupted {
        "Interrupted before any remedy was measurably better."
    } else if is_open {
        "No remedy was measurably better. Try a larger --budget, or a quieter machine."
    } else {
        "No remedy was measurably better."
    }
}

/// Writes a table with a row for each remedy that was timed or has another output, and below it how the
/// outputs differ.
fn rows(out: &mut String, trial: &RemedyTrial, width: usize) {
    const COMMAND: usize = 3;
    // Words are on the left, figures on the right.
    let cell = |(place, text): (usize, String)| {
        aligned_left(if place == COMMAND { 0 } else { place }, 1, text)
    };
    let mut table = plain_table();
    let room = width.saturating_sub(FIGURES_COLUMNS).max(MIN_COMMAND_COLUMNS);
    let headings = ["result", "wall", "CPU", "command"].map(str::to_owned);
    table.add_row(headings.into_iter().enumerate().map(cell));
    for remedy in trial.remedies.iter().filter(|one| was_tried(one)) {
        let measured = &remedy.measured;
        let ratio = |ratio: &Option<Estimate>, show: fn(&Estimate) -> String| {
            ratio.as_ref().map_or_else(|| "-".to_owned(), show)
        };
        let cells = [
            verdict_name(measured.verdict).to_owned(),
            ratio(&measured.wall_ratio, change_with_interval),
            ratio(&measured.cpu_ratio, |cpu| change(cpu.median)),
            cut(&printable(&remedy.command), room),
        ];
        table.add_row(cells.into_iter().enumerate().map(cell));
    }
    let marked = trial.trial.winner.map(|_| 1);
    out.push_str(&styled_lines(table, marked, width));
    for remedy in &trial.remedies {
        if let Some(difference) = &remedy.measured.difference {
            let _ = write!(out, "{WARN}!{WARN:#}");
            let text = format!("{}: {}", printable(&remedy.change), printable(difference));
            paragraph(out, " ", &text, width);
        }
    }
}

/// Returns whether the remedy was timed, or is known to have another output.
fn was_tried(remedy: &TriedRemedy) -> bool {
    remedy.measured.wall_ratio.is_some() || remedy.measured.difference.is_some()
}

/// Describes how many rounds ran, how long the unchanged command took, and why the trial ended.
fn effort(remedies: &RemedyTrial) -> String {
    let trial = &remedies.trial;
    let ratios = remedies.remedies.iter().filter_map(|one| one.measured.wall_ratio.as_ref());
    let brackets = brackets(ratios).map(|words| format!(" Median [{words}]."));
    let original = trial.original_wall_seconds.as_ref().map(|wall| seconds(wall.median));
    let end = if trial.interrupted {
        " (interrupted)"
    } else if trial.budget_seconds == 0.0 {
        ""
    } else if trial.settled {
        " (every difference is clear or too small to matter)"
    } else {
        " (budget reached)"
    };
    format!(
        "{} in {}{end}, in which the unchanged command takes {}.{}",
        counted(trial.rounds as u64, "round"),
        seconds(trial.seconds),
        original.unwrap_or_else(|| "?".to_owned()),
        brackets.unwrap_or_default(),
    )
}

/// Names the remedies for which the budget did not suffice.
fn left_out(out: &mut String, trial: &RemedyTrial, width: usize) {
    let names: Vec<_> = trial
        .remedies
        .iter()
        .filter(|one| !was_tried(one))
        .map(|one| printable(&one.change))
        .collect();
    if !names.is_empty() && !trial.trial.interrupted {
        let text = format!("Not tried within the budget: {} (--budget).", names.join("; "));
        dimmed(out, &text, width);
    }
}

/// Says of each finding for which nothing was tried that it needs a change of code.
fn without_remedy(out: &mut String, record: &DoctorRecord, trial: &RemedyTrial, width: usize) {
    let is_tried = |finding: &&Finding| {
        trial.remedies.iter().any(|one| one.symptoms.contains(&finding.symptom))
    };
    for finding in record.findings.iter().filter(|finding| !is_tried(finding)) {
        let gain = finding.gain_share.map_or_else(
            || "gain unknown".to_owned(),
            |gain| format!("estimated gain {}", percent(gain, 1.0)),
        );
        let name = symptom_name(finding.symptom);
        let text = format!("{name} needs a change of code ({gain}): {}", finding.remedy);
        paragraph(out, "", &printable(&text), width);
    }
}

/// Writes the whole command line of every remedy, tried or not, with its effect.
fn details(out: &mut String, trial: &RemedyTrial, width: usize) {
    for remedy in &trial.remedies {
        let _ = writeln!(out, "\n  {BOLD}{}{BOLD:#}", pasted(&remedy.command));
        let mut text = format!("{}: it {}", verdict_name(remedy.measured.verdict), remedy.effect);
        if let Some(wall) = remedy.measured.measured_wall_seconds {
            text.push_str(&format!(" ({})", seconds(wall)));
        }
        paragraph(out, "  ", &text, width);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::plain_output;
    use super::*;
    use contend_record::advice::{Measurement, Trial, TrialInput};
    use contend_record::doctor::Symptom;
    use contend_record::remedy::RemedyId;

    fn tried(change: &str, ratio: f64, verdict: Verdict) -> TriedRemedy {
        let samples = [0.98, 1.0, 1.0, 1.02].map(|factor| factor * ratio).to_vec();
        let ratio = Estimate::from_samples(samples, 1).filter(|_| verdict != Verdict::NotTried);
        TriedRemedy {
            remedy: RemedyId::OpenmpThreads,
            change: change.to_owned(),
            command: format!("{change} ./solver --steps 100 input.dat"),
            effect: "sets the number of OpenMP threads".to_owned(),
            symptoms: vec![Symptom::Oversubscription],
            measured: Measurement {
                cpu_ratio: ratio.clone(),
                wall_ratio: ratio,
                verdict,
                ..Measurement::default()
            },
        }
    }

    fn finding(symptom: Symptom) -> Finding {
        Finding {
            symptom,
            message: String::new(),
            gain_share: Some(0.4),
            argument: String::new(),
            evidence: Vec::new(),
            threads: Vec::new(),
            remedy: "Divide the work.".to_owned(),
            command: None,
            unless: String::new(),
        }
    }

    fn record(remedies: Vec<TriedRemedy>) -> DoctorRecord {
        let original = Estimate::from_samples(vec![2.0], 1);
        let trial = Trial {
            rounds: 4,
            seconds: 30.4,
            settled: false,
            original_wall_seconds: original,
            winner: remedies.iter().position(|one| one.measured.verdict.recommends()),
            ..Trial::without_candidates(TrialInput::Own, 30.0)
        };
        DoctorRecord {
            findings: vec![finding(Symptom::Oversubscription), finding(Symptom::UnevenWork)],
            trials: Some(RemedyTrial { trial, output_compared: true, remedies }),
            ..DoctorRecord::default()
        }
    }

    #[test]
    fn the_best_remedy_comes_first_and_then_a_row_for_each() {
        let mut wrong = tried("OMP_NUM_THREADS=1", 0.9, Verdict::Wrong);
        wrong.measured.difference = Some("line 3, byte 7: `b` instead of `a`".to_owned());
        let record = record(vec![
            tried("OMP_NUM_THREADS=2", 0.6, Verdict::Faster),
            tried("OMP_WAIT_POLICY=passive", 1.0, Verdict::Unclear),
            wrong,
            tried("OMP_THREAD_LIMIT=2", 1.0, Verdict::NotTried),
        ]);
        insta::assert_snapshot!(plain_output(|out| section(out, &record, Detail::Summary, 100)));
    }

    #[test]
    fn without_a_remedy_the_findings_say_what_to_change() {
        let mut none = record(Vec::new());
        let trial = none.trials.as_mut().expect("a trial");
        trial.trial = Trial::without_candidates(TrialInput::Own, 30.0);
        let text = plain_output(|out| section(out, &none, Detail::Summary, 100));
        assert!(text.contains("None: no remedy without a change of code applies"), "{text}");
        let needed = "Uneven work needs a change of code (estimated gain 40%): Divide the work.";
        assert!(text.contains(needed), "{text}");
        none.trials = None;
        assert_eq!(plain_output(|out| section(out, &none, Detail::Summary, 100)), "");
    }

    #[test]
    fn an_output_that_differs_from_run_to_run_is_mentioned() {
        let mut record = record(vec![tried("A=1", 0.6, Verdict::Cheaper)]);
        record.trials.as_mut().expect("a trial").output_compared = false;
        let text = plain_output(|out| section(out, &record, Detail::Full, 100));
        assert!(text.contains("only exit codes were compared"), "{text}");
        assert!(text.contains("The exit code is the same.") && !text.contains("byte for byte"));
        assert!(text.contains("cheaper: it sets the number"), "{text}");
    }
}
