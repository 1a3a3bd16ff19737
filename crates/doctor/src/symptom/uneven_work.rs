//! Uneven work: some threads end or idle long before others, so that CPUs are idle at the end; or too few
//! workers, so that tasks wait for each other.
//!
//! Healthy programs that look alike: even work, and a pool whose work is over.

use contend_record::doctor::{Runtime, ThreadState};

use super::{Found, MIN_GAIN, described, length, names, percent, plural};
use crate::facts::{Facts, ThreadFacts};

/// Number of executions of a program from which they are a list of tasks.
const MIN_EXECUTIONS: u64 = 4;
/// Mean CPU time of an execution that computes, in seconds.
const MIN_RUN_SECONDS: f64 = 0.01;
/// Share of the time in which exactly one thread must run.
const MIN_ALONE: f64 = 0.6;
/// Share of the time in which two threads may run.
const MAX_TOGETHER: f64 = 0.2;
/// Share of the time for which the main thread must wait for its pool, and a thread of the pool run.
const MIN_WAITING: f64 = 0.7;
/// Share of the observation in which at least two threads must have run.
const MIN_TOGETHER: f64 = 0.05;

pub fn find(facts: &Facts) -> Option<Found> {
    one_at_a_time(facts).or_else(|| pool(facts)).or_else(|| straggler(facts))
}

/// Finds many executions of one program in turn that compute on one CPU.
fn one_at_a_time(facts: &Facts) -> Option<Found> {
    let (name, all) = facts.programs.iter().max_by_key(|(_, all)| all.busy_run_nanos)?;
    let count = all.busy.max(1) as f64;
    let run = all.busy_run_nanos as f64 / 1e9;
    let is_alone = facts.at_level(1) >= MIN_ALONE && facts.from_level(2) <= MAX_TOGETHER;
    let gain = facts.parallel_gain(usize::try_from(all.busy).unwrap_or(usize::MAX));
    if all.busy < MIN_EXECUTIONS
        || run < MIN_ALONE * facts.wall
        || run / count < MIN_RUN_SECONDS
        || !is_alone
        || gain < MIN_GAIN
    {
        return None;
    }
    Some(Found {
        message: format!(
            "{name} is executed {count:.0} times in turn, for {} of CPU time each. Exactly \
             one thread ran for {} of the time.",
            length(run / count),
            percent(facts.at_level(1)),
        ),
        gain: Some(gain),
        argument: "the CPU time, divided evenly among the CPUs",
        evidence: vec![
            ("executions", count),
            ("cpu_seconds", run / count),
            ("serial_share", facts.at_level(1)),
        ],
        threads: Vec::new(),
        remedy: format!(
            "Run {:.0} at a time: xargs -P {:.0}, make -j {:.0} or parallel.",
            facts.cpus, facts.cpus, facts.cpus
        ),
        command: None,
        unless: "each execution needs the result of the one before",
    })
}

/// Finds a pool of Node.js with fewer threads than CPUs, which are always busy while the main thread
/// waits.
fn pool(facts: &Facts) -> Option<Found> {
    let is_main = |thread: &&ThreadFacts| {
        thread.runtime == Some(Runtime::Node) && thread.name.tid == thread.name.pid
    };
    let waits = |thread: &&ThreadFacts| thread.in_state(ThreadState::Poll) > MIN_WAITING;
    let main = facts.threads.iter().filter(is_main).find(waits)?;
    let is_busy = |thread: &&ThreadFacts| {
        thread.name.pid == main.name.pid
            && thread.running + thread.queued > MIN_WAITING
            && !thread.is_helper()
    };
    let busy: Vec<&ThreadFacts> = facts.threads.iter().filter(is_busy).collect();
    let gain = facts.parallel_gain(usize::MAX);
    if busy.is_empty() || busy.len() as f64 > facts.cpus - 1.0 || gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} {} busy for {} of the time, while the main thread waits and CPUs are idle.",
            busy.len(),
            plural(
                busy.len(),
                "thread of the pool, or worker, is",
                "threads of the pool, or workers, are"
            ),
            percent(busy.iter().map(|thread| thread.running).sum::<f64>() / busy.len() as f64),
        ),
        gain: Some(gain),
        argument: "the CPU time, divided evenly among the CPUs",
        evidence: vec![("busy_threads", busy.len() as f64), ("cpus", facts.cpus)],
        threads: names(busy.iter().copied()),
        remedy: format!(
            "Give the pool more threads: UV_THREADPOOL_SIZE={:.0}, or more workers.",
            facts.cpus
        ),
        command: None,
        unless: "there is only one task at a time",
    })
}

/// Finds a thread that works alone for long, after several have worked together.
fn straggler(facts: &Facts) -> Option<Found> {
    let (id, alone) = facts.longest_alone?;
    let straggler = facts.thread(id)?;
    let share = alone / facts.wall;
    // While one thread works alone, all other CPUs are idle.
    let width = facts.cpus.min(facts.workers().count().max(2) as f64);
    let gain = share * (1.0 - 1.0 / width);
    if gain < MIN_GAIN || facts.together_before < MIN_TOGETHER {
        return None;
    }
    Some(Found {
        message: format!(
            "{} worked alone for {} on end ({} of the time), while the other threads had ended or had \
             nothing to do. Before, at least two ran for {} of the time.",
            described(straggler),
            length(alone),
            percent(share),
            percent(facts.together_before),
        ),
        gain: Some(gain),
        argument: "the time alone, divided among the CPUs",
        evidence: vec![("alone_seconds", alone), ("together_share", facts.together_before)],
        threads: names([straggler]),
        remedy:
            "Divide the work into smaller pieces that free threads take from a common queue, or \
                 start the largest piece first."
                .to_owned(),
        command: None,
        unless: "the rest of the work cannot be divided",
    })
}
