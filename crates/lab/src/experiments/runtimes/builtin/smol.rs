//! Tasks of smol on one thread, with three of the crates that smol consists of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_executor::Executor;
use async_io::{Timer, block_on};

use super::{Units, await_count};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// Creates the probe for tasks that wait for a timer.
pub fn smol() -> Result<Box<dyn Units>, SubjectError> {
    let executor = Arc::new(Executor::new());
    let thread = std::thread::Builder::new();
    let runs = Arc::clone(&executor);
    let forever = move || block_on(runs.run(std::future::pending::<()>()));
    thread.spawn(forever).context("start a thread")?;
    Ok(Box::new(Tasks { executor, counts: Arc::default(), n: 0 }))
}

struct Tasks {
    executor: Arc<Executor<'static>>,
    /// Numbers of tasks that have begun to wait and that have ended since the last `park`.
    counts: Arc<[AtomicU64; 2]>,
    n: u64,
}

impl Tasks {
    fn count(&self, which: usize) -> u64 {
        self.counts[which].load(Ordering::Relaxed)
    }
}

impl Units for Tasks {
    fn version(&self) -> String {
        format!("smol, {}", super::tokio::version("async-executor"))
    }

    fn reserve(&mut self, _: u64) -> Result<(), SubjectError> {
        Ok(())
    }

    fn park(&mut self, n: u64, due: Instant) -> Result<u64, SubjectError> {
        self.counts = Arc::default();
        self.n = n;
        for _ in 0..n {
            let counts = Arc::clone(&self.counts);
            let waits = async move {
                let timer = Timer::at(due);
                counts[0].fetch_add(1, Ordering::Relaxed);
                timer.await;
                counts[1].fetch_add(1, Ordering::Relaxed);
            };
            self.executor.spawn(waits).detach();
        }
        await_count("wait", n, || self.count(0))?;
        Ok(self.count(0))
    }

    fn ended(&self) -> u64 {
        self.count(1)
    }

    fn wake(&mut self) -> Result<(), SubjectError> {
        await_count("have ended", self.n, || self.count(1))
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        Ok(())
    }

    fn round_trips(&mut self, messages: u64) -> Result<Duration, String> {
        let (there, comes) = async_channel::bounded::<u64>(1);
        let (back, answers) = async_channel::bounded::<u64>(1);
        let echo = self.executor.spawn(async move {
            while let Ok(number) = comes.recv().await {
                if back.send(number).await.is_err() {
                    break;
                }
            }
        });
        let asks = self.executor.spawn(async move {
            let mut begun = Instant::now();
            for number in 0..=messages {
                let sent = there.send(number).await.is_ok();
                let answer = if sent { answers.recv().await.ok() } else { None };
                if answer != Some(number) {
                    return Err(format!("message {number} was answered by {answer:?}"));
                }
                if number == 0 {
                    begun = Instant::now();
                }
            }
            Ok(begun.elapsed())
        });
        let asked = block_on(asks);
        block_on(echo);
        asked
    }
}
