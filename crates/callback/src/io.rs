//! File descriptors that callback threads can wait for.
//!
//! Each Worker creates an epoll instance when the first descriptor is registered with it, unless it
//! was built with one.
//! Descriptors are registered once, for both directions and edge-triggered. The Worker remembers
//! reported readiness until an operation would have blocked, so waiting costs no system call. The
//! thread that runs callbacks also fetches events, between callbacks or when it sleeps. So if an
//! operation would block, later readiness causes a new event, which is handled after the operation.
//! An event from before the operation that is handled after it wakes a unit needlessly.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::key::Key;

/// The epoll data of the eventfd through which other threads wake a sleeping Worker.
const WAKE_TOKEN: u64 = u64::MAX;
/// Maximum number of events fetched by one system call.
const EVENT_BATCH: usize = 256;

/// The kind of readiness that a callback thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Reading: data, a connection to accept, the end of the stream or an error is available.
    Read,
    /// Writing: there is room for data, the other side no longer reads, or there is an error.
    Write,
}

impl Interest {
    fn index(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Write => 1,
        }
    }
}

/// An epoll event: the bits of a registration, or [`WAKE_TOKEN`], and the flags of the event.
type KernelEvent = (u64, EventFlags);

/// The epoll instance of a Worker, with the eventfd that wakes the Worker.
#[derive(Debug)]
pub(crate) struct Events {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// Events fetched but not yet taken. Only the Worker takes the lock.
    fetched: Mutex<Vec<KernelEvent>>,
}

impl Events {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE_TOKEN), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, wake, fetched: Mutex::default() })
    }

    /// Sleeps until there are events, for at most `max_sleep`, which is unlimited if `None`. May
    /// return early. The events are kept until the Worker takes them; if some are left, returns at
    /// once.
    pub fn sleep(&self, max_sleep: Option<Duration>) {
        let is_whole_ms =
            max_sleep.is_none_or(|max_sleep| max_sleep.subsec_nanos().is_multiple_of(1_000_000));
        let mut max_sleep: Option<Timespec> =
            max_sleep.and_then(|max_sleep| max_sleep.try_into().ok());
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if !fetched.is_empty() {
            return;
        }
        if !is_whole_ms {
            // `epoll_wait` takes milliseconds, which is too coarse for timers.
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], max_sleep.as_ref());
            max_sleep = Some(Timespec::default());
        }
        self.wait(&mut fetched, max_sleep.as_ref());
    }

    /// Waits for events and appends them to `into`. Adds none on timeout or interruption; the
    /// caller checks for work in any case.
    fn wait(&self, into: &mut Vec<KernelEvent>, max_sleep: Option<&Timespec>) {
        let mut events = [MaybeUninit::uninit(); EVENT_BATCH];
        match epoll::wait(&self.epoll, &mut events, max_sleep) {
            Ok((events, _)) => {
                into.extend(events.iter().map(|event| (event.data.u64(), event.flags)));
            }
            Err(error) => debug_assert!(error == Errno::INTR, "{error}"),
        }
    }

    /// Returns the events fetched by the last sleep. If there are none and `poll_kernel` is set,
    /// polls the kernel.
    fn take(&self, poll_kernel: bool) -> Vec<KernelEvent> {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.is_empty() && poll_kernel {
            self.wait(&mut fetched, Some(&Timespec::default()));
        }
        std::mem::take(&mut fetched)
    }

    /// Takes back the buffer of `events` for reuse.
    fn give_back(&self, mut events: Vec<KernelEvent>) {
        events.clear();
        *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) = events;
    }

    /// Wakes the Worker if it sleeps, or makes its next sleep return at once.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes()); // if full, it is awake
    }
}

/// The events of a Worker. They are set before it starts, if the runtime is built with
/// [`enable_io`](crate::Builder::enable_io), or when it registers its first descriptor.
pub(crate) type Shared = Arc<OnceLock<Events>>;

/// Returns the events of a Worker, which it creates if there are none. Only one thread may call it
/// at a time: the one that starts the Worker, then the Worker.
///
/// # Errors
/// The error of a system call, such as `EMFILE`.
pub(crate) fn enable(events: &Shared) -> io::Result<&Events> {
    if events.get().is_none() {
        let _ = events.set(Events::new()?);
    }
    Ok(events.get().ok_or(io::ErrorKind::Other)?)
}

/// The state of a registered descriptor. The entry of a dropped one stays until another descriptor
/// reuses its index.
#[derive(Debug, Clone, Copy)]
struct Entry {
    generation: u32,
    ready: [bool; 2],
    /// Whether the kernel has reported an end or an error, which it does not report again.
    ended: bool,
    /// The waiting unit for each direction, or [`Key::NONE`].
    waiting: [Key; 2],
}

/// The descriptors of one Worker.
#[derive(Debug)]
pub(crate) struct Descriptors {
    events: Shared,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Indices of sources dropped since the last fetch.
    dropped: Arc<Mutex<Vec<u32>>>,
}

/// The identity of a registered descriptor: its index, and a generation, because indices are
/// reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registration {
    index: u32,
    generation: u32,
}

impl Registration {
    fn bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

impl Descriptors {
    pub fn new(events: Shared) -> Self {
        let dropped = Arc::default();
        Self { events, entries: Vec::new(), free: Vec::new(), dropped }
    }

    /// Registers a descriptor and makes it non-blocking.
    ///
    /// # Errors
    /// The error of a system call, such as `EPERM` for a regular file. `inner` is then dropped.
    pub fn register<T: AsFd>(&mut self, inner: T) -> io::Result<Source<T>> {
        rustix::io::ioctl_fionbio(&inner, true)?;
        let events = enable(&self.events)?;
        let index = self.free.pop().unwrap_or_else(|| {
            let entry =
                Entry { generation: 0, ready: [false; 2], ended: false, waiting: [Key::NONE; 2] };
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("there are fewer descriptors")
        });
        let entry = &mut self.entries[index as usize];
        entry.generation = (entry.generation + 1) & (u32::MAX >> 1);
        (entry.ready, entry.waiting, entry.ended) = ([false; 2], [Key::NONE; 2], false);
        let registration = Registration { index, generation: entry.generation };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(registration.bits());
        if let Err(error) = epoll::add(&events.epoll, &inner, data, flags) {
            self.free.push(index);
            return Err(error.into());
        }
        let (events, dropped) = (Arc::clone(&self.events), Arc::clone(&self.dropped));
        Ok(Source { inner, registration, events, dropped })
    }

    /// Returns whether a source was registered here. Comparing the Worker's number would not
    /// suffice, because another Worker may get that number after this one has ended.
    pub fn owns<T: AsFd>(&self, source: &Source<T>) -> bool {
        Arc::ptr_eq(&self.dropped, &source.dropped)
    }

    /// Returns whether there is an epoll instance.
    pub fn has_epoll(&self) -> bool {
        self.events.get().is_some()
    }

    fn entry(&mut self, registration: Registration) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(registration.index as usize);
        entry.filter(|entry| entry.generation == registration.generation)
    }

    /// Records that an operation would have blocked, so the descriptor is not ready for `interest`.
    pub fn would_block(&mut self, registration: Registration, interest: Interest) {
        if let Some(entry) = self.entry(registration) {
            entry.ready[interest.index()] = false;
        }
    }

    /// Records that a read has drained the descriptor, so it is not ready for reading. It stays
    /// ready if the kernel has reported an end or an error, which is still to be read.
    pub fn drained(&mut self, registration: Registration) {
        if let Some(entry) = self.entry(registration)
            && !entry.ended
        {
            entry.ready[Interest::Read.index()] = false;
        }
    }

    /// Registers a unit that waits for `interest`. If the descriptor is ready or no longer
    /// registered, does not register the unit and returns true: the unit need not wait.
    pub fn wait(&mut self, registration: Registration, interest: Interest, unit: Key) -> bool {
        let Some(entry) = self.entry(registration) else { return true };
        if !entry.ready[interest.index()] {
            entry.waiting[interest.index()] = unit;
            return false;
        }
        true
    }

    /// Handles the events fetched by the last sleep or, if there are none and `poll_kernel` is set,
    /// by a poll of the kernel. Calls `woken` for each unit that waited for one of these events.
    /// Also frees the indices of dropped sources.
    pub fn fetch(&mut self, poll_kernel: bool, mut woken: impl FnMut(Key)) {
        let Some(events) = self.events.get() else { return };
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        for index in dropped.drain(..) {
            self.entries[index as usize].generation += 1;
            self.free.push(index);
        }
        drop(dropped);
        let fetched = events.take(poll_kernel);
        for &(data, flags) in &fetched {
            if data == WAKE_TOKEN {
                let _ = rustix::io::read(&events.wake, &mut [0; 8]); // may be read already
                continue;
            }
            let [index, generation] = [data & u64::from(u32::MAX), data >> 32];
            let Some(entry) = usize::try_from(index).ok().and_then(|at| self.entries.get_mut(at))
            else {
                continue;
            };
            if u64::from(entry.generation) != generation {
                continue; // an event of a dropped source
            }
            let either = EventFlags::ERR | EventFlags::HUP;
            entry.ended |= flags.intersects(EventFlags::RDHUP | either);
            let read = EventFlags::IN | EventFlags::RDHUP | either;
            for (direction, flag) in [read, EventFlags::OUT | either].into_iter().enumerate() {
                if flags.intersects(flag) {
                    entry.ready[direction] = true;
                    let unit = std::mem::replace(&mut entry.waiting[direction], Key::NONE);
                    if unit != Key::NONE {
                        woken(unit);
                    }
                }
            }
        }
        events.give_back(fetched);
    }
}

/// A registered object with a file descriptor, which callback threads of one Worker can wait for.
/// Created by [`Context::register`](crate::Context::register). Dropping it ends the registration
/// and drops the object.
pub struct Source<T: AsFd> {
    inner: T,
    pub(crate) registration: Registration,
    events: Shared,
    dropped: Arc<Mutex<Vec<u32>>>,
}

impl<T: AsFd> Source<T> {
    /// Returns the registered object. Call operations that may return `WouldBlock` through
    /// [`Context::attempt`](crate::Context::attempt).
    pub fn get(&self) -> &T {
        &self.inner
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.inner).finish()
    }
}

impl<T: AsFd> Drop for Source<T> {
    fn drop(&mut self) {
        // The open file description may be shared, in which case closing this descriptor would not
        // end the registration.
        if let Some(events) = self.events.get() {
            let _ = epoll::delete(&events.epoll, &self.inner);
        }
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.push(self.registration.index);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_woken_worker_can_sleep_again_without_descriptors() {
        let mut descriptors = Descriptors::new(Shared::default());
        let (socket, _other) = UnixStream::pair().expect("sockets");
        drop(descriptors.register(socket).expect("a socket"));
        let events = Arc::clone(&descriptors.events);
        let events = events.get().expect("as there was a descriptor");
        let is_awake = || {
            let mut both = [PollFd::new(&events.epoll, PollFlags::IN)];
            poll(&mut both, Some(&Timespec::default())).expect("they can be polled") > 0
        };
        events.wake();
        assert!(is_awake());
        descriptors.fetch(true, |_| panic!("nobody waits"));
        assert!(!is_awake(), "it would look for events for ever");
    }
}
