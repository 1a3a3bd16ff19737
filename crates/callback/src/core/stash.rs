//! The stash: messages for units that are not receiving.
//!
//! # Protocol
//! Messages stashed for a unit are older than those queued for it. When the unit receives again, it
//! is *scheduled*: an envelope at the front of the queue delivers the next stashed message. If the
//! unit is still receiving after that delivery, it is scheduled again. So no queued message
//! overtakes a stashed one, and each message is moved twice, once in and once out, however long the
//! backlog is.
//!
//! ```text
//!   message for a unit that does not receive ──add──▶ backlog of the unit
//!   unit receives again ──schedule──▶ envelope at the front of the queue ──next──▶ unit
//!                      ▲                                                            │
//!                      └──────────────── receives still, backlog not empty ◀────────┘
//! ```

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::message::Envelope;

/// The stashed messages of one unit; never empty.
#[derive(Default)]
struct Backlog {
    messages: VecDeque<Envelope>,
    /// Whether the unit is scheduled: an envelope in the queue will deliver the first message.
    is_scheduled: bool,
}

#[derive(Default)]
pub(super) struct Stash {
    all: HashMap<Key, Backlog>,
    /// Maximum number of messages per unit.
    max_messages: usize,
    /// Number of messages moved in or out so far.
    #[cfg(test)]
    pub moved: u64,
}

impl Stash {
    /// Creates an empty stash that holds at most `max_messages` messages per unit.
    pub fn new(max_messages: usize) -> Self {
        Self { max_messages, ..Self::default() }
    }

    /// Stashes a message for its unit.
    ///
    /// # Errors
    /// Returns the envelope if the backlog is full.
    pub fn add(&mut self, envelope: Envelope) -> Result<(), Envelope> {
        if self.max_messages == 0 {
            return Err(envelope);
        }
        let messages = &mut self.all.entry(envelope.to).or_default().messages;
        if messages.len() >= self.max_messages {
            return Err(envelope);
        }
        messages.push_back(envelope);
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

    /// Marks a unit with stashed messages as scheduled. Returns whether the caller has to queue the
    /// envelope that delivers the first one; `false` if the unit has no stashed messages or was
    /// scheduled already.
    #[must_use]
    pub fn schedule(&mut self, unit: Key) -> bool {
        self.all
            .get_mut(&unit)
            .is_some_and(|backlog| !std::mem::replace(&mut backlog.is_scheduled, true))
    }

    /// Marks a unit as no longer scheduled, because the envelope arrived while the unit was not
    /// receiving.
    pub fn unschedule(&mut self, unit: Key) {
        if let Some(backlog) = self.all.get_mut(&unit) {
            backlog.is_scheduled = false;
        }
    }

    /// Removes and returns the first stashed message of a unit, or `None` if it has none. The unit
    /// is then no longer scheduled.
    pub fn next(&mut self, unit: Key) -> Option<Envelope> {
        let backlog = self.all.get_mut(&unit)?;
        backlog.is_scheduled = false;
        let first = backlog.messages.pop_front();
        if backlog.messages.is_empty() {
            self.all.remove(&unit);
        }
        #[cfg(test)]
        {
            self.moved += 1;
        }
        first
    }

    /// Removes and returns all messages of a unit, oldest first, or `None` if it has none.
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

    /// Removes and returns the messages of all units.
    pub fn take_all(&mut self) -> impl Iterator<Item = Envelope> + use<> {
        std::mem::take(&mut self.all).into_values().flat_map(|backlog| backlog.messages)
    }

    /// Frees unused capacity of the map, but not of individual backlogs.
    pub fn trim(&mut self) {
        self.all.shrink_to(0);
    }
}
