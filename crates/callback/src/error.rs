//! Errors of spawning and sending.

use std::fmt;

/// An error: there is no memory for another unit, or the program has too many kinds of closures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// An error from starting a callback thread or blocking work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The Worker's memory, as set by [`Builder::memory`](crate::Builder::memory), is used up, or
    /// the program has more than 65,535 kinds of closures.
    #[error("there is no memory for one more callback thread")]
    NoRoom,
    /// The Worker's inbox, or the queue of blocking work, is full.
    /// [`Handle::try_spawn`](crate::Handle::try_spawn) returns this error where
    /// [`Handle::spawn`](crate::Handle::spawn) blocks; in a callback, which must not block, both
    /// return it.
    #[error("the inbox is full")]
    Full,
    /// The runtime has been shut down.
    #[error("the runtime has been shut down")]
    ShutDown,
}

/// An error from sending a message, which contains the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The receiver has ended, or belongs to another runtime.
    #[error("the receiver has ended")]
    Ended(M),
    /// The inbox of the receiver's Worker is full. A [`Context`](crate::Context) returns this only
    /// if too many of its Worker's messages to that inbox are pending as well.
    #[error("the inbox is full")]
    Full(M),
    /// The runtime has been shut down.
    #[error("the runtime has been shut down")]
    ShutDown(M),
}

impl<M> SendError<M> {
    /// Returns the undelivered message.
    pub fn into_message(self) -> M {
        match self {
            Self::Ended(message) | Self::Full(message) | Self::ShutDown(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended(_) => "Ended",
            Self::Full(_) => "Full",
            Self::ShutDown(_) => "ShutDown",
        })
    }
}
