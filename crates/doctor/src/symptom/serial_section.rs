//! A serial section: one thread works while the others wait for it, as in Amdahl's law.
//!
//! Healthy programs that look alike: a program with a single working thread has nothing to share; and
//! a program whose threads are all idle has no work.

use super::{Found, MIN_GAIN, described, names, percent, plural};
use crate::facts::{Facts, ThreadFacts};

/// Share of the time that the one thread must run.
const MIN_RUNNING: f64 = 0.5;
/// CPU time of the other workers, as a share of that of the one thread.
const MIN_OTHERS: f64 = 0.01;
/// Share of the CPU time of the busiest goroutine.
const MIN_ONE_SIDED: f64 = 0.6;
/// Most CPUs that one goroutine seems to use, as far as samples tell.
const MAX_OWN: f64 = 1.1;
/// Mean number of running threads of Go from which goroutines work at the same time.
const MAX_GO_RUNNING: f64 = 1.5;
/// Share of the time in which at least two threads may run.
const MAX_TOGETHER: f64 = 0.5;
/// Number of runs per second of another thread that takes part in the work.
const MIN_RUNS_PER_SECOND: f64 = 2.0;

pub fn find(facts: &Facts) -> Option<Found> {
    if facts.processes.iter().any(|process| process.goroutines.is_some()) {
        return goroutines(facts);
    }
    one_thread(facts)
}

/// Finds a program in Go, one of whose goroutines uses most of the CPU time of one CPU.
fn goroutines(facts: &Facts) -> Option<Found> {
    let (process, goroutines) =
        facts.processes.iter().find_map(|process| Some((process, process.goroutines.as_ref()?)))?;
    // Stacks are sampled in user mode.
    let own = goroutines.share(0) * process.running * (1.0 - facts.system_share());
    let is_alone = (MIN_RUNNING..=MAX_OWN).contains(&own)
        && process.running < MAX_GO_RUNNING
        && goroutines.share(0) >= MIN_ONE_SIDED
        && goroutines.share(1) >= MIN_OTHERS * goroutines.share(0);
    let gain = facts.parallel_gain(2);
    if !is_alone || gain < MIN_GAIN {
        return None;
    }
    let threads = facts.threads.iter().filter(|thread| thread.name.pid == process.pid);
    Some(Found {
        message: format!(
            "A goroutine of {} uses {} of the CPU time, and the next one, {}, {}. Exactly one thread ran \
             for {} of the time.",
            goroutines.name(0),
            percent(goroutines.share(0)),
            goroutines.name(1),
            percent(goroutines.share(1)),
            percent(facts.at_level(1)),
        ),
        gain: Some(gain),
        argument: "the CPU time, divided evenly among the CPUs",
        evidence: vec![
            ("serial_share", facts.at_level(1)),
            ("running_share", own),
            ("others_running_share", process.running - own),
        ],
        threads: names(threads.filter(|thread| thread.running > 0.02)),
        remedy: format!("Divide the work of {} among several goroutines.", goroutines.name(0)),
        command: None,
        unless: "the work of that goroutine cannot be divided",
    })
}

/// Finds a thread that works while others wait for it.
fn one_thread(facts: &Facts) -> Option<Found> {
    let one = facts.workers().next()?;
    let others: Vec<&ThreadFacts> = facts
        .threads
        .iter()
        .filter(|thread| thread.name.tid != one.name.tid && takes_part(facts, one, thread))
        .collect();
    let theirs: f64 = others.iter().map(|thread| thread.running).sum();
    let is_alone = one.running >= MIN_RUNNING
        && theirs >= MIN_OTHERS * one.running
        && facts.from_level(2) <= MAX_TOGETHER;
    if !is_alone || others.is_empty() || theirs > one.running {
        return None;
    }
    let gain = facts.parallel_gain(others.len() + 1);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} runs for {} of the time, and {} {} for it. Exactly one thread ran for {} of the time.",
            described(one),
            percent(one.running),
            others.len(),
            plural(others.len(), "other thread waits", "other threads wait"),
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
