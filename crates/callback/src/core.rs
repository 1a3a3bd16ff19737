//! One Worker's units and what they do: no thread, no waiting, nothing that is shared. `worker.rs`
//! drives it.
//!
//! # Protocol
//! A unit is always in one of these states:
//!
//! - *waiting*: its closure is in its slot, and the code says what for: messages, its time, both.
//! - *running*: it is [`Core::current`]. Its closure has been moved out (`Once`), or is used where
//!   it is (`Receive`); until it returns, nobody touches its payload. What it wants to do next is
//!   in [`Core::planned`] and is moved into the slot when it has returned.
//! - *ended*: its key is stale.
//!
//! Only [`Core::run`] calls closures, and it is never entered while one runs: what callbacks do to
//! others (send, spawn, cancel) is queued, or drops a waiting closure at once.
//!
//! A panic leaves `run`. Whoever drives the core catches it and calls [`Core::after_panic`].

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::blocking::Job;
use crate::clock::{Clock, HORIZON, short, tick_after, tick_at, until};
use crate::code::{Boxed, Code, Handler, LARGEST, Wake, code_of, fits};
use crate::context::{Next, Wanted};
use crate::door::Published;
use crate::io::{Descriptors, Interest, Registration};
use crate::key::{Id, Key};
use crate::message::{Envelope, Pool, Purpose};
use crate::queue::Queue;
use crate::reason::Reason;
use crate::receptor::Shared;
use crate::slab::{Due, NoRoom, Place, Slab};
use crate::watch::{Relation, Token, Watchers};

/// Units whose wait begins at the same reading of the clock, at most.
const STAMPED_AT_ONCE: usize = 64;
/// Units that are put in order of their due times at once.
const DUE_AT_ONCE: usize = 1 << 18;
/// Envelopes between the one that is opened and the one whose unit is fetched into the cache.
const AHEAD: usize = 6;
/// Room that queues keep when there is nothing to do.
const KEPT: usize = 1024;

/// The unit that runs.
#[derive(Debug, Clone, Copy)]
struct Current {
    place: Place,
    code: &'static Code,
}

/// What the running unit wants to run next.
struct Planned {
    code: Option<&'static Code>,
    until: Until,
    closure: MaybeUninit<[u64; LARGEST / 8]>,
}

/// What a unit waits for, apart from what its code takes.
pub(crate) enum Until {
    /// Nothing but messages.
    Message,
    /// So many nanoseconds.
    Delay(u64),
    /// That messages to other Workers have gone.
    Room,
    /// That this can be done with a descriptor.
    Ready(Registration, Interest),
    /// That this has been done, on a thread where it may block.
    Job(Job),
}

/// What has happened in a core, for those who want to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Callbacks that were run.
    pub callbacks: u64,
    /// Units that have ended because their callback panicked.
    pub panics: u64,
    /// Messages to units that had ended.
    pub undeliverable: u64,
    /// Messages to units that kept too many for later already.
    pub refused: u64,
}

pub(crate) struct Core {
    pub worker: u8,
    pub slab: Slab,
    pub clock: Clock,
    pub pool: Pool,
    pub counts: Counts,
    pub watchers: Watchers,
    /// What is to be done, by this core's callbacks' wish.
    queue: Queue,
    /// What goes to each other Worker, as soon as it has room.
    outgoing: Vec<VecDeque<Envelope>>,
    /// Units that wait until all of that has gone.
    for_room: Vec<Key>,
    /// Places that are kept for units from elsewhere.
    reserved: u64,
    /// Of these, how many have come since somebody asked.
    pub settled: u64,
    shared: Option<Arc<Shared>>,
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
    /// Units that wait from now on, for so many nanoseconds.
    stamps: Vec<(Key, u64)>,
    /// The tick up to which it has been looked who is due.
    looked: u64,
    /// Those whose time has come, in order, and how many of them have run.
    due: (Vec<Due>, usize),
    /// Moments of those who wait for longer than timers can look ahead.
    far: HashMap<Key, u64>,
    /// Messages to units that do not receive at present.
    kept: HashMap<Key, VecDeque<Envelope>>,
    most_kept: usize,
}

// SAFETY: all that a core owns is `Send` by the bounds of those who hand it over: closures
// (`Handler`), messages (`Envelope`). Its pages are nobody else's.
unsafe impl Send for Core {}

impl Counts {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            callbacks: self.callbacks + other.callbacks,
            panics: self.panics + other.panics,
            undeliverable: self.undeliverable + other.undeliverable,
            refused: self.refused + other.refused,
        }
    }
}

impl Core {
    pub fn new(
        worker: u8,
        bytes: usize,
        most_kept: usize,
        clock: Clock,
        shared: Option<Arc<Shared>>,
    ) -> io::Result<Self> {
        let looked = tick_at(clock.now());
        let events = match &shared {
            Some(shared) => Arc::clone(&shared.doors[usize::from(worker)].events),
            None => Arc::default(),
        };
        let workers = shared.as_ref().map_or(0, |shared| shared.doors.len());
        let mut pool = Pool::default();
        pool.keep();
        Ok(Self {
            worker,
            slab: Slab::new(worker, bytes, short(looked))?,
            clock,
            pool,
            counts: Counts::default(),
            watchers: Watchers::default(),
            queue: Queue::new(),
            outgoing: (0..workers).map(|_| VecDeque::new()).collect(),
            for_room: Vec::new(),
            reserved: 0,
            settled: 0,
            descriptors: Descriptors::new(events),
            shared,
            watched: false,
            current: None,
            current_key: Key::NOBODY,
            cancelled: false,
            failure: None,
            planned: Planned { code: None, until: Until::Message, closure: MaybeUninit::uninit() },
            stamps: Vec::with_capacity(STAMPED_AT_ONCE),
            looked,
            due: (Vec::new(), 0),
            far: HashMap::new(),
            kept: HashMap::new(),
            most_kept,
        })
    }

    /// Keeps a new unit that waits for nothing yet.
    pub fn insert<H: Handler>(&mut self, handler: H) -> Result<Key, NoRoom> {
        if fits::<H>(LARGEST) {
            self.insert_inline(handler)
        } else {
            self.insert_inline(Boxed::new(handler))
        }
    }

    fn insert_inline<H: Handler>(&mut self, handler: H) -> Result<Key, NoRoom> {
        let (place, key) = self.slab.insert(code_of::<H>())?;
        let payload = place.payload().cast::<H>();
        // SAFETY: the slot was chosen for this code, so it has room; slots are aligned for all
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
        if fits::<H>(room) {
            self.plan_inline(handler, until);
        } else {
            self.plan_inline(Boxed::new(handler), until);
        }
    }

    fn plan_inline<H: Handler>(&mut self, handler: H, until: Until) {
        self.drop_planned();
        // SAFETY: a handler that fits into a slot fits here, and is aligned to no more.
        unsafe { self.planned.closure.as_mut_ptr().cast::<H>().write(handler) };
        self.planned.code = Some(code_of::<H>());
        self.planned.until = until;
    }

    fn drop_planned(&mut self) {
        if let Some(code) = self.planned.code.take() {
            let closure = self.planned.closure.as_mut_ptr().cast();
            // SAFETY: a closure of this code was written there, and the code taken away with it.
            self.count_panic(|| unsafe { (code.drop)(closure) });
        }
    }

    /// Drops the closure of a unit that waits, or has returned, and is given another one or ends.
    fn drop_payload(&mut self, place: Place, code: &'static Code) {
        let payload = place.payload().as_ptr();
        // SAFETY: its slot has a closure of its code, which is not used any more.
        self.count_panic(|| unsafe { (code.drop)(payload) });
    }

    /// Drops something. What is dropped is gone also if that panics.
    fn count_panic(&mut self, drop: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(drop)) {
            self.counts.panics += 1;
            drop_panic(panic);
        }
    }

    /// Has a unit wait for so many nanoseconds from a moment on that is not before now.
    pub fn delay(&mut self, key: Key, nanoseconds: u64) {
        self.stamps.push((key, nanoseconds));
        if self.stamps.len() == STAMPED_AT_ONCE {
            self.stamp();
        }
    }

    /// Reads the clock for those who wait from now on. They asked before, so that none is early.
    pub fn stamp(&mut self) {
        if self.stamps.is_empty() {
            return;
        }
        let now = self.clock.now();
        if self.slab.nobody_is_due() {
            self.looked = tick_at(now);
            self.slab.begin_at(short(self.looked));
        }
        let mut stamps = std::mem::take(&mut self.stamps);
        for (key, delay) in stamps.drain(..) {
            if let Some(place) = self.slab.find(key) {
                self.wait_until(place, key, now.saturating_add(delay));
            }
        }
        self.stamps = stamps;
    }

    fn wait_until(&mut self, place: Place, key: Key, moment: u64) {
        let (tick, horizon) = (tick_after(moment), self.looked + HORIZON);
        if tick > horizon {
            self.far.insert(key, moment);
        }
        self.slab.set_due(place, short(tick.min(horizon)));
    }

    /// Something to do for this core, after all that is queued.
    #[inline]
    pub fn enqueue(&mut self, envelope: Envelope) {
        self.queue.push(envelope);
    }

    /// Hands an envelope to whichever core it is for.
    pub fn post(&mut self, envelope: Envelope) {
        let to = envelope.to.worker();
        if to == self.worker {
            self.enqueue(envelope);
            return;
        }
        let (Some(shared), waiting) = (&self.shared, &mut self.outgoing[usize::from(to)]) else {
            return;
        };
        // Nobody overtakes those that wait.
        let refused = if waiting.is_empty() {
            shared.doors[usize::from(to)].push(envelope)
        } else {
            Err(envelope)
        };
        waiting.extend(refused.err());
    }

    /// Whether one more message to this Worker would make too many that wait.
    pub fn is_full(&self, worker: u8) -> bool {
        let capacity = self.shared.as_ref().map_or(usize::MAX, |shared| shared.capacity);
        self.outgoing.get(usize::from(worker)).is_some_and(|waiting| waiting.len() >= capacity)
    }

    /// Whether something waits until another Worker has room for it.
    pub fn is_blocked(&self) -> bool {
        self.outgoing.iter().any(|waiting| !waiting.is_empty())
    }

    /// Sends on what other Workers have room for now. Returns whether there was something.
    pub fn send_outgoing(&mut self) -> bool {
        let mut sent = false;
        if let Some(shared) = &self.shared {
            for (waiting, door) in self.outgoing.iter_mut().zip(&shared.doors) {
                while let Some(envelope) = waiting.pop_front() {
                    if let Err(envelope) = door.push(envelope) {
                        waiting.push_front(envelope);
                        break;
                    }
                    sent = true;
                }
            }
        }
        if !self.for_room.is_empty() && !self.is_blocked() {
            for key in self.for_room.drain(..) {
                self.queue.push(Envelope::start(key));
            }
            sent = true;
        }
        sent
    }

    /// Reaches the runtime.
    pub fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// Units that live here.
    pub fn units(&self) -> u64 {
        self.slab.units() - self.reserved
    }

    /// Keeps a place for a unit that comes from elsewhere.
    pub fn reserve(&mut self) -> Option<Key> {
        let key = self.insert(Reserved::default()).ok()?;
        self.reserved += 1;
        Some(key)
    }

    /// Puts a unit into the place that was kept for it, and runs it.
    pub fn settle<H: Handler>(&mut self, key: Key, handler: H) {
        let Some(place) = self.slab.find(key) else { return };
        self.reserved -= 1;
        self.settled += 1;
        if fits::<H>(size_of::<Reserved>()) {
            settle_inline(&mut self.slab, place, handler);
        } else {
            settle_inline(&mut self.slab, place, Boxed::new(handler));
        }
        self.run(place, key, self.slab.code(place), Wake::Start);
    }

    /// Tells others how it stands.
    pub fn publish(&self, to: &Published) {
        to.set(self.counts, self.slab.bytes());
    }

    /// Does up to so many things that are queued. Returns whether there was something to do.
    pub fn work(&mut self, most: usize) -> bool {
        for done in 0..most {
            if let Some(place) = self.queue.ahead(AHEAD).and_then(|key| self.slab.find(key)) {
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
        let receiver = self.slab.find(key).map(|place| (place, self.slab.code(place)));
        let Some((place, code)) = receiver.filter(|(_, code)| code.receives) else {
            // SAFETY: as above.
            self.keep(unsafe { envelope.read() }, receiver.is_some());
            return;
        };
        if code.timed {
            place.set_never_due();
        }
        // SAFETY: as above; the content is moved out by the code that is run, before anything else.
        let message = unsafe { Envelope::content(envelope) };
        self.run(place, key, code, Wake::Message(message));
    }

    /// Does what an envelope is for that has no message.
    fn act(&mut self, purpose: Purpose, envelope: Envelope) {
        let key = envelope.to;
        match purpose {
            Purpose::Message => {}
            Purpose::Start => {
                if let Some(place) = self.slab.find(key) {
                    self.run(place, key, self.slab.code(place), Wake::Start);
                }
            }
            Purpose::Cancel => {
                self.cancel(key, &Reason::Cancelled);
            }
            Purpose::Control => envelope.into_control()(self),
        }
    }

    /// Keeps a message for a unit that does not receive at present, if it lives.
    fn keep(&mut self, envelope: Envelope, lives: bool) {
        if !lives {
            self.counts.undeliverable += 1;
            return;
        }
        let kept = self.kept.entry(envelope.to).or_default();
        if kept.len() < self.most_kept {
            kept.push_back(envelope);
        } else {
            self.counts.refused += 1;
        }
    }

    /// Runs up to so many of those whose time has come. Returns whether there were any.
    pub fn fire(&mut self, most: usize) -> bool {
        if self.due.1 == self.due.0.len() && !self.look_for_due() {
            return false;
        }
        for _ in 0..most {
            let Some(&due) = self.due.0.get(self.due.1) else { break };
            self.due.1 += 1;
            let Some(place) =
                self.slab.find(due.key).filter(|&place| place.is_due(due.tick, due.turn))
            else {
                continue;
            };
            place.set_never_due();
            if !self.far.is_empty()
                && let Some(moment) = self.far.remove(&due.key)
                && self.looked < tick_after(moment)
            {
                self.wait_until(place, due.key, moment);
                continue;
            }
            self.run(place, due.key, self.slab.code(place), Wake::Due);
        }
        true
    }

    fn look_for_due(&mut self) -> bool {
        if self.slab.nobody_is_due() {
            return false;
        }
        // Whoever was stopped for hours comes to the present in steps that ticks can tell apart.
        self.looked = tick_at(self.clock.now()).min(self.looked + HORIZON);
        let now = short(self.looked);
        let (due, done) = &mut self.due;
        due.clear();
        *done = 0;
        self.slab.add_due(now, due, DUE_AT_ONCE);
        !due.is_empty()
    }

    /// Nanoseconds until somebody may be due; `None` if nobody waits for a time.
    pub fn next_due(&self) -> Option<u64> {
        if self.due.1 < self.due.0.len() {
            return Some(0);
        }
        self.slab.next_tick().map(|tick| until(tick, self.clock.now()))
    }

    /// Runs a waiting unit. Whoever calls has checked that its code takes this.
    fn run(&mut self, place: Place, key: Key, code: &'static Code, wake: Wake) {
        self.counts.callbacks += 1;
        self.current = Some(Current { place, code });
        self.current_key = key;
        if self.watched {
            self.show_running(key);
        }
        let payload = place.payload().as_ptr();
        // SAFETY: a waiting unit's slot has a closure of its code; it is the current one now,
        // and nobody else touches it. The message, if any, is of the type that all handlers of a
        // unit take, as its `Address` has that type.
        let next = unsafe { (code.run)(payload, self, wake) };
        if self.watched {
            self.show_running(Key::NOBODY);
        }
        self.carry_on(place, key, code, &next);
    }

    /// Wakes those whose descriptors are ready. Returns whether there were any.
    pub fn fetch_events(&mut self) -> bool {
        let Self { descriptors, queue, .. } = self;
        let before = queue.len();
        descriptors.fetch(|unit| queue.push(Envelope::start(unit)));
        queue.len() > before
    }

    /// Tells whoever watches what runs.
    #[cold]
    fn show_running(&self, key: Key) {
        if let Some(shared) = &self.shared {
            let published = &shared.doors[usize::from(self.worker)].published;
            published.callbacks.store(self.counts.callbacks, Ordering::Release);
            published.running.store(key.bits(), Ordering::Release);
        }
    }

    /// Does what the unit that has run wants.
    fn carry_on(&mut self, place: Place, key: Key, code: &'static Code, next: &Next) {
        self.current = None;
        self.current_key = Key::NOBODY;
        match next.wanted() {
            Wanted::Again if code.stays && !self.cancelled => self.drop_planned(),
            Wanted::Planned if self.planned.code.is_some() && !self.cancelled => {
                self.install(place, code);
                match std::mem::replace(&mut self.planned.until, Until::Message) {
                    Until::Message => {}
                    Until::Delay(delay) => self.delay(key, delay),
                    Until::Room => self.for_room.push(key),
                    Until::Ready(registration, interest) => {
                        if self.descriptors.wait(registration, interest, key) {
                            self.queue.push(Envelope::start(key));
                        }
                    }
                    Until::Job(job) => {
                        if let Some(shared) = &self.shared {
                            shared.blocking.give(job);
                        }
                    }
                }
                self.hand_over_kept(place, key);
            }
            wanted => {
                if code.stays {
                    self.drop_payload(place, code);
                }
                self.drop_planned();
                let reason = match wanted {
                    _ if std::mem::take(&mut self.cancelled) => Reason::Cancelled,
                    Wanted::End => Reason::Done,
                    Wanted::Fail => Reason::Failed(self.failure.take().unwrap_or_default()),
                    Wanted::Again => Reason::panicked("`again` in a callback that runs once"),
                    Wanted::Planned => Reason::panicked("it wants what it wanted before"),
                };
                self.end(place, key, &reason);
            }
        }
    }

    /// Moves what was planned into the slot of the unit that has run.
    fn install(&mut self, place: Place, before: &'static Code) {
        if before.stays {
            self.drop_payload(place, before);
        }
        let Some(code) = self.planned.code.take() else { return };
        let from = self.planned.closure.as_ptr().cast::<MaybeUninit<u64>>();
        let to = place.payload().cast::<MaybeUninit<u64>>().as_ptr();
        for word in 0..code.bytes.div_ceil(8) {
            // SAFETY: it was planned with room for it in this slot, and slots are whole words.
            let to = unsafe { to.add(word) };
            // SAFETY: as above.
            let from = unsafe { from.add(word) };
            // SAFETY: the slot's closure is gone; both are aligned to words and do not overlap.
            unsafe { from.copy_to_nonoverlapping(to, 1) };
        }
        if !std::ptr::eq(before, code) {
            self.slab.set_code(place, code);
        }
    }

    /// Gives a unit that receives now what has come before, ahead of what comes later.
    fn hand_over_kept(&mut self, place: Place, key: Key) {
        if self.kept.is_empty() || !self.slab.code(place).receives {
            return;
        }
        for envelope in self.kept.remove(&key).into_iter().flatten().rev() {
            self.queue.push_first(envelope);
        }
    }

    /// Ends a unit that is not running; its closure is gone.
    fn end(&mut self, place: Place, key: Key, reason: &Reason) {
        let kept = if self.kept.is_empty() { None } else { self.kept.remove(&key) };
        if !self.far.is_empty() {
            self.far.remove(&key);
        }
        let watched = place.page().header().watched;
        self.slab.remove(place);
        if watched {
            self.tell(key, reason);
        }
        drop(kept); // last, as messages may panic when they are dropped
    }

    fn tell(&mut self, key: Key, reason: &Reason) {
        for envelope in self.watchers.tell(Id(key), reason) {
            self.post(envelope);
        }
    }

    /// Notes a relation of a unit, or tells the other side at once that this one has ended.
    pub fn relate(&mut self, unit: Key, token: Token, relation: Relation) {
        self.watchers.add(unit, token, relation);
        match self.slab.find(unit) {
            Some(place) => place.page().header_mut().watched = true,
            None => self.tell(unit, &Reason::Unknown),
        }
    }

    /// Ends a unit, now if it waits, and when it returns if it is the one that runs. Returns
    /// whether it lived.
    pub fn cancel(&mut self, key: Key, reason: &Reason) -> bool {
        if self.current_key == key && key != Key::NOBODY {
            self.cancelled = true;
            return true;
        }
        let Some(place) = self.slab.find(key) else { return false };
        let code = self.slab.code(place);
        self.drop_payload(place, code);
        self.end(place, key, reason);
        true
    }

    /// Ends the unit whose callback has panicked.
    pub fn after_panic(&mut self, panic: Box<dyn Any + Send>) {
        self.counts.panics += 1;
        let Some(Current { place, code }) = self.current.take() else {
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
        if code.stays {
            self.drop_payload(place, code);
        }
        let reason = Reason::of_panic(&*panic);
        drop_panic(panic);
        self.end(place, key, &reason);
    }

    /// Gives memory back that was needed for more than there is now.
    pub fn trim(&mut self) {
        self.queue.shrink_to(KEPT);
        self.outgoing.iter_mut().for_each(|waiting| waiting.shrink_to(KEPT));
        if self.due.1 == self.due.0.len() {
            self.due = (Vec::new(), 0);
        }
        self.kept.shrink_to(0);
        self.far.shrink_to(0);
        self.slab.trim();
    }

    /// Ends all units: each closure is dropped, nobody is told.
    pub fn clear(&mut self) {
        let numbers: Vec<u32> = self.slab.pages().collect();
        for number in numbers {
            for slot in self.slab.page(number).lives() {
                let page = self.slab.page(number);
                let place = Place::new(page, slot);
                let code = self.slab.code(place);
                self.drop_payload(place, code);
                if self.slab.remove(place) {
                    break;
                }
            }
        }
        self.watchers = Watchers::default();
        self.kept.clear();
        self.queue.clear();
        self.outgoing.iter_mut().for_each(VecDeque::clear);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Puts a closure into a place that was kept.
fn settle_inline<H: Handler>(slab: &mut Slab, place: Place, handler: H) {
    // SAFETY: what kept the place needs not be dropped; the slot has room, as checked.
    unsafe { place.payload().cast::<H>().write(handler) };
    slab.set_code(place, code_of::<H>());
}

/// Keeps a place for a closure of two words.
#[derive(Debug, Default)]
struct Reserved {
    _room: [u64; 2],
}

// SAFETY: nobody calls it; it stays until a closure takes its place.
unsafe impl Handler for Reserved {
    const STAYS: bool = true;
    const RECEIVES: bool = false;
    const TIMED: bool = false;

    unsafe fn call(_: *mut Self, _: &mut Core, _: Wake) -> Next {
        Next::again()
    }
}

/// Drops what a panic carries, which may panic itself.
fn drop_panic(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
