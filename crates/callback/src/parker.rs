//! Sleeping until somebody has something for a Worker.
//!
//! # Protocol
//! Before it sleeps, the Worker says so, then looks once more whether there is something. Who has
//! something writes it first, then looks whether the Worker sleeps. Between the two steps of each
//! stands a full fence, so that at least one of them sees the other: either the Worker does not
//! sleep, or it is woken.

use std::time::Duration;

use crate::sync::{AtomicBool, Ordering, fence};

/// How a Worker sleeps and is woken.
pub(crate) trait WaitBackend {
    /// Sleeps until [`WaitBackend::wake`] has been called since it slept last, for so long at most.
    fn sleep(&self, most: Option<Duration>);
    /// Wakes whoever sleeps, or will sleep next.
    fn wake(&self);
}

/// The Worker's side and that of the others.
#[derive(Debug)]
pub(crate) struct Parker<B> {
    asleep: AtomicBool,
    backend: B,
}

impl<B: WaitBackend> Parker<B> {
    pub fn new(backend: B) -> Self {
        Self { asleep: AtomicBool::new(false), backend }
    }

    /// Sleeps, unless there is something to do.
    ///
    /// What is written is swapped in: each of these writes then follows the one before, whosever
    /// it was, and nobody who looks after the fences can take an older one for the last.
    pub fn park(&self, most: Option<Duration>, has_something: impl FnOnce() -> bool) {
        self.asleep.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_something() {
            self.backend.sleep(most);
        }
        self.asleep.swap(false, Ordering::Relaxed);
    }

    /// Wakes the Worker if it sleeps, after something was put where it looks.
    pub fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.backend.wake();
        }
    }
}

/// All orders of what a Worker and somebody with something for it do.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;
    use crate::inbox::Inbox;

    /// Sleeps for ever unless it is woken: loom tells if that happens.
    struct Flag(Mutex<bool>, Condvar);

    impl WaitBackend for Flag {
        fn sleep(&self, _: Option<Duration>) {
            let mut called = self.0.lock().unwrap();
            while !*called {
                called = self.1.wait(called).unwrap();
            }
            *called = false;
        }

        fn wake(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }
    }

    #[test]
    fn nobody_sleeps_when_there_is_something() {
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
                        thread::yield_now(); // a writer may be in the middle of it
                    }
                }
            }
            other.join().unwrap();
        });
    }
}
