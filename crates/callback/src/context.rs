//! [`Context`]: the operations available to a running callback.
//!
//! A context borrows the core while a callback runs. See `core.rs` for the circular imports.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::nanoseconds;
use crate::control::control;
use crate::core::{Core, Until};
use crate::error::{NoRoom, SendError, SpawnError};
use crate::handle::Handle;
use crate::handler::{Handler, once, receive, receive_once, receive_within};
use crate::io::{Interest, Source};
use crate::key::{Address, Id, Key};
use crate::message::{Envelope, Pool};
use crate::next::{Never, Next, Wanted};
use crate::notify::Notify;
use crate::panics::catch_panic;
use crate::reason::{Down, Reason};
use crate::reply::Reply;
use crate::shared::Shared;
use crate::sync::lock_std;
use crate::watch::{Relation, Token};

/// A monitor set by [`Context::monitor`], which [`Context::demonitor`] removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Monitor {
    by: Key,
    whom: Key,
    token: Token,
}

/// Access to the runtime for the running callback. `M` is the type of messages that its callback
/// thread receives.
pub struct Context<'a, M = Never> {
    core: &'a mut Core,
    /// Makes the context invariant in `M`, as is the [`Address`] that it returns.
    message: PhantomData<fn(M) -> M>,
}

impl<M> fmt::Debug for Context<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &Id(self.core.current())).finish_non_exhaustive()
    }
}

impl<'a, M: Send + 'static> Context<'a, M> {
    pub(crate) fn new(core: &'a mut Core) -> Self {
        Self { core, message: PhantomData }
    }

    /// Returns the id of the running callback thread.
    pub fn id(&self) -> Id {
        Id(self.core.current())
    }

    /// Returns the address of the running callback thread. Like addresses, contexts are invariant
    /// in `M`:
    ///
    /// ```compile_fail,E0308
    /// use contend_callback::Context;
    ///
    /// fn widen<'a>(
    ///     context: &'a Context<'a, fn(&'static str)>,
    /// ) -> &'a Context<'a, for<'b> fn(&'b str)> {
    ///     context
    /// }
    /// ```
    pub fn address(&self) -> Address<M> {
        Address::new(self.core.current())
    }

    /// Returns the nanoseconds since the runtime started, on a monotonic clock.
    pub(crate) fn now(&self) -> u64 {
        self.core.clock.now()
    }

    /// Returns the index of the current Worker, counted from 0.
    pub fn worker(&self) -> usize {
        self.core.worker_number.index().into()
    }

    /// Ends the callback thread normally, with [`Reason::Done`], when the callback returns the
    /// result.
    pub fn end(&self) -> Next {
        Next(Wanted::End)
    }

    /// Ends the callback thread with [`Reason::Failed`] and the given description when the callback
    /// returns the result. Linked callback threads end, too, and a supervisor may restart the
    /// failed one.
    pub fn fail(&mut self, description: &str) -> Next {
        self.core.set_failure(description.into());
        Next(Wanted::Fail)
    }

    /// Runs `callback` after `delay`, never earlier. The delay starts when the Worker next reads
    /// its clock, after this callback and at most a few hundred others have returned. Messages that
    /// arrive in the meantime are stashed.
    pub fn after<F>(&mut self, delay: Duration, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.plan(once(callback), Until::Delay(nanoseconds(delay)))
    }

    /// Runs `callback` for the next message, and for each further one while it returns
    /// [`keep_receiving`](Self::keep_receiving).
    pub fn receive<F>(&mut self, callback: F) -> Next
    where
        F: FnMut(&mut Context<'_, M>, M) -> Next + Send + 'static,
    {
        self.plan(receive(callback), Until::Message)
    }

    /// Runs `callback` for the next message only. As an `FnOnce`, it can move its captured values
    /// into the next callback.
    pub fn receive_once<F>(&mut self, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>, M) -> Next + Send + 'static,
    {
        self.plan(receive_once(callback), Until::Message)
    }

    /// Runs `callback` with the next message, or with `None` if none arrives within `delay`, which
    /// starts as in [`after`](Self::after).
    pub fn receive_within<F>(&mut self, delay: Duration, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>, Option<M>) -> Next + Send + 'static,
    {
        self.plan(receive_within(callback), Until::Delay(nanoseconds(delay)))
    }

    /// Runs `callback` once other Workers' inboxes have accepted all pending messages of this
    /// Worker. Use it after [`SendError::Full`]. Messages that arrive in the meantime are stashed.
    pub fn when_room<F>(&mut self, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.plan(once(callback), Until::Room)
    }

    /// Runs `callback` when a [notification](Notify::notify_one) wakes this callback thread, or at
    /// once if `notify` has a stored one. Messages that arrive in the meantime are stashed.
    pub fn when_notified<F>(&mut self, notify: &Notify, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        let ticket = notify.ticket();
        let until = Until::Notified(notify.clone(), ticket.number);
        let then = move |context: &mut Context<'_, M>| {
            ticket.redeem();
            callback(context)
        };
        self.plan(once(then), until)
    }

    /// Runs `work` on a separate thread, where it may block, then runs `callback` with the result,
    /// or with the reason if `work` panicked. If there is no thread for blocking work and none can
    /// be started, `work` runs on the Worker's thread. Messages that arrive in the meantime are
    /// stashed.
    pub fn blocking<T, W, F>(&mut self, work: W, callback: F) -> Next
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
        F: FnOnce(&mut Context<'_, M>, Result<T, Reason>) -> Next + Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let (runtime, key, to) = (self.shared(), self.core.current(), Arc::clone(&result));
        let job = Box::new(move || {
            *lock_std(&to) = Some(catch_panic(work));
            drop(to);
            runtime.post(Envelope::start(key));
        });
        let then = move |context: &mut Context<'_, M>| {
            let result = lock_std(&result).take();
            callback(context, result.unwrap_or(Err(Reason::Unknown)))
        };
        self.plan(once(then), Until::Job(job))
    }

    /// Registers a socket, pipe or other object that has a file descriptor, so that callback
    /// threads of this Worker can wait for it. Sets the descriptor to non-blocking mode.
    ///
    /// # Errors
    /// The error of a system call, such as `EPERM` for a regular file, which epoll does not support,
    /// or `EMFILE` for the first registration with this Worker if no descriptor is left for its
    /// epoll instance (see [`Builder::enable_io`](crate::Builder::enable_io)). `inner` is then
    /// dropped.
    pub fn register<T: AsFd>(&mut self, inner: T) -> io::Result<Source<T>> {
        self.core.descriptors.register(inner)
    }

    /// Calls `operation` on a source. If `operation` returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), marks the source as not ready for `interest`, so
    /// that [`when_ready`](Self::when_ready) waits until a retry may succeed. A source of another
    /// Worker is not marked.
    ///
    /// # Errors
    /// The error of `operation`, in particular [`io::ErrorKind::WouldBlock`].
    pub fn attempt<T: AsFd, R>(
        &mut self,
        source: &Source<T>,
        interest: Interest,
        operation: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let result = operation(source.get());
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::WouldBlock
            && self.core.descriptors.owns(source)
        {
            self.core.descriptors.would_block(source.registration, interest);
        }
        result
    }

    /// Declares that `source` has no input left, because a read returned fewer bytes than its buffer
    /// can hold. The next [`when_ready`](Self::when_ready) for reading then waits for new input.
    /// Without this call, it would run its callback at once, and that callback's read would return
    /// `WouldBlock`.
    ///
    /// Use this only for stream sockets and pipes, where the kernel reliably reports new input. Do
    /// not use it for sockets that can receive urgent data, file descriptors or credentials, or for
    /// pipes in packet mode (`O_DIRECT`): a read from one of these can return early although more
    /// input is available.
    ///
    /// Does nothing if the source is registered with another Worker, or if the kernel has reported
    /// the end of its input or an error.
    pub fn drained<T: AsFd>(&mut self, source: &Source<T>) {
        if self.core.descriptors.owns(source) {
            self.core.descriptors.drained(source.registration);
        }
    }

    /// Runs `callback` when the source is ready for `interest`, or at once if it is known to be.
    /// Readiness is a hint: the operation may still return `WouldBlock`. Messages that arrive in
    /// the meantime are stashed. The callback thread fails if the source is registered with another
    /// Worker.
    pub fn when_ready<T, F>(&mut self, source: Source<T>, interest: Interest, callback: F) -> Next
    where
        T: AsFd + Send + 'static,
        F: FnOnce(&mut Context<'_, M>, Source<T>) -> Next + Send + 'static,
    {
        if !self.core.descriptors.owns(&source) {
            return self.fail("the source is registered with another Worker");
        }
        let registration = source.registration;
        let then = move |context: &mut Context<'_, M>| callback(context, source);
        self.plan(once(then), Until::Ready(registration, interest))
    }

    /// Returns a handle to the runtime, which other threads can use. In a callback, its methods do
    /// not block: they return an error if there is no room, and [`Handle::wait`] panics.
    ///
    /// # Panics
    /// Panics only in unit tests of this crate, where a core may have no runtime.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared())
    }

    /// Returns the state shared by all threads of the runtime. Panics if the core has no runtime,
    /// as in some tests.
    fn shared(&self) -> Arc<Shared> {
        Arc::clone(self.core.shared().expect("a Worker runs this"))
    }

    /// Keeps the current handler, which then runs for the next message. A callback that does not
    /// run for messages, or runs for one only, must not return this: its callback thread ends as if
    /// it had panicked.
    pub fn keep_receiving(&self) -> Next {
        Next::keep_receiving()
    }

    fn plan<H: Handler>(&mut self, handler: H, until: Until) -> Next {
        self.core.plan(handler, until);
        Next(Wanted::Planned)
    }

    /// Starts a callback thread on this Worker. It first runs after the current callback has
    /// returned.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`] if this Worker's memory is used up, or the program has too many kinds
    /// of closures.
    pub fn spawn<F>(&mut self, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        self.spawn_receiving::<Never, F>(callback).map(Address::id)
    }

    /// Starts a callback thread on this Worker that can receive messages of type `N`. It first runs
    /// after the current callback has returned.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`], as for [`spawn`](Self::spawn).
    pub fn spawn_receiving<N, F>(&mut self, callback: F) -> Result<Address<N>, SpawnError>
    where
        N: Send + 'static,
        F: FnOnce(&mut Context<'_, N>) -> Next + Send + 'static,
    {
        let key = self.insert(once(callback))?;
        self.core.enqueue(Envelope::start(key));
        Ok(Address::new(key))
    }

    /// Starts a callback thread on this Worker that runs `callback` after `delay`, as with
    /// [`after`](Self::after).
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`], as for [`spawn`](Self::spawn).
    pub fn spawn_after<F>(&mut self, delay: Duration, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        let key = self.insert(once::<Never, F>(callback))?;
        self.core.delay(key, nanoseconds(delay));
        Ok(Id(key))
    }

    /// Starts a callback thread on this Worker that runs `callback` for each message, as with
    /// [`receive`](Self::receive).
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`], as for [`spawn`](Self::spawn).
    pub fn spawn_handler<N, F>(&mut self, callback: F) -> Result<Address<N>, SpawnError>
    where
        N: Send + 'static,
        F: FnMut(&mut Context<'_, N>, N) -> Next + Send + 'static,
    {
        self.insert(receive(callback)).map(Address::new)
    }

    /// Starts a callback thread on this Worker that answers with a [`Reply`]. `message` converts
    /// the answer, or `None` if the reply is dropped without one, into a message to the calling
    /// callback thread. It runs on the thread that sends the answer or drops the reply. Answers
    /// need no room in the inbox, and may overtake messages that wait for room.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`], as for [`spawn`](Self::spawn). The reply is then dropped, so the
    /// calling callback thread also gets the message for `None`.
    pub fn spawn_reply<T, F, G>(&mut self, callback: F, message: G) -> Result<Id, SpawnError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Context<'_>, Reply<T>) -> Next + Send + 'static,
        G: FnOnce(Option<T>) -> M + Send + 'static,
    {
        let (runtime, me) = (self.shared(), self.core.current());
        let reply = Reply::to_unit(move |value| {
            runtime.post(Envelope::message(me, message(value), &mut Pool::default()));
        });
        self.spawn(move |context| callback(context, reply))
    }

    fn insert<H: Handler>(&mut self, handler: H) -> Result<Key, SpawnError> {
        self.core.insert(handler).map_err(|NoRoom| SpawnError::NoRoom)
    }

    /// Sends a message. Messages that one callback thread sends to another with this method arrive
    /// in order.
    ///
    /// Messages must be `Send`:
    ///
    /// ```compile_fail,E0277
    /// use std::rc::Rc;
    /// use contend_callback::{Address, Context};
    ///
    /// fn send(context: &mut Context<'_>, to: Address<Rc<u8>>) {
    ///     let _ = context.send(to, Rc::new(1));
    /// }
    /// ```
    ///
    /// # Errors
    /// - [`SendError::Ended`] if the receiver was on this Worker and has ended, or belongs to
    ///   another runtime. The end of a receiver on another Worker is not known here: a message that
    ///   arrives after it is counted in [`Counts::undeliverable`](crate::Counts::undeliverable).
    /// - [`SendError::Full`] if the other Worker's inbox is full and too many messages to it are
    ///   pending.
    pub fn send<N: Send + 'static>(
        &mut self,
        to: Address<N>,
        message: N,
    ) -> Result<(), SendError<N>> {
        let core = &mut *self.core;
        let worker_number = to.key.worker_number();
        if worker_number == core.worker_number {
            let Some(place) = core.slab.find(to.key) else {
                return Err(SendError::Ended(message));
            };
            place.prefetch_header();
            let envelope = Envelope::message(to.key, message, &mut core.pool);
            core.enqueue(envelope);
        } else {
            if !core.reaches(worker_number) {
                return Err(SendError::Ended(message));
            }
            if core.outgoing.is_full(worker_number.index()) {
                return Err(SendError::Full(message));
            }
            let envelope = Envelope::message(to.key, message, &mut core.pool);
            core.post(envelope);
        }
        Ok(())
    }

    /// Ends a callback thread. Does nothing if it has already ended or belongs to another runtime.
    /// Otherwise, it ends:
    ///
    /// - after its callback has returned, if it is the running one;
    /// - when its Worker takes the request from the inbox, if it runs on another Worker;
    /// - on arrival, before it runs, if a [`Handle`] spawned it here and it has not arrived yet;
    /// - at once in all other cases.
    ///
    /// Requests to other Workers, here and in [`monitor`](Self::monitor) and [`link`](Self::link),
    /// are never refused: they are queued until the Worker's inbox has room.
    pub fn cancel(&mut self, id: Id) {
        if id.0.worker_number() == self.core.worker_number {
            self.core.cancel(id.0, &Reason::Cancelled);
        } else {
            self.core.post(Envelope::cancel(id.0));
        }
    }

    /// Monitors another callback thread: when it ends, the running one receives a message. If it has
    /// already ended, or belongs to another runtime, the message is sent at once. Its reason is then
    /// [`Reason::Unknown`], unless the monitored callback thread is among the 256 most recent
    /// failures on its Worker. A callback thread that the current callback has spawned on its own
    /// Worker cannot run before the callback returns, so its end is never missed.
    ///
    /// `message` runs on the Worker of the running callback thread, between callbacks. If it
    /// panics, no message is sent, and the panic is counted.
    pub fn monitor<F>(&mut self, id: Id, message: F) -> Monitor
    where
        F: FnOnce(Down) -> M + Send + 'static,
    {
        let (by, whom) = (self.core.current(), id.0);
        let to_envelope =
            Box::new(move |down| Envelope::message(by, message(down), &mut Pool::default()));
        let there = Relation::Monitored { by, to_envelope };
        let token = self.relate(whom, Relation::Monitors { whom }, there);
        Monitor { by, whom, token }
    }

    /// Removes a monitor. Its message still arrives if it has already been sent, or if the other
    /// Worker sends it before this request arrives there.
    pub fn demonitor(&mut self, monitor: Monitor) {
        let Monitor { by, whom, token } = monitor;
        for unit in [by, whom] {
            self.run_on_core_of(unit, move |core| core.forget(unit, token));
        }
    }

    /// Links the running callback thread to another one: if either ends with a [`Reason`] other
    /// than `Done`, the other one ends, too. One that has already ended or belongs to another
    /// runtime counts as failed.
    pub fn link(&mut self, id: Id) {
        let (me, other) = (self.core.current(), id.0);
        self.relate(other, Relation::Linked { to: other }, Relation::Linked { to: me });
    }

    /// Runs an action on the core that owns a unit: at once if that is this core, otherwise when
    /// the other Worker takes the request from its inbox. If the unit belongs to another runtime,
    /// runs the action on this core.
    fn run_on_core_of(&mut self, unit: Key, action: impl FnOnce(&mut Core) + Send + 'static) {
        let worker_number = unit.worker_number();
        // This core handles requests about a unit of another runtime as if that unit had ended.
        if worker_number == self.core.worker_number || !self.core.reaches(worker_number) {
            action(self.core);
        } else {
            self.core.post(control(worker_number, action));
        }
    }

    /// Links another callback thread to the running one in one direction: the other one ends if the
    /// running one ends with a [`Reason`] other than `Done`, but not vice versa. Does nothing if
    /// the other one has already ended or belongs to another runtime.
    pub fn link_one_way(&mut self, id: Id) {
        let (me, other) = (self.core.current(), id.0);
        self.relate(other, Relation::Linked { to: other }, Relation::Monitors { whom: me });
    }

    /// Creates a token and registers both sides of a relation under it: `here` with the running
    /// callback thread, `there` with `other`. Returns the token.
    fn relate(&mut self, other: Key, here: Relation, there: Relation) -> Token {
        let token = self.core.watchers.token(self.core.worker_number);
        self.core.relate(self.core.current(), token, here);
        self.run_on_core_of(other, move |core| core.relate(other, token, there));
        token
    }
}
