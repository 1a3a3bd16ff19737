//! Sleeping until somebody has changed something, and waking who sleeps.
//!
//! # Protocol
//! Who waits says so, then looks once more whether it is as it is to be, and sleeps only while what it
//! has said still stands. Who changes something does that first, then looks whether somebody has said
//! that; if so, it takes that back, and wakes. Between the two steps of each stands a full fence, so that
//! at least one of them sees the other: either the one does not sleep, or it is woken.
//!
//! What is slept on is what the sleeper has said, not what was changed: it may be taken back for an
//! earlier change just when the sleeper has said it anew, and then nobody would wake it for the next one.

use super::sync::{AtomicU32, Ordering, fence};

/// Where one sleeps.
pub(crate) trait Bed {
    /// 1 where somebody sleeps, or is about to.
    fn taken(&self) -> &AtomicU32;
    /// Sleeps while it is taken, or for no reason.
    fn sleep(&self);
    /// Wakes who sleeps.
    fn wake(&self);
}

/// Waits until it is as it is to be, or whoever waits gives up. Whether it is.
///
/// That the bed is taken is swapped in: each of these writes then follows the one before, whosever it
/// was, and nobody who looks after the fences can take an older one for the last.
pub(crate) fn wait(
    bed: &impl Bed,
    is_there: impl Fn() -> bool,
    gives_up: impl Fn() -> bool,
    mut sleeps: impl FnMut(),
) -> bool {
    loop {
        bed.taken().swap(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = is_there();
        if found || gives_up() {
            bed.taken().swap(0, Ordering::Relaxed);
            return found;
        }
        sleeps();
        bed.sleep();
    }
}

/// Wakes who waits, after something was changed. Whether there was somebody.
pub(crate) fn ring(bed: &impl Bed) -> bool {
    fence(Ordering::SeqCst);
    let sleeps =
        bed.taken().load(Ordering::Relaxed) != 0 && bed.taken().swap(0, Ordering::Relaxed) != 0;
    if sleeps {
        bed.wake();
    }
    sleeps
}

/// All orders of what a sender and a receiver do with a ring.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;

    /// As the kernel has it: who is about to sleep looks under a lock, which who wakes takes, too.
    struct Futex {
        taken: AtomicU32,
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        fn new() -> Self {
            Self { taken: AtomicU32::new(0), lock: Mutex::new(()), woken: Condvar::new() }
        }
    }

    impl Bed for Futex {
        fn taken(&self) -> &AtomicU32 {
            &self.taken
        }

        fn sleep(&self) {
            let lock = self.lock.lock().unwrap();
            if self.taken.load(Ordering::Relaxed) == 1 {
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
        beds: [Futex; 2],
    }

    impl Ring {
        fn wait(&self, word: &AtomicU32, bed: usize, least: u32) {
            let is_there = || word.load(Ordering::Acquire) >= least;
            assert!(wait(&self.beds[bed], is_there, || false, || ()));
        }

        fn set(&self, word: &AtomicU32, bed: usize, number: u32) {
            word.store(number, Ordering::Release);
            ring(&self.beds[bed]);
        }
    }

    /// Three messages through two slots: the receiver waits for each, the sender for room before the
    /// third. Where one of them sleeps and nobody wakes it, loom says so.
    #[test]
    fn no_wake_up_is_lost() {
        let mut all = loom::model::Builder::new();
        all.preemption_bound = Some(4);
        all.check(|| {
            let ring = Arc::new(Ring {
                sent: AtomicU32::new(0),
                freed: AtomicU32::new(0),
                beds: [Futex::new(), Futex::new()],
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
