//! Pools: units that exist before the measurement and receive jobs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use contend_sys::process::fork;
use contend_sys::{Pid, Signal};
use rustix::pipe::PipeFlags;

use super::null_write::write_one_byte;

/// A pool of threads that take jobs from a queue.
pub struct ThreadPool {
    shared: Arc<PoolState>,
}

#[derive(Default)]
struct PoolState {
    state: Mutex<JobQueue>,
    job_added: Condvar,
    finished: Condvar,
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<fn()>,
    unfinished: usize,
}

impl ThreadPool {
    /// Creates a pool of `workers` threads, which live until the process exits.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be created.
    pub fn new(workers: usize) -> io::Result<Self> {
        let shared = Arc::new(PoolState::default());
        for _ in 0..workers {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().spawn(move || shared.serve())?;
        }
        Ok(Self { shared })
    }

    /// Makes the threads write one byte to `/dev/null` `jobs` times, and blocks until they have
    /// done so. The pool must have at least one thread.
    pub fn run(&self, jobs: u64) {
        for _ in 0..jobs {
            let mut queue = self.shared.lock();
            queue.jobs.push_back(write_one_byte);
            queue.unfinished += 1;
            drop(queue);
            self.shared.job_added.notify_one();
        }
        let mut queue = self.shared.lock();
        while queue.unfinished > 0 {
            queue = self.shared.finished.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl PoolState {
    fn lock(&self) -> std::sync::MutexGuard<'_, JobQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut queue = self.lock();
        loop {
            let Some(job) = queue.jobs.pop_front() else {
                queue = self.job_added.wait(queue).unwrap_or_else(PoisonError::into_inner);
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

/// A pool of forked processes that take jobs from a pipe.
pub struct ProcessPool {
    jobs: OwnedFd,
    answers: OwnedFd,
    workers: Vec<Pid>,
}

impl ProcessPool {
    /// Creates a pool of `workers` processes. The kernel kills them when the calling thread ends.
    ///
    /// # Errors
    /// Returns an error if a pipe or a process cannot be created.
    pub fn new(workers: usize) -> io::Result<Self> {
        let (job_reader, jobs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (answers, answer_writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let mut pool = Self { jobs, answers, workers: Vec::new() };
        for _ in 0..workers {
            let pid = fork(|| {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                let mut byte = [0; 1];
                while matches!(rustix::io::read(&job_reader, &mut byte), Ok(1)) {
                    write_one_byte();
                    let _ = rustix::io::write(&answer_writer, &byte);
                }
                0
            })?;
            pool.workers.push(pid);
        }
        Ok(pool)
    }

    /// Returns the process ids of the pool's workers.
    pub fn workers(&self) -> &[Pid] {
        &self.workers
    }

    /// Makes the processes write one byte to `/dev/null` `jobs` times, and blocks until they have
    /// done so. There must not be more jobs than a pipe has room for, usually 65,536.
    ///
    /// # Errors
    /// Returns an error if all processes have exited, or a pipe fails.
    pub fn run(&self, jobs: u64) -> io::Result<()> {
        for _ in 0..jobs {
            rustix::io::write(&self.jobs, b"j")?;
        }
        let mut unanswered = usize::try_from(jobs).unwrap_or(usize::MAX);
        let mut buffer = [0; 1024];
        while unanswered > 0 {
            let wanted = unanswered.min(buffer.len());
            match rustix::io::read(&self.answers, &mut buffer[..wanted])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                answers => unanswered -= answers,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_whose_workers_exit_during_a_call_reports_an_error() {
        let (_job_reader, jobs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let (answers, answer_writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        drop(answer_writer);
        let pool = ProcessPool { jobs, answers, workers: Vec::new() };
        let error = pool.run(3).expect_err("no answers");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
