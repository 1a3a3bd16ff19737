//! Why callback threads end.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::key::Id;

/// Why a callback thread has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It was done: its last callback said `end`.
    Done,
    /// Somebody cancelled it.
    Cancelled,
    /// Its callback panicked, with these words.
    Panicked(Arc<str>),
    /// It said so itself, with these words.
    Failed(Arc<str>),
    /// It was linked to this one, which has not ended as it should.
    Linked(Id),
    /// It had ended before anybody asked: it was done, or 256 others have failed on its Worker since
    /// then; or it never lived in this runtime.
    Unknown,
}

impl Reason {
    pub(crate) fn panicked(words: impl Into<Arc<str>>) -> Self {
        Self::Panicked(words.into())
    }

    /// What a panic says.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::panicked(text.unwrap_or("a panic without words"))
    }

    /// Whether it has ended as it should. Whoever is linked to it lives on.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Panicked(words) => write!(f, "panicked: {words}"),
            Self::Failed(words) => write!(f, "failed: {words}"),
            Self::Linked(id) => write!(f, "linked to {id}, which has not ended as it should"),
            Self::Unknown => f.write_str("no such callback thread"),
        }
    }
}

/// One that was monitored has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// Which one.
    pub id: Id,
    /// Why.
    pub reason: Reason,
}
