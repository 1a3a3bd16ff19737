//! The ring buffer: slots, and the protocol between the sender and the receiver.
//!
//! # Protocol
//! The memory begins with a page of control words, followed by the slots. A slot begins with the
//! number of its message, by which the receiver sees that the message has arrived: a small message
//! and its number share one cache line, the only one that moves from one CPU to the other. Numbers
//! begin with 1, so zeroed memory is an empty ring.
//!
//! | access | synchronised by |
//! |---|---|
//! | receiver reads a slot | sender stores its number (release), receiver loads it (acquire) |
//! | sender reuses a slot | receiver stores `freed` (release), sender loads it (acquire) |
//!
//! The sender may write into a slot once the message that was there a lap ago has been freed. The
//! receiver publishes `freed` for several messages at once, and the sender loads it only when it
//! finds no room. So neither side reads a message while the other side writes it, as long as there
//! is one sender and one receiver; after a fork, each process uses one of the two.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex;

use super::bell::{self, Waiter};
use super::layout::{CONTROL_BYTES, Layout, MAX_TINY_BYTES, Shape};
use crate::mapping::Mapping;
use crate::shared::Line;

/// How one side waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Polling (busy waiting).
    Spin,
    /// Sleeping in a futex, after this number of polls.
    Sleep(u32),
}

/// The control words of one direction. All zeros mean an empty ring.
#[repr(C)]
struct Control {
    /// Number of messages that the receiver has freed, modulo 2³².
    freed: Line<AtomicU32>,
    /// Whether the receiver sleeps, or is about to: 1 or 0.
    receiver_asleep: Line<AtomicU32>,
    /// Whether the sender sleeps, or is about to: 1 or 0.
    sender_asleep: Line<AtomicU32>,
}

/// State that each end has: memory, layout, method of waiting, and counts of system calls.
#[derive(Debug)]
struct Side {
    memory: Arc<Mapping>,
    shape: Shape,
    layout: Layout,
    policy: WaitPolicy,
    /// Numbers of system calls: sleeps of this side, and wake-ups of the other side.
    calls: [Cell<u64>; 2],
}

/// The sending end of a ring, for one process or thread.
#[derive(Debug)]
pub struct Sender {
    side: Side,
    /// Number of messages sent, modulo 2³².
    sent: u32,
    /// Value of [`Control::freed`] when it was last loaded.
    freed: u32,
    /// The slot of the next message.
    next: Place,
    /// The next message, if messages are tiny; otherwise unused.
    tiny: [u8; MAX_TINY_BYTES],
}

/// The receiving end of a ring, for one process or thread.
#[derive(Debug)]
pub struct Receiver {
    side: Side,
    /// Number of messages received, modulo 2³².
    received: u32,
    /// The slot of the next message.
    next: Place,
    /// The slot of the last message; `None` before the first one, and once it has been freed.
    last: Option<Place>,
    /// The last message, if messages are tiny; otherwise unused.
    tiny: [u8; MAX_TINY_BYTES],
    /// Number of messages that are freed at once.
    free_batch: u32,
    /// Number of messages still to be received before messages are freed.
    until_freeing: u32,
    /// Number of messages received since the receiver last waited for one, including that one.
    at_once: u32,
}

/// A slot and its address.
#[derive(Debug, Clone, Copy)]
struct Place {
    slot: u32,
    at: NonNull<u8>,
}

// SAFETY: the address is in shared memory, which lives as long as the ends that use it.
unsafe impl Send for Place {}

const _: () = assert!(
    size_of::<Control>() <= CONTROL_BYTES / 2,
    "the control page holds one for each direction"
);

/// Creates a ring in `memory`, which must be zeroed and not used for anything else.
///
/// # Errors
/// `InvalidInput` if the memory is shorter than [`Shape::length`] or not writable, or the ring has
/// fewer than two slots.
pub fn ring(memory: Mapping, shape: Shape, policy: WaitPolicy) -> io::Result<(Sender, Receiver)> {
    if memory.length() < shape.length() || shape.slots < 2 || !memory.can_be_written() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(ends(&Arc::new(memory), shape, Layout::alone(shape), policy))
}

/// Creates two rings, one in each direction, in `memory`, which must be zeroed and not used for
/// anything else. Returns the sender and receiver of each of the two partners.
///
/// # Errors
/// `InvalidInput` if the memory is shorter than [`Shape::length_of_pair`] or not writable, or the
/// rings have fewer than two slots.
pub fn pair(
    memory: Mapping,
    shape: Shape,
    policy: WaitPolicy,
) -> io::Result<[(Sender, Receiver); 2]> {
    if memory.length() < shape.length_of_pair() || shape.slots < 2 || !memory.can_be_written() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let memory = Arc::new(memory);
    let [there, back] =
        [false, true].map(|second| ends(&memory, shape, Layout::of_pair(shape, second), policy));
    Ok([(there.0, back.1), (back.0, there.1)])
}

fn ends(
    memory: &Arc<Mapping>,
    shape: Shape,
    layout: Layout,
    policy: WaitPolicy,
) -> (Sender, Receiver) {
    let side =
        || Side { memory: Arc::clone(memory), shape, layout, policy, calls: Default::default() };
    let first = side().place(0);
    let free_batch = (shape.slots / 4).max(1);
    let tiny = [0; MAX_TINY_BYTES];
    let sender = Sender { side: side(), sent: 0, freed: 0, next: first, tiny };
    let receiver = Receiver {
        side: side(),
        received: 0,
        next: first,
        last: None,
        tiny,
        free_batch,
        until_freeing: free_batch,
        at_once: 0,
    };
    (sender, receiver)
}

impl Side {
    fn control(&self) -> &Control {
        // SAFETY: within the first page of the mapping, at a multiple of the alignment.
        let control = unsafe { self.memory.start().add(self.layout.control) };
        // SAFETY: only atomics are there, for which zeros are valid.
        unsafe { control.cast().as_ref() }
    }

    /// Returns the slot with index `slot`, whose address is that of its message's number.
    fn place(&self, slot: u32) -> Place {
        // SAFETY: within the mapping, as checked when the ring was made.
        let at = unsafe { self.memory.start().add(self.layout.at(slot)) };
        Place { slot, at }
    }

    /// Returns the slot after `place`, wrapping around.
    #[inline]
    fn next_slot(&self, place: Place) -> Place {
        let slot = place.slot + 1;
        self.place(if slot == self.shape.slots { 0 } else { slot })
    }

    /// Returns the address of the message in a slot.
    #[inline]
    fn message(&self, place: Place) -> NonNull<u8> {
        // SAFETY: a slot is longer than its header.
        unsafe { place.at.add(self.shape.header()) }
    }

    /// Calls `look` until it returns a value, and returns that. After a few polls, continues with
    /// [`Side::wait_longer`], which fails if `gives_up` returns true. `asleep` is this side's
    /// futex.
    #[inline]
    fn wait<T>(
        &self,
        look: impl Fn() -> Option<T>,
        asleep: &AtomicU32,
        gives_up: &dyn Fn() -> bool,
    ) -> io::Result<T> {
        for _ in 0..self.policy.first_polls() {
            if let Some(found) = look() {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        self.wait_longer(look, asleep, gives_up)
    }

    #[cold]
    #[inline(never)]
    fn wait_longer<T>(
        &self,
        look: impl Fn() -> Option<T>,
        asleep: &AtomicU32,
        gives_up: &dyn Fn() -> bool,
    ) -> io::Result<T> {
        let looks = match self.policy {
            WaitPolicy::Spin => u32::MAX,
            WaitPolicy::Sleep(looks) => looks - self.policy.first_polls(),
        };
        loop {
            for count in 0..looks {
                if let Some(found) = look() {
                    return Ok(found);
                }
                if count % POLLS_PER_CHECK == POLLS_PER_CHECK - 1 && gives_up() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                std::hint::spin_loop();
            }
            if self.policy != WaitPolicy::Spin {
                let sleeps = || self.calls[0].set(self.calls[0].get() + 1);
                bell::wait(asleep, || look().is_some(), gives_up, sleeps);
                return look().ok_or_else(|| io::ErrorKind::BrokenPipe.into());
            }
        }
    }

    /// Wakes the other side, if it sleeps.
    #[inline]
    fn notify(&self, asleep: &AtomicU32) {
        if self.policy != WaitPolicy::Spin && bell::notify(asleep) {
            self.calls[1].set(self.calls[1].get() + 1);
        }
    }

    fn calls(&self) -> [u64; 2] {
        self.calls.each_ref().map(Cell::get)
    }
}

impl WaitPolicy {
    /// Returns the number of polls before [`Side::wait_longer`] is called, which suffices for most
    /// waits.
    #[inline]
    fn first_polls(self) -> u32 {
        const MAX_FIRST_POLLS: u32 = 64;
        match self {
            Self::Spin => MAX_FIRST_POLLS,
            Self::Sleep(looks) => looks.min(MAX_FIRST_POLLS),
        }
    }
}

impl Place {
    /// Returns the number of the message in the slot.
    #[inline]
    fn number(&self) -> &AtomicU32 {
        // SAFETY: aligned to 8, within the mapping, and only used as an atomic.
        unsafe { self.at.cast().as_ref() }
    }

    /// Returns the word of a tiny message: its number in the lower half, the message in the upper
    /// half.
    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { self.at.cast().as_ref() }
    }
}

/// Returns the lower and the upper half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves are wanted")]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> u32::BITS) as u32]
}

/// Pauses briefly before a wait if at least four messages have been received since the previous
/// one: the sender is busy, and polling the line that it writes next slows both sides down. Resets
/// `at_once`, the number of these messages.
#[inline]
fn pause_after_burst(at_once: &mut u32) {
    const BURST_MESSAGES: u32 = 4;
    const PAUSE_SPINS: u32 = 8;
    if std::mem::take(at_once) >= BURST_MESSAGES {
        (0..PAUSE_SPINS).for_each(|_| std::hint::spin_loop());
    }
}

/// Number of polls between two calls of `gives_up`.
const POLLS_PER_CHECK: u32 = 1 << 12;

impl Waiter for AtomicU32 {
    fn futex_word(&self) -> &AtomicU32 {
        self
    }

    fn sleep(&self) {
        let _ = futex::wait(self, futex::Flags::empty(), 1, None); // errors count as spurious wake-ups
    }

    fn wake(&self) {
        let _ = futex::wake(self, futex::Flags::empty(), 1); // cannot fail for mapped memory
    }
}

impl Sender {
    /// Returns the buffer of the next message, with unspecified contents; blocks until there is
    /// room. While it waits, calls `gives_up` every few thousand polls and before each sleep, hence
    /// also after a signal, and stops waiting if it returns true.
    ///
    /// # Errors
    /// `BrokenPipe` if `gives_up` returned true.
    #[inline]
    pub fn draft(&mut self, gives_up: &dyn Fn() -> bool) -> io::Result<&mut [u8]> {
        let slots = self.side.shape.slots;
        if self.sent.wrapping_sub(self.freed) >= slots {
            let (control, sent) = (self.side.control(), self.sent);
            let look = || {
                let freed = control.freed.load(Ordering::Acquire);
                (sent.wrapping_sub(freed) < slots).then_some(freed)
            };
            self.freed = self.side.wait(look, &control.sender_asleep, gives_up)?;
        }
        let bytes = self.side.shape.bytes;
        if self.side.shape.is_tiny() {
            return Ok(&mut self.tiny[..bytes]);
        }
        let message = self.side.message(self.next);
        // SAFETY: the slot has this length, and is the sender's until its number is written.
        Ok(unsafe { std::slice::from_raw_parts_mut(message.as_ptr(), bytes) })
    }

    /// Sends the message in the buffer that [`Sender::draft`] returned. May be called only once
    /// after each successful call of that function.
    #[inline]
    pub fn send(&mut self) {
        self.sent = self.sent.wrapping_add(1);
        if self.side.shape.is_tiny() {
            // Assembled byte by byte, as the caller may have written it: one load of bytes just
            // stored separately stalls (failed store forwarding).
            let bytes = self.tiny[..self.side.shape.bytes].iter().rev();
            let message = bytes.fold(0, |word, &byte| word << 8 | u64::from(byte));
            let word = message << u32::BITS | u64::from(self.sent);
            self.next.word().store(word, Ordering::Release);
        } else {
            self.next.number().store(self.sent, Ordering::Release);
        }
        self.side.notify(&self.side.control().receiver_asleep);
        self.next = self.side.next_slot(self.next);
    }

    /// Returns how often this side has slept, and how often it has woken the other one.
    pub fn calls(&self) -> [u64; 2] {
        self.side.calls()
    }
}

impl Receiver {
    /// Receives the next message; blocks until there is one. Earlier messages are freed, in
    /// batches. Calls `gives_up` as [`Sender::draft`] does.
    ///
    /// # Errors
    /// `BrokenPipe` if `gives_up` returned true.
    #[inline]
    pub fn receive(&mut self, gives_up: &dyn Fn() -> bool) -> io::Result<&[u8]> {
        if self.until_freeing == 0 {
            self.free();
        }
        let asleep = &self.side.control().receiver_asleep;
        let wanted = self.received.wrapping_add(1);
        if self.side.shape.is_tiny() {
            let word = self.next.word();
            let look = || {
                let [number, message] = halves(word.load(Ordering::Acquire));
                (number == wanted).then_some(message)
            };
            let message = if let Some(message) = look() {
                message
            } else {
                pause_after_burst(&mut self.at_once);
                self.side.wait(look, asleep, gives_up)?
            };
            self.tiny = message.to_le_bytes();
        } else {
            let number = self.next.number();
            let look = || (number.load(Ordering::Acquire) == wanted).then_some(());
            if look().is_none() {
                pause_after_burst(&mut self.at_once);
                self.side.wait(look, asleep, gives_up)?;
            }
        }
        self.at_once = self.at_once.saturating_add(1);
        self.received = wanted;
        self.until_freeing -= 1;
        self.last = Some(self.next);
        self.next = self.side.next_slot(self.next);
        Ok(self.last())
    }

    /// Frees all messages received, by publishing their number, and wakes the sender if it sleeps.
    fn free(&mut self) {
        let control = self.side.control();
        control.freed.store(self.received, Ordering::Release);
        self.side.notify(&control.sender_asleep);
        self.until_freeing = self.free_batch;
        self.last = None;
    }

    /// Returns the last message received; empty before the first, and possibly after a failed
    /// [`Receiver::receive`].
    #[inline]
    pub fn last(&self) -> &[u8] {
        let Some(place) = self.last else { return &[] };
        let bytes = self.side.shape.bytes;
        if self.side.shape.is_tiny() {
            return &self.tiny[..bytes];
        }
        let message = self.side.message(place);
        // SAFETY: the slot is the receiver's until it is freed, by the next `receive` at the
        // earliest.
        unsafe { std::slice::from_raw_parts(message.as_ptr(), bytes) }
    }

    /// Returns how often this side has slept, and how often it has woken the other one.
    pub fn calls(&self) -> [u64; 2] {
        self.side.calls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::mapping::Backing;
    use crate::process::fork;

    fn never() -> bool {
        false
    }

    #[test]
    fn messages_arrive_whole_and_in_order_also_where_one_is_slow() {
        for policy in [WaitPolicy::Sleep(0), WaitPolicy::Sleep(100)] {
            for (slots, bytes) in [(2, 1), (5, 100), (64, 4096)] {
                let shape = Shape { slots, bytes };
                let memory = Mapping::new(Backing::Shared, shape.length()).expect("memory");
                let (mut sender, mut receiver) = ring(memory, shape, policy).expect("a ring");
                let child = fork(|| {
                    for n in 0..5000_u32 {
                        if n.is_multiple_of(700) {
                            std::thread::sleep(std::time::Duration::from_millis(1));
                        }
                        let Ok(message) = receiver.receive(&never) else { return 1 };
                        if message.iter().any(|&byte| byte != n.to_le_bytes()[0]) {
                            return 2;
                        }
                    }
                    0
                });
                for n in 0..5000_u32 {
                    sender.draft(&never).expect("room").fill(n.to_le_bytes()[0]);
                    sender.send();
                    if n.is_multiple_of(900) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                }
                let status = reap(child.expect("a child")).expect("it ends").status;
                assert_eq!(status, ExitStatus::Exited(0), "{shape:?} {policy:?}");
            }
        }
    }

    #[test]
    fn two_rings_do_not_touch_each_other() {
        for (slots, bytes) in
            [(2, 1), (7, 4), (8, 5), (64, 8), (5, 24), (3, 25), (6, 56), (4, 1000)]
        {
            let shape = Shape { slots, bytes };
            let mut taken = vec![false; shape.length_of_pair()];
            for second in [false, true] {
                let layout = Layout::of_pair(shape, second);
                for slot in 0..slots {
                    let at = layout.at(slot);
                    assert!(at >= CONTROL_BYTES && at.is_multiple_of(8));
                    let slot_has = &mut taken[at..at + shape.header() + shape.bytes];
                    assert!(slot_has.iter().all(|taken| !taken), "{shape:?} {slot}");
                    slot_has.fill(true);
                }
            }
            let memory = Mapping::new(Backing::Shared, shape.length_of_pair()).expect("memory");
            let ends = pair(memory, shape, WaitPolicy::Spin).expect("two rings");
            let [(mut to, mut from), (mut back, mut there)] = ends;
            for n in 0..100 {
                to.draft(&never).expect("room").fill(n);
                to.send();
                back.draft(&never).expect("room").fill(!n);
                back.send();
                assert_eq!(there.receive(&never).expect("sent"), vec![n; bytes]);
                assert_eq!(from.receive(&never).expect("sent"), vec![!n; bytes]);
            }
        }
    }

    #[test]
    fn waiting_ends_when_a_side_gives_up() {
        let shape = Shape { slots: 2, bytes: 8 };
        let memory = Mapping::new(Backing::Shared, shape.length()).expect("memory");
        for policy in [WaitPolicy::Spin, WaitPolicy::Sleep(0)] {
            let memory = Mapping::new(Backing::Shared, memory.length()).expect("memory");
            let (mut sender, mut receiver) = ring(memory, shape, policy).expect("a ring");
            assert!(receiver.receive(&|| true).is_err());
            for _ in 0..2 {
                sender.draft(&|| true).expect("there is room");
                sender.send();
            }
            assert!(sender.draft(&|| true).is_err());
            assert!(receiver.receive(&|| true).is_ok());
        }
        let shape = Shape { slots: 1 << 20, bytes: 8 };
        assert!(ring(memory, shape, WaitPolicy::Spin).is_err());
    }
}
