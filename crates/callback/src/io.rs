//! Descriptors that callback threads wait for.
//!
//! Each Worker has an epoll instance, from when the first descriptor is registered with it. Descriptors
//! are registered once, for both directions and edge-triggered: what the kernel tells is
//! remembered until an operation would have blocked. So to wait costs no system call. Events are
//! fetched by the thread that runs callbacks, between them or when it sleeps. What has happened by the
//! time an operation would block it has therefore seen, and whatever happens later is a new event; one that
//! was fetched before and is given out after wakes somebody for nothing.

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

/// What the eventfd is registered as, by which others wake a Worker that waits for events.
const WAKE_TOKEN: u64 = u64::MAX;
/// Events fetched at once.
const EVENT_BATCH: usize = 256;

/// What a callback thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// That something can be read, or that there is nothing more to come.
    Read,
    /// That something can be written, or that nobody reads any more.
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

/// What the kernel has told of: the number of a registration, and what happened.
type KernelEvent = (u64, EventFlags);

/// The kernel's side of it.
#[derive(Debug)]
pub(crate) struct Events {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// What was fetched by sleeping, for the Worker to look at. It alone takes the lock.
    fetched: Mutex<Vec<KernelEvent>>,
}

impl Events {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE_TOKEN), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, wake, fetched: Mutex::default() })
    }

    /// Sleeps until there are events, which are kept for when the Worker fetches some.
    pub fn sleep(&self, most: Option<Duration>) {
        let whole = most.is_none_or(|most| most.subsec_nanos().is_multiple_of(1_000_000));
        let mut most: Option<Timespec> = most.and_then(|most| most.try_into().ok());
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if !fetched.is_empty() {
            return;
        }
        if !whole {
            // `epoll_wait` counts milliseconds, which is too coarse for timers.
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], most.as_ref());
            most = Some(Timespec::default());
        }
        self.wait(&mut fetched, most.as_ref());
    }

    /// Waits for events. Woken, late or interrupted: whoever waits looks what there is.
    fn wait(&self, into: &mut Vec<KernelEvent>, most: Option<&Timespec>) {
        let mut events = [MaybeUninit::uninit(); EVENT_BATCH];
        match epoll::wait(&self.epoll, &mut events, most) {
            Ok((events, _)) => {
                into.extend(events.iter().map(|event| (event.data.u64(), event.flags)));
            }
            Err(error) => debug_assert!(error == Errno::INTR, "{error}"),
        }
    }

    /// The events that sleeping has fetched or, if there are none, and if it is to `look`, those that there
    /// are now.
    fn take(&self, look: bool) -> Vec<KernelEvent> {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.is_empty() && look {
            self.wait(&mut fetched, Some(&Timespec::default()));
        }
        std::mem::take(&mut fetched)
    }

    /// Keeps the room that events have had.
    fn give_back(&self, mut events: Vec<KernelEvent>) {
        events.clear();
        *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) = events;
    }

    /// Wakes whoever sleeps, or will sleep next.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes()); // full: it is awake already
    }
}

/// Events of a Worker, if it has any descriptors.
pub(crate) type Shared = Arc<OnceLock<Events>>;

/// A registered descriptor, as its Worker knows it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    generation: u32,
    ready: [bool; 2],
    /// The kernel has told of an end, of which it does not tell again.
    ended: bool,
    /// Who waits for that; [`Key::NOBODY`] for nobody.
    waiting: [Key; 2],
}

/// The descriptors of one Worker.
#[derive(Debug)]
pub(crate) struct Descriptors {
    events: Shared,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Places of those that were dropped since somebody looked.
    dropped: Arc<Mutex<Vec<u32>>>,
}

/// Names a registration.
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

    /// Registers a descriptor, which does not block from now on.
    pub fn register<T: AsFd>(&mut self, inner: T) -> io::Result<Source<T>> {
        rustix::io::ioctl_fionbio(&inner, true)?;
        if self.events.get().is_none() {
            let _ = self.events.set(Events::new()?);
        }
        let events = self.events.get().ok_or(io::ErrorKind::Other)?;
        let index = self.free.pop().unwrap_or_else(|| {
            let entry =
                Entry { generation: 0, ready: [false; 2], ended: false, waiting: [Key::NOBODY; 2] };
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("there are fewer descriptors")
        });
        let entry = &mut self.entries[index as usize];
        entry.generation = (entry.generation + 1) & (u32::MAX >> 1);
        (entry.ready, entry.waiting, entry.ended) = ([false; 2], [Key::NOBODY; 2], false);
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

    /// Whether a source was registered here. Its Worker's number does not tell: another Worker gets
    /// the same one when that has ended.
    pub fn own<T: AsFd>(&self, source: &Source<T>) -> bool {
        Arc::ptr_eq(&self.dropped, &source.dropped)
    }

    /// Whether there have ever been any.
    pub fn has_registered(&self) -> bool {
        self.events.get().is_some()
    }

    fn entry(&mut self, registration: Registration) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(registration.index as usize);
        entry.filter(|entry| entry.generation == registration.generation)
    }

    /// Notes that an operation would have blocked.
    pub fn would_block(&mut self, registration: Registration, interest: Interest) {
        if let Some(entry) = self.entry(registration) {
            entry.ready[interest.index()] = false;
        }
    }

    /// Notes that a read has taken all there was. An end that may be behind it has to be read, though.
    pub fn drained(&mut self, registration: Registration) {
        if let Some(entry) = self.entry(registration)
            && !entry.ended
        {
            entry.ready[Interest::Read.index()] = false;
        }
    }

    /// Has a unit wait. Returns whether there is nothing to wait for.
    pub fn wait(&mut self, registration: Registration, interest: Interest, unit: Key) -> bool {
        let Some(entry) = self.entry(registration) else { return true };
        if !entry.ready[interest.index()] {
            entry.waiting[interest.index()] = unit;
            return false;
        }
        true
    }

    /// Fetches events, if there have ever been descriptors, and gives out those who wait for them. Unless it is
    /// to `look`, only events that sleeping has fetched.
    pub fn fetch(&mut self, look: bool, mut woken: impl FnMut(Key)) {
        let Some(events) = self.events.get() else { return };
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        for index in dropped.drain(..) {
            self.entries[index as usize].generation += 1;
            self.free.push(index);
        }
        drop(dropped);
        let fetched = events.take(look);
        for &(data, flags) in &fetched {
            if data == WAKE_TOKEN {
                let _ = rustix::io::read(&events.wake, &mut [0; 8]); // somebody else may have
                continue;
            }
            let [index, generation] = [data & u64::from(u32::MAX), data >> 32];
            let Some(entry) = usize::try_from(index).ok().and_then(|at| self.entries.get_mut(at))
            else {
                continue;
            };
            if u64::from(entry.generation) != generation {
                continue; // of one that has been dropped
            }
            let either = EventFlags::ERR | EventFlags::HUP;
            entry.ended |= flags.intersects(EventFlags::RDHUP | either);
            let read = EventFlags::IN | EventFlags::RDHUP | either;
            for (way, flag) in [read, EventFlags::OUT | either].into_iter().enumerate() {
                if flags.intersects(flag) {
                    entry.ready[way] = true;
                    let unit = std::mem::replace(&mut entry.waiting[way], Key::NOBODY);
                    if unit != Key::NOBODY {
                        woken(unit);
                    }
                }
            }
        }
        events.give_back(fetched);
    }
}

/// Something with a descriptor that callback threads of one Worker can wait for, made by
/// [`Context::register`](crate::Context::register). Dropped, it is not waited for any more, and what
/// was registered is dropped, too.
pub struct Source<T: AsFd> {
    inner: T,
    pub(crate) registration: Registration,
    events: Shared,
    dropped: Arc<Mutex<Vec<u32>>>,
}

impl<T: AsFd> Source<T> {
    /// What was registered. An operation on it that would block is to be made by
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
        // Somebody else may have the same open file, so that closing this descriptor is not enough.
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
    fn who_was_woken_sleeps_again_also_without_descriptors() {
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
