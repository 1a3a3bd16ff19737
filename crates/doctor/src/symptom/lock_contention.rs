//! Threads that wait for a lock while about one of them runs.
//!
//! The operation and the value in `futex(2)` tell a lock from a condition variable, and the address
//! tells which lock. Go and Java put waiting threads aside themselves, so their waits look like those
//! for condition variables. For Go, the stacks tell. For Java, at least three threads that share the
//! work, each with short waits and about one running, are taken for contention.
//!
//! Healthy programs that look alike: an idle pool on a condition variable, and locks that are held for
//! a small part of the time.

use std::collections::BTreeMap;

use contend_record::doctor::{Runtime, ThreadState};

use super::{Found, MIN_GAIN, described, lock_step, names, percent};
use crate::facts::{Facts, ThreadFacts, busiest_lock};
use crate::goroutines::Goroutines;
use crate::wait::{Object, Wait};

/// Mean number of threads that wait for the lock, from which it is contended.
const MIN_WAITING: f64 = 0.4;
/// Longest wait of a thread that shares the work, in seconds.
const MAX_WAIT_SECONDS: f64 = 0.05;
/// Share of the CPU time of the two busiest threads from which they work in turn, without the others.
const MAX_PAIR_SHARE: f64 = 0.85;
/// Share of the samples in which the same thread owned the lock, from which it is named.
const MIN_HOLDING: f64 = 0.5;
/// Share of the samples in code of contended locks of Go.
const MIN_LOCKING: f64 = 0.004;
/// Mean number of running threads below which a program without visible locks has nothing to do.
const MIN_RUNNING: f64 = 0.6;

pub fn find(facts: &Facts) -> Option<Found> {
    // Without waits, there are no calls of the kernel for the lock either.
    let work = facts.running * (1.0 - facts.system_share());
    let gain_of = |threads: usize| facts.parallel_gain_of(work, threads);
    let waiting: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| thread.waiting(Wait::is_for_lock) > 0.02).collect();
    let in_locks: f64 = waiting.iter().map(|thread| thread.waiting(Wait::is_for_lock)).sum();
    let (threads, is_visible) = if in_locks >= MIN_WAITING && waiting.len() >= 2 {
        (waiting, true)
    } else if let Some(threads) = goroutines(facts) {
        (threads, false)
    } else {
        (hidden(facts)?, false)
    };
    let gain = gain_of(threads.len());
    if gain < MIN_GAIN {
        return None;
    }
    let address = busiest_lock(&facts.threads).filter(|_| is_visible);
    let lock = address.map_or_else(String::new, |(address, ..)| format!(" (at {address:#x})"));
    let owner = address.and_then(|(address, ..)| facts.owner(address));
    let holder = owner.filter(|(_, share)| *share >= MIN_HOLDING).map(|(thread, share)| {
        format!(" {} held it in {} of the samples.", described(thread), percent(share))
    });
    let holder = holder.unwrap_or_default();
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
             ran at the same time for {} of the time.{holder}",
            threads.len(),
            facts.running,
            percent(facts.from_level(2)),
        ),
        gain: Some(gain),
        argument: "the CPU time in user mode, divided evenly among the CPUs",
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

/// Returns the threads of a program in Go that execute code of contended locks.
fn goroutines(facts: &Facts) -> Option<Vec<&ThreadFacts>> {
    let process = facts.processes.iter().find(|process| {
        let is_locking = |goroutines: &Goroutines| {
            goroutines.locking >= MIN_LOCKING && goroutines.locking > goroutines.channels
        };
        (MIN_RUNNING..1.5).contains(&process.running)
            && process.goroutines.as_ref().is_some_and(is_locking)
    })?;
    let is_own = |thread: &&ThreadFacts| {
        thread.name.pid == process.pid && thread.running > 0.02 && !thread.is_helper()
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(is_own).collect();
    (threads.len() >= 2).then_some(threads)
}

/// Returns the threads that seem to contend for a lock which looks like a condition variable: one of the
/// runtime (Java) or a semaphore.
fn hidden(facts: &Facts) -> Option<Vec<&ThreadFacts>> {
    if !(MIN_RUNNING..1.4).contains(&facts.running) || lock_step::ring(facts).is_some() {
        return None;
    }
    let shares_work = |thread: &&ThreadFacts| {
        // The goroutines of Go are judged by their stacks.
        !thread.is_helper()
            && thread.runtime != Some(Runtime::Go)
            && thread.running > 0.05
            && thread.in_state(ThreadState::Condition) > 0.2
            && (0.0..MAX_WAIT_SECONDS).contains(&thread.wait_length)
    };
    let mut groups: BTreeMap<Group, Vec<&ThreadFacts>> = BTreeMap::new();
    for thread in facts.threads.iter().filter(shares_work) {
        groups.entry(Group::of(thread)).or_default().push(thread);
    }
    groups.into_values().find(|threads| {
        let sum: f64 = threads.iter().map(|thread| thread.running).sum();
        let two: f64 = threads.iter().take(2).map(|thread| thread.running).sum();
        threads.len() >= 3 && two < MAX_PAIR_SHARE * sum && sum > 0.8 * facts.running
    })
}

/// Threads that may contend for the same lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Those of one process, whose runtime puts waiting threads aside.
    Process(i32),
    /// Those that wait on words of memory at the same address, which forked processes may share.
    Address(u64),
}

impl Group {
    fn of(thread: &ThreadFacts) -> Self {
        let address = thread.waits.iter().find_map(|(wait, _)| match wait.object {
            Object::Futex(futex) => Some(futex.address),
            _ => None,
        });
        match (thread.runtime, address) {
            (Some(Runtime::Java), _) | (_, None) => Self::Process(thread.name.pid),
            (_, Some(address)) => Self::Address(address),
        }
    }
}
