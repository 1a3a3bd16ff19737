//! Sleeping until another process has made a condition true, and waking the sleeper.
//!
//! # Protocol
//!
//! ```text
//! waiter                          notifier
//! asleep = 1                      make the condition true
//! fence(SeqCst)                   fence(SeqCst)
//! condition true: asleep = 0,     asleep == 1: asleep = 0,
//!                 done                         futex wake
//! else: futex wait while asleep == 1, and repeat
//! ```
//!
//! The full fences ensure that at least one side sees the other's write: either the waiter does not
//! sleep, or it is woken.
//!
//! The futex word is the waiter's announcement, not the word that the notifier changed. Otherwise,
//! a notifier could withdraw the announcement for an earlier change just after the waiter has
//! renewed it, and no notifier would wake the waiter for the next change.

use super::sync::{AtomicU32, Ordering, fence};

/// A futex on which one side sleeps.
pub(crate) trait Waiter {
    /// Returns the futex word: 1 while a waiter sleeps, or is about to.
    fn futex_word(&self) -> &AtomicU32;
    /// Sleeps while [`Waiter::futex_word`] is 1. May return spuriously.
    fn sleep(&self);
    /// Wakes the sleeper.
    fn wake(&self);
}

/// Blocks until `is_there` or `gives_up` returns true, and calls `sleeps` before each sleep.
/// Returns the last result of `is_there`.
///
/// Announcements are written with a swap: each of these writes then follows the previous one in
/// modification order, whichever side made it, so after the fences neither side can mistake an
/// older write for the latest.
pub(crate) fn wait(
    waiter: &impl Waiter,
    is_there: impl Fn() -> bool,
    gives_up: impl Fn() -> bool,
    mut sleeps: impl FnMut(),
) -> bool {
    loop {
        waiter.futex_word().swap(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = is_there();
        if found || gives_up() {
            waiter.futex_word().swap(0, Ordering::Relaxed);
            return found;
        }
        sleeps();
        waiter.sleep();
    }
}

/// Wakes the waiter if it has announced that it sleeps, and returns whether it had. Must be called
/// after the condition has been made true.
pub(crate) fn notify(waiter: &impl Waiter) -> bool {
    fence(Ordering::SeqCst);
    let sleeps = waiter.futex_word().load(Ordering::Relaxed) != 0
        && waiter.futex_word().swap(0, Ordering::Relaxed) != 0;
    if sleeps {
        waiter.wake();
    }
    sleeps
}

/// A model of a sender and a receiver with a ring, which loom runs in all interleavings with at
/// most four preemptions.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;

    /// A model of the kernel's futex: a waiter checks the word and falls asleep under a lock, which
    /// the waker takes before it wakes.
    struct Futex {
        futex_word: AtomicU32,
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        fn new() -> Self {
            Self { futex_word: AtomicU32::new(0), lock: Mutex::new(()), woken: Condvar::new() }
        }
    }

    impl Waiter for Futex {
        fn futex_word(&self) -> &AtomicU32 {
            &self.futex_word
        }

        fn sleep(&self) {
            let lock = self.lock.lock().unwrap();
            if self.futex_word.load(Ordering::Relaxed) == 1 {
                drop(self.woken.wait(lock).unwrap());
            }
        }

        fn wake(&self) {
            let _lock = self.lock.lock().unwrap();
            self.woken.notify_all();
        }
    }

    struct Ring {
        sent: AtomicU32,
        freed: AtomicU32,
        waiters: [Futex; 2],
    }

    impl Ring {
        fn wait(&self, word: &AtomicU32, waiter: usize, least: u32) {
            let is_there = || word.load(Ordering::Acquire) >= least;
            assert!(wait(&self.waiters[waiter], is_there, || false, || ()));
        }

        fn set(&self, word: &AtomicU32, waiter: usize, number: u32) {
            word.store(number, Ordering::Release);
            notify(&self.waiters[waiter]);
        }
    }

    /// Sends three messages through two slots: the receiver waits for each message, the sender for
    /// room before the third. loom reports a deadlock if a sleeper is not woken.
    #[test]
    fn no_wake_up_is_lost() {
        let mut all = loom::model::Builder::new();
        all.preemption_bound = Some(4);
        all.check(|| {
            let ring = Arc::new(Ring {
                sent: AtomicU32::new(0),
                freed: AtomicU32::new(0),
                waiters: [Futex::new(), Futex::new()],
            });
            let receiver = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    for n in 1..=3_u32 {
                        ring.wait(&ring.sent, 0, n);
                        ring.set(&ring.freed, 1, n);
                    }
                })
            };
            for n in 1..=3_u32 {
                ring.wait(&ring.freed, 1, n.saturating_sub(2));
                ring.set(&ring.sent, 0, n);
            }
            receiver.join().unwrap();
        });
    }
}
