//! Conclusions of a source document, and whether the figures of a run confirm them. Every verdict
//! is computed from the figures.

use std::cmp::Ordering;

use contend_record::lab::RunRecord;
use contend_record::warning::WarningId;

use super::super::layout::{BOLD, paragraph_after};

/// A conclusion of a source document.
pub struct Conclusion {
    /// Letter that names the conclusion.
    pub letter: char,
    /// The conclusion, in a sentence.
    pub claim: &'static str,
    /// Judges the conclusion by a run, and gives the figures for that.
    pub judge: fn(&RunRecord) -> (Verdict, String),
}

/// Renders all conclusions under a heading, a paragraph each.
pub fn paragraphs(conclusions: &[Conclusion], record: &RunRecord, width: usize) -> String {
    let mut out = format!("{BOLD}What holds of its conclusions{BOLD:#}\n");
    for conclusion in conclusions {
        let (verdict, figures) = (conclusion.judge)(record);
        let words = verdict.words();
        let start = format!("{} {BOLD}{words}{BOLD:#}", conclusion.letter);
        out.push_str(&start);
        let rest = format!(": {}. {figures}", conclusion.claim);
        paragraph_after(&mut out, words.len() + 2, &rest, width);
    }
    out
}

/// Whether a run confirms a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    DoesNot,
    Open,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds here",
            Self::DoesNot => "does not hold here",
            Self::Open => "cannot be told",
        }
    }

    /// Returns the verdict of a conclusion for which all of these must hold.
    pub fn all(verdicts: &[Self]) -> Self {
        if verdicts.contains(&Self::DoesNot) {
            Self::DoesNot
        } else if verdicts.is_empty() || verdicts.contains(&Self::Open) {
            Self::Open
        } else {
            Self::Holds
        }
    }

    /// Returns the verdict of something that either was observed or was not.
    pub fn of(so: bool) -> Self {
        if so { Self::Holds } else { Self::DoesNot }
    }

    /// Returns the verdict of a comparison that should have this result.
    pub fn expecting(wanted: Ordering, told: impl Into<Option<Ordering>>) -> Self {
        match told.into() {
            None | Some(Ordering::Equal) => Self::Open,
            Some(told) => Self::of(told == wanted),
        }
    }
}

/// Whether other processes used the CPUs during the run, the hypervisor took them away, or a quota
/// stopped the run.
pub fn is_disturbed(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| {
        matches!(warning.id, WarningId::OtherLoad | WarningId::Steal | WarningId::Throttled)
    })
}
