//! A serial section: one thread works while the others wait for it, as in Amdahl's law.
//!
//! Healthy programs that look alike: a program with a single working thread has nothing to share; and
//! a program whose threads are all idle has no work.

use super::{Found, MIN_GAIN, described, names, percent};
use crate::facts::{Facts, ThreadFacts};

/// Share of the time that the one thread must run.
const MIN_RUNNING: f64 = 0.5;
/// CPU time of the other workers, as a share of that of the one thread.
const MIN_OTHERS: f64 = 0.01;
/// Number of runs per second of another thread that takes part in the work.
const MIN_RUNS_PER_SECOND: f64 = 2.0;

pub fn find(facts: &Facts) -> Option<Found> {
    let one = facts.workers().next()?;
    let others: Vec<&ThreadFacts> = facts
        .threads
        .iter()
        .filter(|thread| thread.name.tid != one.name.tid && takes_part(facts, one, thread))
        .collect();
    let theirs: f64 = others.iter().map(|thread| thread.running).sum();
    let is_alone = one.running >= MIN_RUNNING && theirs >= MIN_OTHERS * one.running;
    if !is_alone || others.is_empty() || theirs > one.running {
        return None;
    }
    let gain = facts.parallel_gain(others.len() + 1);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} runs for {} of the time, and {} other threads wait for it. Exactly one thread ran for \
             {} of the time.",
            described(one),
            percent(one.running),
            others.len(),
            percent(facts.at_level(1)),
        ),
        gain: Some(gain),
        argument: "the CPU time, divided evenly among the CPUs",
        evidence: vec![
            ("serial_share", facts.at_level(1)),
            ("running_share", one.running),
            ("others_running_share", theirs),
        ],
        threads: names(std::iter::once(one).chain(others.iter().copied())),
        remedy: format!(
            "Divide the work of {} among the threads that wait for it.",
            described(one)
        ),
        command: None,
        unless: "the work of that thread cannot be divided",
    })
}

/// Returns whether a thread works on what `one` gives it: it runs regularly, and waits for long.
fn takes_part(facts: &Facts, one: &ThreadFacts, thread: &ThreadFacts) -> bool {
    let wakes = facts.wakes(one.name.tid, thread.name.tid).count as f64;
    let is_woken = !facts.has_switches || wakes >= 0.2 * thread.runs_per_second * facts.wall;
    !thread.is_helper()
        && thread.runs_per_second >= MIN_RUNS_PER_SECOND
        && thread.running < 0.9 * one.running
        && is_woken
}
