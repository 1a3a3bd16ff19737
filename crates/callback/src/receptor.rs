//! The Receptor: where callback threads come in.

use std::ops::Deref;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::handle::Handle;
use crate::shared::Shared;
use crate::watchdog::Watchdog;

/// The runtime: accepts callback threads and hands them to its Workers, which run them. Dropped, it
/// ends them all.
#[derive(Debug)]
pub struct Receptor {
    handle: Handle,
    threads: Vec<JoinHandle<()>>,
    watchdog: Option<Watchdog>,
}

impl Receptor {
    /// Without Workers yet.
    pub(crate) fn new(shared: Arc<Shared>, watchdog: Option<Watchdog>) -> Self {
        Self { handle: Handle::new(shared), threads: Vec::new(), watchdog }
    }

    /// Is to join a Worker's thread.
    pub(crate) fn add(&mut self, thread: JoinHandle<()>) {
        self.threads.push(thread);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Reaches it from elsewhere.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends all callback threads: what they have is dropped, nobody is told. Returns when that has
    /// happened. Blocking work that has begun is not waited for.
    pub fn shut_down(self) {}
}

impl Deref for Receptor {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Receptor {
    fn drop(&mut self) {
        self.handle.shared.shut_down();
        let own = thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            let _ = thread.join(); // a Worker ends only by being asked to
        }
        drop(self.watchdog.take());
    }
}
