//! What all threads of a runtime share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::blocking;
use crate::key::Home;
use crate::message::Envelope;
use crate::remote::{Alive, WorkerRemote};

/// What all threads of a runtime share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The numbers of its Workers, which are unique in the process.
    homes: Vec<Home>,
    pub remotes: Vec<WorkerRemote>,
    pub alive: Alive,
    /// Counter for the Worker that the next unit goes to.
    pub next: AtomicUsize,
    down: AtomicBool,
    /// Slots that each Worker reserves for units from other threads.
    pub capacity: usize,
    pub spin: Option<Duration>,
    pub blocking: Arc<blocking::Pool>,
}

impl Shared {
    pub fn new(
        homes: Vec<Home>,
        remotes: Vec<WorkerRemote>,
        capacity: usize,
        spin: Option<Duration>,
        blocking: blocking::Pool,
    ) -> Self {
        Self {
            homes,
            remotes,
            alive: Alive::default(),
            next: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            capacity,
            spin,
            blocking: Arc::new(blocking),
        }
    }

    /// Returns the remote of a Worker, if it belongs to this runtime.
    pub fn remote(&self, home: Home) -> Option<&WorkerRemote> {
        let worker = usize::from(home.worker());
        self.remotes.get(worker).filter(|_| self.homes[worker] == home)
    }

    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    /// Delivers an envelope to any Worker of the runtime, even if its inbox is full. Drops it once the runtime has
    /// been shut down.
    pub fn post(&self, envelope: Envelope) {
        if !self.is_down()
            && let Some(remote) = self.remote(envelope.to.home())
        {
            remote.push_always(envelope);
        }
    }

    pub fn shut_down(&self) {
        self.down.store(true, Ordering::SeqCst);
        for remote in &self.remotes {
            remote.call();
        }
        self.blocking.shut_down();
        self.alive.tell();
    }
}
