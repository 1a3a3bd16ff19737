//! The state shared by all threads of a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::blocking;
use crate::key::WorkerNumber;
use crate::message::Envelope;
use crate::remote::{Alive, WorkerRemote};

/// The state shared by all threads of a runtime: the remote side of each Worker, the shutdown flag,
/// and the thread pool for blocking work.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The numbers of the runtime's Workers, by index; they are unique in the process.
    worker_numbers: Vec<WorkerNumber>,
    pub remotes: Vec<WorkerRemote>,
    pub alive: Alive,
    /// Counter that selects the Worker of the next unit, round robin.
    pub next_worker: AtomicUsize,
    down: AtomicBool,
    /// Number of slots that each Worker reserves for units from other threads, and number of
    /// envelopes pending for one Worker at which [`Context::send`](crate::Context::send) fails.
    pub capacity: usize,
    /// Maximum time for which a Worker spins before it sleeps; `None` if it does not spin.
    pub spin: Option<Duration>,
    pub blocking: Arc<blocking::ThreadPool>,
}

impl Shared {
    pub fn new(
        worker_numbers: Vec<WorkerNumber>,
        remotes: Vec<WorkerRemote>,
        capacity: usize,
        spin: Option<Duration>,
        blocking: blocking::ThreadPool,
    ) -> Self {
        Self {
            worker_numbers,
            remotes,
            alive: Alive::default(),
            next_worker: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            capacity,
            spin,
            blocking: Arc::new(blocking),
        }
    }

    /// Returns the remote of a Worker, or `None` if the Worker belongs to another runtime.
    pub fn remote(&self, worker_number: WorkerNumber) -> Option<&WorkerRemote> {
        let worker = usize::from(worker_number.index());
        self.remotes.get(worker).filter(|_| self.worker_numbers[worker] == worker_number)
    }

    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    /// Sends an envelope to the Worker of its receiver, even if its inbox is full. Drops the
    /// envelope after shutdown, or if the receiver belongs to another runtime.
    pub fn post(&self, envelope: Envelope) {
        if !self.is_down()
            && let Some(remote) = self.remote(envelope.to.worker_number())
        {
            remote.push_always(envelope);
        }
    }

    pub fn shut_down(&self) {
        self.down.store(true, Ordering::SeqCst);
        for remote in &self.remotes {
            remote.wake();
        }
        self.blocking.shut_down();
        self.alive.wake_waiters();
    }
}
