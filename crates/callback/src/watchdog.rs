//! The watchdog, which reports callbacks that run for too long.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::key::{Id, Key};
use crate::panics::drop_quietly;
use crate::shared::Shared;

/// A callback that runs for longer than the limit given to
/// [`Builder::on_slow`](crate::Builder::on_slow). It blocks its Worker while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slow {
    /// The callback thread whose callback is running.
    pub id: Id,
    /// Lower bound on the time for which the callback has been running.
    pub time: Duration,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, time } = self;
        write!(f, "callback thread {id} has held Worker {} for {time:.0?}", id.worker())
    }
}

/// A hook, called for each slow callback.
pub(crate) type Hook = Arc<dyn Fn(Slow) + Send + Sync>;

/// The state of a Worker at the last check, from which the watchdog computes how long a callback
/// has been running.
#[derive(Clone, Copy)]
struct LastCheck {
    /// Number of callbacks that the Worker had run, including the running one.
    callbacks: u64,
    /// Time of the first check with this number of callbacks, or of the last one that found no
    /// callback running.
    since: Instant,
    /// Whether the hook has been called for this callback.
    is_reported: bool,
}

/// The thread that checks all Workers. It exits when the watchdog is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Dropping the sender stops the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop = None;
        // The hook may drop the runtime, on this very thread. Panics of hooks have been caught.
        let own = thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

impl Watchdog {
    /// Starts the thread, which calls `hook` once for each callback that it finds running for
    /// longer than `limit`.
    ///
    /// # Errors
    /// The error of the system call that creates the thread.
    pub fn start(shared: Arc<Shared>, limit: Duration, hook: Hook) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("callback-watch".into());
        let thread = thread.spawn(move || watch(&shared, limit, &hook, &stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

/// Checks all Workers four times per `limit`, but not more often than every 0.1 ms, until the
/// sender of `stopped` is dropped.
fn watch(shared: &Shared, limit: Duration, hook: &Hook, stopped: &mpsc::Receiver<()>) {
    let last = LastCheck { callbacks: 0, since: Instant::now(), is_reported: false };
    let mut all = vec![last; shared.remotes.len()];
    let pause = (limit / 4).max(Duration::from_micros(100));
    while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        for (remote, last) in shared.remotes.iter().zip(&mut all) {
            let running = Key::from_bits(remote.published.running.load(Ordering::Acquire));
            let callbacks = remote.published.callbacks.load(Ordering::Acquire);
            if callbacks != last.callbacks || running == Key::NONE {
                *last = LastCheck { callbacks, since: Instant::now(), is_reported: false };
            } else if !last.is_reported && last.since.elapsed() >= limit {
                last.is_reported = true;
                let slow = Slow { id: Id(running), time: last.since.elapsed() };
                drop_quietly(|| hook(slow)); // continue even if the hook panics
            }
        }
    }
}
