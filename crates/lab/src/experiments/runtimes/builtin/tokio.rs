//! Tasks of tokio on one worker thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::{Units, await_count};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// Number of tasks that have begun to wait since the last `park`. A static, so that no task has to
/// store a reference.
static WAITING: AtomicU64 = AtomicU64::new(0);
/// Number of tasks that have ended since the last `park`.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Guard that a task owns: [`TaskGuard::wait`] counts the task as waiting, and dropping the guard
/// counts it as ended.
struct TaskGuard;

impl TaskGuard {
    /// Counts the task as waiting.
    #[expect(clippy::unused_self, reason = "a task that waits owns one")]
    fn wait(&self) {
        WAITING.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

/// A kind of task, named for what it waits for.
trait TaskKind {
    /// Reserves memory for the senders that wake `n` tasks. The default does nothing, for tasks
    /// without senders.
    fn reserve(&mut self, _n: usize) {}

    /// Frees the memory that `reserve` has reserved. The default does nothing.
    fn forget(&mut self) {}

    /// Spawns a task that counts itself as waiting, waits (until `due` if it has a timer), and then
    /// drops `guard`. A timer is created by the task itself: a captured one would be stored twice.
    fn spawn(&mut self, runtime: &Runtime, guard: TaskGuard, due: Instant);

    /// Wakes the tasks if they wait for a message. Returns whether the caller must end the runtime
    /// to end the tasks, because neither messages nor timers do.
    fn wake(&mut self) -> bool;
}

/// Tasks of one kind, and the runtime that they run on.
struct Tasks<K> {
    runtime: Option<Runtime>,
    kind: K,
    n: u64,
}

fn tasks<K: TaskKind + 'static>(kind: K) -> Result<Box<dyn Units>, SubjectError> {
    Ok(Box::new(Tasks { runtime: Some(runtime()?), kind, n: 0 }))
}

fn runtime() -> Result<Runtime, SubjectError> {
    Builder::new_multi_thread().worker_threads(1).enable_time().build().context("start tokio")
}

impl<K: TaskKind> Units for Tasks<K> {
    fn version(&self) -> String {
        version("tokio")
    }

    fn reserve(&mut self, n: u64) -> Result<(), SubjectError> {
        self.kind.reserve(
            usize::try_from(n).map_err(|error| SubjectError::unexpected(error.to_string()))?,
        );
        Ok(())
    }

    fn park(&mut self, n: u64, due: Instant) -> Result<u64, SubjectError> {
        WAITING.store(0, Ordering::Relaxed);
        ENDED.store(0, Ordering::Relaxed);
        self.n = n;
        let runtime =
            self.runtime.as_ref().ok_or_else(|| SubjectError::unexpected("tokio has ended"))?;
        for _ in 0..n {
            self.kind.spawn(runtime, TaskGuard, due);
        }
        let waiting = || WAITING.load(Ordering::Relaxed);
        await_count("wait", n, waiting)?;
        Ok(waiting())
    }

    fn ended(&self) -> u64 {
        ENDED.load(Ordering::Relaxed)
    }

    fn wake(&mut self) -> Result<(), SubjectError> {
        if self.kind.wake() {
            drop(self.runtime.take());
            self.runtime = Some(runtime()?);
        }
        await_count("have ended", self.n, || self.ended())
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.kind.forget();
        Ok(())
    }

    fn round_trips(&mut self, messages: u64) -> Result<Duration, String> {
        let runtime = self.runtime.as_ref().ok_or("tokio has ended")?;
        let (there, mut comes) = mpsc::channel::<u64>(1);
        let (back, mut answers) = mpsc::channel::<u64>(1);
        runtime.spawn(async move {
            while let Some(number) = comes.recv().await {
                if back.send(number).await.is_err() {
                    break;
                }
            }
        });
        let asks = runtime.spawn(async move {
            let mut begun = Instant::now();
            for number in 0..=messages {
                let answer =
                    if there.send(number).await.is_ok() { answers.recv().await } else { None };
                if answer != Some(number) {
                    return Err(format!("message {number} was answered by {answer:?}"));
                }
                if number == 0 {
                    begun = Instant::now();
                }
            }
            Ok(begun.elapsed())
        });
        runtime.block_on(asks).map_err(|error| error.to_string())?
    }
}

/// Returns the name of a library and the version that this program was built with, or only the name
/// if `Cargo.lock` does not have the library.
pub(super) fn version(library: &str) -> String {
    let lock = include_str!("../../../../../../Cargo.lock");
    let found = lock.split("[[package]]").find_map(|package| {
        let mut lines = package.lines().filter_map(|line| line.split_once(" = \""));
        let name = lines.find(|(key, _)| *key == "name")?.1;
        (name.trim_end_matches('"') == library).then(|| lines.next())?
    });
    let number = found.map_or("", |(_, version)| version.trim_end_matches('"'));
    format!("{library} {number}")
}

/// Creates the probe for tasks that sleep until a time.
pub fn sleep() -> Result<Box<dyn Units>, SubjectError> {
    tasks(Sleep)
}

struct Sleep;

impl TaskKind for Sleep {
    fn spawn(&mut self, runtime: &Runtime, guard: TaskGuard, due: Instant) {
        runtime.spawn(async move {
            guard.wait();
            tokio::time::sleep_until(due.into()).await;
            drop(guard);
        });
    }

    fn wake(&mut self) -> bool {
        false
    }
}

/// Creates the probe for tasks that stay pending and end with the runtime.
pub fn pending() -> Result<Box<dyn Units>, SubjectError> {
    tasks(Pending)
}

struct Pending;

impl TaskKind for Pending {
    fn spawn(&mut self, runtime: &Runtime, guard: TaskGuard, _: Instant) {
        runtime.spawn(async move {
            guard.wait();
            std::future::pending::<()>().await;
            drop(guard);
        });
    }

    fn wake(&mut self) -> bool {
        true
    }
}

/// Creates the probe for tasks that each wait on a oneshot channel.
pub fn oneshot() -> Result<Box<dyn Units>, SubjectError> {
    tasks(Oneshot(Vec::new()))
}

struct Oneshot(Vec<oneshot::Sender<()>>);

impl TaskKind for Oneshot {
    fn reserve(&mut self, n: usize) {
        self.0.reserve(n);
    }

    fn forget(&mut self) {
        self.0 = Vec::new();
    }

    fn spawn(&mut self, runtime: &Runtime, guard: TaskGuard, _: Instant) {
        let (sender, receiver) = oneshot::channel();
        self.0.push(sender);
        runtime.spawn(async move {
            guard.wait();
            let _ = receiver.await; // a closed channel ends the wait, too
            drop(guard);
        });
    }

    fn wake(&mut self) -> bool {
        for sender in self.0.drain(..) {
            let _ = sender.send(()); // a task that has ended is counted
        }
        false
    }
}

/// Creates the probe for tasks that each wait on an mpsc channel with a capacity of one.
pub fn mpsc() -> Result<Box<dyn Units>, SubjectError> {
    tasks(Mpsc(Vec::new()))
}

struct Mpsc(Vec<mpsc::Sender<()>>);

impl TaskKind for Mpsc {
    fn reserve(&mut self, n: usize) {
        self.0.reserve(n);
    }

    fn forget(&mut self) {
        self.0 = Vec::new();
    }

    fn spawn(&mut self, runtime: &Runtime, guard: TaskGuard, _: Instant) {
        let (sender, mut receiver) = mpsc::channel(1);
        self.0.push(sender);
        runtime.spawn(async move {
            guard.wait();
            let _ = receiver.recv().await; // a closed channel ends the wait, too
            drop(guard);
        });
    }

    fn wake(&mut self) -> bool {
        for sender in self.0.drain(..) {
            let _ = sender.try_send(()); // a task that has ended is counted
        }
        false
    }
}
