//! What goes to other Workers, and who waits until it has gone.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::key::Key;
use crate::message::Envelope;
use crate::queue::Queue;
use crate::receptor::Shared;

pub(super) struct Outgoing {
    shared: Option<Arc<Shared>>,
    /// What goes to each other Worker as soon as it has room.
    waiting: Vec<VecDeque<Envelope>>,
    /// Units that wait until all of that has gone.
    for_room: Vec<Key>,
}

impl Outgoing {
    pub fn new(shared: Option<Arc<Shared>>) -> Self {
        let workers = shared.as_ref().map_or(0, |shared| shared.doors.len());
        let waiting = (0..workers).map(|_| VecDeque::new()).collect();
        Self { shared, waiting, for_room: Vec::new() }
    }

    /// What all Workers share; a core that is tested alone has nothing.
    pub fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// Hands an envelope to another Worker, now or when it has room.
    pub fn post(&mut self, envelope: Envelope) {
        let to = usize::from(envelope.to.worker());
        let (Some(shared), Some(waiting)) = (&self.shared, self.waiting.get_mut(to)) else {
            return;
        };
        // Nobody overtakes those that wait.
        let refused =
            if waiting.is_empty() { shared.doors[to].push(envelope) } else { Err(envelope) };
        waiting.extend(refused.err());
    }

    /// Whether one more message to this Worker would make too many that wait.
    pub fn is_full(&self, worker: u8) -> bool {
        let capacity = self.shared.as_ref().map_or(usize::MAX, |shared| shared.capacity);
        self.waiting.get(usize::from(worker)).is_some_and(|waiting| waiting.len() >= capacity)
    }

    /// Whether something waits until another Worker has room for it.
    pub fn is_blocked(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    /// Runs a unit when nothing waits any more.
    pub fn when_room(&mut self, unit: Key) {
        self.for_room.push(unit);
    }

    /// Sends on what other Workers have room for now, and puts those who have waited for that into
    /// the queue. Returns whether there was something.
    pub fn send_on(&mut self, queue: &mut Queue) -> bool {
        let mut sent = false;
        if let Some(shared) = &self.shared {
            for (waiting, door) in self.waiting.iter_mut().zip(&shared.doors) {
                while let Some(envelope) = waiting.pop_front() {
                    if let Err(envelope) = door.push(envelope) {
                        waiting.push_front(envelope);
                        break;
                    }
                    sent = true;
                }
            }
        }
        if !self.for_room.is_empty() && !self.is_blocked() {
            self.for_room.drain(..).for_each(|key| queue.push(Envelope::start(key)));
            sent = true;
        }
        sent
    }

    /// Gives memory back, but for so many envelopes to each.
    pub fn shrink_to(&mut self, least: usize) {
        self.waiting.iter_mut().for_each(|waiting| waiting.shrink_to(least));
    }

    /// Drops what waits.
    pub fn clear(&mut self) {
        self.waiting.iter_mut().for_each(VecDeque::clear);
    }
}
