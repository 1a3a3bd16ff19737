//! Renders rewrites, their trials, and answers to `--what-if`.
//!
//! Percentages compare like with like: predictions with the model's prediction for the unchanged
//! pipeline, and measurements with the original in the same round.

mod load;
mod suggestions;
mod trial;
mod what_if;

use contend_record::advice::{Basis, Candidate, Prediction, RewriteId, Safety, Verdict};
use contend_record::pipe::PipeRecord;
use contend_record::stats::{Estimate, MIN_CI95_SAMPLES};
use contend_record::warning::WarningId;

use super::layout::{dimmed, prose_width, wrapped};
use super::text::printable;
use super::units::nanoseconds;

pub(super) use suggestions::suggestions;
pub(super) use trial::trial;
pub(super) use what_if::{all_answers, answers, note_on_answers};

/// Minimum predicted change that counts as a gain or a loss, as a share of the original's time.
const MIN_GAIN: f64 = 0.02;
/// Minimum number of samples of a ratio after whose median its interval or their range follows.
const MIN_BRACKETED_SAMPLES: usize = 3;

/// Writes the sources of predictions: service times, pilot runs and calibration. Writes nothing if
/// nothing was predicted.
pub(super) fn basis(out: &mut String, record: &PipeRecord, width: usize) {
    if let Some(note) = basis_of_predictions(record) {
        dimmed(out, &note, width);
    }
}

/// Returns the sources of predictions in a sentence: service times, pilot runs and calibration.
/// `None` if nothing was predicted.
pub(super) fn basis_of_predictions(record: &PipeRecord) -> Option<String> {
    let calibration = record.calibration.as_ref()?;
    let from = calibration
        .start_up_from_run
        .map_or_else(String::new, |run| format!(", from run {run} of the lab"));
    let piloted = record.candidates.iter().any(|one| one.basis == Some(Basis::Pilot));
    Some(format!(
        "Predictions combine the stages' service times{}, and the cost of a pipe ({} a byte, {} a \
         call) and of starting a program ({}{from}) on this machine.",
        if piloted { ", short runs on a sample of the input" } else { "" },
        nanoseconds(1e9 * calibration.pipe_byte_seconds),
        nanoseconds(1e9 * calibration.pipe_call_seconds),
        nanoseconds(1e9 * calibration.start_up_seconds),
    ))
}

/// Returns whether there are candidates that `--try` could measure.
pub(super) fn has_untried(record: &PipeRecord) -> bool {
    record.trial.is_none() && !record.candidates.is_empty() && can_be_tried(record)
}

/// Returns whether `--try` may be suggested: no warning says that it would refuse the pipeline.
fn can_be_tried(record: &PipeRecord) -> bool {
    !record.warnings.iter().any(|warning| warning.id == WarningId::NotRepeatable)
}

/// Returns the model's prediction for the unchanged pipeline, or the measurement if the record has
/// no prediction.
pub(super) fn unchanged(record: &PipeRecord) -> Prediction {
    record.predicted_unchanged.clone().unwrap_or(Prediction {
        wall_seconds: Some(record.wall_seconds),
        cpu_seconds: record.total.user_seconds + record.total.system_seconds,
    })
}

/// Returns, in a sentence, why only CPU times are predicted, or `None` if wall times are predicted,
/// too.
pub(super) fn why_no_wall_times(record: &PipeRecord) -> Option<String> {
    if unchanged(record).wall_seconds.is_some() {
        return None;
    }
    let observed = &record.observation;
    let percent = |share: Option<f64>| 100.0 * share.unwrap_or(0.0);
    let (others, steal) = (percent(observed.others_cpu_share), percent(observed.steal_share));
    let cause = if steal > others {
        format!("the hypervisor stole {steal:.0} % of the CPU time")
    } else if others > 0.0 {
        format!("other programs used {others:.0} % of the CPU time")
    } else {
        "other programs used the CPUs".to_owned()
    };
    Some(format!("Wall times are not predicted, because {cause} during the profile."))
}

/// Writes a wrapped paragraph with every line indented by `indent` columns.
fn indented(out: &mut String, indent: usize, text: &str, width: usize) {
    let indent = " ".repeat(indent);
    let options = textwrap::Options::new(prose_width(width))
        .initial_indent(&indent)
        .subsequent_indent(&indent);
    out.push_str(&wrapped(text, options).join("\n"));
    out.push('\n');
}

/// Formats a command for pasting into a shell. Leaves it unchanged, unless it contains control
/// characters other than tabs and newlines, which might affect the terminal. In that case, replaces
/// all control characters.
pub(super) fn pasted(command: &str) -> String {
    let harmless = |c: char| c == '\t' || c == '\n' || !c.is_control();
    if command.chars().all(harmless) { command.to_owned() } else { printable(command) }
}

/// Formats a ratio as a change in percent, as in `−40 %`; `±0 %` below half a percent.
pub(super) fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    if percent.abs() < 0.5 {
        "±0 %".to_owned()
    } else {
        format!("{percent:+.0} %").replace('-', "−")
    }
}

/// Formats a ratio and its interval as changes in percent, as in `−40 % [−41 %, −39 %]`. With fewer
/// than three samples, the interval is left out.
pub(super) fn change_with_interval(ratio: &Estimate) -> String {
    match ends(ratio) {
        Some([low, high]) => {
            format!("{} [{}, {}]", change(ratio.median), change(low), change(high))
        }
        None => change(ratio.median),
    }
}

/// Returns the ends of the interval of a ratio of a trial, which with fewer than six samples is their
/// range. `None` with fewer than three.
pub(super) fn ends(ratio: &Estimate) -> Option<[f64; 2]> {
    (ratio.samples.len() >= MIN_BRACKETED_SAMPLES).then_some(ratio.ci95)
}

/// Returns what the [`ends`] of ratios are, in words; `None` if there are none.
pub(super) fn brackets<'a>(ratios: impl Iterator<Item = &'a Estimate>) -> Option<String> {
    let counts: Vec<usize> =
        ratios.filter(|ratio| ends(ratio).is_some()).map(|ratio| ratio.samples.len()).collect();
    let (least, most) = (counts.iter().min()?, counts.iter().max()?);
    Some(match (*least < MIN_CI95_SAMPLES, *most < MIN_CI95_SAMPLES) {
        (false, _) => "95 % interval".to_owned(),
        (true, true) => "minimum and maximum".to_owned(),
        (true, false) => {
            format!("95 % interval, or minimum and maximum of fewer than {MIN_CI95_SAMPLES} rounds")
        }
    })
}

/// Formats the ratio of a quantity, such as `wall`, and its interval as changes in percent, as in
/// `−40 % wall [−41 %, −39 %]`. With fewer than three samples, the interval is left out.
pub(super) fn change_of(ratio: &Estimate, quantity: &str) -> String {
    let text = change_with_interval(ratio);
    let (median, interval) = text.split_once(" [").unwrap_or((&text, ""));
    let interval = if interval.is_empty() { String::new() } else { format!(" [{interval}") };
    format!("{median} {quantity}{interval}")
}

/// Returns the name of a candidate: its rewrites, and the positions of the changed stages, from 1.
pub(super) fn candidate_name(candidate: &Candidate) -> String {
    let stages = match candidate.stages.as_slice() {
        [one] => format!("stage {one}"),
        [first, _, .., last] if last - first + 1 == candidate.stages.len() => {
            format!("stages {first} to {last}")
        }
        several => {
            let numbers: Vec<_> = several.iter().map(usize::to_string).collect();
            format!("stages {}", numbers.join(", "))
        }
    };
    let mut name = rewrite_name(candidate.rewrite).to_owned();
    if !candidate.rewrites.is_empty() {
        let names: Vec<_> = candidate.rewrites.iter().copied().map(rewrite_name).collect();
        name = names.join(" + ");
    }
    if let Some(variant) = &candidate.variant {
        name = format!("{name} ({})", printable(variant));
    }
    format!("{name}, {stages}")
}

fn rewrite_name(id: RewriteId) -> &'static str {
    match id {
        RewriteId::DropCat => "drop the useless cat",
        RewriteId::SortUnique => "use sort -u",
        RewriteId::CountInGrep => "use grep -c",
        RewriteId::FuseSed => "merge the seds",
        RewriteId::FuseGrep => "merge the greps",
        RewriteId::FuseTr => "merge the trs",
        RewriteId::FuseCut => "merge the cuts",
        RewriteId::FuseHead => "merge the heads",
        RewriteId::FilterEarly => "filter earlier",
        RewriteId::ReduceEarly => "skip discarded work",
        RewriteId::TopLines => "keep only the needed lines while sorting",
        RewriteId::ByteLocale => "set LC_ALL=C",
        RewriteId::AnotherAwk => "use another awk",
        RewriteId::SortResources => "give sort more resources",
        RewriteId::LargerPipe => "use a larger pipe",
        RewriteId::SplitStage => "split a stage in two",
        RewriteId::Combined => "several rewrites",
        RewriteId::ParallelRun => "run in parallel",
    }
}

/// Describes whether a candidate's output is identical to that of the original, by their comparison
/// or, without one, by the safety of the rewrite.
fn output_name(candidate: &Candidate) -> &'static str {
    match (candidate.measured.output_equal, candidate.safety) {
        (Some(true), _) => "output identical",
        (Some(false), _) => "output differs",
        (None, Safety::Always) => "same output",
        (None, Safety::ThisData) => "output unverified: it depends on the data",
        (None, Safety::Environment) => "output unverified: the environment changes",
    }
}

/// Returns the name of a verdict in a table.
pub(super) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotTried => "not tried",
        Verdict::Faster => "faster",
        Verdict::Cheaper => "cheaper",
        Verdict::NoDifference => "no difference",
        Verdict::Slower => "slower",
        Verdict::Wrong => "WRONG OUTPUT",
        Verdict::Unclear => "inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::advice::{Measurement, WhatIf};

    /// Returns a candidate with the given predictions of wall and CPU time, in seconds.
    pub(super) fn candidate(wall: Option<f64>, cpu: f64) -> Candidate {
        Candidate {
            rewrite: RewriteId::DropCat,
            rewrites: Vec::new(),
            variant: None,
            stages: vec![1],
            command: "sort <f".to_owned(),
            safety: Safety::Always,
            reason: "one copy less".to_owned(),
            predicted_wall_seconds: wall,
            predicted_interval: wall.map(|wall| [wall / 2.0, wall * 2.0]),
            predicted_cpu_seconds: Some(cpu),
            predicted_cpu_interval: Some([cpu / 2.0, cpu * 2.0]),
            basis: Some(Basis::Costs),
            measured: Measurement::default(),
        }
    }

    /// Returns the record of a pipeline that took 7 s, with one candidate. `wall` is the wall time,
    /// in seconds, that the model predicts for the unchanged pipeline.
    pub(super) fn record(wall: Option<f64>, candidate: Candidate) -> PipeRecord {
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
    fn names_have_the_rewrites_and_the_stages() {
        let one = candidate(None, 1.0);
        assert_eq!(candidate_name(&one), "drop the useless cat, stage 1");
        let other = Candidate {
            rewrite: RewriteId::AnotherAwk,
            variant: Some("mawk".to_owned()),
            stages: vec![2, 4],
            ..one.clone()
        };
        assert_eq!(candidate_name(&other), "use another awk (mawk), stages 2, 4");
        let several = Candidate {
            rewrite: RewriteId::Combined,
            rewrites: vec![RewriteId::DropCat, RewriteId::ByteLocale],
            stages: vec![1, 2, 3],
            ..one
        };
        let name = "drop the useless cat + set LC_ALL=C, stages 1 to 3";
        assert_eq!(candidate_name(&several), name);
    }

    #[test]
    fn an_interval_needs_six_samples_and_a_range_three() {
        let ratio = |samples: usize| {
            let samples = [0.5, 0.4, 0.6].into_iter().cycle().take(samples);
            Estimate::from_samples(samples.collect(), 1).expect("there are samples")
        };
        let words = |counts: &[usize]| {
            let ratios: Vec<Estimate> = counts.iter().map(|count| ratio(*count)).collect();
            brackets(ratios.iter())
        };
        for (count, expected) in [
            (1, None),
            (3, Some("minimum and maximum")),
            (5, Some("minimum and maximum")),
            (6, Some("95 % interval")),
        ] {
            assert_eq!(words(&[count]).as_deref(), expected, "{count}");
            assert_eq!(change_with_interval(&ratio(count)).contains('['), expected.is_some());
        }
        let mixed = "95 % interval, or minimum and maximum of fewer than 6 rounds";
        assert_eq!(words(&[1, 5, 20]).as_deref(), Some(mixed));
    }

    #[test]
    fn ratios_are_shown_as_changes() {
        assert_eq!([change(0.5), change(1.002), change(1.25)], ["−50 %", "±0 %", "+25 %"]);
    }
}
