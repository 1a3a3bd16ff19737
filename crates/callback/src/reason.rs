//! The reasons for which callback threads end.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::key::Id;

/// The reason for which a callback thread has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The last callback returned [`Context::end`](crate::Context::end).
    Done,
    /// The callback thread was cancelled.
    Cancelled,
    /// A callback panicked, or returned a [`Next`](crate::Next) that is not valid there:
    /// `keep_receiving` from a callback that runs once, or a `Next` that an earlier callback
    /// created. The string is the message of the panic (a placeholder if the payload is not a
    /// string), or describes the mistake.
    Panicked(Arc<str>),
    /// A callback failed, or the next one could not be set up. The string is the description passed
    /// to [`Context::fail`](crate::Context::fail), or says why there is no next callback.
    Failed(Arc<str>),
    /// The callback thread was linked to the one with this id, which ended with a reason other than
    /// `Done`.
    Linked(Id),
    /// The reason is unknown: the callback thread never existed in this runtime, or had ended
    /// before the reason was requested, with `Done` or more than 256 failures ago on its Worker.
    Unknown,
}

impl Reason {
    pub(crate) fn panicked(words: impl Into<Arc<str>>) -> Self {
        Self::Panicked(words.into())
    }

    /// Converts the payload of a panic to a reason with the panic's message, or with a placeholder
    /// if the payload is not a string.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::panicked(text.unwrap_or("a panic without words"))
    }

    /// Returns whether the callback thread has ended normally, in which case linked callback
    /// threads live on.
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

/// The end of a monitored callback thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// The callback thread that has ended.
    pub id: Id,
    /// The reason for its end, or [`Reason::Unknown`].
    pub reason: Reason,
}
