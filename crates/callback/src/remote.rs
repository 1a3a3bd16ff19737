//! What others see of a Worker.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::thread::futex;

use crate::counts::Counts;
use crate::inbox::Inbox;
use crate::io;
use crate::key::Key;
use crate::message::Envelope;
use crate::panics::drop_quietly;
use crate::parker::{Parker, WaitBackend};
use crate::sync::lock_std;
use crate::worker_thread::is_worker_thread;

/// Where a Worker sleeps: on a futex, or where its events come from as soon as there can be some.
#[derive(Debug)]
pub(crate) struct WorkerWaitBackend {
    /// One if somebody has called.
    called: AtomicU32,
    events: io::Shared,
}

impl WaitBackend for WorkerWaitBackend {
    fn sleep(&self, most: Option<Duration>) {
        if let Some(events) = self.events.get() {
            events.sleep(most);
        } else if self.called.swap(0, Ordering::Acquire) == 0 {
            let most = most.and_then(|most| most.try_into().ok());
            // Woken, late, interrupted or called meanwhile: whoever sleeps looks what there is.
            let _ = futex::wait(&self.called, futex::Flags::PRIVATE, 0, most.as_ref());
            self.called.store(0, Ordering::Relaxed);
        }
    }

    fn wake(&self) {
        if let Some(events) = self.events.get() {
            events.wake();
        } else {
            self.called.store(1, Ordering::Release);
            // That nobody sleeps is no failure.
            let _ = futex::wake(&self.called, futex::Flags::PRIVATE, 1);
        }
    }
}

/// What others see of a Worker.
#[derive(Debug)]
pub(crate) struct WorkerRemote {
    pub inbox: Inbox<Envelope>,
    parker: Parker<WorkerWaitBackend>,
    /// Where events of its descriptors come from.
    pub events: io::Shared,
    /// Places that are kept for units from elsewhere: whoever takes one may send a unit there.
    places: Mutex<Vec<Key>>,
    /// There are none, as the Worker's memory is used up.
    no_room: AtomicBool,
    /// Somebody waits for a place or for room in the inbox.
    wanted: AtomicU32,
    room: Condvar,
    pub published: Published,
}

/// Figures of a Worker, as of when it last had nothing to do or some turns ago.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Those of [`Counts`], one after the other.
    counts: [AtomicU64; 4],
    pub bytes: AtomicU64,
    /// For whoever watches: the key of the unit that runs, and how many have run.
    pub running: AtomicU64,
    pub callbacks: AtomicU64,
}

impl Published {
    pub fn set(&self, counts: Counts, bytes: usize) {
        let Counts { callbacks, panics, undeliverable, refused } = counts;
        for (to, from) in self.counts.iter().zip([callbacks, panics, undeliverable, refused]) {
            to.store(from, Ordering::Relaxed);
        }
        self.bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub fn counts(&self) -> Counts {
        let [callbacks, panics, undeliverable, refused] =
            [0, 1, 2, 3].map(|n| self.counts[n].load(Ordering::Relaxed));
        Counts { callbacks, panics, undeliverable, refused }
    }
}

impl WorkerRemote {
    pub fn new(capacity: usize, unbounded: bool) -> Self {
        let events = io::Shared::default();
        let backend = WorkerWaitBackend { called: AtomicU32::new(0), events: Arc::clone(&events) };
        Self {
            inbox: Inbox::new(capacity, unbounded),
            parker: Parker::new(backend),
            events,
            places: Mutex::new(Vec::new()),
            no_room: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            room: Condvar::new(),
            published: Published::default(),
        }
    }

    /// Leaves something, unless there is no room.
    pub fn push(&self, envelope: Envelope) -> Result<(), Envelope> {
        self.inbox.push(envelope)?;
        self.parker.unpark();
        // Waking has a full fence, as this needs.
        self.inbox.clear_if_closed(drop_envelope);
        Ok(())
    }

    /// Leaves something that must not be refused.
    pub fn push_always(&self, envelope: Envelope) {
        self.inbox.push_always(envelope);
        self.parker.unpark();
        // Waking has a full fence, as this needs.
        self.inbox.clear_if_closed(drop_envelope);
    }

    /// The Worker's, when it takes nothing out any more: drops what was left for it, and has
    /// others do so with what they leave later.
    pub fn close(&self) {
        self.inbox.close(drop_envelope);
    }

    /// Wakes the Worker to look around.
    pub fn call(&self) {
        self.parker.unpark();
    }

    /// The Worker's: sleeps until there is something.
    pub fn wait(&self, most: Option<Duration>, or: impl FnOnce() -> bool) {
        self.parker.park(most, || !self.inbox.is_empty() || or());
    }

    /// A place for a unit, if there is one.
    pub fn take_place(&self) -> Option<Key> {
        lock_std(&self.places).pop()
    }

    /// Whether there is no place because there is no memory for one.
    pub fn has_no_room(&self) -> bool {
        self.no_room.load(Ordering::Relaxed)
    }

    /// The Worker's: fills up with places up to so many. Returns whether there was memory for them.
    pub fn fill(&self, most: usize, mut place: impl FnMut() -> Option<Key>) -> bool {
        let mut places = lock_std(&self.places);
        while places.len() < most
            && let Some(key) = place()
        {
            places.push(key);
        }
        let (full, none) = (places.len() >= most, places.is_empty());
        drop(places);
        self.no_room.store(none, Ordering::Relaxed);
        self.tell();
        full
    }

    /// The Worker's: says that there is room again.
    pub fn tell(&self) {
        if self.wanted.load(Ordering::SeqCst) > 0 {
            drop(lock_std(&self.places));
            self.room.notify_all();
        }
    }

    /// Tries again whenever there is room, until it works.
    ///
    /// # Errors
    /// The value, if there is no room and this thread must not wait for it.
    pub fn when_room<T, R>(
        &self,
        mut value: T,
        mut attempt: impl FnMut(T) -> Result<R, T>,
    ) -> Result<R, T> {
        loop {
            value = match attempt(value) {
                Ok(done) => return Ok(done),
                Err(value) if is_worker_thread() => return Err(value),
                Err(value) => value,
            };
            self.wanted.fetch_add(1, Ordering::SeqCst);
            let places = lock_std(&self.places);
            // Told or not, it looks again: what is waited for may come between looking and waiting.
            let waited = self.room.wait_timeout(places, Duration::from_millis(1));
            drop(waited);
            self.wanted.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// What an envelope holds may send something itself when it is dropped, or panic.
fn drop_envelope(envelope: Envelope) {
    drop_quietly(|| drop(envelope));
}

/// How many units there are in all Workers, and whoever waits for there to be none.
#[derive(Debug, Default)]
pub(crate) struct Alive {
    units: AtomicI64,
    none: Mutex<()>,
    changed: Condvar,
}

impl Alive {
    pub fn count(&self) -> u64 {
        self.units.load(Ordering::SeqCst).try_into().unwrap_or(0)
    }

    pub fn add(&self, more: i64) {
        if more != 0 && self.units.fetch_add(more, Ordering::SeqCst) + more == 0 {
            drop(lock_std(&self.none));
            self.changed.notify_all();
        }
    }

    /// Waits until there are none.
    pub fn wait(&self, over: impl Fn() -> bool) {
        let mut none = lock_std(&self.none);
        while self.units.load(Ordering::SeqCst) != 0 && !over() {
            none = self.changed.wait(none).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Has those that wait look again.
    pub fn tell(&self) {
        drop(lock_std(&self.none));
        self.changed.notify_all();
    }
}
