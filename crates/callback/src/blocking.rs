//! Threads for what blocks, so that it holds up no Worker.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::SpawnError;
use crate::panics::drop_quietly;
use crate::sync::lock_std;

/// A thread that has nothing to do ends after this.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Something that may block.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The threads and what they are to do. Jobs of callback threads are never refused: one that waits
/// for a job has no other, so that there are no more than callback threads.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    /// Somebody may offer a job again.
    room: Condvar,
    /// Threads at most.
    most: usize,
    /// Jobs that wait for a thread at most, when others than callback threads offer one.
    most_waiting: usize,
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

impl Pool {
    /// With so many threads at most; none until there is something to do.
    pub fn new(most: usize, most_waiting: usize) -> Self {
        let state = Mutex::default();
        Self { state, work: Condvar::new(), room: Condvar::new(), most, most_waiting }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock_std(&self.state)
    }

    /// Has it done, also if much waits already.
    pub fn give(self: &Arc<Self>, job: Job) {
        let state = self.lock();
        if !state.down {
            self.put(state, job);
        }
    }

    /// Has it done, unless much waits already.
    pub fn offer(self: &Arc<Self>, job: Job) -> Result<(), SpawnError> {
        let state = self.lock();
        if state.down {
            return Err(SpawnError::ShutDown);
        }
        if state.jobs.len() >= self.most_waiting {
            return Err(SpawnError::Full);
        }
        self.put(state, job);
        Ok(())
    }

    /// Has it done as soon as not too much waits.
    pub fn offer_waiting(self: &Arc<Self>, job: Job) -> Result<(), SpawnError> {
        let full = |state: &mut State| !state.down && state.jobs.len() >= self.most_waiting;
        let state = self.room.wait_while(self.lock(), full);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.down {
            return Err(SpawnError::ShutDown);
        }
        self.put(state, job);
        Ok(())
    }

    /// Has it done by a thread that is idle, a new one if there may be more, or the next that is.
    fn put(self: &Arc<Self>, mut state: MutexGuard<'_, State>, job: Job) {
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.work.notify_one();
        } else if state.threads < self.most {
            state.threads += 1;
            drop(state);
            let pool = Arc::clone(self);
            let thread = thread::Builder::new().name("callback-blocking".into());
            if thread.spawn(move || pool.serve()).is_err() {
                self.no_thread();
            }
        }
    }

    /// There is one thread less than was counted. If there is none at all, its work is done here.
    fn no_thread(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        let job = if state.threads == 0 { state.jobs.pop_front() } else { None };
        drop(state);
        if let Some(job) = job {
            self.room.notify_one();
            drop_quietly(job);
        }
    }

    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if state.down {
                break;
            }
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.room.notify_one();
                // Jobs tell of their own panics; dropping what such a one leaves may be another.
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

    /// Begins nothing more. What has begun is not waited for.
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
