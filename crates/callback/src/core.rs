//! The core: the units of one Worker, their timers and the queue of work for them. A core has no
//! thread, does not block, and shares only [`Shared`]. `worker.rs` drives it.
//!
//! ```text
//!   other Workers, threads ── inbox ──▶ accept ─┐
//!   callbacks: send, spawn ──────────▶ enqueue ─┼─▶ queue ─▶ work ─▶ deliver ┐
//!   descriptors ready ────────▶ fetch_events ───┘                            ├─▶ run ─▶ apply_next
//!   timers due ───────────────▶ fire ────────────────────────────────────────┘
//!   callbacks: send to another Worker ──▶ outgoing ──▶ its inbox
//! ```
//!
//! # Protocol
//! A unit is always in one of these states:
//!
//! - *waiting*: the unit's closure is in its slot, and the closure's vtable records whether
//!   messages, other events (such as a timer), or both may wake the unit.
//! - *running*: the unit is [`Core::current`]. Its closure has been moved out, or is used in place
//!   (`vtable.stays`); until the closure returns, nothing else touches the unit's payload. The
//!   closure that the unit plans to run next is in [`Core::planned`], and is moved into the slot
//!   after the running one has returned.
//! - *ended*: the unit's key is stale.
//!
//! ```text
//!           insert                      run
//!   (free) ────────▶ waiting ─────────────────────────▶ running
//!     ▲                │  ▲     KeepReceiving, Planned    │
//!     │   cancel       │  └───────────────────────────────┤
//!     └────────────────┴──────────────────────────────────┘
//!                             End, Fail, panic, cancelled
//! ```
//!
//! Only [`Core::run`] calls the closures of units, and it never runs while a closure runs. A
//! callback's effects on other units (send, spawn, cancel) are queued, or drop a waiting closure at
//! once.
//!
//! A panic unwinds out of `run`. The caller that drives the core catches it and calls
//! [`Core::after_panic`].
//!
//! # Imports
//! Six modules import each other in a cycle, which is necessary:
//!
//! - A core calls closures through [`HandlerVTable`], and `HandlerVTable::run` takes the core
//!   (`handler.rs`), so that a callback can use the core directly. [`Planned`] holds such a closure
//!   and drops it through its vtable (`core/planned.rs`).
//! - Closures take a `Context`, which borrows the core (`context.rs`); its methods create further
//!   closures with their vtables.
//! - A core runs actions sent by other threads, which are closures that take a core (`control.rs`).
//! - `Context::handle` returns a `Handle`, which spawns closures that take a `Context`
//!   (`handle.rs`).
//!
//! No other module is part of a cycle. The parts of a core do not depend on the core: the slab is
//! generic over the vtable, and envelopes carry actions as values of any type. `core/reserved.rs`
//! and `core/relations.rs` hold further methods of the core.

mod outgoing;
mod planned;
mod relations;
mod reserved;
mod stash;
#[cfg(all(test, not(loom)))]
mod tests;
mod timers;

use std::any::Any;
use std::io;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::blocking::Job;
use crate::clock::Clock;
use crate::control;
use crate::counts::Counts;
use crate::error::NoRoom;
use crate::handler::{
    Boxed, Handler, HandlerVTable, MAX_PAYLOAD_BYTES, WakeReason, fits, handler_vtable,
};
use crate::io::{Descriptors, Interest, Registration};
use crate::key::{Key, WorkerNumber};
use crate::lease::Lease;
use crate::message::{Envelope, Pool, Purpose};
use crate::next::{Next, Wanted};
use crate::notify::Notify;
use crate::panics::{drop_panic, drop_quietly};
use crate::queue::Queue;
use crate::reason::Reason;
use crate::remote::Published;
use crate::shared::Shared;
use crate::slab;
use crate::watch::Watchers;
use outgoing::Outgoing;
use planned::Planned;
use stash::Stash;
use timers::Timers;

/// The place of a unit: its page and slot.
type Place = slab::Place<HandlerVTable>;
/// The memory of the units, with the vtables of their closures.
type Slab = slab::Slab<HandlerVTable>;

/// Number of deliveries after which [`Core::work`] reads the clock once, to start the delays that
/// these deliveries have requested.
const DELIVERIES_PER_CLOCK_READ: usize = 16;
/// Distance in the queue, in envelopes, from the one that [`Core::work`] delivers next to the one
/// whose receiver it prefetches.
const PREFETCH_DISTANCE: usize = 6;
/// The failure description of a unit that ends because its next closure exceeds the maximum number
/// of kinds.
const TOO_MANY_KINDS: &str = "the program has too many kinds of closures";
/// Capacity, in envelopes, to which an idle Worker shrinks its queues.
const IDLE_QUEUE_CAPACITY: usize = 1024;

/// The running unit, and the vtable of the closure that it runs.
#[derive(Debug, Clone, Copy)]
struct Current {
    place: Place,
    vtable: &'static HandlerVTable,
}

/// The event that a planned closure waits for. If the closure also receives messages, a message
/// ends a [`Delay`](Self::Delay) early.
pub(crate) enum Until {
    /// The next message.
    Message,
    /// The end of a delay, given in nanoseconds.
    Delay(u64),
    /// The moment at which the inboxes of other Workers have accepted all pending envelopes of this
    /// core.
    Room,
    /// Readiness of a descriptor for reading or writing.
    Ready(Registration, Interest),
    /// A notification of a [`Notify`], and the number of the unit's ticket.
    Notified(Notify, u64),
    /// The end of a job, which runs on a thread where it may block.
    Job(Job),
}

pub(crate) struct Core {
    pub worker_number: WorkerNumber,
    pub slab: Slab,
    pub clock: Clock,
    pub pool: Pool,
    pub counts: Counts,
    pub watchers: Watchers,
    /// Envelopes for this core, in delivery order.
    queue: Queue,
    /// Pending envelopes for other Workers.
    pub outgoing: Outgoing,
    /// Number of slots that are reserved for units from other threads and have not been filled.
    reserved: u64,
    /// Number of units, including cancelled ones, that have arrived for reserved slots since the
    /// Worker last read and cleared this counter.
    pub filled_reserved: u64,
    /// Descriptors registered with this Worker.
    pub descriptors: Descriptors,
    /// Whether a watchdog measures how long callbacks run.
    pub watched: bool,
    current: Option<Current>,
    /// The key of the running unit; [`Key::NONE`] if none runs.
    current_key: Key,
    /// Whether the running unit has been cancelled.
    cancelled: bool,
    /// The description last passed to `Context::fail`; `None` once a failed unit has taken it or a
    /// panic has discarded it.
    failure: Option<Arc<str>>,
    planned: Planned,
    timers: Timers,
    /// Messages for units that are not receiving.
    stash: Stash,
}

// SAFETY: all values that a core owns are `Send`, by the bounds on the functions that accept them:
// closures (`Handler`), messages (`Envelope`). Its pages belong to it alone.
unsafe impl Send for Core {}

impl Core {
    pub fn new(
        lease: Lease,
        bytes: usize,
        stash_capacity: usize,
        clock: Clock,
        shared: Option<Arc<Shared>>,
    ) -> io::Result<Self> {
        let worker_number = lease.worker_number();
        let events = match &shared {
            Some(shared) => Arc::clone(&shared.remotes[usize::from(worker_number.index())].events),
            None => Arc::default(),
        };
        let timers = Timers::new(&clock);
        let mut pool = Pool::default();
        pool.keep_blocks();
        Ok(Self {
            worker_number,
            slab: Slab::new(lease, bytes, timers.scanned_tick())?,
            clock,
            pool,
            counts: Counts::default(),
            watchers: Watchers::default(),
            queue: Queue::new(),
            outgoing: Outgoing::new(shared),
            reserved: 0,
            filled_reserved: 0,
            descriptors: Descriptors::new(events),
            watched: false,
            current: None,
            current_key: Key::NONE,
            cancelled: false,
            failure: None,
            planned: Planned::new(),
            timers,
            stash: Stash::new(stash_capacity),
        })
    }

    /// Inserts a unit without starting it, and returns its key. Unless the unit waits for messages,
    /// the caller must start it or request a timer for it.
    ///
    /// # Errors
    /// [`NoRoom`] if memory is used up, or there are too many kinds of closures. `handler` is then
    /// dropped.
    pub fn insert<H: Handler>(&mut self, handler: H) -> Result<Key, NoRoom> {
        if fits::<H>(MAX_PAYLOAD_BYTES) {
            self.insert_inline(handler)
        } else {
            self.insert_inline(Boxed::new(handler))
        }
    }

    fn insert_inline<H: Handler>(&mut self, handler: H) -> Result<Key, NoRoom> {
        let (place, key) = self.slab.insert(handler_vtable::<H>())?;
        let payload = place.payload().cast::<H>();
        // SAFETY: the slot was chosen for this vtable, so it has room; slots are aligned for all
        // handlers that fit; the slot was free.
        unsafe { payload.write(handler) };
        Ok(key)
    }

    /// Returns the key of the running unit; [`Key::NONE`] if none runs.
    pub fn current(&self) -> Key {
        self.current_key
    }

    /// Records a description of the running unit's failure, which is used if the callback returns
    /// [`Wanted::Fail`].
    pub fn set_failure(&mut self, description: Arc<str>) {
        self.failure = Some(description);
    }

    /// Sets the closure that the running unit runs next, after `until`, and drops any closure
    /// planned before.
    pub fn plan<H: Handler>(&mut self, handler: H, until: Until) {
        let room = self.current.map_or(0, |current| current.place.page().payload_bytes());
        self.drop_planned();
        self.planned.put(handler, room, until);
    }

    #[inline]
    fn drop_planned(&mut self) {
        if self.planned.is_some() {
            self.drop_planned_cold();
        }
    }

    #[cold]
    fn drop_planned_cold(&mut self) {
        self.counts.panics += self.planned.clear();
    }

    /// Drops the closure in a unit's slot, whose vtable is `vtable`, and counts a panic of its
    /// destructor. The closure must not be running. Afterwards, the caller must end the unit or
    /// give it another closure.
    fn drop_payload(&mut self, place: Place, vtable: &'static HandlerVTable) {
        let payload = place.payload().as_ptr();
        // SAFETY: the slot holds a closure of this vtable, which is not used afterwards.
        self.counts.panics += drop_quietly(|| unsafe { (vtable.drop)(payload) });
    }

    /// Requests a timer for a unit that waits for no messages. The delay starts at the next
    /// [`start_delays`](Self::start_delays).
    #[inline]
    pub fn delay(&mut self, key: Key, nanoseconds: u64) {
        if self.timers.request(key, nanoseconds) {
            self.start_delays();
        }
    }

    /// Reads the clock and starts the delays requested since the last call. Does nothing if there
    /// are none.
    pub fn start_delays(&mut self) {
        self.timers.start_delays(&mut self.slab, &self.clock);
    }

    /// Appends an envelope for this core to the queue.
    #[inline]
    pub fn enqueue(&mut self, envelope: Envelope) {
        self.queue.push(envelope);
    }

    /// Queues an envelope here or sends it to another Worker, depending on its receiver. Drops it
    /// if the receiver belongs to another runtime.
    pub fn post(&mut self, envelope: Envelope) {
        if envelope.to.worker_number() == self.worker_number {
            self.enqueue(envelope);
        } else if let Err(envelope) = self.outgoing.post(envelope) {
            self.discard(envelope);
        }
    }

    /// Drops an undelivered envelope, and counts the panic if its destructor panics.
    fn discard(&mut self, envelope: Envelope) {
        self.counts.panics += drop_quietly(|| drop(envelope));
    }

    /// Sends pending envelopes to Workers whose inboxes have room. Returns whether it sent any
    /// envelope, or queued units that waited for room.
    pub fn send_outgoing(&mut self) -> bool {
        self.outgoing.flush(&mut self.queue)
    }

    /// Returns the state shared by all threads of the runtime, or `None` for a core without a
    /// runtime.
    pub fn shared(&self) -> Option<&Arc<Shared>> {
        self.outgoing.shared()
    }

    /// Returns whether the Worker `worker_number` belongs to the runtime of this core.
    pub fn reaches(&self, worker_number: WorkerNumber) -> bool {
        worker_number == self.worker_number
            || self.shared().is_some_and(|shared| shared.remote(worker_number).is_some())
    }

    /// Returns the number of units in this core, without reserved slots.
    pub fn units(&self) -> u64 {
        self.slab.units() - self.reserved
    }

    /// Stores the counts and the size of the pages in `to`, where other threads read them.
    pub fn publish(&self, to: &Published) {
        to.set(self.counts, self.slab.bytes());
    }

    /// Returns whether the queue is empty and there is no epoll instance, in which case another turn
    /// of the Worker finds work only in the inbox, the timers or the pending envelopes for other
    /// Workers.
    pub fn has_no_pending_work(&self) -> bool {
        self.queue.is_empty() && !self.descriptors.has_epoll()
    }

    /// Delivers at most `max_envelopes` queued envelopes. Returns whether there were any. Also
    /// starts requested delays; see [`DELIVERIES_PER_CLOCK_READ`].
    pub fn work(&mut self, max_envelopes: usize) -> bool {
        for done in 0..max_envelopes {
            if done % DELIVERIES_PER_CLOCK_READ == 0 {
                self.start_delays();
            }
            if let Some(place) =
                self.queue.receiver_at(PREFETCH_DISTANCE).and_then(|key| self.slab.find(key))
            {
                place.prefetch_payload();
            }
            let Some(envelope) = self.queue.pop() else { return done > 0 };
            // SAFETY: the envelope was just popped, and nothing has been pushed since.
            unsafe { self.deliver(envelope) };
        }
        true
    }

    /// Accepts an envelope from another Worker or thread: delivers it at once if the queue is
    /// empty, and otherwise appends it to the queue.
    pub fn accept(&mut self, envelope: Envelope) {
        if self.queue.is_empty() {
            let mut envelope = ManuallyDrop::new(envelope);
            // SAFETY: ownership is given up here.
            unsafe { self.deliver(NonNull::from(&mut *envelope)) };
        } else {
            self.enqueue(envelope);
        }
    }

    /// Delivers an envelope according to its purpose.
    ///
    /// # Safety
    /// `envelope` points to an initialised envelope, which stays in place until something is pushed
    /// to the queue. The caller gives up ownership of it.
    unsafe fn deliver(&mut self, envelope: NonNull<Envelope>) {
        // SAFETY: the caller's promise; the borrow ends here.
        let (key, purpose) = unsafe { envelope.as_ref() }.label();
        if purpose != Purpose::Message {
            // SAFETY: the caller gives the envelope up, and it is moved out once.
            self.deliver_non_message(purpose, unsafe { envelope.read() });
            return;
        }
        let Some((place, vtable)) =
            self.slab.find(key).map(|place| (place, self.slab.vtable(place)))
        else {
            // SAFETY: as above.
            self.drop_undeliverable(unsafe { envelope.read() });
            return;
        };
        if !vtable.receives {
            // SAFETY: as above.
            self.stash_message(place, unsafe { envelope.read() });
            return;
        }
        // SAFETY: as above.
        unsafe { self.deliver_message(place, key, vtable, envelope) };
    }

    /// Runs a receiving unit with a message, or drops and counts a message of another type.
    ///
    /// # Safety
    /// See [`deliver`](Self::deliver); the envelope holds a message. `vtable` is that of the unit
    /// in `place`.
    #[expect(clippy::inline_always, reason = "an eighth of all instructions of a round trip")]
    #[inline(always)]
    unsafe fn deliver_message(
        &mut self,
        place: Place,
        key: Key,
        vtable: &'static HandlerVTable,
        envelope: NonNull<Envelope>,
    ) {
        // SAFETY: the caller's promise; the borrow ends here.
        if !vtable.takes(unsafe { envelope.as_ref() }.vtable) {
            // SAFETY: the caller gives the envelope up, and it is moved out once.
            self.drop_undeliverable(unsafe { envelope.read() });
            return;
        }
        if vtable.timed {
            place.clear_timer();
            self.timers.forget(key);
        }
        // SAFETY: as above; the handler moves the content out before anything else.
        let message = unsafe { Envelope::content(envelope) };
        self.run(place, key, vtable, WakeReason::Message(message));
    }

    /// Delivers an envelope that holds no message.
    fn deliver_non_message(&mut self, purpose: Purpose, envelope: Envelope) {
        let key = envelope.to;
        match purpose {
            Purpose::Message => {}
            Purpose::Start => {
                if let Some(place) = self.slab.find(key) {
                    self.run(place, key, self.slab.vtable(place), WakeReason::Start);
                }
            }
            Purpose::Cancel => {
                self.cancel(key, &Reason::Cancelled);
            }
            Purpose::Stashed => self.deliver_stashed(key),
            Purpose::Control => control::run(envelope, self),
        }
    }

    /// Drops and counts a message that cannot be delivered.
    #[cold]
    fn drop_undeliverable(&mut self, envelope: Envelope) {
        self.counts.undeliverable += 1;
        self.discard(envelope);
    }

    /// Stashes a message for a unit that is not receiving. Drops and counts the message if the
    /// unit's backlog is full.
    #[cold]
    fn stash_message(&mut self, place: Place, envelope: Envelope) {
        place.page().header_mut().has_stashed = true;
        if let Err(envelope) = self.stash.add(envelope) {
            self.counts.refused += 1;
            self.discard(envelope);
        }
    }

    /// Takes at most `max_units` due timers and runs their units, except where [`Timers::claim`]
    /// rejects the timer. Returns whether any timers were due, rejected ones included.
    pub fn fire(&mut self, max_units: usize) -> bool {
        if !self.timers.collect_due(&mut self.slab, &self.clock) {
            return false;
        }
        for _ in 0..max_units {
            let Some(due) = self.timers.pop() else { break };
            if let Some(place) = self.timers.claim(due, &mut self.slab) {
                self.run(place, due.key, self.slab.vtable(place), WakeReason::Due);
            }
        }
        true
    }

    /// Returns the nanoseconds until a started timer may be due, or `None` if there are none.
    /// Delays that are only requested do not count.
    pub fn next_due(&self) -> Option<u64> {
        self.timers.next_due(&self.slab, &self.clock)
    }

    /// Runs the closure of a waiting unit, then applies its request. The caller has checked that
    /// the unit's vtable accepts this wake reason.
    fn run(&mut self, place: Place, key: Key, vtable: &'static HandlerVTable, wake: WakeReason) {
        self.counts.callbacks += 1;
        self.current = Some(Current { place, vtable });
        self.current_key = key;
        if self.watched {
            self.publish_running(key);
        }
        let payload = place.payload().as_ptr();
        // SAFETY: a waiting unit's slot holds a closure of its vtable; the unit is the current one
        // now, and nothing else touches its slot. The message, if any, is of the type that this
        // vtable takes, as the caller has checked.
        let next = unsafe { (vtable.run)(payload, self, wake) };
        if self.watched {
            self.publish_running(Key::NONE);
        }
        self.apply_next(place, key, vtable, &next);
    }

    /// Queues the units whose descriptors are ready. Uses the events fetched by the last sleep or,
    /// if there are none and `poll_kernel` is set, asks the kernel. Returns whether any unit was
    /// queued.
    pub fn fetch_events(&mut self, poll_kernel: bool) -> bool {
        let Self { descriptors, queue, .. } = self;
        let before = queue.len();
        descriptors.fetch(poll_kernel, |unit| queue.push(Envelope::start(unit)));
        queue.len() > before
    }

    /// Publishes the number of callbacks, and `key` as that of the running unit ([`Key::NONE`] if
    /// none runs), for the watchdog.
    #[cold]
    fn publish_running(&self, key: Key) {
        if let Some(shared) = self.shared() {
            let published = &shared.remotes[usize::from(self.worker_number.index())].published;
            published.callbacks.store(self.counts.callbacks, Ordering::Release);
            published.running.store(key.bits(), Ordering::Release);
        }
    }

    /// Applies the request that a unit's callback has returned: the unit waits again, or ends. An
    /// invalid request ends it as a panic does. A unit that was cancelled while it ran ends in any
    /// case.
    fn apply_next(&mut self, place: Place, key: Key, vtable: &'static HandlerVTable, next: &Next) {
        self.current = None;
        self.current_key = Key::NONE;
        match next.wanted() {
            Wanted::KeepReceiving if vtable.stays && !self.cancelled => {
                self.drop_planned();
                self.schedule_stashed(place, key);
            }
            Wanted::Planned if self.planned.is_some() && !self.cancelled => {
                match self.install(place, key, vtable) {
                    Ok(()) => self.schedule_stashed(place, key),
                    Err(NoRoom) => self.end_without_room(place, key),
                }
            }
            wanted => {
                if vtable.stays {
                    self.drop_payload(place, vtable);
                }
                self.drop_planned();
                let reason = match wanted {
                    _ if std::mem::take(&mut self.cancelled) => Reason::Cancelled,
                    Wanted::End => Reason::Done,
                    Wanted::Fail => Reason::Failed(self.failure.take().unwrap_or_default()),
                    Wanted::KeepReceiving => {
                        Reason::panicked("`keep_receiving` in a callback that runs once")
                    }
                    Wanted::Planned => {
                        Reason::panicked("a `Next` of an earlier callback was returned")
                    }
                };
                self.counts.panics += u64::from(matches!(reason, Reason::Panicked(_)));
                self.end(place, key, &reason);
            }
        }
    }

    /// Moves the planned closure, which must exist, into the slot of a unit whose callback has
    /// returned, and starts its wait. `before` is the vtable of the closure that has run.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too many kinds of closures. The slot is then empty, and the planned
    /// closure stays in [`Core::planned`].
    fn install(
        &mut self,
        place: Place,
        key: Key,
        before: &'static HandlerVTable,
    ) -> Result<(), NoRoom> {
        if before.stays {
            self.drop_payload(place, before);
        }
        let Some(vtable) = self.planned.vtable() else { return Ok(()) };
        // The fallible step comes first. Between it and the move, the slot's vtable does not match
        // its payload; no code in between is foreign or panics.
        if !std::ptr::eq(before, vtable) {
            self.slab.set_vtable(place, vtable)?;
        }
        match self.planned.move_to(place, vtable) {
            Until::Message => {}
            Until::Delay(delay) if vtable.receives => {
                if self.timers.request_revocable(place, key, delay) {
                    self.start_delays();
                }
            }
            Until::Delay(delay) => self.delay(key, delay),
            Until::Room => self.outgoing.when_room(key),
            Until::Ready(registration, interest) => {
                if self.descriptors.wait(registration, interest, key) {
                    self.queue.push(Envelope::start(key));
                }
            }
            Until::Notified(notify, ticket) => {
                let runtime = self.shared().map(Arc::clone);
                if runtime.is_some_and(|runtime| notify.wait(ticket, runtime, key)) {
                    self.queue.push(Envelope::start(key));
                }
            }
            Until::Job(job) => {
                if let Some(shared) = self.shared() {
                    shared.blocking.push_always(job);
                }
            }
        }
        Ok(())
    }

    /// Ends a unit whose next closure could not be moved into its slot, and drops that closure if
    /// it is planned. The slot must hold no closure.
    #[cold]
    fn end_without_room(&mut self, place: Place, key: Key) {
        self.drop_planned();
        self.end(place, key, &Reason::Failed(TOO_MANY_KINDS.into()));
    }

    /// If the unit is receiving, has stashed messages and is not scheduled yet, puts an envelope
    /// that will deliver the first of these messages at the front of the queue. Moving all of them
    /// to the queue would move the whole backlog once per message.
    #[inline]
    fn schedule_stashed(&mut self, place: Place, key: Key) {
        if !self.stash.is_empty() {
            self.schedule_stashed_cold(place, key);
        }
    }

    #[cold]
    fn schedule_stashed_cold(&mut self, place: Place, key: Key) {
        let may_have = place.page().header().has_stashed;
        if may_have && self.slab.vtable(place).receives && self.stash.schedule(key) {
            self.queue.push_first(Envelope::stashed(key));
        }
    }

    /// Delivers the next stashed message to a unit that is scheduled for it, or unschedules the
    /// unit if it no longer receives. Drops and counts a message of another type.
    fn deliver_stashed(&mut self, key: Key) {
        let Some(place) = self.slab.find(key) else { return };
        let vtable = self.slab.vtable(place);
        if !vtable.receives {
            // The unit timed out first, and is scheduled again when it receives.
            self.stash.unschedule(key);
            return;
        }
        let Some(envelope) = self.stash.next(key) else { return };
        if !vtable.takes(envelope.vtable) {
            self.drop_undeliverable(envelope);
            self.schedule_stashed(place, key);
            return;
        }
        let mut envelope = ManuallyDrop::new(envelope);
        // SAFETY: ownership is given up here, and the envelope is not in the queue.
        unsafe { self.deliver_message(place, key, vtable, NonNull::from(&mut *envelope)) };
    }

    /// Ends a unit that is not running and whose closure is gone: frees its slot, records the
    /// reason unless it is [`Reason::Done`], notifies related units, and drops the unit's stashed
    /// messages.
    fn end(&mut self, place: Place, key: Key, reason: &Reason) {
        let stashed = self.stash.take(key);
        self.timers.forget(key);
        let watched = place.page().header().watched;
        self.slab.remove(place);
        if !reason.is_done() {
            self.watchers.record_failure(key, reason);
        }
        if watched {
            self.notify_related(key, reason);
        }
        stashed.into_iter().flatten().for_each(|envelope| self.discard(envelope));
    }

    /// Ends a unit:
    ///
    /// - a waiting one at once, with `reason`;
    /// - the running one after its callback has returned, with [`Reason::Cancelled`];
    /// - one that has not arrived in its reserved slot yet, on arrival, with [`Reason::Cancelled`].
    ///
    /// Returns whether the unit was alive. Returns `false` also for one that has not arrived and
    /// was cancelled before.
    pub fn cancel(&mut self, key: Key, reason: &Reason) -> bool {
        if self.current_key == key && key != Key::NONE {
            self.cancelled = true;
            return true;
        }
        let Some(place) = self.slab.find(key) else { return false };
        let vtable = self.slab.vtable(place);
        if vtable.reserved {
            return reserved::withdraw(place);
        }
        self.drop_payload(place, vtable);
        self.end(place, key, reason);
        true
    }

    /// Counts a panic and, if it came from a callback, ends that callback's unit. `panic` is the
    /// payload.
    pub fn after_panic(&mut self, panic: Box<dyn Any + Send>) {
        self.counts.panics += 1;
        let Some(Current { place, vtable }) = self.current.take() else {
            drop_panic(panic);
            return;
        };
        let key = std::mem::replace(&mut self.current_key, Key::NONE);
        self.cancelled = false;
        self.failure = None;
        if self.watched {
            self.publish_running(Key::NONE);
        }
        self.drop_planned();
        if vtable.stays {
            self.drop_payload(place, vtable);
        }
        let reason = Reason::of_panic(&*panic);
        drop_panic(panic);
        self.end(place, key, &reason);
    }

    /// Frees unused capacity, pooled blocks and empty pages. Called when the Worker is idle.
    pub fn trim(&mut self) {
        self.queue.shrink_to(IDLE_QUEUE_CAPACITY);
        self.outgoing.shrink_to(IDLE_QUEUE_CAPACITY);
        self.timers.trim();
        self.stash.trim();
        self.pool.trim();
        self.slab.trim();
    }

    /// Ends all units without notifying monitors and links. Drops their closures and relations, and
    /// all stashed, queued and outgoing envelopes.
    pub fn clear(&mut self) {
        let numbers: Vec<u32> = self.slab.pages().collect();
        for number in numbers {
            for slot in self.slab.page(number).taken_slots() {
                let page = self.slab.page(number);
                let place = Place::new(page, slot);
                let vtable = self.slab.vtable(place);
                self.drop_payload(place, vtable);
                if self.slab.remove(place) {
                    break;
                }
            }
        }
        for relation in self.watchers.take_all() {
            self.counts.panics += drop_quietly(|| drop(relation));
        }
        let stashed = self.stash.take_all();
        stashed.for_each(|envelope| self.discard(envelope));
        let outgoing = self.outgoing.take_all();
        outgoing.for_each(|envelope| self.discard(envelope));
        while let Some(envelope) = self.queue.pop() {
            // SAFETY: the envelope has just been popped, and is moved out at once.
            self.discard(unsafe { envelope.read() });
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.clear();
    }
}
