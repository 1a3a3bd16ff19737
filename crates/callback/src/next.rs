//! What a callback returns: what its callback thread does next.

/// What a callback wants to happen next. [`Context`](crate::Context) makes it.
#[derive(Debug)]
#[must_use = "a callback returns what happens next"]
pub struct Next(pub(crate) Wanted);

/// What can be wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    End,
    KeepReceiving,
    Planned,
    Fail,
}

impl Next {
    pub(crate) fn keep_receiving() -> Self {
        Self(Wanted::KeepReceiving)
    }

    pub(crate) fn wanted(&self) -> Wanted {
        self.0
    }
}

/// The type of messages to those who receive none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {}
