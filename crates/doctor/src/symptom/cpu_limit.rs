//! A quota or an affinity mask that stops threads which are ready.
//!
//! Healthy programs that look alike: one thread on one CPU, and a quota that throttles without loss,
//! because nothing was ready.

use super::{Found, MIN_GAIN, names, percent, plural};
use crate::facts::{Facts, ThreadFacts};

/// Mean number of queued threads from which CPUs are missing.
const MIN_QUEUED: f64 = 0.3;
/// Load of other programs, as a share of the CPUs, from which they may be the reason.
const MAX_OTHERS: f64 = 0.2;
/// Share of the allowed CPUs from which the program itself uses them, whatever the others do.
const MIN_USED: f64 = 0.9;

pub fn find(facts: &Facts) -> Option<Found> {
    let is_throttled = facts.is_throttled();
    let is_pinned = facts.cpus < facts.cpus_online - 0.5;
    let is_others_fault =
        !is_throttled && facts.others_share > MAX_OTHERS && facts.running < MIN_USED * facts.cpus;
    if !(is_throttled || is_pinned) || facts.queued < MIN_QUEUED || is_others_fault {
        return None;
    }
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| thread.queued > 0.02).collect();
    // Every ready thread would run, as far as the machine has free CPUs.
    let free = facts.cpus_online * (1.0 - facts.others_share);
    let wanted = (facts.running + facts.queued).min(free).max(facts.running);
    let gain = 1.0 - facts.running / wanted.max(f64::MIN_POSITIVE);
    if gain < MIN_GAIN || threads.len() < 2 && !is_throttled {
        return None;
    }
    let limit = if is_throttled {
        format!(
            "a quota of {:.1} CPUs stopped the program in {} of its periods",
            facts.cpus,
            percent(facts.throttled)
        )
    } else {
        format!("the program may use {:.0} of {:.0} CPUs", facts.cpus, facts.cpus_online)
    };
    Some(Found {
        message: format!(
            "{} {} ready, but {limit}: on average {:.1} ran and {:.1} were queued.",
            threads.len(),
            plural(threads.len(), "thread was", "threads were"),
            facts.running,
            facts.queued,
        ),
        gain: Some(gain),
        argument: "all ready threads run, as far as the machine has free CPUs",
        evidence: vec![
            ("queued_threads", facts.queued),
            ("throttled_periods_share", facts.throttled),
            ("cpus", facts.cpus),
            ("cpus_online", facts.cpus_online),
        ],
        threads: names(threads),
        remedy: if is_throttled {
            "Raise the quota, or use fewer threads.".to_owned()
        } else {
            "Allow more CPUs (taskset, cpuset), or use fewer threads.".to_owned()
        },
        command: None,
        unless: "the limit is intended",
    })
}
