//! What goes to other Workers, and who waits until it has gone.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::key::Key;
use crate::message::Envelope;
use crate::queue::Queue;
use crate::shared::Shared;

pub(crate) struct Outgoing {
    shared: Option<Arc<Shared>>,
    /// What goes to each other Worker as soon as it has room.
    waiting: Vec<VecDeque<Envelope>>,
    /// Units that wait until all of that has gone.
    for_room: Vec<Key>,
}

impl Outgoing {
    pub fn new(shared: Option<Arc<Shared>>) -> Self {
        let workers = shared.as_ref().map_or(0, |shared| shared.remotes.len());
        let waiting = (0..workers).map(|_| VecDeque::new()).collect();
        Self { shared, waiting, for_room: Vec::new() }
    }

    /// What all Workers share; a core that is tested alone has nothing.
    pub fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// Hands an envelope to another Worker, now or when it has room.
    ///
    /// # Errors
    /// The envelope, if it is for no Worker of this runtime.
    pub fn post(&mut self, envelope: Envelope) -> Result<(), Envelope> {
        let home = envelope.to.home();
        let remote = self.shared.as_ref().and_then(|shared| shared.remote(home));
        let waiting = self.waiting.get_mut(usize::from(home.worker()));
        let Some((remote, waiting)) = remote.zip(waiting) else { return Err(envelope) };
        // Nobody overtakes those that wait.
        let refused = if waiting.is_empty() { remote.push(envelope) } else { Err(envelope) };
        waiting.extend(refused.err());
        Ok(())
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
        if !self.for_room.is_empty() && !self.is_blocked() {
            self.for_room.drain(..).for_each(|key| queue.push(Envelope::start(key)));
            sent = true;
        }
        sent
    }

    /// Gives memory back, but for so many envelopes to each.
    pub fn shrink_to(&mut self, least: usize) {
        self.waiting.iter_mut().for_each(|waiting| waiting.shrink_to(least));
        self.for_room.shrink_to(least);
    }

    /// Takes out what waits.
    pub fn take_all(&mut self) -> impl Iterator<Item = Envelope> + use<> {
        std::mem::take(&mut self.waiting).into_iter().flatten()
    }
}
