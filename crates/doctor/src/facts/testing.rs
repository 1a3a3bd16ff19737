//! Builds [`Facts`] for tests: what an observation of a program would have shown.
//!
//! A [`Program`] begins without processes and without threads, on CPUs that no other program uses,
//! observed for [`WALL`] seconds with context switches. Shares are of this time. [`Program::facts`]
//! computes the sums over all threads, so that the figures agree with each other.

#![expect(clippy::return_self_not_must_use, reason = "each call continues a chain")]

use std::time::Duration;

use contend_record::doctor::{Cause, Runtime, ThreadName, ThreadState};

use super::{Facts, ProcessFacts, ThreadFacts, narrow};
use crate::futex::{Futex, Primitive};
use crate::stacks::Code;
use crate::timeline::{CAUSES, Executions, STATES, Wakes};
use crate::wait::{Object, Wait};

/// Length of the observation, in seconds.
pub const WALL: f64 = 10.0;

/// PID of the program that a [`Thread`] belongs to unless the test chooses another one.
pub const PID: i32 = 1;

/// A program under observation.
#[derive(Debug, Clone)]
pub struct Program {
    facts: Facts,
    in_kernel: f64,
}

/// A thread of it.
#[derive(Debug, Clone)]
pub struct Thread(ThreadFacts);

impl Program {
    /// A program that may use all `cpus` CPUs of its machine.
    pub fn on(cpus: f64) -> Self {
        let facts = Facts {
            wall: WALL,
            cpus,
            cpus_online: cpus,
            has_switches: true,
            causes: vec![0.0; CAUSES],
            levels: vec![1.0],
            ..Facts::default()
        };
        Self { facts, in_kernel: 0.0 }
    }

    /// Adds a thread, and its process with the runtime of the thread if that is a new one.
    pub fn thread(mut self, thread: Thread) -> Self {
        let Thread(thread) = thread;
        if self.facts.processes.iter().all(|process| process.pid != thread.name.pid) {
            self.facts.processes.push(process(thread.name.pid, thread.runtime));
        }
        self.facts.threads.push(thread);
        self
    }

    /// Adds threads with IDs from `ids`, which are alike.
    pub fn threads(
        self,
        ids: impl IntoIterator<Item = i32>,
        thread: impl Fn(Thread) -> Thread,
    ) -> Self {
        ids.into_iter().fold(self, |program, id| program.thread(thread(Thread::new(id))))
    }

    /// Sets the shares of the time with one, two and so on running threads. None ran in the rest.
    pub fn levels(mut self, shares: &[f64]) -> Self {
        let idle = 1.0 - shares.iter().sum::<f64>();
        self.facts.levels = std::iter::once(idle).chain(shares.iter().copied()).collect();
        self
    }

    /// Sets the share of the time with a cause.
    pub fn cause(mut self, cause: Cause, share: f64) -> Self {
        self.facts.causes[cause as usize] = share;
        self
    }

    /// Sets the share of the CPU time in the kernel.
    pub fn in_kernel(mut self, share: f64) -> Self {
        self.in_kernel = share;
        self
    }

    /// Makes `waker` wake `woken` the given number of times per second.
    pub fn wakes(mut self, waker: i32, woken: i32, per_second: f64) -> Self {
        let count = count(per_second * WALL);
        let wakes = Wakes { count, alone: count, across_cpus: count };
        self.facts.wakes.push(((waker, woken), wakes));
        self
    }

    /// Removes all wake-ups.
    pub fn without_wakes(mut self) -> Self {
        self.facts.wakes.clear();
        self
    }

    /// Adds executions of a program, each with a life and a CPU time in seconds.
    pub fn executes(mut self, name: &str, per_second: f64, life: f64, cpu: f64) -> Self {
        let number = count(per_second * WALL);
        let (run_nanos, life_nanos) = (total(number, cpu), total(number, life));
        let is_busy = cpu >= 0.7 * life;
        let executions = Executions {
            count: number,
            run_nanos,
            life_nanos,
            busy: if is_busy { number } else { 0 },
            busy_run_nanos: if is_busy { run_nanos } else { 0 },
            ..Executions::default()
        };
        self.facts.programs.push((name.into(), executions));
        self.ends(per_second, life, cpu)
    }

    /// Adds processes that start and end, each with a life and a CPU time in seconds.
    pub fn ends(mut self, per_second: f64, life: f64, cpu: f64) -> Self {
        let number = count(per_second * WALL);
        let ended = &mut self.facts.ended;
        ended.threads += number;
        ended.processes += number;
        ended.short_lived += number;
        ended.run_nanos += total(number, cpu);
        ended.life_nanos += total(number, life);
        self
    }

    /// Changes any other figure.
    pub fn with(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.facts);
        self
    }

    /// Changes the process with this ID.
    ///
    /// # Panics
    /// Panics if it has no thread.
    pub fn process(mut self, pid: i32, change: impl FnOnce(&mut ProcessFacts)) -> Self {
        let process = self.facts.processes.iter_mut().find(|process| process.pid == pid);
        change(process.expect("a process with a thread"));
        self
    }

    /// Returns the figures.
    pub fn facts(self) -> Facts {
        let Self { mut facts, in_kernel } = self;
        for thread in &mut facts.threads {
            let blocked: f64 = thread.waits.iter().map(|(_, share)| share).sum();
            let per_run = |share: f64| {
                if thread.runs_per_second > 0.0 { share / thread.runs_per_second } else { 0.0 }
            };
            (thread.run_length, thread.wait_length) = (per_run(thread.running), per_run(blocked));
            if !thread.waits.is_empty() && thread.waits_per_second == 0.0 {
                thread.waits_per_second = thread.runs_per_second;
            }
            thread.waits.sort_by(|a, b| b.1.total_cmp(&a.1));
        }
        facts.threads.sort_by(|a, b| b.running.total_cmp(&a.running));
        facts.running = facts.threads.iter().map(|thread| thread.running).sum();
        facts.queued = facts.threads.iter().map(|thread| thread.queued).sum();
        facts.cpu = facts.running * facts.wall;
        facts.system = in_kernel * facts.cpu;
        for process in &mut facts.processes {
            let own = facts.threads.iter().filter(|thread| thread.name.pid == process.pid);
            process.running = own.map(|thread| thread.running).sum();
        }
        facts
    }
}

impl Thread {
    /// A thread of [`PID`] with no time in any state.
    pub fn new(id: i32) -> Self {
        let name = ThreadName { pid: PID, tid: id, name: format!("thread-{id}"), function: None };
        Self(ThreadFacts {
            name,
            runtime: None,
            life: 1.0,
            running: 0.0,
            queued: 0.0,
            states: [0.0; STATES],
            waits: Vec::new(),
            runs_per_second: 0.0,
            slices: 0,
            run_length: 0.0,
            long_runs: 0.0,
            wait_length: 0.0,
            waits_per_second: 0.0,
            preemptions_per_second: 0.0,
            code: None,
            short_sleeps: 0,
            sleeps_with_event: 0,
        })
    }

    /// Puts the thread into another process.
    pub fn of(mut self, pid: i32) -> Self {
        self.0.name.pid = pid;
        self
    }

    /// Sets the runtime of the thread.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.0.runtime = Some(runtime);
        self
    }

    /// Makes the thread run for a share of the time, in the given number of runs per second.
    pub fn runs(mut self, share: f64, per_second: f64) -> Self {
        self.0.running = share;
        self.0.runs_per_second = per_second;
        self.0.slices = count(per_second * WALL);
        self.0.states[ThreadState::Running as usize] = narrow(share);
        self
    }

    /// Makes the thread wait for a CPU for a share of the time.
    pub fn queued(mut self, share: f64) -> Self {
        self.0.queued = share;
        self.0.states[ThreadState::Runnable as usize] = narrow(share);
        self
    }

    /// Makes the thread wait for a share of the time.
    pub fn waits(mut self, wait: Wait, share: f64) -> Self {
        self.0.states[wait.state as usize] += narrow(share);
        self.0.waits.push((wait, share));
        self
    }

    /// Makes the thread sleep for a share of the time, in the given number of short sleeps per
    /// second. During the share `with_event` of them, another thread begins to run.
    pub fn sleeps(mut self, share: f64, per_second: f64, with_event: f64) -> Self {
        self.0.short_sleeps = count(per_second * WALL);
        self.0.sleeps_with_event = count(with_event * per_second * WALL);
        self.waits(asleep(share / per_second), share)
    }

    /// Makes the thread spend a share of its CPU time in spin loops.
    pub fn spins(mut self, share: f64) -> Self {
        self.0.code = Some(Box::new(Code { samples: 100, spinning: share, ..Code::default() }));
        self
    }

    /// Changes any other figure.
    pub fn with(mut self, change: impl FnOnce(&mut ThreadFacts)) -> Self {
        change(&mut self.0);
        self
    }
}

/// A wait for anything in this state about which no more is known.
pub fn waiting(state: ThreadState) -> Wait {
    Wait { state, object: Object::Unknown }
}

/// A sleep of this length, in seconds.
pub fn asleep(seconds: f64) -> Wait {
    let time = Duration::from_secs_f64(seconds);
    Wait { state: ThreadState::Sleep, object: Object::Time(Some(time)) }
}

/// A wait for one of several descriptors, with a time limit in seconds.
pub fn polling(limit: Option<f64>) -> Wait {
    let limit = limit.map(Duration::from_secs_f64);
    Wait { state: ThreadState::Poll, object: Object::Descriptors(limit) }
}

/// A wait for a primitive at this address.
pub fn futex(primitive: Primitive, address: u64) -> Wait {
    let futex = Futex { address, primitive, is_timed: primitive == Primitive::InterpreterLock };
    Wait { state: futex.state(), object: Object::Futex(futex) }
}

fn process(pid: i32, runtime: Option<Runtime>) -> ProcessFacts {
    ProcessFacts {
        pid,
        command: format!("program-{pid}"),
        runtime,
        io: None,
        libraries: Vec::new(),
        pipes: std::collections::HashSet::default(),
        running: 0.0,
        goroutines: None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn count(number: f64) -> u64 {
    number.round() as u64
}

/// Returns the sum of `number` times of `seconds`, in nanoseconds.
fn total(number: u64, seconds: f64) -> u64 {
    count(number as f64 * seconds * 1e9)
}
