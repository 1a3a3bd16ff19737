//! What a callback can do while it runs.
//!
//! A [`Context`] wraps the core for as long as a callback runs: see `core.rs` on imports.

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
use crate::panics::attempt;
use crate::reason::{Down, Reason};
use crate::reply::Reply;
use crate::shared::Shared;
use crate::sync::lock_std;
use crate::watch::{Relation, Token};

/// Who is told of an end; for [`Context::demonitor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Monitor {
    by: Key,
    whom: Key,
    token: Token,
}

/// What a callback that runs can do. `M` is the type of messages that its thread receives.
pub struct Context<'a, M = Never> {
    core: &'a mut Core,
    /// Invariant, as [`Address`] is, which it makes.
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

    /// The callback thread that runs.
    pub fn id(&self) -> Id {
        Id(self.core.current())
    }

    /// Where messages to it go. A context is invariant in `M`, as addresses are:
    ///
    /// ```compile_fail,E0308
    /// use contend_callback::Context;
    ///
    /// fn widen<'a>(context: &'a Context<'a, fn(&'static str)>) -> &'a Context<'a, for<'b> fn(&'b str)> {
    ///     context
    /// }
    /// ```
    pub fn address(&self) -> Address<M> {
        Address::new(self.core.current())
    }

    /// Nanoseconds since the runtime began.
    pub(crate) fn now(&self) -> u64 {
        self.core.clock.now()
    }

    /// The Worker that runs it, counted from 0.
    pub fn worker(&self) -> usize {
        self.core.home.worker().into()
    }

    /// Ends the callback thread.
    pub fn end(&self) -> Next {
        Next(Wanted::End)
    }

    /// Ends the callback thread as one that has failed, with these words as the reason. Whoever is
    /// linked to it ends, too, and a supervisor starts it again.
    pub fn fail(&mut self, words: &str) -> Next {
        self.core.note_failure(words.into());
        Next(Wanted::Fail)
    }

    /// Runs `callback` when the delay is over, never earlier. It begins when the Worker looks at the
    /// clock next: when this callback and 15 others at most have returned. Messages that come
    /// meanwhile are kept.
    pub fn after<F>(&mut self, delay: Duration, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.plan(once(callback), Until::Delay(nanoseconds(delay)))
    }

    /// Runs `callback` for the next message, and for each one after that if it says
    /// [`keep_receiving`](Self::keep_receiving).
    pub fn receive<F>(&mut self, callback: F) -> Next
    where
        F: FnMut(&mut Context<'_, M>, M) -> Next + Send + 'static,
    {
        self.plan(receive(callback), Until::Message)
    }

    /// Runs `callback` for the next message alone, so that it can hand on what it has.
    pub fn receive_once<F>(&mut self, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>, M) -> Next + Send + 'static,
    {
        self.plan(receive_once(callback), Until::Message)
    }

    /// Runs `callback` for the next message, or without one when the delay is over.
    pub fn receive_within<F>(&mut self, delay: Duration, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>, Option<M>) -> Next + Send + 'static,
    {
        self.plan(receive_within(callback), Until::Delay(nanoseconds(delay)))
    }

    /// Runs `callback` when all messages from this Worker to others have found room in their inboxes.
    /// So who is told [`SendError::Full`] waits without holding up anybody.
    pub fn when_room<F>(&mut self, callback: F) -> Next
    where
        F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    {
        self.plan(once(callback), Until::Room)
    }

    /// Runs `callback` when `notify` has been [notified](Notify::notify_one), or at once if it was while nobody
    /// waited. Messages that come meanwhile are kept.
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

    /// Has `work` done on a thread where it may block, and runs `callback` with what it returns, or
    /// with the reason if it panicked. Messages that come meanwhile are kept.
    pub fn blocking<T, W, F>(&mut self, work: W, callback: F) -> Next
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
        F: FnOnce(&mut Context<'_, M>, Result<T, Reason>) -> Next + Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let (runtime, key, to) = (self.shared(), self.core.current(), Arc::clone(&result));
        let job = Box::new(move || {
            *lock_std(&to) = Some(attempt(work));
            drop(to);
            runtime.post(Envelope::start(key));
        });
        let then = move |context: &mut Context<'_, M>| {
            let result = lock_std(&result).take();
            callback(context, result.unwrap_or(Err(Reason::Unknown)))
        };
        self.plan(once(then), Until::Job(job))
    }

    /// Registers something with a descriptor (a socket, a pipe) with this Worker, so that its
    /// callback threads can wait for it. It does not block from now on.
    ///
    /// # Errors
    /// What the system says, `EPERM` for a regular file: nobody can wait for one.
    pub fn register<T: AsFd>(&mut self, inner: T) -> io::Result<Source<T>> {
        self.core.descriptors.register(inner)
    }

    /// Does an operation that may say that it would block. Then
    /// [`when_ready`](Self::when_ready) waits until it may be worth trying again.
    ///
    /// # Errors
    /// Those of the operation, [`io::ErrorKind::WouldBlock`] above all.
    pub fn attempt<T: AsFd, R>(
        &mut self,
        source: &Source<T>,
        interest: Interest,
        operation: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let result = operation(source.get());
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::WouldBlock
            && self.core.descriptors.own(source)
        {
            self.core.descriptors.would_block(source.registration, interest);
        }
        result
    }

    /// Notes that a read has returned less than there was room for, so that nothing is left to read: to
    /// [wait](Self::when_ready) for more then costs no read that says that it would block. For stream sockets
    /// and pipes, of which the kernel tells for sure when more comes. Not where urgent data, descriptors or
    /// credentials may come along, nor for pipes of packets (`O_DIRECT`): a read stops before those, with more
    /// behind it.
    pub fn drained<T: AsFd>(&mut self, source: &Source<T>) {
        if self.core.descriptors.own(source) {
            self.core.descriptors.drained(source.registration);
        }
    }

    /// Runs `callback` when the source is ready for this, or may be: what it does then can still
    /// be told that it would block. Messages that come meanwhile are kept. Fails if the source is
    /// registered with another Worker.
    pub fn when_ready<T, F>(&mut self, source: Source<T>, interest: Interest, callback: F) -> Next
    where
        T: AsFd + Send + 'static,
        F: FnOnce(&mut Context<'_, M>, Source<T>) -> Next + Send + 'static,
    {
        if !self.core.descriptors.own(&source) {
            return self.fail("it waits for a source of another Worker");
        }
        let registration = source.registration;
        let then = move |context: &mut Context<'_, M>| callback(context, source);
        self.plan(once(then), Until::Ready(registration, interest))
    }

    /// Reaches the runtime, also from other threads. What waits there does not wait in a callback: where there
    /// is no room it is an error instead.
    ///
    /// # Panics
    /// Never in a callback that a Worker runs.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared())
    }

    /// What the threads of the runtime share.
    fn shared(&self) -> Arc<Shared> {
        Arc::clone(self.core.shared().expect("a Worker runs this"))
    }

    /// Runs the callback that runs now for the next message, too. In one that does not run for
    /// messages, or for one alone, it ends the callback thread as a panic does.
    pub fn keep_receiving(&self) -> Next {
        Next::keep_receiving()
    }

    fn plan<H: Handler>(&mut self, handler: H, until: Until) -> Next {
        self.core.plan(handler, until);
        Next(Wanted::Planned)
    }

    /// Starts a callback thread on this Worker. It runs when this callback has returned.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`].
    pub fn spawn<F>(&mut self, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        self.spawn_receiving::<Never, F>(callback).map(Address::id)
    }

    /// Starts one that receives messages of type `N`.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`].
    pub fn spawn_receiving<N, F>(&mut self, callback: F) -> Result<Address<N>, SpawnError>
    where
        N: Send + 'static,
        F: FnOnce(&mut Context<'_, N>) -> Next + Send + 'static,
    {
        let key = self.insert(once(callback))?;
        self.core.enqueue(Envelope::start(key));
        Ok(Address::new(key))
    }

    /// Starts one that waits at once: `callback` runs when the delay is over.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`].
    pub fn spawn_after<F>(&mut self, delay: Duration, callback: F) -> Result<Id, SpawnError>
    where
        F: FnOnce(&mut Context<'_>) -> Next + Send + 'static,
    {
        let key = self.insert(once::<Never, F>(callback))?;
        self.core.delay(key, nanoseconds(delay));
        Ok(Id(key))
    }

    /// Starts one that waits for messages at once, as if by [`receive`](Self::receive).
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`].
    pub fn spawn_handler<N, F>(&mut self, callback: F) -> Result<Address<N>, SpawnError>
    where
        N: Send + 'static,
        F: FnMut(&mut Context<'_, N>, N) -> Next + Send + 'static,
    {
        self.insert(receive(callback)).map(Address::new)
    }

    /// Starts one that is to answer: what it answers, or `None` if it ends without doing so, is
    /// made a message to this callback thread, by `message`, where the answer is given. An answer is
    /// never refused, and may overtake messages that wait for room.
    ///
    /// # Errors
    /// [`SpawnError::NoRoom`].
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

    /// Sends a message. Those that one callback thread sends another in this way arrive in order.
    ///
    /// What cannot go to another thread is no message:
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
    /// [`SendError::Ended`] if the receiver lived on this Worker; on another one it cannot be known
    /// yet, and a message that comes too late is counted in [`Counts::undeliverable`](
    /// crate::Counts::undeliverable). [`SendError::Full`] if the other Worker's inbox is.
    pub fn send<N: Send + 'static>(
        &mut self,
        to: Address<N>,
        message: N,
    ) -> Result<(), SendError<N>> {
        let core = &mut *self.core;
        let home = to.key.home();
        if home == core.home {
            let Some(place) = core.slab.find(to.key) else {
                return Err(SendError::Ended(message));
            };
            place.fetch_header();
            let envelope = Envelope::message(to.key, message, &mut core.pool);
            core.enqueue(envelope);
        } else {
            if !core.reaches(home) {
                return Err(SendError::Ended(message));
            }
            if core.outgoing.is_full(home.worker()) {
                return Err(SendError::Full(message));
            }
            let envelope = Envelope::message(to.key, message, &mut core.pool);
            core.post(envelope);
        }
        Ok(())
    }

    /// Ends a callback thread; if it is this one, when its callback returns. Nothing happens if
    /// it has ended. What is asked of other Workers in this way, as with [`monitor`](Self::monitor) and
    /// [`link`](Self::link), is not refused: it waits here if there is no room in the inbox.
    pub fn cancel(&mut self, id: Id) {
        if id.0.home() == self.core.home {
            self.core.cancel(id.0, &Reason::Cancelled);
        } else {
            self.core.post(Envelope::cancel(id.0));
        }
    }

    /// Sends this callback thread a message when another one ends, or at once if it has; why it had
    /// ended is then only known for those that have failed last. One that was spawned here in the
    /// same callback has not run yet.
    ///
    /// `message` runs on this callback thread's Worker, between callbacks. If it panics, no message
    /// comes, and the panic is counted.
    pub fn monitor<F>(&mut self, id: Id, message: F) -> Monitor
    where
        F: FnOnce(Down) -> M + Send + 'static,
    {
        let (by, whom) = (self.core.current(), id.0);
        let tell = Box::new(move |down| Envelope::message(by, message(down), &mut Pool::default()));
        let there = Relation::Monitored { by, tell };
        let token = self.relate(whom, Relation::Monitors { whom }, there);
        Monitor { by, whom, token }
    }

    /// Asks not to be told any more. What has been sent already still comes.
    pub fn demonitor(&mut self, monitor: Monitor) {
        let Monitor { by, whom, token } = monitor;
        for unit in [by, whom] {
            self.at(unit, move |core| core.forget(unit, token));
        }
    }

    /// Links this callback thread to another one: if one of them does not end as it should, the
    /// other one ends, too. One that has ended already is one that has failed.
    pub fn link(&mut self, id: Id) {
        let (me, other) = (self.core.current(), id.0);
        self.relate(other, Relation::Linked { to: other }, Relation::Linked { to: me });
    }

    /// Does something where a unit lives: at once if that is here.
    fn at(&mut self, unit: Key, action: impl FnOnce(&mut Core) + Send + 'static) {
        let home = unit.home();
        // What is asked of a unit of another runtime is answered here, as for one that has ended.
        if home == self.core.home || !self.core.reaches(home) {
            action(self.core);
        } else {
            self.core.post(control(home, action));
        }
    }

    /// Ends that callback thread when this one has not ended as it should, but not the other way
    /// round.
    pub fn link_one_way(&mut self, id: Id) {
        let (me, other) = (self.core.current(), id.0);
        self.relate(other, Relation::Linked { to: other }, Relation::Monitors { whom: me });
    }

    /// Relates this callback thread to another one: notes `here` with this one and `there` with the other.
    fn relate(&mut self, other: Key, here: Relation, there: Relation) -> Token {
        let token = self.core.watchers.token(self.core.home);
        self.core.relate(self.core.current(), token, here);
        self.at(other, move |core| core.relate(other, token, there));
        token
    }
}
