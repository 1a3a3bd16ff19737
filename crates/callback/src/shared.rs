//! What all threads of a runtime share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::blocking;
use crate::door::{Alive, Door};
use crate::key::Home;
use crate::message::Envelope;

/// What all threads of a runtime share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Its Workers' numbers in the process.
    homes: Vec<Home>,
    pub doors: Vec<Door>,
    pub alive: Alive,
    /// The Worker that the next unit goes to.
    pub next: AtomicUsize,
    down: AtomicBool,
    /// Places that each Worker keeps for units from elsewhere.
    pub capacity: usize,
    pub spin: Option<Duration>,
    pub blocking: Arc<blocking::Pool>,
}

impl Shared {
    pub fn new(
        homes: Vec<Home>,
        doors: Vec<Door>,
        capacity: usize,
        spin: Option<Duration>,
        blocking: blocking::Pool,
    ) -> Self {
        Self {
            homes,
            doors,
            alive: Alive::default(),
            next: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            capacity,
            spin,
            blocking: Arc::new(blocking),
        }
    }

    /// The door of a Worker, if it is one of this runtime's.
    pub fn door(&self, home: Home) -> Option<&Door> {
        let worker = usize::from(home.worker());
        self.doors.get(worker).filter(|_| self.homes[worker] == home)
    }

    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    /// Delivers an envelope to any Worker of the runtime, even if its inbox is full. Drops it once the runtime has
    /// been shut down.
    pub fn post(&self, envelope: Envelope) {
        if !self.is_down()
            && let Some(door) = self.door(envelope.to.home())
        {
            door.push_always(envelope);
        }
    }

    pub fn shut_down(&self) {
        self.down.store(true, Ordering::SeqCst);
        for door in &self.doors {
            door.call();
        }
        self.blocking.shut_down();
        self.alive.tell();
    }
}
