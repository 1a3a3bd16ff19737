//! Renders suggestions: rewrites that were not tried, with the model's predictions, and `contend
//! run`.

use std::fmt::Write as _;

use contend_record::advice::{Candidate, RewriteId, Verdict};
use contend_record::pipe::PipeRecord;

use super::super::layout::{BOLD, dimmed, paragraph};
use super::super::pipe::Detail;
use super::super::text::printable;
use super::super::units::seconds;
use super::{
    MIN_GAIN, candidate_name, change, has_untried, indented, output_name, pasted, unchanged,
    why_no_wall_times,
};

/// Maximum number of suggestions in a summary.
const MAX_SUGGESTIONS: usize = 2;

/// Writes the suggestions. A full report has all promising rewrites and `contend run`. A summary
/// has at most two suggestions, among them `contend run` if it is expected to be faster. Writes
/// nothing after a trial, which has measured them, and if there are no suggestions.
pub fn suggestions(out: &mut String, record: &PipeRecord, detail: Detail, width: usize) {
    if record.trial.is_some() {
        return;
    }
    let promising: Vec<&Candidate> =
        record.candidates.iter().filter(|one| is_promising(record, one)).collect();
    if promising.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}Try{BOLD:#}");
    let shown = match detail {
        Detail::Full => promising.clone(),
        Detail::Summary => best(&promising),
    };
    for candidate in shown {
        one(out, record, candidate, detail, width);
    }
    if detail == Detail::Full {
        left_out(out, record, width);
    }
    if let Some(why) = why_no_wall_times(record) {
        paragraph(out, "  ", &why, width);
    }
    if has_untried(record) {
        let note = "Predicted, not measured: --try alternates between these and the original, and \
                    compares every byte.";
        dimmed(out, note, width);
    }
}

/// Returns the first suggestions. The last of them is `contend run` if that is not among the first
/// anyway.
fn best<'a>(promising: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let parallel = |one: &&&Candidate| one.rewrite == RewriteId::ParallelRun;
    let mut best: Vec<_> = promising.iter().take(MAX_SUGGESTIONS).copied().collect();
    if let Some(run) = promising.iter().skip(MAX_SUGGESTIONS).find(parallel) {
        best.pop();
        best.push(run);
    }
    best
}

fn one(out: &mut String, record: &PipeRecord, candidate: &Candidate, detail: Detail, width: usize) {
    let _ = writeln!(out, "  {BOLD}{}{BOLD:#}", pasted(&candidate.command));
    let facts = [Some(candidate_name(candidate)), predicted(record, candidate, detail)];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    indented(out, 4, &format!("{}; {}", facts.join(": "), output_name(candidate)), width);
    if detail == Detail::Full {
        indented(out, 4, &printable(&candidate.reason), width);
    }
}

/// Returns the predicted differences in wall time and in CPU time, as far as they are predicted;
/// with `Detail::Full`, also the times themselves. Returns `None` if neither is predicted.
pub(super) fn predicted(
    record: &PipeRecord,
    candidate: &Candidate,
    detail: Detail,
) -> Option<String> {
    let now = unchanged(record);
    let full = detail == Detail::Full;
    let wall = || {
        let (new, old) = (candidate.predicted_wall_seconds?, now.wall_seconds?);
        let [low, high] = candidate.predicted_interval?;
        let range = format!("[{}, {}]", change(low / old), change(high / old));
        let times = format!(" ({} instead of {})", seconds(new), seconds(old));
        Some(format!("{} wall {range}{}", change(new / old), if full { &times } else { "" }))
    };
    let cpu = || {
        let (new, old) = (candidate.predicted_cpu_seconds?, now.cpu_seconds);
        // Chunks that run at the same time save wall time only.
        let is_idle = candidate.rewrite == RewriteId::ParallelRun && !full;
        if is_idle && (new / old - 1.0).abs() < MIN_GAIN {
            return None;
        }
        let times = format!(" ({} instead of {})", seconds(new), seconds(old));
        Some(format!("{} CPU{}", change(new / old), if full { &times } else { "" }))
    };
    let parts: Vec<String> = [wall(), cpu()].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("predicted {}", parts.join(", ")))
}

/// Writes the names of the rewrites that are not suggested, by reason.
fn left_out(out: &mut String, record: &PipeRecord, width: usize) {
    let others = || record.candidates.iter().filter(|one| !is_promising(record, one));
    let unknown = |one: &&Candidate| one.predicted_cpu_seconds.is_none();
    let useless = |one: &&Candidate| !unknown(one);
    let notes = [
        ("Not expected to help", others().filter(useless).collect::<Vec<_>>()),
        ("Without a prediction, which --try can measure", others().filter(unknown).collect()),
    ];
    for (why, rewrites) in notes.into_iter().filter(|(_, rewrites)| !rewrites.is_empty()) {
        let names: Vec<_> = rewrites.into_iter().map(candidate_name).collect();
        dimmed(out, &format!("  {why}: {}.", names.join("; ")), width);
    }
}

/// Returns whether the candidate runs the pipeline in parallel, which is only proposed if that is
/// expected to be faster, or is predicted to save more than 2 % of wall time, or more than
/// about 12 % of CPU time while wall time grows by less than 2 %. An unknown wall time counts as
/// unchanged. Returns `false` for a candidate whose output is known to differ.
fn is_promising(record: &PipeRecord, candidate: &Candidate) -> bool {
    if candidate.measured.verdict == Verdict::Wrong {
        return false;
    }
    if candidate.rewrite == RewriteId::ParallelRun {
        return true;
    }
    let now = unchanged(record);
    let ratio = |new: Option<f64>, old: Option<f64>| new.zip(old).map(|(new, old)| new / old);
    let wall = ratio(candidate.predicted_wall_seconds, now.wall_seconds);
    let cpu = ratio(candidate.predicted_cpu_seconds, Some(now.cpu_seconds));
    let less = |ratio: Option<f64>, part| ratio.is_some_and(|r| r < part * (1.0 - MIN_GAIN));
    let not_slower = wall.is_none_or(|wall| wall < 1.0 + MIN_GAIN);
    less(wall, 1.0) || not_slower && less(cpu, 0.9)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::tests::{candidate, record};
    use super::*;

    #[test]
    fn gains_are_relative_to_the_model_of_the_unchanged_pipeline() {
        let record = record(Some(4.0), candidate(Some(3.0), 4.0));
        let text = plain_output(|out| suggestions(out, &record, Detail::Full, 100));
        assert!(
            text.contains("predicted −25 % wall [−62 %, +50 %] (3.00s instead of 4.00s)"),
            "{text}"
        );
        assert!(text.contains("drop the useless cat, stage 1"), "{text}");
    }

    #[test]
    fn time_that_the_model_does_not_explain_is_no_gain() {
        let record = record(Some(3.0), candidate(Some(3.0), 5.0));
        assert_eq!(plain_output(|out| suggestions(out, &record, Detail::Summary, 100)), "");
    }

    #[test]
    fn on_a_busy_machine_only_cpu_time_is_predicted_and_the_reason_is_given() {
        let mut busy = record(None, candidate(None, 4.0));
        busy.observation.others_cpu_share = Some(0.74);
        let text = plain_output(|out| suggestions(out, &busy, Detail::Summary, 100));
        assert!(text.contains("predicted −20 % CPU"), "{text}");
        let why = "Wall times are not predicted, because other programs used 74 % of the CPU time";
        assert!(text.contains(why), "{text}");
        assert!(!text.contains("% wall"), "{text}");
        busy.observation.steal_share = Some(0.8);
        let text = plain_output(|out| suggestions(out, &busy, Detail::Summary, 100));
        assert!(text.contains("the hypervisor stole 80 %"), "{text}");
    }

    #[test]
    fn a_summary_has_two_suggestions_of_which_one_is_to_run_in_parallel() {
        let mut record = record(Some(4.0), candidate(Some(3.0), 4.0));
        record.candidates = vec![candidate(Some(3.0), 4.0); 3];
        let commands = |record: &PipeRecord| -> Vec<String> {
            let text = plain_output(|out| suggestions(out, record, Detail::Summary, 100));
            let lines =
                text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("    "));
            lines.map(|line| line.trim().to_owned()).collect()
        };
        assert_eq!(commands(&record), ["sort <f", "sort <f"]);
        record.candidates.push(Candidate {
            rewrite: RewriteId::ParallelRun,
            command: "contend run 'sort f | uniq'".to_owned(),
            ..candidate(Some(3.5), 5.0)
        });
        assert_eq!(commands(&record), ["sort <f", "contend run 'sort f | uniq'"]);
        record.candidates.rotate_right(1);
        assert_eq!(commands(&record), ["contend run 'sort f | uniq'", "sort <f"]);
    }
}
