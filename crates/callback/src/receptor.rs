//! [`Receptor`]: the owner of a runtime.

use std::ops::Deref;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::handle::Handle;
use crate::shared::Shared;
use crate::watchdog::Watchdog;

/// A runtime, which accepts callback threads and distributes them over its Workers. Dropping it
/// shuts the runtime down, as [`shut_down`](Self::shut_down) does.
#[derive(Debug)]
pub struct Receptor {
    handle: Handle,
    threads: Vec<JoinHandle<()>>,
    watchdog: Option<Watchdog>,
}

impl Receptor {
    /// Creates a runtime; [`add`](Self::add) adds the threads of its Workers.
    pub(crate) fn new(shared: Arc<Shared>, watchdog: Option<Watchdog>) -> Self {
        Self { handle: Handle::new(shared), threads: Vec::new(), watchdog }
    }

    /// Adds a Worker's thread, which is joined when the runtime is dropped.
    pub(crate) fn add(&mut self, thread: JoinHandle<()>) {
        self.threads.push(thread);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Returns a handle to the runtime, which other threads can use.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends all callback threads and drops their closures, without notifying monitors and links.
    /// Blocks until all Workers other than the calling one have exited, and until a running
    /// [`on_slow`](crate::Builder::on_slow) hook has returned, unless it is the caller. Does not
    /// wait for running blocking work.
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
            let _ = thread.join(); // a Worker catches panics, so this is no error
        }
        drop(self.watchdog.take());
    }
}
