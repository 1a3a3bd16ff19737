//! Uneven work: some threads end or idle long before others, so that CPUs are idle at the end.
//!
//! Healthy programs that look alike: even work, and a pool whose work is over.

use super::{Found, MIN_GAIN, described, length, names, percent};
use crate::facts::Facts;

/// Share of the observation in which at least two threads must have run.
const MIN_TOGETHER: f64 = 0.1;

pub fn find(facts: &Facts) -> Option<Found> {
    let (id, alone) = facts.longest_alone?;
    let straggler = facts.thread(id)?;
    let share = alone / facts.wall;
    // While one thread works alone, all other CPUs are idle.
    let width = facts.cpus.min(facts.workers().count().max(2) as f64);
    let gain = share * (1.0 - 1.0 / width);
    if gain < MIN_GAIN || facts.from_level(2) < MIN_TOGETHER {
        return None;
    }
    Some(Found {
        message: format!(
            "{} worked alone for {} on end ({} of the time), while the other threads had ended or had \
             nothing to do. Before, at least two ran for {} of the time.",
            described(straggler),
            length(alone),
            percent(share),
            percent(facts.from_level(2)),
        ),
        gain: Some(gain),
        argument: "the time alone, divided among the CPUs",
        evidence: vec![("alone_seconds", alone), ("together_share", facts.from_level(2))],
        threads: names([straggler]),
        remedy:
            "Divide the work into smaller pieces that free threads take from a common queue, or \
                 start the largest piece first."
                .to_owned(),
        command: None,
        unless: "the rest of the work cannot be divided",
    })
}
