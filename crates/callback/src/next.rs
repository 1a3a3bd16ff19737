//! [`Next`]: the return value of a callback, the next wait of its callback thread.

/// The next wait of a callback thread, or its end. Methods of [`Context`](crate::Context) return
/// it.
#[derive(Debug)]
#[must_use = "a callback returns what happens next"]
pub struct Next(pub(crate) Wanted);

/// What a callback has asked for.
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
