//! The lock of an interpreter: several threads have work, but only one can run code of the language.
//!
//! A thread that waits for the lock of `CPython` waits in steps of 5 ms, after which it asks for the
//! lock.
//!
//! Healthy programs that look alike: threads that wait for input, and threads in code that releases
//! the lock; there, the threads together use more than one CPU.

use contend_record::doctor::{Runtime, ThreadState};

use super::{Found, MIN_GAIN, lock_step, names, percent};
use crate::facts::{Facts, ThreadFacts};
use crate::futex::Primitive;
use crate::wait::{Object, Wait};

/// CPUs that the threads of one process use together, from which the lock does not limit them.
const MAX_RUNNING: f64 = 1.25;
/// Share of the time that a thread runs, below which it computes little.
const MAX_LIGHT: f64 = 0.15;
/// Share of the time that a thread which computes little waits for the lock, from which it matters.
const MIN_LIGHT_WAITING: f64 = 0.2;
/// Mean number of waiting threads from which the lock is contended.
const MIN_WAITING: f64 = 0.3;

pub fn find(facts: &Facts) -> Option<Found> {
    // Threads that serve a pool of processes wait for its messages.
    if lock_step::messages(facts).is_some() {
        return None;
    }
    let process = facts.processes.iter().find(|process| {
        let threads = || facts.threads.iter().filter(|thread| thread.name.pid == process.pid);
        let running: f64 = threads().map(|thread| thread.running).sum();
        let waiting: f64 = threads().map(waiting).sum();
        matches!(process.runtime, Some(Runtime::Python | Runtime::Ruby))
            && (0.5..MAX_RUNNING).contains(&running)
            && waiting >= MIN_WAITING
            && threads().filter(|thread| thread.running > 0.02).count() >= 2
    })?;
    let threads: Vec<&ThreadFacts> = facts
        .threads
        .iter()
        .filter(|thread| {
            let takes_part = thread.running > 0.02 || waiting(thread) > MIN_LIGHT_WAITING;
            thread.name.pid == process.pid && takes_part
        })
        .collect();
    let waiting: f64 = threads.iter().map(|thread| waiting(thread)).sum();
    let running: f64 = threads.iter().map(|thread| thread.running).sum();
    // A thread that computes little, such as one that answers requests, would not wait at all.
    let is_light = |thread: &&&ThreadFacts| thread.running < MAX_LIGHT;
    let delay = |thread: &&ThreadFacts| self::waiting(thread) + thread.queued;
    let delayed = threads.iter().filter(is_light).map(delay).fold(0.0, f64::max).min(1.0);
    let spread = facts.parallel_gain(threads.len());
    let gain = spread.max(delayed);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} threads of process {} share one interpreter lock: on average {waiting:.1} wait for it \
             while {running:.1} run. At least two ran at the same time for {} of the time.",
            threads.len(),
            process.pid,
            percent(facts.from_level(2)),
        ),
        gain: Some(gain),
        argument: if delayed > spread {
            "the time for which a thread that computes little waits for the lock"
        } else {
            "the CPU time, divided evenly among the CPUs"
        },
        evidence: vec![
            ("waiting_threads", waiting),
            ("running_threads", running),
            ("threads", threads.len() as f64),
        ],
        threads: names(threads),
        remedy: "Use processes instead of threads (multiprocessing, ProcessPoolExecutor), a build \
                 without the lock, or a library that releases it while it computes."
            .to_owned(),
        command: None,
        unless: "the threads mostly wait for input, and compute little",
    })
}

/// Returns the share of the time that a thread waits for the lock of its interpreter. Where system
/// calls cannot be read, all its waits on words of memory count.
fn waiting(thread: &ThreadFacts) -> f64 {
    let is_interpreter_lock = |wait: &Wait| match wait.object {
        Object::Futex(futex) => futex.primitive == Primitive::InterpreterLock,
        Object::Unknown => wait.state == ThreadState::Condition,
        _ => false,
    };
    thread.waiting(is_interpreter_lock)
}
