//! A thread pool for blocking work, which would otherwise delay all callbacks of a Worker.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::SpawnError;
use crate::panics::drop_quietly;
use crate::sync::lock_std;

/// Time after which an idle thread exits.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A closure that may block.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads with a queue of jobs. A job that a callback thread waits for is queued even if
/// the queue is full. Each callback thread waits for at most one job; if it ends in the meantime,
/// its job stays in the queue.
#[derive(Debug)]
pub(crate) struct ThreadPool {
    state: Mutex<State>,
    work: Condvar,
    /// Signalled when the queue may have room.
    room: Condvar,
    /// Maximum number of threads, including idle ones.
    max_threads: usize,
    /// Number of queued jobs at which [`ThreadPool::try_push`] refuses another one and
    /// [`ThreadPool::push_waiting`] blocks.
    max_waiting_jobs: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    down: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("jobs", &self.jobs.len()).finish_non_exhaustive()
    }
}

impl ThreadPool {
    /// Creates a pool of at most `max_threads` threads, which start on demand. `max_waiting_jobs`
    /// limits the length of the queue, except for [`push_always`](Self::push_always).
    pub fn new(max_threads: usize, max_waiting_jobs: usize) -> Self {
        let state = Mutex::default();
        Self { state, work: Condvar::new(), room: Condvar::new(), max_threads, max_waiting_jobs }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock_std(&self.state)
    }

    /// Queues a job even if the queue is full. Drops it if the pool has been shut down.
    pub fn push_always(self: &Arc<Self>, job: Job) {
        let state = self.lock();
        if !state.down {
            self.enqueue(state, job);
        }
    }

    /// Queues a job without waiting for room. Like the other methods, runs the oldest job on the
    /// calling thread if the pool has no thread and cannot start one.
    ///
    /// # Errors
    /// [`SpawnError::Full`] if the queue is full, [`SpawnError::ShutDown`] after shutdown.
    pub fn try_push(self: &Arc<Self>, job: Job) -> Result<(), SpawnError> {
        let state = self.lock();
        if state.down {
            return Err(SpawnError::ShutDown);
        }
        if state.jobs.len() >= self.max_waiting_jobs {
            return Err(SpawnError::Full);
        }
        self.enqueue(state, job);
        Ok(())
    }

    /// Queues a job. Blocks until the queue has room.
    ///
    /// # Errors
    /// [`SpawnError::ShutDown`] if the pool is shut down, even while this waits.
    pub fn push_waiting(self: &Arc<Self>, job: Job) -> Result<(), SpawnError> {
        let full = |state: &mut State| !state.down && state.jobs.len() >= self.max_waiting_jobs;
        let state = self.room.wait_while(self.lock(), full);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.down {
            return Err(SpawnError::ShutDown);
        }
        self.enqueue(state, job);
        Ok(())
    }

    /// Queues a job. If there are at least as many idle threads as queued jobs, wakes an idle
    /// thread; otherwise starts a thread, unless the pool has the maximum number. If a pool without
    /// threads cannot start one, runs the oldest job on the calling thread.
    fn enqueue(self: &Arc<Self>, mut state: MutexGuard<'_, State>, job: Job) {
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.work.notify_one();
        } else if state.threads < self.max_threads {
            state.threads += 1;
            drop(state);
            let pool = Arc::clone(self);
            let thread = thread::Builder::new().name("callback-blocking".into());
            if thread.spawn(move || pool.run_jobs()).is_err() {
                self.handle_start_failure();
            }
        }
    }

    /// Handles a failed thread start. If the pool has no other threads, runs the oldest job on the
    /// calling thread.
    fn handle_start_failure(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        let job = if state.threads == 0 { state.jobs.pop_front() } else { None };
        drop(state);
        if let Some(job) = job {
            self.room.notify_one();
            drop_quietly(job);
        }
    }

    fn run_jobs(&self) {
        let mut state = self.lock();
        loop {
            if state.down {
                break;
            }
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.room.notify_one();
                // `Context::blocking` catches panics of the work; those of `spawn_blocking`, and of
                // destructors, end here.
                drop_quietly(job);
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, IDLE_TIMEOUT);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }

    /// Shuts the pool down: refuses further jobs, drops queued ones, and lets threads exit after
    /// their current job. Does not wait for running jobs.
    pub fn shut_down(&self) {
        let mut state = self.lock();
        state.down = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
        for job in jobs {
            drop_quietly(|| drop(job));
        }
    }
}
