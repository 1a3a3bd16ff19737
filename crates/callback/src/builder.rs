//! [`Builder`], which configures and starts a runtime.

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

/// Default capacity of an inbox, in entries.
const INBOX_CAPACITY: usize = 1024;
/// Default maximum number of threads for blocking work.
const MAX_BLOCKING_THREADS: usize = 64;
/// Default maximum number of stashed messages of a unit.
const STASH_CAPACITY: usize = 65_536;
/// Scheduler slice that a Worker requests: the time that it runs before another thread gets its
/// CPU.
const SCHEDULER_SLICE: Duration = Duration::from_micros(300);
/// Maximum number of Workers of a runtime.
const MAX_WORKERS: usize = 255;
/// Maximum capacity of an inbox, in entries.
const MAX_INBOX_CAPACITY: usize = 1 << 24;

/// A builder that configures and starts a runtime.
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
    io: bool,
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
            io: false,
        }
    }
}

impl Builder {
    /// Sets the number of Workers, from 1 to 255; with any other number, [`start`](Self::start)
    /// fails. [default: one for each CPU that the process may use, at most 255]
    ///
    /// Each Worker is a thread with a timer slack of 1 ns. It requests scheduler slices of 0.3 ms
    /// (from Linux 6.12 on), so that neither it nor other threads on its CPU wait for milliseconds.
    /// Threads and processes started by callbacks inherit both settings.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the capacity of each Worker's inbox, from 1 to 16,777,216 entries; with any other
    /// number, [`start`](Self::start) fails. For messages, it is rounded up to a power of two, at
    /// least 2. It is also the number of callback threads, at least 2, that other threads can spawn
    /// before the Worker accepts them. Each entry takes about 100 bytes, used or not. Undoes
    /// [`unbounded_inbox`](Self::unbounded_inbox). [default: 1024]
    pub fn inbox(mut self, inbox: usize) -> Self {
        (self.inbox, self.unbounded) = (inbox, false);
        self
    }

    /// Makes inboxes unbounded: memory grows without limit if threads send messages faster than
    /// Workers process them. The queue of blocking work is then unbounded, too. The limit on
    /// callback threads spawned from other threads remains.
    pub fn unbounded_inbox(mut self) -> Self {
        self.unbounded = true;
        self
    }

    /// Sets the maximum number of messages stashed for a callback thread that is not receiving or
    /// has not caught up yet. Further messages are dropped and counted in
    /// [`Counts::refused`](crate::Counts::refused). [default: 65,536]
    pub fn stash_capacity(mut self, max_messages: usize) -> Self {
        self.stash_capacity = max_messages;
        self
    }

    /// Sets the memory for callback threads in bytes, which is divided equally among the Workers.
    /// Each gets at least 64 KiB and at most 64 GiB; where limits do not allow its share, it gets
    /// less, down to 64 KiB. The memory is reserved as address space and populated on demand.
    /// [default: the memory of the machine, or a quarter of the limit on address space if that is
    /// less]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the maximum time for which a Worker without work spins before it sleeps. If each Worker
    /// has a CPU to itself, spinning for a few microseconds speeds up messages between Workers.
    /// [default: zero]
    pub fn spin(mut self, max_spin: Duration) -> Self {
        self.spin = (!max_spin.is_zero()).then_some(max_spin);
        self
    }

    /// Sets the maximum number of threads for blocking work, which start on demand; with 0,
    /// [`start`](Self::start) fails. If all are busy, work from
    /// [`spawn_blocking`](crate::Handle::spawn_blocking) waits in a queue that has the capacity of
    /// an inbox; work from [`Context::blocking`](crate::Context::blocking) is queued in any case.
    /// [default: 64]
    pub fn blocking_threads(mut self, max_threads: usize) -> Self {
        self.blocking = max_threads;
        self
    }

    /// Calls `hook` once for each callback that runs for longer than `limit`, which delays all
    /// other callbacks on its Worker. A separate thread checks four times per `limit`, but not more
    /// often than every 0.1 ms, and calls `hook` while the callback is still running, so it may
    /// miss one that ends soon after `limit`. Replaces any hook or warning set before.
    pub fn on_slow(mut self, limit: Duration, hook: impl Fn(Slow) + Send + Sync + 'static) -> Self {
        self.slow = Some((limit, Arc::new(hook)));
        self
    }

    /// Prints a warning to standard error for each callback that runs for longer than `limit`; see
    /// [`on_slow`](Self::on_slow).
    #[expect(clippy::print_stderr, reason = "printing is its purpose")]
    pub fn warn_after(self, limit: Duration) -> Self {
        self.on_slow(limit, |slow| eprintln!("warning: {slow}"))
    }

    /// Creates the epoll instance and the eventfd of each Worker in [`start`](Self::start), not when
    /// its first descriptor is registered. A process that may run out of descriptors needs this:
    /// otherwise a Worker that registers its first descriptor late may fail, and cannot register
    /// any until others are closed. Costs two descriptors for each Worker, and each Worker checks
    /// for events from the beginning. [default: at the first registration]
    pub fn enable_io(mut self) -> Self {
        self.io = true;
        self
    }

    /// Starts the runtime and its Workers.
    ///
    /// # Errors
    /// - [`io::ErrorKind::InvalidInput`] if [`workers`](Self::workers), [`inbox`](Self::inbox) or
    ///   [`blocking_threads`](Self::blocking_threads) is out of range.
    /// - Other kinds if there is not enough address space for the Workers, a thread cannot be
    ///   started, the descriptors for [`enable_io`](Self::enable_io) cannot be created, or no Worker
    ///   number is left: a process has 65,536, each of which stays reserved for one Worker index.
    pub fn start(self) -> io::Result<Receptor> {
        let leases = self.leases()?;
        let clock = Clock::Real(Instant::now());
        let memory = self.memory.unwrap_or_else(machine_memory) / self.workers;
        let remote = |_| WorkerRemote::new(self.inbox, self.unbounded);
        let waiting = if self.unbounded { usize::MAX } else { self.inbox };
        let shared = Arc::new(Shared::new(
            leases.iter().map(Lease::worker_number).collect(),
            (0..self.workers).map(remote).collect(),
            self.inbox.max(2),
            self.spin,
            blocking::ThreadPool::new(self.blocking, waiting),
        ));
        if self.io {
            shared.remotes.iter().try_for_each(WorkerRemote::enable_io)?;
        }
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
                // Timers should be late by microseconds, not by the default slack of 50 µs.
                let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
                // With a short slice, the Worker neither waits while other threads use up long
                // slices nor delays them.
                let _ = contend_sys::cpu::request_slice(SCHEDULER_SLICE);
                worker.run();
            })?;
            receptor.add(thread);
        }
        Ok(receptor)
    }

    /// Leases for each Worker a number that no other live Worker of the process has.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if a setting is out of range; another kind if no number is
    /// left for a Worker.
    fn leases(&self) -> io::Result<Vec<Lease>> {
        let out_of_range = |what: &str, value: usize, max: usize| {
            let text = format!("{what}: {value} is not from 1 to {max}");
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
    /// Starts a runtime with default settings.
    ///
    /// # Errors
    /// As for [`Builder::start`], except that no setting is out of range.
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// Returns a builder with default settings, to change some of them.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Returns the memory of the machine in bytes, or a quarter of the soft limit on the process's
/// address space if that is less.
fn machine_memory() -> usize {
    let info = rustix::system::sysinfo();
    let all = usize::try_from(info.totalram).unwrap_or(usize::MAX);
    let all = all.saturating_mul(info.mem_unit as usize);
    // If address space is limited, leave most of it to the rest of the process.
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    limit.map_or(all, |limit| all.min(usize::try_from(limit / 4).unwrap_or(usize::MAX)))
}
