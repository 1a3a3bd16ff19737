//! Using CPU time to wait: a thread yields the CPU, or loops, until another has done something.
//!
//! A spin loop usually contains the instruction that gives way to the other hardware thread of the core.
//!
//! Healthy programs that look alike: honest computing. A loop without that instruction looks the same
//! from outside.

use contend_record::doctor::Runtime;

use super::{Found, names, percent, plural, rate};
use crate::facts::{Facts, ThreadFacts};

/// Number of times per second that a thread gives up the CPU on its own.
const MIN_YIELDS_PER_SECOND: f64 = 2_000.0;

/// Longest mean time between two of these, in seconds. In a longer one, a thread computes.
const MAX_RUN_SECONDS: f64 = 1e-4;

/// Largest number of its waits, as a share of these.
const MAX_WAITS: f64 = 0.1;

/// Number of threads that it wakes, as a share of these.
const MAX_WAKES: f64 = 0.3;

/// Share of the time for which a thread that yields must run.
const MIN_YIELDING: f64 = 0.2;

/// Share of a thread's CPU time that it must spend in spin loops.
const MIN_SPINNING: f64 = 0.2;

pub fn find(facts: &Facts) -> Option<Found> {
    yields(facts).or_else(|| loops(facts))
}

/// Finds threads that spend much of their CPU time in spin loops.
fn loops(facts: &Facts) -> Option<Found> {
    let spinning = ThreadFacts::spinning;
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| spinning(thread) >= MIN_SPINNING).collect();
    let sum: f64 = threads.iter().map(|thread| spinning(thread)).sum();
    if threads.is_empty() {
        return None;
    }
    // Without the loops, the rest of the CPU time could be spread over the CPUs.
    let gain = (1.0 - (facts.running - sum) / facts.cpus.min(facts.running)).clamp(0.0, 1.0);
    Some(Found {
        message: format!(
            "{} {} in loops that use {} of a CPU on average.",
            threads.len(),
            plural(threads.len(), "thread waits", "threads wait"),
            percent(sum),
        ),
        gain: Some(gain),
        argument: "the CPU time outside of the loops, divided among the CPUs that are in use",
        evidence: vec![("spinning_threads", sum), ("running_threads", facts.running)],
        threads: names(threads),
        remedy:
            "Wait with a semaphore, a condition variable or a futex after a short spin, and give \
                 the threads work that does not depend on each other."
                .to_owned(),
        command: None,
        unless: "the waits are shorter than a context switch",
    })
}

/// Returns whether a thread gives up the CPU again and again without waiting for anything.
pub fn is_yielding(facts: &Facts, thread: &ThreadFacts) -> bool {
    let woken = facts.wakes_by(thread.name.tid) as f64 / facts.wall;
    thread.preemptions_per_second > 0.0
        && thread.running / thread.preemptions_per_second <= MAX_RUN_SECONDS
        // Threads that it has woken preempt a thread that waits now and then, or that gives others work.
        && thread.waits_per_second <= MAX_WAITS * thread.preemptions_per_second
        && woken <= MAX_WAKES * thread.preemptions_per_second
        // The runtime of Go yields on its own.
        && thread.runtime != Some(Runtime::Go)
}

/// Finds threads that yield the CPU thousands of times per second.
fn yields(facts: &Facts) -> Option<Found> {
    let wastes = |thread: &&ThreadFacts| {
        is_yielding(facts, thread)
            && thread.preemptions_per_second >= MIN_YIELDS_PER_SECOND
            && thread.running > MIN_YIELDING
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(wastes).collect();
    if threads.is_empty() {
        return None;
    }
    let per_second: f64 = threads.iter().map(|thread| thread.preemptions_per_second).sum();
    let running: f64 = threads.iter().map(|thread| thread.running).sum();
    Some(Found {
        message: format!(
            "{} {} up the CPU {} times per second without waiting for anything, and {} {} of a CPU for \
             that.",
            threads.len(),
            plural(threads.len(), "thread gives", "threads give"),
            rate(per_second),
            plural(threads.len(), "uses", "use"),
            percent(running),
        ),
        gain: None,
        argument: "the CPU time is free for others, but what the threads wait for is unknown",
        evidence: vec![("yields_per_second", per_second), ("running_threads", running)],
        threads: names(threads),
        remedy: "Wait with a semaphore, a condition variable or a futex after a short spin."
            .to_owned(),
        command: None,
        unless: "the CPUs have nothing else to do, and the wait is shorter than a switch",
    })
}
