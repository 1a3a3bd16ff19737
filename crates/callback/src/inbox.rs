//! The inbox: a bounded lock-free queue from many threads (writers) to one Worker (the reader).
//!
//! # Protocol
//! The inbox is a ring of cells, after Dmitry Vyukov's bounded queue. Each cell has a turn. If the
//! turn equals a position, the writer of that position may write the cell; if it is one more, the
//! cell has been written and may be read. A writer claims a position by advancing `tail`, writes
//! the cell, then publishes it by incrementing the turn. The reader empties the cell and sets the
//! turn to the position one round later. So a cell is written by the one writer that claimed its
//! position, then read by the reader, and the turn makes each of these steps visible to the next.
//!
//! ```text
//!   turn of cell i (capacity n):  i ──write──▶ i + 1 ──read──▶ i + n ──write──▶ i + n + 1 ...
//!
//!   head (reader)             tail (writers)
//!    ▼                         ▼
//!   │ readable │ readable │ ... │ free │ free │      overflow: VecDeque, once the ring is full
//! ```
//!
//! When the ring is full, envelopes that must not be refused (because no caller could handle the
//! error, or the inbox is unbounded) go into a second queue, `overflow`. While `overflow` is not
//! empty, the ring accepts nothing, so that a sender's envelopes stay in order: its next one is
//! refused, or is appended to `overflow`.
//!
//! When the reader ends, it sets `closed`, then drains the queue. A writer pushes, then checks
//! `closed`; if it is set, the writer drains the queue. A full fence between the two steps on each
//! side ensures that at least one side sees the other's step, so no envelope stays in the queue
//! forever. A mutex lets one thread drain at a time.

use std::collections::VecDeque;
use std::mem::MaybeUninit;

use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, UnsafeCell, fence, lock};

/// A slot of the ring, in a cache line of its own, so that its turn and content are transferred
/// together.
#[repr(align(64))]
#[derive(Debug)]
struct Cell<T> {
    turn: AtomicUsize,
    content: UnsafeCell<MaybeUninit<T>>,
}

/// A value in cache lines of its own, which avoids false sharing.
#[repr(align(128))]
#[derive(Debug)]
struct CachePadded<T>(T);

/// A queue with many writers and one reader; see the module documentation.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    /// The next position for a writer to claim.
    tail: CachePadded<AtomicUsize>,
    /// The next position to read. Only the reader writes it; other threads may read it.
    head: CachePadded<AtomicUsize>,
    cells: Box<[Cell<T>]>,
    /// Whether `overflow` has elements.
    has_overflow: AtomicBool,
    overflow: Mutex<VecDeque<T>>,
    /// Whether `push` appends to `overflow` instead of refusing a value.
    unbounded: bool,
    /// Whether the reader has ended.
    closed: AtomicBool,
    /// Held by the thread that pops an element after the reader has ended.
    clearing: Mutex<()>,
}

// SAFETY: the protocol above moves values from thread to thread and never shares them.
unsafe impl<T: Send> Send for Inbox<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Inbox<T> {
    /// Creates an inbox for `capacity` values, rounded up to a power of two of at least 2. If
    /// `unbounded`, `push` accepts more values than that.
    pub fn new(capacity: usize, unbounded: bool) -> Self {
        let cell = |turn| Cell {
            turn: AtomicUsize::new(turn),
            content: UnsafeCell::new(MaybeUninit::uninit()),
        };
        Self {
            tail: CachePadded(AtomicUsize::new(0)),
            head: CachePadded(AtomicUsize::new(0)),
            cells: (0..capacity.max(2).next_power_of_two()).map(cell).collect(),
            has_overflow: AtomicBool::new(false),
            overflow: Mutex::new(VecDeque::new()),
            unbounded,
            closed: AtomicBool::new(false),
            clearing: Mutex::new(()),
        }
    }

    /// Closes the inbox and passes the remaining elements to `drop`. Called by the reader when it
    /// stops reading.
    pub fn close(&self, drop: impl Fn(T)) {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.clear(drop);
    }

    /// If the reader has ended, passes the remaining elements to `drop`. Called by a writer after a
    /// push and a full fence.
    #[inline]
    pub fn clear_if_closed(&self, drop: impl Fn(T)) {
        if self.closed.load(Ordering::Relaxed) {
            self.clear(drop);
        }
    }

    fn clear(&self, drop: impl Fn(T)) {
        while let Some(value) = self.pop_for_reader() {
            drop(value); // which may push further values
        }
    }

    fn pop_for_reader(&self) -> Option<T> {
        let _alone = lock(&self.clearing);
        self.pop()
    }

    /// Pushes a value. Returns it as the error if the ring is full or `overflow` has elements,
    /// unless the inbox is unbounded.
    pub fn push(&self, value: T) -> Result<(), T> {
        if self.has_overflow.load(Ordering::Acquire) {
            return self.push_overflow(value);
        }
        match self.push_ring(value) {
            Err(value) => self.push_overflow(value),
            Ok(()) => Ok(()),
        }
    }

    fn push_overflow(&self, value: T) -> Result<(), T> {
        if !self.unbounded {
            return Err(value);
        }
        self.push_always(value);
        Ok(())
    }

    /// Pushes a value even if the inbox is full.
    pub fn push_always(&self, value: T) {
        let value = if self.has_overflow.load(Ordering::Acquire) {
            value
        } else {
            match self.push_ring(value) {
                Ok(()) => return,
                Err(value) => value,
            }
        };
        let mut overflow = lock(&self.overflow);
        overflow.push_back(value);
        self.has_overflow.store(true, Ordering::Release);
    }

    fn push_ring(&self, value: T) -> Result<(), T> {
        let mut position = self.tail.0.load(Ordering::Relaxed);
        loop {
            let cell = &self.cells[position & (self.cells.len() - 1)];
            let turn = cell.turn.load(Ordering::Acquire);
            if turn != position {
                if turn.wrapping_sub(position).cast_signed() < 0 {
                    return Err(value); // the cell has not been emptied since the last round
                }
                position = self.tail.0.load(Ordering::Relaxed);
                continue;
            }
            let next = position.wrapping_add(1);
            let taken = self.tail.0.compare_exchange_weak(
                position,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => {
                    // SAFETY: the turn equals this position, which only this writer has claimed,
                    // and the reader waits for the next turn.
                    cell.content.with_mut(|content| unsafe { content.cast::<T>().write(value) });
                    cell.turn.store(next, Ordering::Release);
                    return Ok(());
                }
                Err(now) => position = now,
            }
        }
    }

    /// Pops a value. Returns `None` if the inbox is empty or a push has claimed the next position
    /// but has not completed. Only one thread may pop at a time.
    pub fn pop(&self) -> Option<T> {
        let position = self.head.0.load(Ordering::Relaxed);
        let cell = &self.cells[position & (self.cells.len() - 1)];
        if cell.turn.load(Ordering::Acquire) != position.wrapping_add(1) {
            return self.pop_overflow();
        }
        // SAFETY: according to the turn, the cell has been written; its writer is done, and the
        // next writer waits for its turn.
        let value = cell.content.with_mut(|content| unsafe { content.cast::<T>().read() });
        cell.turn.store(position.wrapping_add(self.cells.len()), Ordering::Release);
        self.head.0.store(position.wrapping_add(1), Ordering::Relaxed);
        Some(value)
    }

    fn pop_overflow(&self) -> Option<T> {
        if !self.has_overflow.load(Ordering::Acquire) {
            return None;
        }
        let mut overflow = lock(&self.overflow);
        // A writer may have claimed an earlier position and not have written it yet; the elements
        // of `overflow` come after it.
        let head = self.head.0.load(Ordering::Relaxed);
        if self.tail.0.load(Ordering::Acquire) != head {
            return None;
        }
        let value = overflow.pop_front();
        if overflow.is_empty() {
            overflow.shrink_to(self.cells.len());
            self.has_overflow.store(false, Ordering::Release);
        }
        value
    }

    /// Returns whether the inbox was empty; `false` also if a push is in progress. For the reader,
    /// the result takes all completed pushes into account.
    pub fn is_empty(&self) -> bool {
        let head = self.head.0.load(Ordering::Relaxed);
        self.tail.0.load(Ordering::SeqCst) == head && !self.has_overflow.load(Ordering::SeqCst)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn an_inbox_refuses_more_than_its_capacity_unless_unbounded() {
        let inbox = Inbox::new(4, false);
        assert!(inbox.is_empty() && (0..4).all(|n| inbox.push(n).is_ok()));
        assert_eq!(inbox.push(4), Err(4));
        inbox.push_always(4);
        assert_eq!(inbox.pop(), Some(0));
        // No later element overtakes an accepted one.
        assert_eq!(inbox.push(5), Err(5));
        assert_eq!([1, 2, 3, 4].map(Some), [(); 4].map(|()| inbox.pop()));
        assert_eq!((inbox.pop(), inbox.is_empty()), (None, true));
        assert_eq!(inbox.push(5), Ok(()));
        let unbounded = Inbox::new(2, true);
        assert!((0..100).all(|n| unbounded.push(n).is_ok()));
        assert!((0..100).all(|n| unbounded.pop() == Some(n)));
    }

    #[test]
    fn unread_values_are_dropped_with_the_inbox() {
        let one = Arc::new(());
        let inbox = Inbox::new(2, true);
        (0..5).for_each(|_| drop(inbox.push(Arc::clone(&one))));
        drop(inbox.pop());
        drop(inbox);
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[test]
    fn values_of_each_writer_arrive_in_order() {
        const VALUES_PER_WRITER: u64 = 50_000;
        let inbox = Inbox::new(64, false);
        let mut next = [0; 3];
        thread::scope(|scope| {
            for writer in 0..3 {
                let inbox = &inbox;
                scope.spawn(move || {
                    for n in 0..VALUES_PER_WRITER {
                        let mut value = (writer, n);
                        if n % 1000 == 999 {
                            inbox.push_always(value);
                            continue;
                        }
                        while let Err(back) = inbox.push(value) {
                            value = back;
                            thread::yield_now();
                        }
                    }
                });
            }
            while next != [VALUES_PER_WRITER; 3] {
                match inbox.pop() {
                    Some((writer, n)) => {
                        assert_eq!(n, next[writer]);
                        next[writer] += 1;
                    }
                    None => thread::yield_now(),
                }
            }
        });
        assert!(inbox.is_empty());
    }
}

/// Models of one or two writers and the reader, whose interleavings loom explores. CONTRIBUTING.md
/// says how to run them.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    fn check_refusals(always: bool) {
        loom::model(move || {
            let inbox = Arc::new(Inbox::new(2, false));
            let write = |writer: usize| {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || {
                    let mut written = 0;
                    for n in 0..2 {
                        if always {
                            inbox.push_always((writer, n));
                            written += 1;
                        } else if inbox.push((writer, n)).is_ok() {
                            written += 1;
                        }
                    }
                    written
                })
            };
            let writers = [write(0), write(1)];
            let mut got = Vec::new();
            for _ in 0..2 {
                got.extend(inbox.pop());
            }
            let written: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            while let Some(value) = inbox.pop() {
                got.push(value);
            }
            assert_eq!(got.len(), written);
            for writer in 0..2 {
                let own = got.iter().filter(|(by, _)| *by == writer).map(|(_, n)| n);
                assert!(own.is_sorted());
            }
            assert!(inbox.is_empty());
        });
    }

    #[test]
    fn no_value_is_lost_if_pushes_are_refused() {
        check_refusals(false);
    }

    #[test]
    fn no_value_is_lost_with_push_always() {
        check_refusals(true);
    }

    /// Checks that no value stays in an inbox when `writers` writers push while the reader ends, in
    /// all interleavings with at most `preemptions` preemptions. The first writer is never refused.
    fn check_nothing_stays(writers: usize, preemptions: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let inbox = Arc::new(Inbox::new(2, false));
            let dropped = Arc::new(AtomicUsize::new(0));
            let drop = |dropped: &Arc<AtomicUsize>| {
                let dropped = Arc::clone(dropped);
                move |()| {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            };
            let write = |writer| {
                let (inbox, drop) = (Arc::clone(&inbox), drop(&dropped));
                thread::spawn(move || {
                    let mut written = 1;
                    if writer == 0 {
                        inbox.push_always(());
                    } else {
                        written = usize::from(inbox.push(()).is_ok());
                    }
                    fence(Ordering::SeqCst);
                    inbox.clear_if_closed(drop);
                    written
                })
            };
            let writers: Vec<_> = (0..writers).map(write).collect();
            inbox.close(drop(&dropped));
            let written: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            assert_eq!(dropped.load(Ordering::Relaxed), written);
            assert!(inbox.is_empty());
        });
    }

    #[test]
    fn no_value_stays_after_the_reader_has_ended() {
        check_nothing_stays(1, 6);
        check_nothing_stays(2, 2);
    }
}
