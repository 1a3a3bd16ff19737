//! Groups of workers, in one or more processes with threads, that start to work at the same time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use contend_sys::child::{self, Which};
use contend_sys::load::Load;
use contend_sys::process::{exit_now, fork};
use contend_sys::shared::{Line, Shared};
use contend_sys::{Pid, Signal, cpu};
use rustix::thread::futex::{self, Flags};

use crate::engine::experiment::{ErrorContext, Facts, SubjectError};
use crate::engine::timing::{nanoseconds, now};

/// The work that each worker of a group does.
pub trait Workload: Sync {
    /// Prepares the work and returns a closure that does it. Only the closure, which runs when the
    /// gate opens, is timed.
    fn prepare(&self) -> Box<dyn FnOnce() + '_>;

    /// Returns facts for the record. Empty by default.
    fn facts(&self) -> Facts {
        Facts::new()
    }
}

/// A group of workers: one or more processes with equally many threads each.
#[derive(Debug, Clone, Copy)]
pub struct WorkerGroup {
    /// Number of processes.
    pub processes: u64,
    /// Number of threads in each process, including its main thread.
    pub threads: u64,
}

/// The measurements of one [`WorkerGroup::run`].
#[derive(Debug, Clone, Default)]
pub struct GroupResult {
    /// Wall time from the opening of the gate until the last worker has finished.
    pub elapsed: Duration,
    /// CPU time of all workers since the opening of the gate.
    pub cpu: Duration,
    /// Number of involuntary context switches of all workers since the opening of the gate.
    pub involuntary_switches: u64,
    /// Time for which CPU quotas throttled this process's cgroup or an ancestor during the run;
    /// `None` without a quota.
    pub throttled: Option<Duration>,
}

/// Memory shared by the workers and their supervisor.
#[derive(Debug)]
struct SharedState {
    /// Futex of the gate: 0 while the gate is closed, 1 once it is open.
    gate: Shared<Line<AtomicU32>>,
    /// Counters, at the indexes defined below.
    counters: Shared<[Line<AtomicU64>; 5]>,
}

/// Index of the number of workers that have reached the gate.
const READY_WORKERS_INDEX: usize = 0;
/// Index of the time when the last worker finished, in nanoseconds of `CLOCK_MONOTONIC`.
const LAST_END_NS_INDEX: usize = 1;
/// Index of the CPU time of all workers, in nanoseconds.
const CPU_NS_INDEX: usize = 2;
/// Index of the number of involuntary context switches.
const INVOLUNTARY_SWITCHES_INDEX: usize = 3;
/// Index of the number of workers that have finished.
const DONE_WORKERS_INDEX: usize = 4;

impl SharedState {
    fn new() -> Result<Self, SubjectError> {
        let gate = Shared::new(Line(AtomicU32::new(0))).context("map shared memory")?;
        let counters = Shared::new([const { Line(AtomicU64::new(0)) }; 5]);
        Ok(Self { gate, counters: counters.context("map shared memory")? })
    }

    fn counter(&self, index: usize) -> u64 {
        self.counters[index].load(Ordering::Acquire)
    }

    fn open(&self) {
        self.gate.store(1, Ordering::Release);
        let all_waiters = i32::MAX.cast_unsigned();
        let _ = futex::wake(&self.gate, Flags::empty(), all_waiters); // cannot fail for a valid address
    }

    /// Runs one worker: prepares its work, waits for the gate, does the work, and adds its
    /// measurements to the shared counters.
    fn run_worker(&self, workload: &dyn Workload) {
        let work = workload.prepare();
        self.counters[READY_WORKERS_INDEX].fetch_add(1, Ordering::Release);
        while self.gate.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&self.gate, Flags::empty(), 0, None);
        }
        let (cpu, before) = (cpu::own_thread_time(), child::thread_usage());
        work();
        self.counters[LAST_END_NS_INDEX].fetch_max(now(), Ordering::Relaxed);
        let cpu = cpu::own_thread_time().saturating_sub(cpu);
        let switches = child::thread_usage().involuntary_switches - before.involuntary_switches;
        self.counters[CPU_NS_INDEX].fetch_add(nanoseconds(cpu), Ordering::Relaxed);
        self.counters[INVOLUNTARY_SWITCHES_INDEX].fetch_add(switches, Ordering::Relaxed);
        self.counters[DONE_WORKERS_INDEX].fetch_add(1, Ordering::Release);
    }
}

/// Worker processes, which are killed and reaped on drop.
#[derive(Debug, Default)]
struct WorkerProcesses(Vec<Pid>);

impl WorkerProcesses {
    /// Waits for all processes to exit, and reaps them.
    fn reap(mut self) -> Result<(), SubjectError> {
        for pid in std::mem::take(&mut self.0) {
            child::reap(pid).context("reap a process")?;
        }
        Ok(())
    }

    fn any_has_exited(&self) -> bool {
        self.0.iter().any(|&pid| matches!(child::peek(Which::One(pid)), Ok(Some(_))))
    }
}

impl Drop for WorkerProcesses {
    fn drop(&mut self) {
        for &pid in &self.0 {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        for &pid in &self.0 {
            let _ = child::reap(pid);
        }
    }
}

/// Interval between checks of whether all workers have reached the gate.
const READY_POLL_INTERVAL: Duration = Duration::from_micros(200);

impl WorkerGroup {
    /// Returns the number of workers in all processes.
    pub fn workers(&self) -> u64 {
        self.processes * self.threads
    }

    /// Runs the workload once in every worker. The calling process must be single-threaded.
    ///
    /// # Errors
    /// Returns an error if:
    /// - a process cannot be created or reaped;
    /// - a process exits before its workers have finished;
    /// - shared memory cannot be mapped.
    pub fn run(&self, workload: &dyn Workload) -> Result<GroupResult, SubjectError> {
        let state = SharedState::new()?;
        let mut processes = WorkerProcesses::default();
        for _ in 0..self.processes {
            let pid = fork(|| {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                self.run_threads(&state, workload);
                0
            });
            processes.0.push(pid.context("create a process")?);
        }
        while state.counter(READY_WORKERS_INDEX) < self.workers() {
            if processes.any_has_exited() {
                let message = "a process exited early: it could not create its threads or allocate \
                    its memory";
                return Err(SubjectError::Unexpected(message.to_owned()));
            }
            std::thread::sleep(READY_POLL_INTERVAL);
        }
        let (throttled, begun) = (Load::read().throttled, now());
        state.open();
        processes.reap()?;
        if state.counter(DONE_WORKERS_INDEX) != self.workers() {
            return Err(SubjectError::Unexpected(
                "a process exited in the middle of its work".to_owned(),
            ));
        }
        let throttled = Load::read().throttled.saturating_sub(throttled);
        Ok(GroupResult {
            elapsed: Duration::from_nanos(state.counter(LAST_END_NS_INDEX).saturating_sub(begun)),
            cpu: Duration::from_nanos(state.counter(CPU_NS_INDEX)),
            involuntary_switches: state.counter(INVOLUNTARY_SWITCHES_INDEX),
            throttled: cpu::quota().map(|_| throttled),
        })
    }

    /// Runs the workers of one process, one of them on its main thread.
    fn run_threads(&self, state: &SharedState, workload: &dyn Workload) {
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                let thread = std::thread::Builder::new();
                let thread = thread.spawn_scoped(scope, || state.run_worker(workload));
                if thread.is_err() {
                    exit_now(1); // the other threads would wait forever
                }
            }
            state.run_worker(workload);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workload that waits, for at most ten seconds, until all workers have started.
    struct WaitForAllWorkers {
        started: Shared<Line<AtomicU64>>,
        all: u64,
    }

    impl Workload for WaitForAllWorkers {
        fn prepare(&self) -> Box<dyn FnOnce() + '_> {
            Box::new(|| {
                self.started.fetch_add(1, Ordering::SeqCst);
                for _ in 0..1000 {
                    if self.started.load(Ordering::SeqCst) >= self.all {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                exit_now(1); // not all have started
            })
        }
    }

    struct ExitWhilePreparing;

    impl Workload for ExitWhilePreparing {
        fn prepare(&self) -> Box<dyn FnOnce() + '_> {
            exit_now(1)
        }
    }

    struct ExitWhileWorking;

    impl Workload for ExitWhileWorking {
        fn prepare(&self) -> Box<dyn FnOnce() + '_> {
            Box::new(|| exit_now(1))
        }
    }

    #[test]
    fn all_workers_run_at_the_same_time() {
        let started = Shared::new(Line(AtomicU64::new(0))).expect("memory");
        let result =
            WorkerGroup { processes: 3, threads: 2 }.run(&WaitForAllWorkers { started, all: 6 });
        assert!(result.expect("they meet").elapsed > Duration::ZERO);
    }

    #[test]
    fn a_worker_that_exits_early_is_an_error() {
        let group = WorkerGroup { processes: 2, threads: 1 };
        let error = group.run(&ExitWhilePreparing).expect_err("they have died").to_string();
        assert!(error.contains("exited early"), "{error}");
        let error = group.run(&ExitWhileWorking).expect_err("they have died").to_string();
        assert!(error.contains("in the middle"), "{error}");
    }
}
