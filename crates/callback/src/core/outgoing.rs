//! Pending envelopes for other Workers, and the units that wait until the inboxes have accepted
//! them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::key::Key;
use crate::message::Envelope;
use crate::queue::Queue;
use crate::shared::Shared;

pub(crate) struct Outgoing {
    shared: Option<Arc<Shared>>,
    /// By Worker index, the envelopes waiting for room in that Worker's inbox, oldest first.
    waiting: Vec<VecDeque<Envelope>>,
    /// Units waiting until no envelope is pending for any Worker.
    waiting_for_room: Vec<Key>,
}

impl Outgoing {
    pub fn new(shared: Option<Arc<Shared>>) -> Self {
        let workers = shared.as_ref().map_or(0, |shared| shared.remotes.len());
        let waiting = (0..workers).map(|_| VecDeque::new()).collect();
        Self { shared, waiting, waiting_for_room: Vec::new() }
    }

    /// Returns the state shared by all threads of the runtime, or `None` for a core that is tested
    /// alone.
    pub fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// Sends an envelope to another Worker. If the inbox is full or earlier envelopes are pending,
    /// keeps it for [`flush`](Self::flush).
    ///
    /// # Errors
    /// Returns the envelope if it is for a Worker of another runtime, or after
    /// [`take_all`](Self::take_all).
    pub fn post(&mut self, envelope: Envelope) -> Result<(), Envelope> {
        let worker_number = envelope.to.worker_number();
        let remote = self.shared.as_ref().and_then(|shared| shared.remote(worker_number));
        let waiting = self.waiting.get_mut(usize::from(worker_number.index()));
        let Some((remote, waiting)) = remote.zip(waiting) else { return Err(envelope) };
        // Keep the order: nothing overtakes a pending envelope.
        let refused = if waiting.is_empty() { remote.push(envelope) } else { Err(envelope) };
        waiting.extend(refused.err());
        Ok(())
    }

    /// Returns whether the number of envelopes pending for the Worker with index `worker` has
    /// reached the configured capacity of an inbox.
    pub fn is_full(&self, worker: u8) -> bool {
        let capacity = self.shared.as_ref().map_or(usize::MAX, |shared| shared.capacity);
        self.waiting.get(usize::from(worker)).is_some_and(|waiting| waiting.len() >= capacity)
    }

    /// Returns whether any envelope waits for room in an inbox.
    pub fn is_blocked(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    /// Registers a unit, which [`flush`](Self::flush) starts once no envelope is pending.
    pub fn when_room(&mut self, unit: Key) {
        self.waiting_for_room.push(unit);
    }

    /// Sends pending envelopes to Workers whose inboxes have room. Once none are left, queues the
    /// units that waited for room. Returns whether it sent an envelope or queued a unit.
    pub fn flush(&mut self, queue: &mut Queue) -> bool {
        let mut sent = false;
        if let Some(shared) = &self.shared {
            for (waiting, remote) in self.waiting.iter_mut().zip(&shared.remotes) {
                while let Some(envelope) = waiting.pop_front() {
                    if let Err(envelope) = remote.push(envelope) {
                        waiting.push_front(envelope);
                        break;
                    }
                    sent = true;
                }
            }
        }
        if !self.waiting_for_room.is_empty() && !self.is_blocked() {
            self.waiting_for_room.drain(..).for_each(|key| queue.push(Envelope::start(key)));
            sent = true;
        }
        sent
    }

    /// Frees the spare capacity of each list beyond `min_capacity` elements.
    pub fn shrink_to(&mut self, min_capacity: usize) {
        self.waiting.iter_mut().for_each(|waiting| waiting.shrink_to(min_capacity));
        self.waiting_for_room.shrink_to(min_capacity);
    }

    /// Removes and returns all pending envelopes. Afterwards, [`post`](Self::post) accepts no
    /// further ones.
    pub fn take_all(&mut self) -> impl Iterator<Item = Envelope> + use<> {
        std::mem::take(&mut self.waiting).into_iter().flatten()
    }
}
