//! The queue of a core: a ring buffer of envelopes, which the core opens in place.
//!
//! Envelopes are passed by address, because they are read shortly after they were written: a copy
//! in larger units than those written would stall on store forwarding, which costs more than all
//! other handling.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::key::Key;
use crate::message::Envelope;

/// Initial and minimum capacity, in envelopes.
const MIN_CAPACITY: usize = 64;

#[derive(Debug)]
pub(crate) struct Queue {
    /// The ring, whose length is a power of two. Positions from `head` to `tail` (exclusive),
    /// modulo the length, hold an envelope.
    cells: Box<[MaybeUninit<Envelope>]>,
    head: usize,
    tail: usize,
}

impl Queue {
    pub fn new() -> Self {
        Self { cells: Box::new_uninit_slice(MIN_CAPACITY), head: 0, tail: 0 }
    }

    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    pub fn push(&mut self, envelope: Envelope) {
        if self.len() == self.cells.len() {
            self.resize(2 * self.cells.len());
        }
        let mask = self.cells.len() - 1;
        self.cells[self.tail & mask].write(envelope);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Pushes an envelope to the front.
    pub fn push_first(&mut self, envelope: Envelope) {
        if self.len() == self.cells.len() {
            self.resize(2 * self.cells.len());
        }
        self.head = self.head.wrapping_sub(1);
        let mask = self.cells.len() - 1;
        self.cells[self.head & mask].write(envelope);
    }

    /// Pops the first envelope, or returns `None` if the queue is empty. The address is valid until
    /// the next push or change of the capacity; the caller has to move the envelope out, or drop it
    /// in place.
    #[inline]
    pub fn pop(&mut self) -> Option<NonNull<Envelope>> {
        if self.is_empty() {
            return None;
        }
        let mask = self.cells.len() - 1;
        let cell = &mut self.cells[self.head & mask];
        self.head = self.head.wrapping_add(1);
        NonNull::new(cell.as_mut_ptr())
    }

    /// Returns the receiver of the envelope `offset` positions after the first, or `None` if there
    /// is no such envelope.
    #[inline]
    pub fn receiver_at(&self, offset: usize) -> Option<Key> {
        let mask = self.cells.len() - 1;
        (offset < self.len()).then(|| {
            let cell = &self.cells[self.head.wrapping_add(offset) & mask];
            // SAFETY: positions from head to tail hold an envelope.
            unsafe { cell.assume_init_ref() }.to
        })
    }

    pub fn clear(&mut self) {
        while let Some(envelope) = self.pop() {
            // SAFETY: the envelope has just been popped, and nothing is pushed while its content is
            // dropped: the content's destructor has no access to this queue.
            unsafe { envelope.drop_in_place() };
        }
    }

    /// Frees spare capacity, but keeps room for at least `min_capacity` envelopes.
    pub fn shrink_to(&mut self, min_capacity: usize) {
        let cells = self.len().max(min_capacity).max(MIN_CAPACITY).next_power_of_two();
        if cells < self.cells.len() {
            self.resize(cells);
        }
    }

    fn resize(&mut self, cells: usize) {
        let mut larger: Box<[MaybeUninit<Envelope>]> = Box::new_uninit_slice(cells);
        let (count, mask) = (self.len(), self.cells.len() - 1);
        for (n, cell) in larger.iter_mut().enumerate().take(count) {
            // This moves the envelope: `MaybeUninit`s in the old ring are not dropped.
            std::mem::swap(cell, &mut self.cells[self.head.wrapping_add(n) & mask]);
        }
        self.cells = larger;
        (self.head, self.tail) = (0, count);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::key::WorkerNumber;
    use crate::message::Pool;

    #[test]
    fn the_queue_behaves_as_a_standard_deque() {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut queue, mut model) = (Queue::new(), VecDeque::new());
        let mut pool = Pool::default();
        for n in 0..200_000_u64 {
            let key = Key::new(WorkerNumber::new(0), u32::try_from(n % 1000).expect("small"), 0, 1);
            let grows = n / 3000 % 2 == 0;
            match random.u32(0..100) {
                0..10 => {
                    queue.push_first(Envelope::message(key, Box::new(n), &mut pool));
                    model.push_front(key);
                }
                10..50 => {
                    queue.push(Envelope::message(key, Box::new(n), &mut pool));
                    model.push_back(key);
                }
                50..52 => queue.shrink_to(0),
                _ if grows => {}
                _ => {
                    // SAFETY: the envelope is moved out at once.
                    let popped = queue.pop().map(|envelope| unsafe { envelope.read() });
                    assert_eq!(popped.map(|envelope| envelope.to), model.pop_front());
                }
            }
            assert_eq!(queue.len(), model.len());
        }
    }
}
