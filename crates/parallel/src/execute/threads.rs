//! Starts threads, and retries operations that fail because processes, open files or memory have run
//! out.
//!
//! Such a shortage may pass as other processes or threads end, so the attempt is repeated with
//! growing delays, as shells do, for a limited time.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use contend_sys::interrupt;
use rustix::io::Errno;

/// The first delay between two attempts. Each later delay is twice the one before.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(1);
/// The maximum delay between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(250);

/// A limit on the time for which attempts are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryLimit {
    /// One second, because there is an alternative.
    Brief,
    /// 15 seconds, as in bash, because there is no alternative.
    Long,
}

impl RetryLimit {
    fn time(self) -> Duration {
        match self {
            Self::Brief => Duration::from_secs(1),
            Self::Long => Duration::from_secs(15),
        }
    }
}

/// Returns whether the error means that processes, open files or memory have run out.
pub(super) fn is_scarcity(error: &io::Error) -> bool {
    let known = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    known.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Repeats an attempt, with growing delays, while it fails because processes, open files or memory
/// have run out.
///
/// # Errors
/// Returns an error if the attempt fails for another reason or for too long, or if contend is asked
/// to end.
pub(super) fn retried<T>(
    limit: RetryLimit,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let begun = Instant::now();
    let mut pause = FIRST_RETRY_DELAY;
    loop {
        match attempt() {
            Err(error)
                if is_scarcity(&error)
                    && begun.elapsed() < limit.time()
                    && !interrupt::has_end_request() =>
            {
                thread::sleep(pause);
                pause = MAX_RETRY_DELAY.min(2 * pause);
            }
            result => return result,
        }
    }
}

/// Work for a single thread: the first one that starts takes it.
type Once<F> = Arc<Mutex<Option<F>>>;

fn take<F>(work: &Once<F>) -> Option<F> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Starts a thread of the scope, which runs `work` and returns its result. The result is `None`
/// only if another thread has taken the work, which cannot happen: an attempt is repeated only if
/// it has started no thread.
///
/// # Errors
/// Returns an error if the thread cannot be started.
pub(super) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, Option<T>>> {
    let work: Once<_> = Arc::new(Mutex::new(Some(work)));
    retried(RetryLimit::Long, || {
        let work = Arc::clone(&work);
        Builder::new().spawn_scoped(scope, move || take(&work).map(|work| work()))
    })
}

/// Runs `work` on a new thread, which may outlive the calling one.
///
/// # Errors
/// Returns an error if the thread cannot be started.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let work: Once<_> = Arc::new(Mutex::new(Some(work)));
    retried(RetryLimit::Long, || {
        let work = Arc::clone(&work);
        Builder::new().spawn(move || take(&work).map_or((), |work| work()))
    })
}

/// Runs `work` on the calling thread and on up to `count - 1` others, as far as they can be
/// started. Waits for all of them, and returns their results, with that of the calling thread
/// first.
///
/// # Panics
/// Panics if one of the threads has panicked.
pub(super) fn run_on_all<T: Send>(count: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let others: Vec<_> =
            (1..count).map_while(|_| Builder::new().spawn_scoped(scope, &work).ok()).collect();
        let own = work();
        let joined = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(own).chain(joined).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scarcity_is_retried() {
        let mut tries = 0;
        let found = retried(RetryLimit::Long, || {
            tries += 1;
            if tries < 4 { Err(Errno::AGAIN.into()) } else { Ok(tries) }
        });
        assert_eq!(found.ok(), Some(4));
        let mut tries = 0;
        let failed = retried(RetryLimit::Long, || -> io::Result<()> {
            tries += 1;
            Err(Errno::NOENT.into())
        });
        assert!(failed.is_err() && tries == 1);
    }

    #[test]
    fn this_thread_is_one_of_those_that_work() {
        let own = thread::current().id();
        let ids = run_on_all(3, || thread::current().id());
        assert_eq!((ids.len(), ids[0]), (3, own));
        assert_eq!(run_on_all(1, || thread::current().id()), [own]);
    }
}
