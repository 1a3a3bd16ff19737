//! The ring itself.
//!
//! # Protocol
//! The memory begins with a page of words that are written by one side each, then come the slots. A slot
//! begins with the number of the message in it, by which the receiver sees that it is there: a small
//! message and its number are one cache line, which is all that goes from one CPU to the other. Numbers
//! begin with 1, so that empty memory is an empty ring.
//!
//! The sender may write into a slot when the message that was there a lap ago has been freed; the
//! receiver says what it has freed only now and then, and the sender looks only when it has to. Between
//! writing a slot's number (release) and reading it (acquire) the slot becomes the receiver's, between
//! writing `freed` and reading it the sender's again. So nobody reads what another one writes, as long as
//! there is one sender and one receiver; after a fork, each process uses one of the two.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use super::bell::{self, Bed};
use crate::mapping::Mapping;
use crate::shared::Line;

/// How large a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many messages there is room for, at least 2.
    pub slots: u32,
    /// How long each message is.
    pub bytes: usize,
}

impl Shape {
    /// From one slot to the next.
    fn stride(self) -> usize {
        (HEADER + self.bytes).next_multiple_of(HEADER)
    }

    /// The memory that it needs, in bytes.
    pub fn length(self) -> usize {
        CONTROL + self.slots as usize * self.stride()
    }
}

/// Before a message: its number, and what makes it begin at a multiple of 8.
const HEADER: usize = 8;
/// Before the slots.
const CONTROL: usize = 4096;

/// How one waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// By looking again and again.
    Spin,
    /// By sleeping in a futex, after so many looks.
    Sleep(u32),
}

/// What stands before the slots. All zeros are an empty ring.
#[repr(C)]
struct Control {
    /// Messages that the sender need not keep any more, modulo 2³².
    freed: Line<AtomicU32>,
    /// The receiver sleeps, or is about to.
    receiver_asleep: Line<AtomicU32>,
    /// The sender sleeps, or is about to.
    sender_asleep: Line<AtomicU32>,
}

/// One side's view.
#[derive(Debug)]
struct Side {
    memory: Arc<Mapping>,
    shape: Shape,
    patience: Patience,
    /// How often it slept, and woke the other one: system calls.
    calls: [Cell<u64>; 2],
}

/// Who sends.
#[derive(Debug)]
pub struct Sender {
    side: Side,
    /// Messages sent.
    sent: u32,
    /// As many as were freed when that was looked at last.
    freed: u32,
    /// The slot of the next one.
    slot: u32,
}

/// Who receives.
#[derive(Debug)]
pub struct Receiver {
    side: Side,
    /// Messages received; the last one is still looked at.
    received: u32,
    /// The slot of the next one, and of the last one.
    slot: u32,
    last: Option<u32>,
    /// How many are freed at once.
    lazily: u32,
}

/// Makes a ring of memory that is all zeros, and of which nobody else has a part.
///
/// # Errors
/// `InvalidInput` where the memory is too small or the ring has less than two slots.
pub fn ring(memory: Mapping, shape: Shape, patience: Patience) -> io::Result<(Sender, Receiver)> {
    if memory.length() < shape.length() || shape.slots < 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let memory = Arc::new(memory);
    let side = || Side { memory: Arc::clone(&memory), shape, patience, calls: Default::default() };
    let sender = Sender { side: side(), sent: 0, freed: 0, slot: 0 };
    let lazily = (shape.slots / 4).max(1);
    Ok((sender, Receiver { side: side(), received: 0, slot: 0, last: None, lazily }))
}

impl Side {
    fn control(&self) -> &Control {
        // SAFETY: the mapping begins at a page, and is long enough; all that is there are atomics,
        // for which zeros are valid.
        unsafe { self.memory.start().cast().as_ref() }
    }

    /// The place of a slot: its number, then its message.
    fn at(&self, slot: u32) -> NonNull<u8> {
        let offset = CONTROL + slot as usize * self.shape.stride();
        // SAFETY: within the mapping, as was seen when the ring was made.
        unsafe { self.memory.start().add(offset) }
    }

    /// The number of the message in a slot.
    fn number(&self, slot: u32) -> &AtomicU32 {
        // SAFETY: aligned to 8, within the mapping, and only used as an atomic.
        unsafe { self.at(slot).cast().as_ref() }
    }

    /// The message in a slot.
    fn message(&self, slot: u32) -> NonNull<u8> {
        // SAFETY: a slot is longer than its header.
        unsafe { self.at(slot).add(HEADER) }
    }

    fn next(&self, slot: u32) -> u32 {
        if slot + 1 == self.shape.slots { 0 } else { slot + 1 }
    }

    /// Waits until the word is as it is to be.
    #[inline]
    fn wait(
        &self,
        word: &AtomicU32,
        asleep: &AtomicU32,
        is_there: impl Fn(u32) -> bool,
        gives_up: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let looks = match self.patience {
            Patience::Spin => u32::MAX,
            Patience::Sleep(looks) => looks,
        };
        loop {
            for look in 0..looks {
                if is_there(word.load(Ordering::Acquire)) {
                    return Ok(());
                }
                if look % LOOKS == LOOKS - 1 && gives_up() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                std::hint::spin_loop();
            }
            if self.patience != Patience::Spin {
                return self.sleep(word, asleep, is_there, gives_up);
            }
        }
    }

    #[cold]
    fn sleep(
        &self,
        word: &AtomicU32,
        asleep: &AtomicU32,
        is_there: impl Fn(u32) -> bool,
        gives_up: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let is_there = || is_there(word.load(Ordering::Acquire));
        let sleeps = || self.calls[0].set(self.calls[0].get() + 1);
        let found = bell::wait(asleep, is_there, gives_up, sleeps);
        if found { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Wakes the other one, if it sleeps.
    #[inline]
    fn ring(&self, asleep: &AtomicU32) {
        if self.patience != Patience::Spin && bell::ring(asleep) {
            self.calls[1].set(self.calls[1].get() + 1);
        }
    }

    fn calls(&self) -> [u64; 2] {
        self.calls.each_ref().map(Cell::get)
    }
}

/// Looks before it is asked whether to give up.
const LOOKS: u32 = 1 << 12;

impl Bed for AtomicU32 {
    fn taken(&self) -> &AtomicU32 {
        self
    }

    fn sleep(&self) {
        let _ = futex::wait(self, futex::Flags::empty(), 1, None); // or not: it is looked again
    }

    fn wake(&self) {
        let _ = futex::wake(self, futex::Flags::empty(), 1); // it cannot fail for memory of ours
    }
}

impl Sender {
    /// Where the next message is to be written; waits for room. `gives_up` is asked now and then
    /// whether to wait on, and when a signal came.
    ///
    /// # Errors
    /// `BrokenPipe` when it gave up.
    #[inline]
    pub fn draft(&mut self, gives_up: &dyn Fn() -> bool) -> io::Result<&mut [u8]> {
        let slots = self.side.shape.slots;
        if self.sent.wrapping_sub(self.freed) >= slots {
            let control = self.side.control();
            let sent = self.sent;
            let has_room = |freed| sent.wrapping_sub(freed) < slots;
            self.side.wait(&control.freed, &control.sender_asleep, has_room, gives_up)?;
            self.freed = control.freed.load(Ordering::Acquire);
        }
        let message = self.side.message(self.slot);
        // SAFETY: the slot is the sender's until its number is written, and so long.
        Ok(unsafe { std::slice::from_raw_parts_mut(message.as_ptr(), self.side.shape.bytes) })
    }

    /// Sends what was written there.
    #[inline]
    pub fn send(&mut self) {
        self.sent = self.sent.wrapping_add(1);
        self.side.number(self.slot).store(self.sent, Ordering::Release);
        self.side.ring(&self.side.control().receiver_asleep);
        self.slot = self.side.next(self.slot);
    }

    /// How often it has slept, and woken the other one.
    pub fn calls(&self) -> [u64; 2] {
        self.side.calls()
    }
}

impl Receiver {
    /// The next message; waits until there is one. That before is freed. `gives_up` is as with
    /// [`Sender::draft`].
    ///
    /// # Errors
    /// `BrokenPipe` when it gave up.
    #[inline]
    pub fn receive(&mut self, gives_up: &dyn Fn() -> bool) -> io::Result<&[u8]> {
        let control = self.side.control();
        if self.received.is_multiple_of(self.lazily) && self.received != 0 {
            control.freed.store(self.received, Ordering::Release);
            self.side.ring(&control.sender_asleep);
        }
        let wanted = self.received.wrapping_add(1);
        let number = self.side.number(self.slot);
        self.side.wait(number, &control.receiver_asleep, |number| number == wanted, gives_up)?;
        self.received = wanted;
        self.last = Some(self.slot);
        self.slot = self.side.next(self.slot);
        Ok(self.last())
    }

    /// The message received last, or nothing before the first.
    #[inline]
    pub fn last(&self) -> &[u8] {
        let Some(slot) = self.last else { return &[] };
        let message = self.side.message(slot);
        // SAFETY: the slot is the receiver's until it is freed, with the next call at the earliest.
        unsafe { std::slice::from_raw_parts(message.as_ptr(), self.side.shape.bytes) }
    }

    /// How often it has slept, and woken the other one.
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
        for patience in [Patience::Sleep(0), Patience::Sleep(100)] {
            for (slots, bytes) in [(2, 1), (5, 100), (64, 4096)] {
                let shape = Shape { slots, bytes };
                let memory = Mapping::new(Backing::Shared, shape.length()).expect("memory");
                let (mut sender, mut receiver) = ring(memory, shape, patience).expect("a ring");
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
                assert_eq!(status, ExitStatus::Exited(0), "{shape:?} {patience:?}");
            }
        }
    }

    #[test]
    fn who_gives_up_does_not_wait() {
        let shape = Shape { slots: 2, bytes: 8 };
        let memory = Mapping::new(Backing::Shared, shape.length()).expect("memory");
        for patience in [Patience::Spin, Patience::Sleep(0)] {
            let memory = Mapping::new(Backing::Shared, memory.length()).expect("memory");
            let (mut sender, mut receiver) = ring(memory, shape, patience).expect("a ring");
            assert!(receiver.receive(&|| true).is_err());
            for _ in 0..2 {
                sender.draft(&|| true).expect("there is room");
                sender.send();
            }
            assert!(sender.draft(&|| true).is_err());
            assert!(receiver.receive(&|| true).is_ok());
        }
        let shape = Shape { slots: 1 << 20, bytes: 8 };
        assert!(ring(memory, shape, Patience::Spin).is_err());
    }
}
