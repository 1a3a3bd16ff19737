//! What a document concluded, and whether a run's figures bear it out: every verdict is computed from
//! them.

use std::cmp::Ordering;

use contend_record::lab::RunRecord;
use contend_record::warning::WarningId;

use super::super::layout::{BOLD, paragraph_after};

/// A conclusion of a document.
pub struct Conclusion {
    /// By which it is called.
    pub letter: char,
    /// What it says.
    pub claim: &'static str,
    /// What a run says of it, with the figures.
    pub judge: fn(&RunRecord) -> (Verdict, String),
}

/// All conclusions, a paragraph each, under a heading.
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

/// Whether a conclusion holds.
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

    /// Of several that must all hold.
    pub fn all(verdicts: &[Self]) -> Self {
        if verdicts.contains(&Self::DoesNot) {
            Self::DoesNot
        } else if verdicts.is_empty() || verdicts.contains(&Self::Open) {
            Self::Open
        } else {
            Self::Holds
        }
    }

    /// Of something that was seen to be so or not.
    pub fn of(so: bool) -> Self {
        if so { Self::Holds } else { Self::DoesNot }
    }

    /// Of a comparison that should have come out so.
    pub fn expecting(wanted: Ordering, told: impl Into<Option<Ordering>>) -> Self {
        match told.into() {
            None | Some(Ordering::Equal) => Self::Open,
            Some(told) => Self::of(told == wanted),
        }
    }
}

/// Whether others used the CPUs, or the host took them away.
pub fn is_disturbed(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| {
        matches!(warning.id, WarningId::OtherLoad | WarningId::Steal | WarningId::Throttled)
    })
}
