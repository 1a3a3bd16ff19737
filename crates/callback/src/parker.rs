//! Parking: a Worker sleeps until another thread has work for it.
//!
//! # Protocol
//! Before it sleeps, the Worker sets `asleep`, then checks once more for work. Another thread
//! publishes its work, then checks `asleep`. A full fence between the two steps on each side
//! ensures that at least one side sees the other's first step: either the Worker does not sleep, or
//! it is woken.
//!
//! ```text
//!   Worker                     other thread
//!   asleep = true              publish work
//!   fence                      fence
//!   work? ── no ──▶ sleep      asleep? ── yes ──▶ wake
//! ```

use std::time::Duration;

use crate::sync::{AtomicBool, Ordering, fence};

/// The mechanism by which a Worker blocks and is woken.
pub(crate) trait WaitBackend {
    /// Blocks until [`WaitBackend::wake`] is called, for at most `max_sleep`, which is unlimited if
    /// `None`. Returns at once if `wake` has been called since the last sleep. May return early.
    fn sleep(&self, max_sleep: Option<Duration>);
    /// Wakes the sleeping thread, or makes its next sleep return at once.
    fn wake(&self);
}

/// Parks one Worker until other threads unpark it.
#[derive(Debug)]
pub(crate) struct Parker<B> {
    asleep: AtomicBool,
    backend: B,
}

impl<B: WaitBackend> Parker<B> {
    pub fn new(backend: B) -> Self {
        Self { asleep: AtomicBool::new(false), backend }
    }

    /// Blocks until [`unpark`](Self::unpark) is called or `max_sleep`, if any, has passed; may
    /// return early. Does not block if `has_work` returns true. Only the Worker may call this.
    ///
    /// Writes to `asleep` are swaps: each follows the previous one in modification order, whichever
    /// thread made it, so no thread that reads `asleep` after its fence sees an outdated value.
    pub fn park(&self, max_sleep: Option<Duration>, has_work: impl FnOnce() -> bool) {
        self.asleep.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_work() {
            self.backend.sleep(max_sleep);
        }
        self.asleep.swap(false, Ordering::Relaxed);
    }

    /// Wakes the Worker if it sleeps. Call this after publishing work.
    pub fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.backend.wake();
        }
    }
}

/// Explores all interleavings of a Worker and a thread with work for it.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;
    use crate::inbox::Inbox;

    /// A backend without timeouts: a lost wake-up blocks forever, which loom reports as a deadlock.
    struct Flag(Mutex<bool>, Condvar);

    impl WaitBackend for Flag {
        fn sleep(&self, _: Option<Duration>) {
            let mut wake_pending = self.0.lock().unwrap();
            while !*wake_pending {
                wake_pending = self.1.wait(wake_pending).unwrap();
            }
            *wake_pending = false;
        }

        fn wake(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }
    }

    #[test]
    fn a_worker_does_not_sleep_while_there_is_work() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new(2, false));
            let parker = Arc::new(Parker::new(Flag(Mutex::new(false), Condvar::new())));
            let other = {
                let (inbox, parker) = (Arc::clone(&inbox), Arc::clone(&parker));
                thread::spawn(move || {
                    for n in 0..2 {
                        inbox.push(n).unwrap();
                        parker.unpark();
                    }
                })
            };
            let mut got = 0;
            while got < 2 {
                match inbox.pop() {
                    Some(n) => {
                        assert_eq!(n, got);
                        got += 1;
                    }
                    None => {
                        parker.park(None, || !inbox.is_empty());
                        thread::yield_now(); // a push may be in progress
                    }
                }
            }
            other.join().unwrap();
        });
    }
}
