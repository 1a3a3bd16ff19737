//! How a runtime is to be, and its start.

use std::fmt;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::blocking;
use crate::clock::Clock;
use crate::core::Core;
use crate::lease::Lease;
use crate::receptor::Receptor;
use crate::remote::WorkerRemote;
use crate::shared::Shared;
use crate::watchdog::{Hook, Slow, Watchdog};
use crate::worker::Worker;

/// What an inbox takes unless told otherwise.
const INBOX_CAPACITY: usize = 1024;
/// Threads for what blocks, at most, unless told otherwise.
const MAX_BLOCKING_THREADS: usize = 64;
/// Messages that a unit keeps for later unless told otherwise.
const STASH_CAPACITY: usize = 65_536;
/// For how long a Worker runs at a time where others want to run on its CPU, too.
const SCHEDULER_SLICE: Duration = Duration::from_micros(300);
/// Workers at most.
const MAX_WORKERS: usize = 255;
/// The largest inbox.
const MAX_INBOX_CAPACITY: usize = 1 << 24;

/// How a runtime is to be.
#[derive(Clone)]
#[must_use = "nothing happens before `start`"]
pub struct Builder {
    workers: usize,
    inbox: usize,
    unbounded: bool,
    stash_capacity: usize,
    memory: Option<usize>,
    spin: Option<Duration>,
    blocking: usize,
    slow: Option<(Duration, Hook)>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        let workers = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_WORKERS);
        Self {
            workers,
            inbox: INBOX_CAPACITY,
            unbounded: false,
            stash_capacity: STASH_CAPACITY,
            memory: None,
            spin: None,
            blocking: MAX_BLOCKING_THREADS,
            slow: None,
        }
    }
}

impl Builder {
    /// Workers, from 1 to 255; with another number, [`start`](Self::start) fails. One for each CPU that the process
    /// may use, but no more than 255, unless told otherwise.
    ///
    /// Each is a thread with a timer slack of 1 ns that asks the scheduler for slices of 0.3 ms (Linux 6.12), so
    /// that neither it nor others on its CPU wait for milliseconds. Threads and processes that callbacks start
    /// inherit both.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Messages and new callback threads that a Worker's inbox takes before it is full, rounded up
    /// to a power of two that is at least 2. 1024 unless told otherwise, 16,777,216 at most; with 0 or more than
    /// that, [`start`](Self::start) fails. Each takes about 100 bytes in any case.
    pub fn inbox(mut self, inbox: usize) -> Self {
        (self.inbox, self.unbounded) = (inbox, false);
        self
    }

    /// Lets inboxes grow without a bound: whoever sends faster than Workers work uses up memory.
    /// Places for callback threads from other threads are still as many as before.
    pub fn unbounded_inbox(mut self) -> Self {
        self.unbounded = true;
        self
    }

    /// Messages that are kept for a callback thread that does not receive at present, or has not got to them yet.
    /// What comes beyond is dropped and counted in [`Counts::refused`](crate::Counts::refused). 65,536 unless told otherwise.
    pub fn kept_messages(mut self, most: usize) -> Self {
        self.stash_capacity = most;
        self
    }

    /// Memory for callback threads, in bytes, divided among the Workers. Only what is used is
    /// taken. As much as the machine has unless told otherwise.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// How long a Worker looks for something to do before it sleeps. Not at all unless told
    /// otherwise; with a CPU for each Worker, some microseconds make what passes between them
    /// quicker.
    pub fn spin(mut self, most: Duration) -> Self {
        self.spin = (!most.is_zero()).then_some(most);
        self
    }

    /// Threads for what blocks, at most. 64 unless told otherwise; with 0, [`start`](Self::start) fails. There are none
    /// until they are needed. What [`spawn_blocking`](crate::Handle::spawn_blocking) has them do waits for one, as much as an inbox takes.
    pub fn blocking_threads(mut self, most: usize) -> Self {
        self.blocking = most;
        self
    }

    /// Tells `hook` of callbacks that run for longer than this, and hold up all others of their
    /// Worker: once each, while they still run. A thread of its own looks four times in this time.
    pub fn on_slow(mut self, limit: Duration, hook: impl Fn(Slow) + Send + Sync + 'static) -> Self {
        self.slow = Some((limit, Arc::new(hook)));
        self
    }

    /// The same, with a line on standard error.
    #[expect(clippy::print_stderr, reason = "what it is for")]
    pub fn warn_after(self, limit: Duration) -> Self {
        self.on_slow(limit, |slow| eprintln!("warning: {slow}"))
    }

    /// Starts the Workers.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if [`workers`](Self::workers), [`inbox`](Self::inbox) or
    /// [`blocking_threads`](Self::blocking_threads) is out of its range. Other kinds if there is no address space
    /// for the Workers, a thread cannot be started, or all runtimes of the process together have 65,536 Workers
    /// already.
    pub fn start(self) -> io::Result<Receptor> {
        let leases = self.leases()?;
        let clock = Clock::Real(Instant::now());
        let memory = self.memory.unwrap_or_else(machine_memory) / self.workers;
        let remote = |_| WorkerRemote::new(self.inbox, self.unbounded);
        let waiting = if self.unbounded { usize::MAX } else { self.inbox };
        let shared = Arc::new(Shared::new(
            leases.iter().map(Lease::home).collect(),
            (0..self.workers).map(remote).collect(),
            self.inbox.max(2),
            self.spin,
            blocking::Pool::new(self.blocking, waiting),
        ));
        let watched = self.slow.is_some();
        let watchdog = match self.slow {
            Some((limit, hook)) => Some(Watchdog::start(Arc::clone(&shared), limit, hook)?),
            None => None,
        };
        let mut receptor = Receptor::new(shared, watchdog);
        for (number, lease) in leases.into_iter().enumerate() {
            let shared = Arc::clone(receptor.shared());
            let (clock, stash_capacity) = (clock.clone(), self.stash_capacity);
            let mut core =
                Core::new(lease, memory, stash_capacity, clock, Some(Arc::clone(&shared)))?;
            core.watched = watched;
            let worker = Worker::new(core, shared);
            let thread = thread::Builder::new().name(format!("callback-{number}"));
            let thread = thread.spawn(move || {
                // Timers are to be late by microseconds, not by the default of fifty more.
                let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
                // Nor is it to wait until others have used up their time, nor they for long behind it.
                let _ = contend_sys::cpu::request_slice(SCHEDULER_SLICE);
                worker.run();
            })?;
            receptor.add(thread);
        }
        Ok(receptor)
    }

    /// A number in the process for each Worker.
    fn leases(&self) -> io::Result<Vec<Lease>> {
        let out_of_range = |what: &str, value: usize, most: usize| {
            let text = format!("{what}: {value} is not from 1 to {most}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        };
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return out_of_range("workers", self.workers, MAX_WORKERS);
        }
        if !(1..=MAX_INBOX_CAPACITY).contains(&self.inbox) {
            return out_of_range("inbox", self.inbox, MAX_INBOX_CAPACITY);
        }
        if self.blocking == 0 {
            return out_of_range("blocking threads", 0, usize::MAX);
        }
        let indices = (0..=u8::MAX).take(self.workers);
        let leases: Option<Vec<Lease>> = indices.map(Lease::take).collect();
        leases.ok_or_else(|| io::Error::other("this process has 65,536 Workers already"))
    }
}

impl Receptor {
    /// One with all defaults.
    ///
    /// # Errors
    /// See [`Builder::start`].
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// One that is to be different.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Bytes of memory that the machine has, or of address space that may be taken.
fn machine_memory() -> usize {
    let info = rustix::system::sysinfo();
    let all = usize::try_from(info.totalram).unwrap_or(usize::MAX);
    let all = all.saturating_mul(info.mem_unit as usize);
    // Where address space is limited, others need some, too.
    let most = rustix::process::getrlimit(rustix::process::Resource::As).current;
    most.map_or(all, |most| all.min(usize::try_from(most / 4).unwrap_or(usize::MAX)))
}
