//! The part of a Worker that other threads use: its inbox, its reserved slots, its counts, and its
//! wake-up.

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

/// Blocks a Worker on a futex or, once it has registered a descriptor, on epoll.
#[derive(Debug)]
pub(crate) struct WorkerWaitBackend {
    /// 1 if a wake-up is pending.
    called: AtomicU32,
    events: io::Shared,
}

impl WaitBackend for WorkerWaitBackend {
    fn sleep(&self, most: Option<Duration>) {
        if let Some(events) = self.events.get() {
            events.sleep(most);
        } else if self.called.swap(0, Ordering::Acquire) == 0 {
            let most = most.and_then(|most| most.try_into().ok());
            // The wait may have ended by a wake-up, a timeout or an interruption; the caller checks
            // for work in any case.
            let _ = futex::wait(&self.called, futex::Flags::PRIVATE, 0, most.as_ref());
            self.called.store(0, Ordering::Relaxed);
        }
    }

    fn wake(&self) {
        if let Some(events) = self.events.get() {
            events.wake();
        } else {
            self.called.store(1, Ordering::Release);
            // No sleeping thread is not an error.
            let _ = futex::wake(&self.called, futex::Flags::PRIVATE, 1);
        }
    }
}

/// The part of a Worker that other threads use.
#[derive(Debug)]
pub(crate) struct WorkerRemote {
    pub inbox: Inbox<Envelope>,
    parker: Parker<WorkerWaitBackend>,
    /// The Worker's epoll instance, once it has registered a descriptor.
    pub events: io::Shared,
    /// Keys of reserved slots. A thread that takes one may send a unit to it.
    places: Mutex<Vec<Key>>,
    /// Whether there are no reserved slots because the Worker's memory is used up.
    no_room: AtomicBool,
    /// Number of threads waiting for a reserved slot or for room in the inbox.
    wanted: AtomicU32,
    room: Condvar,
    pub published: Published,
}

/// Statistics that a Worker publishes to other threads: counts and memory when it becomes idle, the
/// running unit while there is a watchdog.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// The fields of [`Counts`], in declaration order.
    counts: [AtomicU64; 4],
    pub bytes: AtomicU64,
    /// For the watchdog: the key of the running unit, and the number of callbacks run so far.
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

    /// Pushes an envelope and wakes the Worker. Returns the envelope as the error if the inbox is
    /// full.
    pub fn push(&self, envelope: Envelope) -> Result<(), Envelope> {
        self.inbox.push(envelope)?;
        self.parker.unpark();
        // `unpark` has the full fence that `clear_if_closed` needs.
        self.inbox.clear_if_closed(drop_envelope);
        Ok(())
    }

    /// Pushes an envelope even if the inbox is full, and wakes the Worker.
    pub fn push_always(&self, envelope: Envelope) {
        self.inbox.push_always(envelope);
        self.parker.unpark();
        // `unpark` has the full fence that `clear_if_closed` needs.
        self.inbox.clear_if_closed(drop_envelope);
    }

    /// Closes the inbox and drops its envelopes; threads that push later drop theirs. Called by the
    /// Worker when it ends.
    pub fn close(&self) {
        self.inbox.close(drop_envelope);
    }

    /// Wakes the Worker to check for work or shutdown.
    pub fn call(&self) {
        self.parker.unpark();
    }

    /// Blocks the calling Worker until it is woken or `most` has passed. Does not block if the
    /// inbox has envelopes or `or` returns true.
    pub fn wait(&self, most: Option<Duration>, or: impl FnOnce() -> bool) {
        self.parker.park(most, || !self.inbox.is_empty() || or());
    }

    /// Takes a reserved slot and returns its key, or `None` if there is none.
    pub fn take_place(&self) -> Option<Key> {
        lock_std(&self.places).pop()
    }

    /// Returns whether there are no reserved slots because the Worker's memory is used up.
    pub fn has_no_room(&self) -> bool {
        self.no_room.load(Ordering::Relaxed)
    }

    /// Reserves slots by calling `place` until there are `most`. Returns whether memory sufficed.
    /// Called by the Worker.
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

    /// Wakes threads waiting for room. Called by the Worker.
    pub fn tell(&self) {
        if self.wanted.load(Ordering::SeqCst) > 0 {
            drop(lock_std(&self.places));
            self.room.notify_all();
        }
    }

    /// Calls `attempt` until it succeeds, and blocks between the attempts until there may be room.
    ///
    /// # Errors
    /// Returns the value if there is no room and the calling thread is a Worker's, which must not
    /// block.
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
            // The timeout is needed because room may appear between the attempt and the wait.
            let waited = self.room.wait_timeout(places, Duration::from_millis(1));
            drop(waited);
            self.wanted.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Drops an envelope and catches a panic of its content's destructor, which may also send messages.
fn drop_envelope(envelope: Envelope) {
    drop_quietly(|| drop(envelope));
}

/// The number of live units in all Workers, and a condition variable for threads waiting for it to
/// become zero.
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

    /// Blocks until there are no units or `over` returns true.
    pub fn wait(&self, over: impl Fn() -> bool) {
        let mut none = lock_std(&self.none);
        while self.units.load(Ordering::SeqCst) != 0 && !over() {
            none = self.changed.wait(none).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Wakes waiting threads to check `over` again.
    pub fn tell(&self) {
        drop(lock_std(&self.none));
        self.changed.notify_all();
    }
}
