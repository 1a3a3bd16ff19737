//! Conclusions of source documents, and verdicts on whether the measurements of a run confirm them.
//! Every verdict is computed from the measurements.

use std::cmp::Ordering;
use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, Stopped};
use contend_record::warning::WarningId;

use super::super::layout::{BOLD, paragraph, paragraph_after};
use super::super::units::counted;

/// A conclusion of a source document, with a function that judges it.
pub struct Conclusion {
    /// Letter by which the report refers to the conclusion.
    pub letter: char,
    /// The document's claim, as a sentence without its full stop.
    pub claim: &'static str,
    /// Judges the conclusion by the measurements of a run.
    pub judge: fn(&RunRecord) -> Judgement,
}

/// A verdict, and the evidence for it in sentences.
pub type Judgement = (Verdict, String);

/// Returns the judgement on a comparison of two cases, or on several such comparisons. If it is
/// inconclusive because of noise or for lack of samples, the evidence ends with the number of
/// samples on each side, and with advice if a larger budget gives more.
pub fn compared(verdict: Verdict, evidence: String, pairs: &[[&Case; 2]]) -> Judgement {
    let mut evidence = evidence;
    let needs_samples =
        matches!(verdict, Verdict::Inconclusive(Reason::WithinNoise | Reason::TooFewSamples));
    if needs_samples && !pairs.is_empty() {
        let mut counts: Vec<String> = pairs
            .iter()
            .map(|[one, other]| match [one, other].map(|case| case.samples.len() as u64) {
                [one, other] if one == other => format!("{} of each", counted(one, "sample")),
                [one, other] => format!("{one} and {}", counted(other, "sample")),
            })
            .collect();
        counts.dedup();
        let _ = write!(evidence, " Compared: {}", counts.join("; "));
        let is_cut = |case: &&Case| case.stopped == Some(Stopped::Budget);
        let more = "; --budget N, in seconds, takes more.";
        evidence.push_str(if pairs.iter().flatten().any(is_cut) { more } else { "." });
    }
    (verdict, evidence)
}

/// Renders each conclusion: the verdict and the claim, with the evidence below.
pub fn list(conclusions: &[Conclusion], record: &RunRecord, width: usize) -> String {
    let mut out = String::new();
    for conclusion in conclusions {
        let (verdict, evidence) = (conclusion.judge)(record);
        let _ = write!(out, "{}. {BOLD}{}{BOLD:#}", conclusion.letter, verdict.words());
        let used = "A. ".len() + verdict.words().len();
        let claim = format!("{}: {}.", verdict.reason(), conclusion.claim);
        paragraph_after(&mut out, used, &claim, width);
        paragraph(&mut out, "  ", &evidence, width);
    }
    out
}

/// Result of judging a conclusion by the measurements of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Confirmed,
    NotConfirmed,
    Inconclusive(Reason),
}

/// Reason why a run neither confirms nor contradicts a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The cases needed for a judgement were not measured.
    NotMeasured,
    /// The run could use at most one CPU.
    OneCpu,
    /// The measurements differ by less than their uncertainty.
    WithinNoise,
    /// The cases have too few samples to know their uncertainty.
    TooFewSamples,
    /// Other load, the hypervisor or a quota affected the measurements, or may have affected them.
    Disturbed,
    /// The situation described by the conclusion did not occur.
    DidNotOccur,
    /// The attempt to create units ended before it reached the limit in question.
    LimitNotReached,
}

impl Verdict {
    /// Returns the verdict with its reason, such as `inconclusive (within noise)`.
    pub fn sentence(self) -> String {
        format!("{}{}", self.words(), self.reason())
    }

    fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::NotConfirmed => "not confirmed",
            Self::Inconclusive(_) => "inconclusive",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Confirmed | Self::NotConfirmed => "",
            Self::Inconclusive(Reason::NotMeasured) => " (not measured)",
            Self::Inconclusive(Reason::OneCpu) => " (only one CPU)",
            Self::Inconclusive(Reason::WithinNoise) => " (within noise)",
            Self::Inconclusive(Reason::TooFewSamples) => " (too few samples)",
            Self::Inconclusive(Reason::Disturbed) => " (disturbed)",
            Self::Inconclusive(Reason::DidNotOccur) => " (did not occur)",
            Self::Inconclusive(Reason::LimitNotReached) => " (limit not reached)",
        }
    }

    /// Returns the verdict on a conclusion that consists of several claims: not confirmed if any of
    /// `verdicts` is, or else the first inconclusive one, or else confirmed. Without verdicts, it
    /// is inconclusive.
    pub fn all(verdicts: &[Self]) -> Self {
        let inconclusive = |verdict: &&Self| matches!(verdict, Self::Inconclusive(_));
        if verdicts.contains(&Self::NotConfirmed) {
            Self::NotConfirmed
        } else if verdicts.is_empty() {
            Self::Inconclusive(Reason::NotMeasured)
        } else {
            verdicts.iter().find(inconclusive).copied().unwrap_or(Self::Confirmed)
        }
    }

    /// Returns this verdict if each case on which it rests has at least two samples, or an
    /// inconclusive one if not. This is the rule for experiments whose fixed number of samples is
    /// too small for an interval: one sample does not show how much the next one differs. A verdict
    /// that is inconclusive for another reason stays.
    #[must_use]
    pub fn with_samples_of(self, cases: &[&Case]) -> Self {
        const MIN_SAMPLES: usize = 2;
        match self {
            Self::Confirmed | Self::NotConfirmed
                if cases.iter().any(|case| case.samples.len() < MIN_SAMPLES) =>
            {
                Self::Inconclusive(Reason::TooFewSamples)
            }
            other => other,
        }
    }

    /// Returns `Confirmed` if the claim was observed, and `NotConfirmed` otherwise.
    pub fn of(is_observed: bool) -> Self {
        if is_observed { Self::Confirmed } else { Self::NotConfirmed }
    }

    /// Returns the verdict on a comparison whose result should be `expected`, which is not `Equal`.
    /// The verdict is inconclusive if `found` is `Equal`, or if it is `None` because disturbances
    /// prevent the comparison.
    pub fn expecting(expected: Ordering, found: impl Into<Option<Ordering>>) -> Self {
        match found.into() {
            None => Self::Inconclusive(Reason::Disturbed),
            Some(Ordering::Equal) => Self::Inconclusive(Reason::WithinNoise),
            Some(found) => Self::of(found == expected),
        }
    }
}

/// Returns the judgement on a conclusion whose evidence was not measured. `what` is a sentence that
/// names the missing evidence.
pub fn not_measured(what: &str) -> Judgement {
    (Verdict::Inconclusive(Reason::NotMeasured), what.to_owned())
}

/// Returns whether a warning of the whole run says that other processes used the CPUs, that the
/// hypervisor took them away, or that a quota throttled the run.
pub fn is_disturbed(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| is_disturbance(warning.id))
}

/// Returns whether a warning is about other load, steal or throttling.
pub fn is_disturbance(id: WarningId) -> bool {
    matches!(id, WarningId::OtherLoad | WarningId::Steal | WarningId::Throttled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refuted_part_refutes_the_whole_and_doubt_keeps_its_reason() {
        let noise = Verdict::Inconclusive(Reason::WithinNoise);
        assert_eq!(Verdict::all(&[noise, Verdict::NotConfirmed]), Verdict::NotConfirmed);
        assert_eq!(Verdict::all(&[Verdict::Confirmed, noise]), noise);
        assert_eq!(Verdict::all(&[Verdict::Confirmed]), Verdict::Confirmed);
        assert_eq!(Verdict::all(&[]), Verdict::Inconclusive(Reason::NotMeasured));
        assert_eq!(Verdict::expecting(Ordering::Less, Ordering::Equal), noise);
        let disturbed = Verdict::Inconclusive(Reason::Disturbed);
        assert_eq!(Verdict::expecting(Ordering::Less, None), disturbed);
        assert_eq!(Verdict::expecting(Ordering::Less, Ordering::Less), Verdict::Confirmed);
    }

    #[test]
    fn one_sample_is_no_basis_for_a_verdict() {
        use contend_record::lab::View;
        use contend_record::parameters::Parameters;

        let two = super::super::sample::case(("a/b", View::Table), Parameters::new(), 1.0, &[]);
        let mut one = two.clone();
        one.samples.pop();
        let few = Verdict::Inconclusive(Reason::TooFewSamples);
        for verdict in [Verdict::Confirmed, Verdict::NotConfirmed] {
            assert_eq!(verdict.with_samples_of(&[&two, &two]), verdict);
            assert_eq!(verdict.with_samples_of(&[&two, &one]), few);
        }
        let noise = Verdict::Inconclusive(Reason::WithinNoise);
        assert_eq!(noise.with_samples_of(&[&one]), noise);
    }
}
