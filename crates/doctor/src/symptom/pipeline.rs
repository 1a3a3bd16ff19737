//! A pipeline, one stage of which does most of the work: the others wait for it at their pipes.
//!
//! Healthy programs that look alike: a stage that is waited for but does not compute, because it waits
//! itself, and stages that compute equally long.

use std::collections::BTreeSet;

use contend_record::doctor::ThreadState;

use super::{Found, MIN_GAIN, names, percent};
use crate::facts::{Facts, ProcessFacts, ThreadFacts};
use crate::processes::PipeEnd;

/// Share of the time that the slow stage must run.
const MIN_RUNNING: f64 = 0.5;
/// Share of the time that another stage must wait for a pipe.
const MIN_WAITING: f64 = 0.3;
/// Share of the time that the slow stage may wait for a pipe.
const MAX_OWN_WAITING: f64 = 0.3;

/// CPU time of its neighbours, as a share of that of a stage that reads no pipe.
const MIN_WORK: f64 = 0.05;

pub fn find(facts: &Facts) -> Option<Found> {
    let slow = facts.processes.iter().max_by(|a, b| a.running.total_cmp(&b.running))?;
    if slow.running < MIN_RUNNING || in_pipes(facts, slow.pid) > MAX_OWN_WAITING {
        return None;
    }
    let waiting: Vec<&ProcessFacts> = facts
        .processes
        .iter()
        .filter(|other| other.pid != slow.pid && shares_pipe(slow, other))
        .filter(|other| in_pipes(facts, other.pid) >= MIN_WAITING && other.running > 0.0)
        .collect();
    // A program that writes its output to `cat`, `tee` or a pager is not a stage of a pipeline.
    let reads = slow.pipes.iter().any(|end| !end.is_writer);
    let work: f64 = waiting.iter().map(|other| other.running).sum();
    let is_stage = reads || work >= MIN_WORK * slow.running;
    let gain = facts.parallel_gain(waiting.len() + 1);
    if waiting.is_empty() || !is_stage || gain < MIN_GAIN {
        return None;
    }
    let pids: BTreeSet<i32> = waiting.iter().map(|other| other.pid).chain([slow.pid]).collect();
    let threads = facts.threads.iter().filter(|thread| pids.contains(&thread.name.pid));
    let longest = waiting.iter().map(|other| in_pipes(facts, other.pid)).fold(0.0, f64::max);
    Some(Found {
        message: format!(
            "{} (process {}) runs for {} of the time, and {} of its neighbours in the pipeline wait for \
             pipes, for up to {} of the time.",
            short(&slow.command),
            slow.pid,
            percent(slow.running),
            waiting.len(),
            percent(longest),
        ),
        gain: Some(gain),
        argument: "the CPU time, divided evenly among the CPUs",
        evidence: vec![("running_share", slow.running), ("waiting_share", longest)],
        threads: names(threads),
        remedy:
            "Make this stage faster, or divide its input among several processes; contend pipe \
                 examines the pipeline and tries changes."
                .to_owned(),
        command: Some(format!("contend pipe --pid {}", slow.pid)),
        unless: "the stage cannot be divided or replaced",
    })
}

/// Returns the share of the time that the threads of a process wait for pipes, at most 1.
fn in_pipes(facts: &Facts, pid: i32) -> f64 {
    let own = facts.threads.iter().filter(|thread| thread.name.pid == pid);
    own.map(|thread: &ThreadFacts| thread.in_state(ThreadState::Pipe)).fold(0.0, f64::max)
}

/// Returns whether one of the processes writes to a pipe that the other one reads.
fn shares_pipe(one: &ProcessFacts, other: &ProcessFacts) -> bool {
    one.pipes.iter().map(PipeEnd::other).any(|end| other.pipes.contains(&end))
}

/// Returns the start of a command line.
fn short(command: &str) -> String {
    const MAX_LENGTH: usize = 40;
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
