//! The Receptor: where callback threads come in.

use std::fmt;
use std::io;
use std::num::NonZero;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::blocking;
use crate::clock::Clock;
use crate::code::Once;
use crate::context::{Context, Next, Nothing, SendError, SpawnError};
use crate::core::{Core, Counts};
use crate::door::{Alive, Door};
use crate::key::{Address, Id};
use crate::message::{Envelope, Pool};
use crate::reply::{Promise, Reply};
use crate::watchdog::{self, Hook, Slow};
use crate::worker::Worker;

/// What an inbox takes unless told otherwise.
const INBOX: usize = 1024;
/// Threads for what blocks, at most, unless told otherwise.
const BLOCKING: usize = 64;
/// Messages that a unit keeps for later unless told otherwise.
const KEPT: usize = 65_536;

/// How a runtime is to be.
#[derive(Clone)]
#[must_use = "nothing happens before `start`"]
pub struct Builder {
    workers: usize,
    inbox: usize,
    unbounded: bool,
    kept: usize,
    memory: Option<usize>,
    spin: Option<Duration>,
    blocking: usize,
    slow: Option<(Duration, Hook)>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            workers,
            inbox: INBOX,
            unbounded: false,
            kept: KEPT,
            memory: None,
            spin: None,
            blocking: BLOCKING,
            slow: None,
        }
    }
}

impl Builder {
    /// Workers, from 1 to 255. One for each CPU that the process may use unless told otherwise.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, 255);
        self
    }

    /// Messages and new callback threads that a Worker's inbox takes before it is full, rounded up
    /// to a power of two. 1024 unless told otherwise.
    pub fn inbox(mut self, inbox: usize) -> Self {
        (self.inbox, self.unbounded) = (inbox.clamp(2, 1 << 24), false);
        self
    }

    /// Lets inboxes grow without a bound: whoever sends faster than Workers work uses up memory.
    /// Places for callback threads from other threads are still as many as before.
    pub fn unbounded_inbox(mut self) -> Self {
        self.unbounded = true;
        self
    }

    /// Messages that are kept for a callback thread that does not receive at present. What comes
    /// beyond is dropped and counted in [`Counts::refused`]. 65,536 unless told otherwise.
    pub fn kept_messages(mut self, most: usize) -> Self {
        self.kept = most;
        self
    }

    /// Memory for callback threads, in bytes, divided among the Workers. Only what is used is
    /// taken. As much as the machine has unless told otherwise.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// How long a Worker looks for something to do before it sleeps. Not at all unless told
    /// otherwise; with a CPU for each Worker, some microseconds make what passes between them
    /// quicker.
    pub fn spin(mut self, most: Duration) -> Self {
        self.spin = (!most.is_zero()).then_some(most);
        self
    }

    /// Threads for what blocks, at most. 64 unless told otherwise; there are none until they are
    /// needed.
    pub fn blocking_threads(mut self, most: usize) -> Self {
        self.blocking = most.max(1);
        self
    }

    /// Tells `hook` of callbacks that run for longer than this, and hold up all others of their
    /// Worker: once each, while they still run. A thread of its own looks four times in this time.
    pub fn on_slow(mut self, limit: Duration, hook: impl Fn(Slow) + Send + Sync + 'static) -> Self {
        self.slow = Some((limit, Arc::new(hook)));
        self
    }

    /// The same, with a line on standard error.
    #[expect(clippy::print_stderr, reason = "what it is for")]
    pub fn warn_after(self, limit: Duration) -> Self {
        self.on_slow(limit, |slow| eprintln!("warning: {slow}"))
    }

    /// Starts the Workers.
    ///
    /// # Errors
    /// If there is no address space for them, or a thread cannot be started.
    pub fn start(self) -> io::Result<Receptor> {
        let clock = Clock::Real(Instant::now());
        let memory = self.memory.unwrap_or_else(machine_memory) / self.workers;
        let door = |_| Door::new(self.inbox, self.unbounded);
        let shared = Arc::new(Shared {
            doors: (0..self.workers).map(door).collect(),
            alive: Alive::default(),
            next: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            capacity: self.inbox,
            spin: self.spin,
            blocking: Arc::new(blocking::Pool::new(self.blocking)),
        });
        let watched = self.slow.is_some();
        let watchdog = match self.slow {
            Some((limit, hook)) => Some(watchdog::start(Arc::clone(&shared), limit, hook)?),
            None => None,
        };
        let mut receptor = Receptor { handle: Handle { shared }, threads: Vec::new(), watchdog };
        for number in 0..self.workers {
            let shared = Arc::clone(&receptor.handle.shared);
            let worker = u8::try_from(number).map_err(io::Error::other)?;
            let (clock, kept) = (clock.clone(), self.kept);
            let mut core = Core::new(worker, memory, kept, clock, Some(Arc::clone(&shared)))?;
            core.watched = watched;
            let thread = thread::Builder::new().name(format!("callback-{number}"));
            let thread = thread.spawn(move || {
                // Timers are to be late by microseconds, not by the default of fifty more.
                let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
                Worker::new(core, shared).run();
            })?;
            receptor.threads.push(thread);
        }
        Ok(receptor)
    }
}

/// Bytes of memory that the machine has.
fn machine_memory() -> usize {
    let info = rustix::system::sysinfo();
    usize::try_from(info.totalram).unwrap_or(usize::MAX).saturating_mul(info.mem_unit as usize)
}

/// What all threads of a runtime share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub doors: Vec<Door>,
    pub alive: Alive,
    /// The Worker that the next unit goes to.
    next: AtomicUsize,
    down: AtomicBool,
    /// Places that each Worker keeps for units from elsewhere.
    pub capacity: usize,
    pub spin: Option<Duration>,
    pub blocking: Arc<blocking::Pool>,
}

impl Shared {
    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    fn shut_down(&self) {
        self.down.store(true, Ordering::SeqCst);
        for door in &self.doors {
            door.call();
        }
        self.blocking.shut_down();
        self.alive.tell();
    }
}

/// Reaches a runtime from any thread. Clones reach the same one.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
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

    /// Hands over what must not be refused.
    pub(crate) fn post(&self, envelope: Envelope) {
        if !self.shared.is_down() {
            self.shared.doors[usize::from(envelope.to.worker())].push_always(envelope);
        }
    }

    /// How many Workers there are.
    pub fn workers(&self) -> usize {
        self.shared.doors.len()
    }

    /// How many callback threads there are that have not ended. Workers tell after some turns.
    pub fn alive(&self) -> u64 {
        self.shared.alive.count()
    }

    /// What has happened so far, as far as Workers have told: they do when they have nothing to do.
    pub fn counts(&self) -> Counts {
        let each = self.shared.doors.iter().map(|door| door.published.counts());
        each.fold(Counts::default(), Counts::plus)
    }

    /// Bytes of the pages in which callback threads are kept, as far as Workers have told.
    pub fn bytes(&self) -> u64 {
        let bytes = |door: &Door| door.published.bytes.load(Ordering::Relaxed);
        self.shared.doors.iter().map(bytes).sum()
    }

    /// Starts a callback thread on the next Worker, waiting for room in its inbox.
    ///
    /// # Errors
    /// [`SpawnError::ShutDown`].
    pub fn spawn<F>(&self, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        self.spawn_receiving::<Nothing, F>(callback).map(Address::id)
    }

    /// Starts a callback thread on the next Worker, if its inbox has room.
    ///
    /// # Errors
    /// [`SpawnError::Full`], [`SpawnError::ShutDown`].
    pub fn try_spawn<F>(&self, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        let spawned = self.try_spawn_on::<Nothing, F>(self.next(), callback);
        spawned.map(Address::id).map_err(|(_, error)| error)
    }

    /// Starts one that receives messages of type `M`, waiting for room.
    ///
    /// # Errors
    /// [`SpawnError::ShutDown`].
    pub fn spawn_receiving<M, F>(&self, callback: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.spawn_on(self.next(), callback)
    }

    /// The same on a Worker of one's choice.
    ///
    /// # Errors
    /// [`SpawnError::ShutDown`].
    ///
    /// # Panics
    /// If there is no Worker of this number.
    pub fn spawn_on<M, F>(&self, worker: usize, callback: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.shared.doors[worker].when_room(callback, |callback| {
            match self.try_spawn_on(worker, callback) {
                Ok(address) => Ok(Ok(address)),
                Err((callback, SpawnError::Full)) => Err(callback),
                Err((_, error)) => Ok(Err(error)),
            }
        })
    }

    /// Starts one that is to answer, waiting for room.
    ///
    /// # Errors
    /// [`SpawnError::ShutDown`].
    pub fn spawn_reply<T, F>(&self, callback: F) -> Result<Promise<T>, SpawnError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Context<'_>, Reply<T>) -> Next + Send + 'static,
    {
        let (reply, promise) = Reply::to_thread();
        self.spawn(move |context| callback(context, reply)).map(|_| promise)
    }

    /// Has `work` done on a thread where it may block. No answer comes if it panics, or the
    /// runtime is shut down before it begins.
    pub fn spawn_blocking<T, W>(&self, work: W) -> Promise<T>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (reply, promise) = Reply::to_thread();
        self.shared.blocking.give(Box::new(move || reply.send(work())));
        promise
    }

    fn try_spawn_on<M, F>(&self, worker: usize, callback: F) -> Result<Address<M>, (F, SpawnError)>
    where
        M: Send + 'static,
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        if self.shared.is_down() {
            return Err((callback, SpawnError::ShutDown));
        }
        let door = &self.shared.doors[worker];
        let Some(key) = door.take_place() else { return Err((callback, SpawnError::Full)) };
        self.shared.alive.add(1);
        door.push_always(Envelope::control(key.worker(), move |core| {
            core.settle(key, Once::<F, M>::new(callback));
        }));
        Ok(Address::new(key))
    }

    fn next(&self) -> usize {
        self.shared.next.fetch_add(1, Ordering::Relaxed) % self.shared.doors.len()
    }

    /// Sends a message, waiting for room in the inbox.
    ///
    /// # Errors
    /// [`SendError::ShutDown`]. That the receiver has ended cannot be known here; such messages are
    /// counted in [`Counts::undeliverable`].
    pub fn send<M: Send + 'static>(&self, to: Address<M>, message: M) -> Result<(), SendError<M>> {
        self.door(to.id()).when_room(message, |message| match self.try_send(to, message) {
            Err(SendError::Full(message)) => Err(message),
            done => Ok(done),
        })
    }

    /// Sends a message, if the inbox has room.
    ///
    /// # Errors
    /// [`SendError::Full`], [`SendError::ShutDown`].
    pub fn try_send<M: Send + 'static>(
        &self,
        to: Address<M>,
        message: M,
    ) -> Result<(), SendError<M>> {
        if self.shared.is_down() {
            return Err(SendError::ShutDown(message));
        }
        let mut pool = Pool::default();
        let envelope = Envelope::message(to.id().0, message, &mut pool);
        self.door(to.id()).push(envelope).map_err(|envelope| {
            // SAFETY: this is the message that was put in above.
            let message = envelope.open(|at| unsafe { crate::message::take::<M>(at, &mut pool) });
            SendError::Full(message)
        })
    }

    /// Ends a callback thread, waiting for room in the inbox; nothing happens if it has ended.
    pub fn cancel(&self, id: Id) {
        let door = self.door(id);
        door.when_room(Envelope::cancel(id.0), |cancel| {
            if self.shared.is_down() { Ok(()) } else { door.push(cancel) }
        });
    }

    /// Waits until all callback threads have ended, or the runtime is shut down. Not from within
    /// one: it would wait for itself.
    pub fn wait(&self) {
        self.shared.alive.wait(|| self.shared.is_down());
    }

    fn door(&self, id: Id) -> &Door {
        &self.shared.doors[id.worker()]
    }
}

/// The runtime: accepts callback threads and hands them to its Workers, which run them. Dropped, it
/// ends them all.
#[derive(Debug)]
pub struct Receptor {
    handle: Handle,
    threads: Vec<JoinHandle<()>>,
    watchdog: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Receptor {
    /// One with all defaults.
    ///
    /// # Errors
    /// See [`Builder::start`].
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// One that is to be different.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Reaches it from elsewhere.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends all callback threads: what they have is dropped, nobody is told. Returns when that has
    /// happened.
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
        if let Some((stop, thread)) = self.watchdog.take() {
            drop(stop);
            let _ = thread.join(); // a hook that panics has been heard of
        }
    }
}
