//! Using CPU time to wait: a thread yields the CPU, or loops, until another has done something.
//!
//! Healthy programs that look alike: honest computing. A loop that only reads memory looks the same from
//! outside.

use super::{Found, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};

/// Number of times per second that a thread gives up the CPU on its own.
const MIN_YIELDS_PER_SECOND: f64 = 2_000.0;

pub fn find(facts: &Facts) -> Option<Found> {
    let yields = |thread: &&ThreadFacts| {
        thread.preemptions_per_second >= MIN_YIELDS_PER_SECOND && thread.running > 0.2
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(yields).collect();
    if threads.is_empty() {
        return None;
    }
    let per_second: f64 = threads.iter().map(|thread| thread.preemptions_per_second).sum();
    let running: f64 = threads.iter().map(|thread| thread.running).sum();
    Some(Found {
        message: format!(
            "{} threads give up the CPU {} times per second without waiting for anything, and use {} of \
             a CPU for that.",
            threads.len(),
            rate(per_second),
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
