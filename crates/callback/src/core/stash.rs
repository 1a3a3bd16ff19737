//! Messages to units that do not receive at present.
//!
//! # Protocol
//! Messages kept for a unit are older than those queued for it. When the unit receives again, it is *called*: an
//! envelope is put at the front of the queue which hands over the next kept message. If the unit still receives after
//! that, it is called again. So no queued message overtakes a kept one, and each message is moved twice, however
//! long the backlog is: once in and once out.

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::message::Envelope;

/// What is kept for one unit, which is at least one message.
#[derive(Default)]
struct Backlog {
    messages: VecDeque<Envelope>,
    /// An envelope that hands over the first message is in the queue.
    is_called: bool,
}

#[derive(Default)]
pub(super) struct Stash {
    all: HashMap<Key, Backlog>,
    /// So many for each unit.
    most: usize,
    /// Messages that were put in or taken out.
    #[cfg(test)]
    pub moved: u64,
}

impl Stash {
    /// Nothing yet; later so many for each unit.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Keeps one more for its unit, unless there are too many.
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

    /// Whether there are none at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Marks a unit with kept messages as called. Returns whether it has any and was not called yet.
    #[must_use]
    pub fn call(&mut self, unit: Key) -> bool {
        self.all.get_mut(&unit).is_some_and(|kept| !std::mem::replace(&mut kept.is_called, true))
    }

    /// Marks a unit as not called: the envelope arrived while the unit was not receiving.
    pub fn recall(&mut self, unit: Key) {
        if let Some(kept) = self.all.get_mut(&unit) {
            kept.is_called = false;
        }
    }

    /// Takes out the first of them, for a unit that was called.
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

    /// Takes out those of a unit, in the order in which they came.
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

    /// Takes out all of them.
    pub fn take_all(&mut self) -> impl Iterator<Item = Envelope> + use<> {
        std::mem::take(&mut self.all).into_values().flat_map(|kept| kept.messages)
    }

    /// Gives memory back that was needed for more than there is now.
    pub fn trim(&mut self) {
        self.all.shrink_to(0);
    }
}
