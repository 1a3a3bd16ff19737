//! Oversubscription: the program has more runnable threads than CPUs, and loses time through the
//! switches between them.
//!
//! Healthy programs that look alike: other programs use the CPUs (named as such), and a queue of
//! threads that compute in long slices, which costs little.

use super::{Found, MIN_GAIN, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};

/// Mean number of queued threads for each CPU.
const MIN_QUEUED: f64 = 0.5;
/// Load of other programs, as a share of the CPUs, from which they may be the reason.
const MAX_OTHERS: f64 = 0.2;
/// Share of the CPU time in the kernel above which switches cost much.
const MIN_SYSTEM: f64 = 0.1;

pub fn find(facts: &Facts) -> Option<Found> {
    let queued = facts.queued / facts.cpus;
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| thread.queued > 0.02).collect();
    let switches: f64 = threads.iter().map(|thread| thread.runs_per_second).sum();
    let is_crowded = threads.len() as f64 > 1.5 * facts.cpus && queued >= MIN_QUEUED;
    if !is_crowded || facts.others_share > MAX_OTHERS || facts.running < 0.5 * facts.cpus {
        return None;
    }
    let gain = if facts.system_share() >= MIN_SYSTEM { facts.system_share() } else { 0.0 };
    if gain < MIN_GAIN {
        return None;
    }
    let cpus = facts.cpus;
    Some(Found {
        message: format!(
            "{} threads share {cpus:.0} CPUs: on average {:.1} are queued, and the scheduler switches \
             {} times per second. {} of the CPU time is spent in the kernel.",
            threads.len(),
            facts.queued,
            rate(switches),
            percent(facts.system_share()),
        ),
        gain: Some(gain),
        argument: "the CPU time in the kernel, which fewer threads do not need",
        evidence: vec![
            ("threads", threads.len() as f64),
            ("queued_threads", facts.queued),
            ("switches_per_second", switches),
            ("system_share", facts.system_share()),
        ],
        threads: names(threads),
        remedy: format!("Use about {cpus:.0} threads: as many as there are CPUs."),
        command: None,
        unless: "the time in the kernel has another reason, such as input and output",
    })
}
