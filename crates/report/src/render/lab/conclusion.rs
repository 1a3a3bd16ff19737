//! Conclusions of a source document, and whether the figures of a run confirm them. Every verdict
//! is computed from the figures.

use std::cmp::Ordering;
use std::fmt::Write as _;

use contend_record::lab::RunRecord;
use contend_record::warning::WarningId;

use super::super::layout::{BOLD, paragraph, paragraph_after};

/// A conclusion of a source document.
pub struct Conclusion {
    /// Letter that names the conclusion.
    pub letter: char,
    /// What the document concludes, as a sentence without its full stop.
    pub claim: &'static str,
    /// Compares the conclusion with the figures of a run.
    pub judge: fn(&RunRecord) -> Judgement,
}

/// A verdict and the figures that it rests on, in sentences.
pub type Judgement = (Verdict, String);

/// Renders the conclusions: the verdict and the claim, and the evidence below.
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

/// Whether a run confirms a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Confirmed,
    NotConfirmed,
    Inconclusive(Reason),
}

/// Why a run neither confirms nor contradicts a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The cases that it rests on were not measured.
    NotMeasured,
    /// The run could use one CPU only.
    OneCpu,
    /// The figures differ by less than their uncertainty.
    WithinNoise,
    /// Other load, the hypervisor or a quota affected the figures.
    Disturbed,
    /// The situation that the conclusion is about did not occur.
    DidNotOccur,
    /// The attempt ended before it reached the limit that the conclusion is about.
    LimitNotReached,
}

impl Verdict {
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
            Self::Inconclusive(Reason::Disturbed) => " (disturbed)",
            Self::Inconclusive(Reason::DidNotOccur) => " (did not occur)",
            Self::Inconclusive(Reason::LimitNotReached) => " (limit not reached)",
        }
    }

    /// Returns the verdict of a conclusion for which all of these must be confirmed.
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

    /// Returns the verdict of something that either was observed or was not.
    pub fn of(is_observed: bool) -> Self {
        if is_observed { Self::Confirmed } else { Self::NotConfirmed }
    }

    /// Returns the verdict of a comparison that should have this result. `found` is `None` if
    /// disturbances prevent the comparison.
    pub fn expecting(expected: Ordering, found: impl Into<Option<Ordering>>) -> Self {
        match found.into() {
            None => Self::Inconclusive(Reason::Disturbed),
            Some(Ordering::Equal) => Self::Inconclusive(Reason::WithinNoise),
            Some(found) => Self::of(found == expected),
        }
    }
}

/// Returns the judgement of a conclusion for which something is missing.
pub fn not_measured(what: &str) -> Judgement {
    (Verdict::Inconclusive(Reason::NotMeasured), what.to_owned())
}

/// Returns whether other processes used the CPUs during the run, the hypervisor took them away, or
/// a quota stopped the run.
pub fn is_disturbed(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| is_disturbance(warning.id))
}

/// Returns whether a warning is about a disturbance.
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
}
