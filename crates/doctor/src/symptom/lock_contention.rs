//! Threads that wait for a lock while about one of them runs.
//!
//! The operation and the value in `futex(2)` tell a lock from a condition variable, and the address
//! tells which lock. Runtimes that put waiting threads aside themselves (Java, Go) show only condition
//! variables; there, at least three threads that share the work, each with short waits and about one
//! running, are taken for contention.
//!
//! Healthy programs that look alike: an idle pool on a condition variable, and locks that are held for
//! a small part of the time.

use contend_record::doctor::{Runtime, ThreadState};

use super::{Found, MIN_GAIN, names, percent};
use crate::facts::{Facts, ThreadFacts, busiest_lock};
use crate::wait::Wait;

/// Mean number of threads that wait for the lock, from which it is contended.
const MIN_WAITING: f64 = 0.4;
/// Longest wait of a thread that shares the work, in seconds.
const MAX_WAIT_SECONDS: f64 = 0.05;
/// Mean number of running threads below which a program without visible locks has nothing to do.
const MIN_RUNNING: f64 = 0.6;

pub fn find(facts: &Facts) -> Option<Found> {
    let gain_of = |threads: usize| facts.parallel_gain(threads);
    let waiting: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| thread.waiting(Wait::is_for_lock) > 0.02).collect();
    let in_locks: f64 = waiting.iter().map(|thread| thread.waiting(Wait::is_for_lock)).sum();
    let (threads, is_visible) = if in_locks >= MIN_WAITING && waiting.len() >= 2 {
        (waiting, true)
    } else {
        (hidden(facts)?, false)
    };
    let gain = gain_of(threads.len());
    if gain < MIN_GAIN {
        return None;
    }
    let address = busiest_lock(&facts.threads).filter(|_| is_visible);
    let lock = address.map_or_else(String::new, |(address, ..)| format!(" (at {address:#x})"));
    let blocked: f64 = if is_visible {
        in_locks
    } else {
        threads.iter().map(|thread| thread.in_state(ThreadState::Condition)).sum()
    };
    let how = if is_visible { "wait for a lock" } else { "block each other" };
    let mut evidence = vec![
        ("waiting_threads", blocked),
        ("running_threads", facts.running),
        ("threads", threads.len() as f64),
    ];
    if let Some((_, count, share)) = address {
        evidence.extend([("threads_at_lock", count as f64), ("waiting_at_lock", share)]);
    }
    Some(Found {
        message: format!(
            "{} threads {how}{lock}: on average {blocked:.1} wait while {:.1} run, and at least two \
             ran at the same time for {} of the time.",
            threads.len(),
            facts.running,
            percent(facts.from_level(2)),
        ),
        gain: Some(gain),
        argument: "the CPU time, divided evenly among the CPUs",
        evidence,
        threads: names(threads.iter().copied()),
        remedy:
            "Hold the lock for a shorter time, or divide what it protects: a lock for each part, \
                 or data of each thread that is merged at the end."
                .to_owned(),
        command: None,
        unless: "the protected work cannot be divided",
    })
}

/// Returns the threads that seem to contend for a lock of the runtime.
fn hidden(facts: &Facts) -> Option<Vec<&ThreadFacts>> {
    if !(MIN_RUNNING..1.4).contains(&facts.running) {
        return None;
    }
    let has_hidden_locks = |thread: &&ThreadFacts| {
        matches!(thread.runtime, Some(Runtime::Java | Runtime::Go)) && !thread.is_helper()
    };
    let shares_work = |thread: &&ThreadFacts| {
        thread.running > 0.05
            && thread.in_state(ThreadState::Condition) > 0.2
            && (0.0..MAX_WAIT_SECONDS).contains(&thread.wait_length)
    };
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(has_hidden_locks).filter(shares_work).collect();
    let most = threads.first()?.running;
    let mean = threads.iter().map(|thread| thread.running).sum::<f64>() / threads.len() as f64;
    (threads.len() >= 3 && most < 2.0 * mean).then_some(threads)
}
