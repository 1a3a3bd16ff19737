//! [`Handle`]: access to a runtime from any thread.
//!
//! This module and `context.rs` import each other: a [`Handle`] spawns closures that take a
//! [`Context`], and a context returns a handle. `core.rs` explains this cycle under "Imports".
//! Everything that does not depend on the types of messages or closures is in `shared.rs`, so that
//! the core does not need this module.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::blocking;
use crate::context::Context;
use crate::control::control;
use crate::counts::Counts;
use crate::error::{SendError, SpawnError};
use crate::handler::once;
use crate::key::{Address, Id};
use crate::message::{Envelope, Pool};
use crate::next::{Never, Next};
use crate::remote::WorkerRemote;
use crate::reply::{Promise, Reply};
use crate::shared::Shared;
use crate::worker_thread::{assert_may_wait, is_worker_thread};

/// A handle to a runtime, which any thread can use. Clones refer to the same runtime.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns the number of Workers.
    pub fn workers(&self) -> usize {
        self.shared.remotes.len()
    }

    /// Returns the number of callback threads that have not ended. Workers report changes after
    /// each batch of callbacks, so the number may lag.
    pub fn alive(&self) -> u64 {
        self.shared.alive.count()
    }

    /// Returns the sum of all Workers' counts. Workers publish their counts when they become idle,
    /// so the result may lag.
    pub fn counts(&self) -> Counts {
        let each = self.shared.remotes.iter().map(|remote| remote.published.counts());
        each.fold(Counts::default(), Counts::plus)
    }

    /// Returns the size in bytes of all Workers' pages for callback threads, including empty pages
    /// kept for reuse. Workers publish it when they become idle, so the result may lag.
    pub fn bytes(&self) -> u64 {
        let bytes = |remote: &WorkerRemote| remote.published.bytes.load(Ordering::Relaxed);
        self.shared.remotes.iter().map(bytes).sum()
    }

    /// Starts a callback thread on the next Worker, in round-robin order. Blocks until that
    /// Worker's inbox has room.
    ///
    /// # Errors
    /// - [`SpawnError::NoRoom`] if that Worker's memory is used up.
    /// - [`SpawnError::ShutDown`] if the runtime is shut down, even while this waits.
    /// - [`SpawnError::Full`] if the inbox is full and the caller is a callback, which must not
    ///   block.
    pub fn spawn<F>(&self, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        self.spawn_receiving::<Never, F>(callback).map(Address::id)
    }

    /// Starts a callback thread on the next Worker, in round-robin order, if its inbox has room.
    /// Never blocks.
    ///
    /// # Errors
    /// [`SpawnError::Full`] if the inbox is full, [`SpawnError::NoRoom`] if the Worker's memory is
    /// used up, [`SpawnError::ShutDown`] after shutdown.
    pub fn try_spawn<F>(&self, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        let spawned = self.try_spawn_on::<Never, F>(self.next_worker(), callback);
        spawned.map(Address::id).map_err(|(_, error)| error)
    }

    /// Starts a callback thread that receives messages of type `M` on the next Worker, in
    /// round-robin order. Blocks until that Worker's inbox has room.
    ///
    /// # Errors
    /// See [`spawn`](Self::spawn).
    pub fn spawn_receiving<M, F>(&self, callback: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.spawn_on(self.next_worker(), callback)
    }

    /// Starts a callback thread that receives messages of type `M` on the Worker with index
    /// `worker`. Blocks until its inbox has room.
    ///
    /// # Errors
    /// See [`spawn`](Self::spawn).
    ///
    /// # Panics
    /// Panics if there is no Worker with index `worker`.
    pub fn spawn_on<M, F>(&self, worker: usize, callback: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        let spawned = self.shared.remotes[worker].when_room(callback, |callback| {
            match self.try_spawn_on(worker, callback) {
                Ok(address) => Ok(Ok(address)),
                Err((callback, SpawnError::Full)) => Err(callback),
                Err((_, error)) => Ok(Err(error)),
            }
        });
        spawned.unwrap_or(Err(SpawnError::Full))
    }

    /// Starts a callback thread that answers with a [`Reply`] on the next Worker, in round-robin
    /// order, and returns the promise of the answer. Blocks until that Worker's inbox has room.
    ///
    /// # Errors
    /// See [`spawn`](Self::spawn).
    pub fn spawn_reply<T, F>(&self, callback: F) -> Result<Promise<T>, SpawnError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Context<'_>, Reply<T>) -> Next + Send + 'static,
    {
        let (reply, promise) = Reply::to_thread();
        self.spawn(move |context| callback(context, reply)).map(|_| promise)
    }

    /// Runs `work` on a separate thread, where it may block. Blocks until the queue of blocking
    /// work has room. If there is no thread for blocking work and none can be started, `work` runs
    /// on the calling thread. The promise returns [`NoReply::Ended`](crate::NoReply::Ended) if
    /// `work` panics, or if the runtime is shut down before `work` starts.
    ///
    /// # Errors
    /// [`SpawnError::ShutDown`] if the runtime is shut down, even while this waits.
    /// [`SpawnError::Full`] if the queue is full and the caller is a callback, which must not
    /// block.
    pub fn spawn_blocking<T, W>(&self, work: W) -> Result<Promise<T>, SpawnError>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let may_wait = !is_worker_thread();
        self.push_job(
            work,
            if may_wait {
                blocking::ThreadPool::push_waiting
            } else {
                blocking::ThreadPool::try_push
            },
        )
    }

    /// Runs `work` as [`spawn_blocking`](Self::spawn_blocking) does, but does not wait for room in
    /// the queue.
    ///
    /// # Errors
    /// [`SpawnError::Full`] if the queue of blocking work is full, [`SpawnError::ShutDown`] after
    /// shutdown.
    pub fn try_spawn_blocking<T, W>(&self, work: W) -> Result<Promise<T>, SpawnError>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.push_job(work, blocking::ThreadPool::try_push)
    }

    fn push_job<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        push: fn(&Arc<blocking::ThreadPool>, blocking::Job) -> Result<(), SpawnError>,
    ) -> Result<Promise<T>, SpawnError> {
        let (reply, promise) = Reply::to_thread();
        push(&self.shared.blocking, Box::new(move || reply.send(work()))).map(|()| promise)
    }

    fn try_spawn_on<M, F>(&self, worker: usize, callback: F) -> Result<Address<M>, (F, SpawnError)>
    where
        M: Send + 'static,
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        if self.shared.is_down() {
            return Err((callback, SpawnError::ShutDown));
        }
        let remote = &self.shared.remotes[worker];
        let Some(key) = remote.take_slot() else {
            let error = if remote.has_no_room() { SpawnError::NoRoom } else { SpawnError::Full };
            return Err((callback, error));
        };
        self.shared.alive.add(1);
        remote.push_always(control(key.worker_number(), move |core| {
            core.fill_reserved(key, once::<M, F>(callback));
        }));
        Ok(Address::new(key))
    }

    fn next_worker(&self) -> usize {
        self.shared.next_worker.fetch_add(1, Ordering::Relaxed) % self.shared.remotes.len()
    }

    /// Sends a message. Blocks until the inbox of the receiver's Worker has room.
    ///
    /// # Errors
    /// - [`SendError::ShutDown`] if the runtime is shut down, even while this waits.
    /// - [`SendError::Ended`] if the receiver belongs to another runtime. A receiver in this
    ///   runtime that has ended is not an error: the message is dropped and counted in
    ///   [`Counts::undeliverable`].
    /// - [`SendError::Full`] if there is no room and the caller is a callback, which must not
    ///   block.
    pub fn send<M: Send + 'static>(&self, to: Address<M>, message: M) -> Result<(), SendError<M>> {
        let Some(remote) = self.remote(to.id()) else { return Err(SendError::Ended(message)) };
        let sent = remote.when_room(message, |message| match self.try_send(to, message) {
            Err(SendError::Full(message)) => Err(message),
            done => Ok(done),
        });
        sent.unwrap_or_else(|message| Err(SendError::Full(message)))
    }

    /// Sends a message even if the inbox of the receiver's Worker is full. Never blocks. The inbox
    /// grows without bound if messages are sent faster than they are received; for wake-ups without
    /// data, prefer [`Notify`](crate::Notify), which needs no room. Messages from one thread to one
    /// receiver arrive in order, whichever methods of `Handle` send them.
    ///
    /// # Errors
    /// [`SendError::ShutDown`], [`SendError::Ended`] as for [`send`](Self::send).
    pub fn send_unbounded<M: Send + 'static>(
        &self,
        to: Address<M>,
        message: M,
    ) -> Result<(), SendError<M>> {
        let (remote, message) = self.remote_of(to, message)?;
        remote.push_always(Envelope::message(to.id().0, message, &mut Pool::default()));
        Ok(())
    }

    /// Sends a message if the inbox of the receiver's Worker has room. Never blocks. The error
    /// contains the message.
    ///
    /// # Errors
    /// [`SendError::Full`] if the inbox is full; [`SendError::ShutDown`], [`SendError::Ended`] as
    /// for [`send`](Self::send).
    pub fn try_send<M: Send + 'static>(
        &self,
        to: Address<M>,
        message: M,
    ) -> Result<(), SendError<M>> {
        let (remote, message) = self.remote_of(to, message)?;
        let mut pool = Pool::default();
        let envelope = Envelope::message(to.id().0, message, &mut pool);
        remote.push(envelope).map_err(|envelope| {
            // SAFETY: the envelope was created above with a message of type `M`.
            let message = envelope.open(|at| unsafe { crate::message::take::<M>(at, &mut pool) });
            SendError::Full(message)
        })
    }

    /// Ends a callback thread, but does not wait for its end. Does nothing if it has already ended
    /// or belongs to another runtime. Blocks until the inbox of its Worker has room, except in a
    /// callback, which must not block: there, the request ignores the inbox's capacity.
    pub fn cancel(&self, id: Id) {
        let Some(remote) = self.remote(id) else { return };
        let cancelled = remote.when_room(Envelope::cancel(id.0), |cancel| {
            if self.shared.is_down() { Ok(()) } else { remote.push(cancel) }
        });
        if let Err(cancel) = cancelled {
            remote.push_always(cancel);
        }
    }

    /// Blocks until all callback threads have ended, or the runtime is shut down. A supervisor ends
    /// only when it gives up or is cancelled. Does not wait for blocking work that no callback
    /// thread waits for.
    ///
    /// # Panics
    /// Panics in a callback of any runtime, because the callback's own Worker could wait for
    /// itself.
    pub fn wait(&self) {
        assert_may_wait("Handle::wait");
        self.shared.alive.wait(|| self.shared.is_down());
    }

    /// Returns the remote of the receiver's Worker, and the message.
    ///
    /// # Errors
    /// [`SendError::ShutDown`] after shutdown; [`SendError::Ended`] if the receiver belongs to
    /// another runtime.
    fn remote_of<M>(&self, to: Address<M>, message: M) -> Result<(&WorkerRemote, M), SendError<M>> {
        if self.shared.is_down() {
            return Err(SendError::ShutDown(message));
        }
        match self.remote(to.id()) {
            Some(remote) => Ok((remote, message)),
            None => Err(SendError::Ended(message)),
        }
    }

    fn remote(&self, id: Id) -> Option<&WorkerRemote> {
        self.shared.remote(id.0.worker_number())
    }
}
