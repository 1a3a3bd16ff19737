//! The stash: messages for units that do not receive at present.
//!
//! # Protocol
//! Messages stashed for a unit are older than those queued for it. When the unit receives again, it is *scheduled*:
//! an envelope at the front of the queue delivers the next stashed message. If the unit still receives after that, it
//! is scheduled again. So no queued message overtakes a stashed one, and each message is moved twice, however long
//! the backlog is: once in and once out.
//!
//! ```text
//!   message for a unit that does not receive ──add──▶ backlog of the unit
//!   unit receives again ──call──▶ envelope at the front of the queue ──next──▶ unit
//!                      ▲                                                        │
//!                      └────────────── receives still, backlog not empty ◀──────┘
//! ```

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::message::Envelope;

/// The stashed messages of one unit, at least one.
#[derive(Default)]
struct Backlog {
    messages: VecDeque<Envelope>,
    /// An envelope in the queue will deliver the first message.
    is_called: bool,
}

#[derive(Default)]
pub(super) struct Stash {
    all: HashMap<Key, Backlog>,
    /// Messages per unit, at most.
    most: usize,
    /// Messages that were put in or taken out.
    #[cfg(test)]
    pub moved: u64,
}

impl Stash {
    /// Creates an empty stash that holds at most `most` messages per unit.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Stashes a message for its unit, unless the unit's backlog is full.
    ///
    /// # Errors
    /// The envelope.
    pub fn add(&mut self, envelope: Envelope) -> Result<(), Envelope> {
        if self.most == 0 {
            return Err(envelope);
        }
        let kept = &mut self.all.entry(envelope.to).or_default().messages;
        if kept.len() >= self.most {
            return Err(envelope);
        }
        kept.push_back(envelope);
        #[cfg(test)]
        {
            self.moved += 1;
        }
        Ok(())
    }

    /// Returns whether no unit has stashed messages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Marks a unit as scheduled. Returns whether it has stashed messages and was not scheduled yet.
    #[must_use]
    pub fn call(&mut self, unit: Key) -> bool {
        self.all.get_mut(&unit).is_some_and(|kept| !std::mem::replace(&mut kept.is_called, true))
    }

    /// Marks a unit as not scheduled: the envelope arrived while the unit was not receiving.
    pub fn recall(&mut self, unit: Key) {
        if let Some(kept) = self.all.get_mut(&unit) {
            kept.is_called = false;
        }
    }

    /// Takes out the first stashed message of a unit that was scheduled.
    pub fn next(&mut self, unit: Key) -> Option<Envelope> {
        let kept = self.all.get_mut(&unit)?;
        kept.is_called = false;
        let first = kept.messages.pop_front();
        if kept.messages.is_empty() {
            self.all.remove(&unit);
        }
        #[cfg(test)]
        {
            self.moved += 1;
        }
        first
    }

    /// Takes out all messages of a unit, oldest first.
    pub fn take(&mut self, unit: Key) -> Option<VecDeque<Envelope>> {
        if self.all.is_empty() {
            return None;
        }
        let messages = self.all.remove(&unit)?.messages;
        #[cfg(test)]
        {
            self.moved += messages.len() as u64;
        }
        Some(messages)
    }

    /// Takes out the messages of all units.
    pub fn take_all(&mut self) -> impl Iterator<Item = Envelope> + use<> {
        std::mem::take(&mut self.all).into_values().flat_map(|kept| kept.messages)
    }

    /// Frees memory that is not needed now.
    pub fn trim(&mut self) {
        self.all.shrink_to(0);
    }
}
