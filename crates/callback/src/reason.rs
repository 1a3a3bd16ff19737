//! Why callback threads end.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::key::Id;

/// Why a callback thread has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Its last callback returned [`Context::end`](crate::Context::end).
    Done,
    /// It was cancelled.
    Cancelled,
    /// Its callback panicked, with this message.
    Panicked(Arc<str>),
    /// It called [`Context::fail`](crate::Context::fail), with this description.
    Failed(Arc<str>),
    /// It was linked to this callback thread, which ended with a reason other than `Done`.
    Linked(Id),
    /// It had already ended when its reason was requested: with `Done`, or more than 256 failures ago on its Worker;
    /// or it never existed in this runtime.
    Unknown,
}

impl Reason {
    pub(crate) fn panicked(words: impl Into<Arc<str>>) -> Self {
        Self::Panicked(words.into())
    }

    /// Converts the payload of a panic.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::panicked(text.unwrap_or("a panic without words"))
    }

    /// Returns whether the callback thread has ended normally, so that those that are linked to it live on.
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

/// The end of a callback thread that was monitored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// The callback thread that has ended.
    pub id: Id,
    /// Why it has ended.
    pub reason: Reason,
}
