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

/// Blocks a Worker on a futex or, once it has an epoll instance, on epoll.
#[derive(Debug)]
pub(crate) struct WorkerWaitBackend {
    /// The futex: 1 if a wake-up is pending, otherwise 0.
    wake_pending: AtomicU32,
    events: io::Shared,
}

impl WaitBackend for WorkerWaitBackend {
    fn sleep(&self, max_sleep: Option<Duration>) {
        if let Some(events) = self.events.get() {
            events.sleep(max_sleep);
        } else if self.wake_pending.swap(0, Ordering::Acquire) == 0 {
            let max_sleep = max_sleep.and_then(|max_sleep| max_sleep.try_into().ok());
            // The wait may have ended by a wake-up, a timeout or an interruption; the caller checks
            // for work in any case.
            let _ = futex::wait(&self.wake_pending, futex::Flags::PRIVATE, 0, max_sleep.as_ref());
            self.wake_pending.store(0, Ordering::Relaxed);
        }
    }

    fn wake(&self) {
        if let Some(events) = self.events.get() {
            events.wake();
        } else {
            self.wake_pending.store(1, Ordering::Release);
            // It is not an error if no thread sleeps.
            let _ = futex::wake(&self.wake_pending, futex::Flags::PRIVATE, 1);
        }
    }
}

/// The part of a Worker that other threads use.
#[derive(Debug)]
pub(crate) struct WorkerRemote {
    pub inbox: Inbox<Envelope>,
    parker: Parker<WorkerWaitBackend>,
    /// The Worker's epoll instance, if it has one.
    pub events: io::Shared,
    /// Keys of reserved slots. A thread that takes one must send a unit to it.
    reserved_slots: Mutex<Vec<Key>>,
    /// Whether the Worker's last attempt to reserve slots left none available, because its memory
    /// was used up.
    no_room: AtomicBool,
    /// Number of threads waiting for a reserved slot or for room in the inbox.
    waiting_threads: AtomicU32,
    room: Condvar,
    pub published: Published,
}

/// Statistics that a Worker publishes to other threads: counts and memory when it becomes idle, the
/// running unit while there is a watchdog.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// The fields of [`Counts`], in declaration order.
    counts: [AtomicU64; 4],
    /// Size of the slab's pages in use and kept for reuse, in bytes.
    pub bytes: AtomicU64,
    /// The key of the running unit, as bits, for the watchdog; that of [`Key::NONE`] if none runs.
    pub running: AtomicU64,
    /// Number of callbacks run so far, including the running one, for the watchdog.
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
        let backend =
            WorkerWaitBackend { wake_pending: AtomicU32::new(0), events: Arc::clone(&events) };
        Self {
            inbox: Inbox::new(capacity, unbounded),
            parker: Parker::new(backend),
            events,
            reserved_slots: Mutex::new(Vec::new()),
            no_room: AtomicBool::new(false),
            waiting_threads: AtomicU32::new(0),
            room: Condvar::new(),
            published: Published::default(),
        }
    }

    /// Creates the epoll instance of a Worker that has not started yet.
    ///
    /// # Errors
    /// The error of a system call, such as `EMFILE`.
    pub fn enable_io(&self) -> std::io::Result<()> {
        io::enable(&self.events).map(drop)
    }

    /// Pushes an envelope and wakes the Worker, or returns the envelope as the error if the inbox
    /// is full. Drops an accepted envelope if the inbox is closed.
    pub fn push(&self, envelope: Envelope) -> Result<(), Envelope> {
        self.inbox.push(envelope)?;
        self.parker.unpark();
        // `unpark` has the full fence that `clear_if_closed` needs.
        self.inbox.clear_if_closed(drop_envelope);
        Ok(())
    }

    /// Pushes an envelope even if the inbox is full, and wakes the Worker. Drops the envelope if
    /// the inbox is closed.
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
    pub fn wake(&self) {
        self.parker.unpark();
    }

    /// Blocks the calling Worker until it is woken or `max_sleep`, if any, has passed; may return
    /// early. Does not block if the inbox has envelopes or `must_return` returns true.
    pub fn wait(&self, max_sleep: Option<Duration>, must_return: impl FnOnce() -> bool) {
        self.parker.park(max_sleep, || !self.inbox.is_empty() || must_return());
    }

    /// Takes a reserved slot and returns its key, or `None` if there is none.
    pub fn take_slot(&self) -> Option<Key> {
        lock_std(&self.reserved_slots).pop()
    }

    /// Returns whether the Worker's last attempt to reserve slots left none available, because its
    /// memory was used up.
    pub fn has_no_room(&self) -> bool {
        self.no_room.load(Ordering::Relaxed)
    }

    /// Reserves slots by calling `reserve` until there are `max_slots` or it returns `None`, and
    /// wakes threads waiting for room. Returns whether there are `max_slots` now, and updates
    /// [`has_no_room`](Self::has_no_room). Called by the Worker.
    pub fn reserve_slots(
        &self,
        max_slots: usize,
        mut reserve: impl FnMut() -> Option<Key>,
    ) -> bool {
        let mut reserved_slots = lock_std(&self.reserved_slots);
        while reserved_slots.len() < max_slots
            && let Some(key) = reserve()
        {
            reserved_slots.push(key);
        }
        let (is_full, is_empty) = (reserved_slots.len() >= max_slots, reserved_slots.is_empty());
        drop(reserved_slots);
        self.no_room.store(is_empty, Ordering::Relaxed);
        self.notify_waiting();
        is_full
    }

    /// Wakes threads waiting for room, which then try again. Called by the Worker.
    pub fn notify_waiting(&self) {
        if self.waiting_threads.load(Ordering::SeqCst) > 0 {
            drop(lock_std(&self.reserved_slots));
            self.room.notify_all();
        }
    }

    /// Calls `attempt` with `value` until it succeeds. If there is no room, `attempt` must return
    /// the value as the error; this then blocks until there may be room.
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
            self.waiting_threads.fetch_add(1, Ordering::SeqCst);
            let reserved_slots = lock_std(&self.reserved_slots);
            // The timeout is needed because room may appear between the attempt and the wait.
            let waited = self.room.wait_timeout(reserved_slots, Duration::from_millis(1));
            drop(waited);
            self.waiting_threads.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Drops an envelope, and catches a panic of its content's destructor. The destructor may send
/// messages.
fn drop_envelope(envelope: Envelope) {
    drop_quietly(|| drop(envelope));
}

/// The number of live units of all Workers, as far as reported, and a condition variable for
/// threads waiting for it to become zero.
#[derive(Debug, Default)]
pub(crate) struct Alive {
    units: AtomicI64,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Alive {
    pub fn count(&self) -> u64 {
        self.units.load(Ordering::SeqCst).try_into().unwrap_or(0)
    }

    pub fn add(&self, change: i64) {
        if change != 0 && self.units.fetch_add(change, Ordering::SeqCst) + change == 0 {
            drop(lock_std(&self.mutex));
            self.changed.notify_all();
        }
    }

    /// Blocks until there are no units or `is_over` returns true.
    pub fn wait(&self, is_over: impl Fn() -> bool) {
        let mut guard = lock_std(&self.mutex);
        while self.units.load(Ordering::SeqCst) != 0 && !is_over() {
            guard = self.changed.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Wakes waiting threads to check `is_over` again.
    pub fn wake_waiters(&self) {
        drop(lock_std(&self.mutex));
        self.changed.notify_all();
    }
}
