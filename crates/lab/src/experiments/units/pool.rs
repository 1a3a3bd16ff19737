//! Pools: units that are there already and get work handed to them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use contend_sys::process::fork;
use contend_sys::{Pid, Signal};
use rustix::pipe::PipeFlags;

use super::one_byte::the_work;

/// Threads that wait for jobs in a queue.
pub struct ThreadPool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Queue>,
    came: Condvar,
    finished: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<fn()>,
    unfinished: usize,
}

impl ThreadPool {
    /// A pool of so many threads. They live until the process ends.
    ///
    /// # Errors
    /// When a thread cannot be created.
    pub fn new(workers: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        for _ in 0..workers {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().spawn(move || shared.serve())?;
        }
        Ok(Self { shared })
    }

    /// Has so many jobs done, each by whichever thread is free, and waits for all.
    pub fn run(&self, jobs: u64) {
        for _ in 0..jobs {
            let mut queue = self.shared.lock();
            queue.jobs.push_back(the_work);
            queue.unfinished += 1;
            drop(queue);
            self.shared.came.notify_one();
        }
        let mut queue = self.shared.lock();
        while queue.unfinished > 0 {
            queue = self.shared.finished.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut queue = self.lock();
        loop {
            let Some(job) = queue.jobs.pop_front() else {
                queue = self.came.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            job();
            queue = self.lock();
            queue.unfinished -= 1;
            if queue.unfinished == 0 {
                self.finished.notify_one();
            }
        }
    }
}

/// Processes, forked beforehand, that wait for jobs in a pipe.
pub struct ProcessPool {
    jobs: OwnedFd,
    answers: OwnedFd,
    workers: Vec<Pid>,
}

impl ProcessPool {
    /// A pool of so many processes. They end when this process does.
    ///
    /// # Errors
    /// When a process cannot be created.
    pub fn new(workers: usize) -> io::Result<Self> {
        let (take, jobs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (answers, answer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let mut pool = Self { jobs, answers, workers: Vec::new() };
        for _ in 0..workers {
            let pid = fork(|| {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                let mut byte = [0; 1];
                while matches!(rustix::io::read(&take, &mut byte), Ok(1)) {
                    the_work();
                    let _ = rustix::io::write(&answer, &byte);
                }
                0
            })?;
            pool.workers.push(pid);
        }
        Ok(pool)
    }

    /// Its processes.
    pub fn workers(&self) -> &[Pid] {
        &self.workers
    }

    /// Has so many jobs done, each by whichever process is free, and waits for all.
    ///
    /// # Errors
    /// When the processes have gone.
    pub fn run(&self, jobs: u64) -> io::Result<()> {
        for _ in 0..jobs {
            rustix::io::write(&self.jobs, b"j")?;
        }
        let mut missing = usize::try_from(jobs).unwrap_or(usize::MAX);
        let mut buffer = [0; 1024];
        while missing > 0 {
            let wanted = missing.min(buffer.len());
            missing -= rustix::io::read(&self.answers, &mut buffer[..wanted])?;
        }
        Ok(())
    }
}
