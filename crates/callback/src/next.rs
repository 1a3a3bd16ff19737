//! [`Next`]: the return value of a callback, which determines the next wait or the end of its
//! callback thread.

/// The next wait of a callback thread, or its end. Methods of [`Context`](crate::Context) create
/// it; it takes effect when the callback returns it.
#[derive(Debug)]
#[must_use = "a callback returns what happens next"]
pub struct Next(pub(crate) Wanted);

/// The request in a callback's return value.
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

/// The message type of callback threads that receive no messages. It has no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {}
