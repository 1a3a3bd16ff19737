//! Oversubscription: the program has more runnable threads than CPUs, and loses time through the
//! switches between them.
//!
//! Healthy programs that look alike: other programs use the CPUs (named as such), and a queue of
//! threads that compute in long slices, which costs little.

use std::collections::BTreeSet;

use contend_record::doctor::{Runtime, ThreadState};

use super::{Found, MIN_GAIN, length, lock_step, names, percent, rate, spinning};
use crate::facts::{Facts, ThreadFacts};

/// Mean number of queued threads for each CPU.
const MIN_QUEUED: f64 = 0.5;
/// Load of other programs, as a share of the CPUs, from which they may be the reason.
const MAX_OTHERS: f64 = 0.2;
/// Number of threads for each CPU from which they are a crowd.
const MIN_CROWD: f64 = 3.0;
/// The same where they may wait for a lock, which fewer threads would relieve less.
const MIN_CROWD_WITH_LOCKS: f64 = 8.0;
/// Longest mean run of a thread of a crowd, in seconds.
const MAX_CROWD_RUN_SECONDS: f64 = 2e-4;
/// Number of times per second that the threads of a crowd begin to run.
const MIN_SWITCHES: f64 = 5_000.0;
/// Mean number of queued threads for each CPU, and number of processes for each, from which the caches suffer.
const LONG_QUEUE: f64 = 6.0;
/// Number of times per second and CPU that threads of a long queue begin to run, from which the caches suffer.
const MIN_LONG_QUEUE_SWITCHES: f64 = 1_000.0;
/// Number of times per second and CPU that threads yield to queued ones.
const MIN_YIELDS: f64 = 2_000.0;
/// Time that a switch takes at most, with the calls in which the threads wait and wake each other, in seconds.
const MAX_SWITCH_SECONDS: f64 = 1.5e-5;
/// Share of the CPU time in the kernel above which switches cost much.
const MIN_SYSTEM: f64 = 0.1;

pub fn find(facts: &Facts) -> Option<Found> {
    // A crowd also loses the time in which threads wait for those that are queued.
    let found = [queued(facts), crowd(facts)].into_iter().flatten();
    found.max_by(|a, b| a.gain.unwrap_or(0.0).total_cmp(&b.gain.unwrap_or(0.0)))
}

/// Finds many more threads than CPUs that each do little work before they wait for the others.
fn crowd(facts: &Facts) -> Option<Found> {
    // A visible lock is contention. Java and Go put threads that wait for one aside, so that it looks
    // like a condition.
    let takes_part = |thread: &&ThreadFacts| {
        !thread.is_helper()
            && thread.running > 0.001
            && (0.0..MAX_CROWD_RUN_SECONDS).contains(&thread.run_length)
            && thread.in_state(ThreadState::Condition) + thread.queued > 0.5
            && thread.in_state(ThreadState::Lock) < 0.1
    };
    let hides_locks = facts.processes.iter().any(|process| {
        matches!(process.runtime, Some(Runtime::Java | Runtime::Go)) && process.running > 0.1
    });
    let min_crowd = if hides_locks { MIN_CROWD_WITH_LOCKS } else { MIN_CROWD };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(takes_part).collect();
    let running: f64 = threads.iter().map(|thread| thread.running).sum();
    let switches: f64 = threads.iter().map(|thread| thread.runs_per_second).sum();
    let is_crowd = threads.len() as f64 >= min_crowd * facts.cpus
        && switches >= MIN_SWITCHES
        && running > 0.7 * facts.running
        && facts.others_share <= MAX_OTHERS;
    if !is_crowd {
        return None;
    }
    let work = running * (1.0 - facts.system_share());
    let gain = (1.0 - work / facts.cpus).clamp(0.0, 0.99);
    if gain < MIN_GAIN {
        return None;
    }
    let run_length =
        threads.iter().map(|thread| thread.run_length).sum::<f64>() / threads.len() as f64;
    let cpus = facts.cpus;
    Some(Found {
        message: format!(
            "{} threads share {cpus:.0} CPUs and wait for each other after {} of work each: the \
             scheduler switches {} times per second.",
            threads.len(),
            length(run_length),
            rate(switches),
        ),
        gain: Some(gain),
        argument: "the CPU time in user mode, divided evenly among the CPUs",
        evidence: vec![
            ("threads", threads.len() as f64),
            ("run_seconds", run_length),
            ("switches_per_second", switches),
            ("system_share", facts.system_share()),
        ],
        threads: names(threads),
        remedy: format!("Use about {cpus:.0} threads: as many as there are CPUs."),
        command: None,
        unless: "each thread must wait for something else",
    })
}

/// Finds more threads than CPUs that are queued, and use CPU time without progress.
fn queued(facts: &Facts) -> Option<Found> {
    let queued = facts.queued / facts.cpus;
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| thread.queued > 0.02).collect();
    let switches: f64 = threads.iter().map(|thread| thread.runs_per_second).sum();
    let is_crowded = threads.len() as f64 > 1.5 * facts.cpus && queued >= MIN_QUEUED;
    // Threads that exchange messages are queued because they wake each other.
    if !is_crowded
        || lock_step::messages(facts).is_some()
        || facts.others_share > MAX_OTHERS
        || facts.running < 0.5 * facts.cpus
    {
        return None;
    }
    // Threads that spin use the CPUs which the others are queued for.
    let spinning =
        threads.iter().map(|thread| thread.spinning()).sum::<f64>() / facts.running.max(1e-9);
    // Threads may be in the kernel for another reason, such as input and output.
    let by_switches = switches * MAX_SWITCH_SECONDS / facts.running.max(f64::MIN_POSITIVE);
    let system = if facts.system_share() >= MIN_SYSTEM {
        facts.system_share().min(by_switches)
    } else {
        0.0
    };
    // Stacks are those of user mode.
    let gain = system + (1.0 - facts.system_share()) * spinning;
    // Threads of one process share what is in the caches, unless they switch often.
    let processes: BTreeSet<i32> = threads.iter().map(|thread| thread.name.pid).collect();
    let is_costly = processes.len() as f64 >= LONG_QUEUE * facts.cpus
        || switches >= MIN_LONG_QUEUE_SWITCHES * facts.cpus;
    let is_long_queue = queued >= LONG_QUEUE && is_costly;
    // A thread that yields while others are queued probably waits for one of them.
    let yielding = threads.iter().filter(|thread| spinning::is_yielding(facts, thread));
    let yields: f64 = yielding.map(|thread| thread.preemptions_per_second).sum();
    let is_yielding = yields >= MIN_YIELDS * facts.cpus;
    if gain < MIN_GAIN && !is_long_queue && !is_yielding {
        return None;
    }
    let gain = Some(gain).filter(|gain| *gain >= MIN_GAIN);
    let cpus = facts.cpus;
    let lost = if is_yielding && spinning.max(system) < MIN_GAIN {
        format!("They give up the CPU {} times per second while they wait.", rate(yields))
    } else if spinning > system {
        format!("{} of the CPU time is spent in loops that wait.", percent(spinning))
    } else {
        format!("{} of the CPU time is spent in the kernel.", percent(facts.system_share()))
    };
    Some(Found {
        message: format!(
            "{} threads share {cpus:.0} CPUs: on average {:.1} are queued, and the scheduler switches \
             {} times per second. {lost}",
            threads.len(),
            facts.queued,
            rate(switches),
        ),
        gain,
        argument: if gain.is_none() && is_yielding {
            "the time that fewer threads save is that of their loops, which is unknown"
        } else if gain.is_none() {
            "the time that fewer threads save depends on the caches, which they share"
        } else {
            "the CPU time in the kernel and in loops that wait, which fewer threads do not need"
        },
        evidence: vec![
            ("threads", threads.len() as f64),
            ("queued_threads", facts.queued),
            ("switches_per_second", switches),
            ("system_share", facts.system_share()),
            ("spinning_share", spinning),
        ],
        threads: names(threads),
        remedy: format!("Use about {cpus:.0} threads: as many as there are CPUs."),
        command: None,
        unless: "the time in the kernel has another reason, such as input and output",
    })
}
