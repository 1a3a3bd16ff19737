//! Messages to units that do not receive at present.

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::message::Envelope;

#[derive(Default)]
pub(super) struct Kept {
    all: HashMap<Key, VecDeque<Envelope>>,
    /// So many for each unit.
    most: usize,
}

impl Kept {
    /// Nothing yet; later so many for each unit.
    pub fn new(most: usize) -> Self {
        Self { all: HashMap::new(), most }
    }

    /// Keeps one more for its unit, unless there are too many.
    ///
    /// # Errors
    /// The envelope.
    pub fn add(&mut self, envelope: Envelope) -> Result<(), Envelope> {
        let kept = self.all.entry(envelope.to).or_default();
        if kept.len() >= self.most {
            return Err(envelope);
        }
        kept.push_back(envelope);
        Ok(())
    }

    /// Whether there are none at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes out those of a unit, in the order in which they came.
    pub fn take(&mut self, unit: Key) -> Option<VecDeque<Envelope>> {
        if self.all.is_empty() { None } else { self.all.remove(&unit) }
    }

    /// Takes out all of them.
    pub fn take_all(&mut self) -> impl Iterator<Item = Envelope> + use<> {
        std::mem::take(&mut self.all).into_values().flatten()
    }

    /// Gives memory back that was needed for more than there is now.
    pub fn trim(&mut self) {
        self.all.shrink_to(0);
    }
}
