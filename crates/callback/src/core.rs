//! One Worker's units and what they do: no thread, no waiting, nothing that is shared. `worker.rs`
//! drives it.
//!
//! # Protocol
//! A unit is always in one of these states:
//!
//! - *waiting*: its closure is in its slot, and the vtable says what for: messages, its time, both.
//! - *running*: it is [`Core::current`]. Its closure has been moved out, or is used where it is
//!   (`vtable.stays`); until it returns, nobody touches its payload. What it wants to do next is in
//!   [`Core::planned`] and is moved into the slot when it has returned.
//! - *ended*: its key is stale.
//!
//! Only [`Core::run`] calls closures, and it is never entered while one runs: what callbacks do to
//! others (send, spawn, cancel) is queued, or drops a waiting closure at once.
//!
//! A panic leaves `run`. Whoever drives the core catches it and calls [`Core::after_panic`].
//!
//! # Imports
//! Six modules import each other in a circle, and need to:
//!
//! - A core calls closures through [`HandlerVTable`], and `HandlerVTable::run` takes the core (`handler.rs`), so that what a callback does
//!   happens at once. [`Planned`] holds such a closure and drops it through its vtable (`core/planned.rs`).
//! - Closures take a `Context`, which wraps the core (`context.rs`); its methods make the vtable of further closures.
//! - A core runs actions that others send it, which are closures over a core (`control.rs`).
//! - `Context::handle` returns a `Handle`, which spawns closures that take a `Context` (`handle.rs`).
//!
//! No other module is part of a circle. What a core consists of does not know the core: the slab is generic over the
//! vtable, and envelopes carry actions as values of any type. `core/reserved.rs` and `core/relations.rs` are parts of the
//! core: they add methods to it.

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
use crate::key::{Home, Key};
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

/// Where a unit is.
type Place = slab::Place<HandlerVTable>;
/// The memory of units.
type Slab = slab::Slab<HandlerVTable>;

/// Things done before the time begins for those who have asked meanwhile.
const STAMP_INTERVAL: usize = 16;
/// Envelopes between the one that is opened and the one whose unit is fetched into the cache.
const PREFETCH_DISTANCE: usize = 6;
/// Why a unit ends whose next closure is of one kind too many.
const TOO_MANY_KINDS: &str = "the program has too many kinds of closures";
/// Room that queues keep when there is nothing to do.
const IDLE_QUEUE_CAPACITY: usize = 1024;

/// The unit that runs.
#[derive(Debug, Clone, Copy)]
struct Current {
    place: Place,
    vtable: &'static HandlerVTable,
}

/// What a unit waits for, apart from what its vtable takes.
pub(crate) enum Until {
    /// Nothing but messages.
    Message,
    /// So many nanoseconds.
    Delay(u64),
    /// That messages to other Workers have gone.
    Room,
    /// That this can be done with a descriptor.
    Ready(Registration, Interest),
    /// That somebody notifies this one with this ticket.
    Notified(Notify, u64),
    /// That this has been done, on a thread where it may block.
    Job(Job),
}

pub(crate) struct Core {
    pub home: Home,
    pub slab: Slab,
    pub clock: Clock,
    pub pool: Pool,
    pub counts: Counts,
    pub watchers: Watchers,
    /// What is to be done, by this core's callbacks' wish.
    queue: Queue,
    /// What goes to other Workers.
    pub outgoing: Outgoing,
    /// Places that are kept for units from elsewhere.
    reserved: u64,
    /// Of these, how many have come since somebody asked.
    pub settled: u64,
    /// What its units wait for from outside.
    pub descriptors: Descriptors,
    /// Somebody looks what runs for how long.
    pub watched: bool,
    current: Option<Current>,
    /// Its key; [`Key::NOBODY`] if there is none.
    current_key: Key,
    /// It was cancelled while it ran.
    cancelled: bool,
    /// Why it says that it fails.
    failure: Option<Arc<str>>,
    planned: Planned,
    timers: Timers,
    /// Messages to units that do not receive at present.
    stash: Stash,
}

// SAFETY: all that a core owns is `Send` by the bounds of those who hand it over: closures
// (`Handler`), messages (`Envelope`). Its pages are nobody else's.
unsafe impl Send for Core {}

impl Core {
    pub fn new(
        lease: Lease,
        bytes: usize,
        stash_capacity: usize,
        clock: Clock,
        shared: Option<Arc<Shared>>,
    ) -> io::Result<Self> {
        let home = lease.home();
        let events = match &shared {
            Some(shared) => Arc::clone(&shared.remotes[usize::from(home.worker())].events),
            None => Arc::default(),
        };
        let timers = Timers::new(&clock);
        let mut pool = Pool::default();
        pool.keep();
        Ok(Self {
            home,
            slab: Slab::new(lease, bytes, timers.scanned_tick())?,
            clock,
            pool,
            counts: Counts::default(),
            watchers: Watchers::default(),
            queue: Queue::new(),
            outgoing: Outgoing::new(shared),
            reserved: 0,
            settled: 0,
            descriptors: Descriptors::new(events),
            watched: false,
            current: None,
            current_key: Key::NOBODY,
            cancelled: false,
            failure: None,
            planned: Planned::new(),
            timers,
            stash: Stash::new(stash_capacity),
        })
    }

    /// Keeps a new unit that waits for nothing yet.
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
        // handlers that fit; nobody was in it.
        unsafe { payload.write(handler) };
        Ok(key)
    }

    /// The unit that runs.
    pub fn current(&self) -> Key {
        self.current_key
    }

    /// Notes why the running unit says that it fails.
    pub fn note_failure(&mut self, words: Arc<str>) {
        self.failure = Some(words);
    }

    /// Notes what the running unit runs next, instead of what it wanted before.
    pub fn plan<H: Handler>(&mut self, handler: H, until: Until) {
        let room = self.current.map_or(0, |current| current.place.page().payload_bytes());
        self.drop_planned();
        self.planned.put(handler, room, until);
    }

    #[inline]
    fn drop_planned(&mut self) {
        if self.planned.is_some() {
            self.drop_what_is_planned();
        }
    }

    #[cold]
    fn drop_what_is_planned(&mut self) {
        self.counts.panics += self.planned.clear();
    }

    /// Drops the closure of a unit that waits, or has returned, and is given another one or ends.
    fn drop_payload(&mut self, place: Place, vtable: &'static HandlerVTable) {
        let payload = place.payload().as_ptr();
        // SAFETY: its slot has a closure of its vtable, which is not used any more.
        self.counts.panics += drop_quietly(|| unsafe { (vtable.drop)(payload) });
    }

    /// Has a unit wait for so many nanoseconds from a moment on that is not before now.
    #[inline]
    pub fn delay(&mut self, key: Key, nanoseconds: u64) {
        if self.timers.ask(key, nanoseconds) {
            self.stamp();
        }
    }

    /// Has the time begin for those who wait from now on.
    pub fn stamp(&mut self) {
        self.timers.stamp(&mut self.slab, &self.clock);
    }

    /// Something to do for this core, after all that is queued.
    #[inline]
    pub fn enqueue(&mut self, envelope: Envelope) {
        self.queue.push(envelope);
    }

    /// Hands an envelope to whichever core it is for.
    pub fn post(&mut self, envelope: Envelope) {
        if envelope.to.home() == self.home {
            self.enqueue(envelope);
        } else if let Err(envelope) = self.outgoing.post(envelope) {
            self.discard(envelope);
        }
    }

    /// Drops an envelope that nobody takes.
    fn discard(&mut self, envelope: Envelope) {
        self.counts.panics += drop_quietly(|| drop(envelope));
    }

    /// Sends on what other Workers have room for now. Returns whether there was something.
    pub fn send_outgoing(&mut self) -> bool {
        self.outgoing.flush(&mut self.queue)
    }

    /// Reaches the runtime.
    pub fn shared(&self) -> Option<&Arc<Shared>> {
        self.outgoing.shared()
    }

    /// Whether this is a Worker of the same runtime.
    pub fn reaches(&self, home: Home) -> bool {
        home == self.home || self.shared().is_some_and(|shared| shared.remote(home).is_some())
    }

    /// Units that live here.
    pub fn units(&self) -> u64 {
        self.slab.units() - self.reserved
    }

    /// Tells others how it stands.
    pub fn publish(&self, to: &Published) {
        to.set(self.counts, self.slab.bytes());
    }

    /// Whether another turn could find nothing: nothing is queued, and there are no descriptors.
    pub fn has_no_pending_work(&self) -> bool {
        self.queue.is_empty() && !self.descriptors.has_registered()
    }

    /// Does up to so many things that are queued. Returns whether there was something to do.
    pub fn work(&mut self, most: usize) -> bool {
        for done in 0..most {
            if done % STAMP_INTERVAL == 0 {
                self.stamp();
            }
            if let Some(place) =
                self.queue.ahead(PREFETCH_DISTANCE).and_then(|key| self.slab.find(key))
            {
                place.fetch_payload();
            }
            let Some(envelope) = self.queue.pop() else { return done > 0 };
            // SAFETY: it was taken out, and nothing has been put in since.
            unsafe { self.deliver(envelope) };
        }
        true
    }

    /// Does what another Worker or thread has sent: at once, unless something is before it.
    pub fn accept(&mut self, envelope: Envelope) {
        if self.queue.is_empty() {
            let mut envelope = ManuallyDrop::new(envelope);
            // SAFETY: it is given up here.
            unsafe { self.deliver(NonNull::from(&mut *envelope)) };
        } else {
            self.enqueue(envelope);
        }
    }

    /// Does what an envelope is for.
    ///
    /// # Safety
    /// An envelope is there until something is put into the queue, and given up by the caller.
    unsafe fn deliver(&mut self, envelope: NonNull<Envelope>) {
        // SAFETY: the caller's promise; the borrow ends here.
        let (key, purpose) = unsafe { envelope.as_ref() }.label();
        if purpose != Purpose::Message {
            // SAFETY: it is moved out, as the caller gives it up.
            self.act(purpose, unsafe { envelope.read() });
            return;
        }
        let Some((place, vtable)) =
            self.slab.find(key).map(|place| (place, self.slab.vtable(place)))
        else {
            // SAFETY: as above.
            self.lose(unsafe { envelope.read() });
            return;
        };
        if !vtable.receives {
            // SAFETY: as above.
            self.keep(place, unsafe { envelope.read() });
            return;
        }
        // SAFETY: as above.
        unsafe { self.hand(place, key, vtable, envelope) };
    }

    /// Hands a message to a unit that receives.
    ///
    /// # Safety
    /// As [`deliver`](Self::deliver), of a message. The vtable is that of the unit in this place.
    unsafe fn hand(
        &mut self,
        place: Place,
        key: Key,
        vtable: &'static HandlerVTable,
        envelope: NonNull<Envelope>,
    ) {
        // SAFETY: the caller's promise; the borrow ends here.
        if !vtable.takes(unsafe { envelope.as_ref() }.vtable) {
            // SAFETY: it is moved out, as the caller gives it up.
            self.lose(unsafe { envelope.read() });
            return;
        }
        if vtable.timed {
            place.set_never_due();
            self.timers.forget(key);
        }
        // SAFETY: as above; the content is moved out by the vtable that is run, before anything else.
        let message = unsafe { Envelope::content(envelope) };
        self.run(place, key, vtable, WakeReason::Message(message));
    }

    /// Does what an envelope is for that has no message.
    fn act(&mut self, purpose: Purpose, envelope: Envelope) {
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

    /// Drops a message that nobody can get.
    fn lose(&mut self, envelope: Envelope) {
        self.counts.undeliverable += 1;
        self.discard(envelope);
    }

    /// Keeps a message for a unit that does not receive at present.
    fn keep(&mut self, place: Place, envelope: Envelope) {
        place.page().header_mut().has_stashed = true;
        if let Err(envelope) = self.stash.add(envelope) {
            self.counts.refused += 1;
            self.discard(envelope);
        }
    }

    /// Runs up to so many of those whose time has come. Returns whether there were any.
    pub fn fire(&mut self, most: usize) -> bool {
        if !self.timers.look(&mut self.slab, &self.clock) {
            return false;
        }
        for _ in 0..most {
            let Some(due) = self.timers.pop() else { break };
            if let Some(place) = self.timers.claim(due, &mut self.slab) {
                self.run(place, due.key, self.slab.vtable(place), WakeReason::Due);
            }
        }
        true
    }

    /// Nanoseconds until somebody may be due; `None` if nobody waits for a time.
    pub fn next_due(&self) -> Option<u64> {
        self.timers.next_due(&self.slab, &self.clock)
    }

    /// Runs a waiting unit. Whoever calls has checked that its vtable takes this.
    fn run(&mut self, place: Place, key: Key, vtable: &'static HandlerVTable, wake: WakeReason) {
        self.counts.callbacks += 1;
        self.current = Some(Current { place, vtable });
        self.current_key = key;
        if self.watched {
            self.show_running(key);
        }
        let payload = place.payload().as_ptr();
        // SAFETY: a waiting unit's slot has a closure of its vtable; it is the current one now,
        // and nobody else touches it. The message, if any, is of the type that this vtable takes, as
        // whoever calls has checked.
        let next = unsafe { (vtable.run)(payload, self, wake) };
        if self.watched {
            self.show_running(Key::NOBODY);
        }
        self.carry_on(place, key, vtable, &next);
    }

    /// Wakes those whose descriptors are ready: if it is to `look`, or as sleeping has found. Returns whether
    /// there were any.
    pub fn fetch_events(&mut self, look: bool) -> bool {
        let Self { descriptors, queue, .. } = self;
        let before = queue.len();
        descriptors.fetch(look, |unit| queue.push(Envelope::start(unit)));
        queue.len() > before
    }

    /// Tells whoever watches what runs.
    #[cold]
    fn show_running(&self, key: Key) {
        if let Some(shared) = self.shared() {
            let published = &shared.remotes[usize::from(self.home.worker())].published;
            published.callbacks.store(self.counts.callbacks, Ordering::Release);
            published.running.store(key.bits(), Ordering::Release);
        }
    }

    /// Does what the unit that has run wants.
    fn carry_on(&mut self, place: Place, key: Key, vtable: &'static HandlerVTable, next: &Next) {
        self.current = None;
        self.current_key = Key::NOBODY;
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
                    Wanted::Planned => Reason::panicked("it wants what it wanted before"),
                };
                self.counts.panics += u64::from(matches!(reason, Reason::Panicked(_)));
                self.end(place, key, &reason);
            }
        }
    }

    /// Moves what was planned into the slot of the unit that has run, and has it wait.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too many kinds of closures. The slot is then empty, and the planned closure stays
    /// in [`Core::planned`].
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
        // The fallible step comes first. Between it and the move, the slot's vtable does not match its payload;
        // nothing in between runs foreign code or panics.
        if !std::ptr::eq(before, vtable) {
            self.slab.set_vtable(place, vtable)?;
        }
        match self.planned.move_to(place, vtable) {
            Until::Message => {}
            Until::Delay(delay) if vtable.receives => {
                if self.timers.ask_or_message(place, key, delay) {
                    self.stamp();
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
                    shared.blocking.give(job);
                }
            }
        }
        Ok(())
    }

    /// Ends a unit whose next closure could not be put into its slot, which has none.
    #[cold]
    fn end_without_room(&mut self, place: Place, key: Key) {
        self.drop_planned();
        self.end(place, key, &Reason::Failed(TOO_MANY_KINDS.into()));
    }

    /// If the unit receives and messages are kept for it, puts an envelope at the front of the queue that hands
    /// over the first one. Moving all of them to the queue would cost the length of the backlog per message.
    fn schedule_stashed(&mut self, place: Place, key: Key) {
        let may_have = !self.stash.is_empty() && place.page().header().has_stashed;
        if may_have && self.slab.vtable(place).receives && self.stash.call(key) {
            self.queue.push_first(Envelope::stashed(key));
        }
    }

    /// Hands a unit that was called for it the next message that was kept.
    fn deliver_stashed(&mut self, key: Key) {
        let Some(place) = self.slab.find(key) else { return };
        let vtable = self.slab.vtable(place);
        if !vtable.receives {
            self.stash.recall(key); // it timed out first; it is called again when it receives
            return;
        }
        let Some(envelope) = self.stash.next(key) else { return };
        if !vtable.takes(envelope.vtable) {
            self.lose(envelope);
            self.schedule_stashed(place, key);
            return;
        }
        let mut envelope = ManuallyDrop::new(envelope);
        // SAFETY: it is given up here, and is not in the queue.
        unsafe { self.hand(place, key, vtable, NonNull::from(&mut *envelope)) };
    }

    /// Ends a unit that is not running; its closure is gone.
    fn end(&mut self, place: Place, key: Key, reason: &Reason) {
        let kept = self.stash.take(key);
        self.timers.forget(key);
        let watched = place.page().header().watched;
        self.slab.remove(place);
        if !reason.is_done() {
            self.watchers.note_failed(key, reason);
        }
        if watched {
            self.tell(key, reason);
        }
        kept.into_iter().flatten().for_each(|envelope| self.discard(envelope));
    }

    /// Ends a unit, now if it waits, and when it returns if it is the one that runs. Returns
    /// whether it lived.
    pub fn cancel(&mut self, key: Key, reason: &Reason) -> bool {
        if self.current_key == key && key != Key::NOBODY {
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

    /// Ends the unit whose callback has panicked.
    pub fn after_panic(&mut self, panic: Box<dyn Any + Send>) {
        self.counts.panics += 1;
        let Some(Current { place, vtable }) = self.current.take() else {
            drop_panic(panic);
            return;
        };
        let key = std::mem::replace(&mut self.current_key, Key::NOBODY);
        self.cancelled = false;
        self.failure = None;
        if self.watched {
            self.show_running(Key::NOBODY);
        }
        self.drop_planned();
        if vtable.stays {
            self.drop_payload(place, vtable);
        }
        let reason = Reason::of_panic(&*panic);
        drop_panic(panic);
        self.end(place, key, &reason);
    }

    /// Gives memory back that was needed for more than there is now.
    pub fn trim(&mut self) {
        self.queue.shrink_to(IDLE_QUEUE_CAPACITY);
        self.outgoing.shrink_to(IDLE_QUEUE_CAPACITY);
        self.timers.trim();
        self.stash.trim();
        self.pool.trim();
        self.slab.trim();
    }

    /// Ends all units: each closure is dropped, nobody is told.
    pub fn clear(&mut self) {
        let numbers: Vec<u32> = self.slab.pages().collect();
        for number in numbers {
            for slot in self.slab.page(number).lives() {
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
        let kept = self.stash.take_all();
        kept.for_each(|envelope| self.discard(envelope));
        let outgoing = self.outgoing.take_all();
        outgoing.for_each(|envelope| self.discard(envelope));
        while let Some(envelope) = self.queue.pop() {
            // SAFETY: it has just been taken out, and is moved out of there at once.
            self.discard(unsafe { envelope.read() });
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.clear();
    }
}
