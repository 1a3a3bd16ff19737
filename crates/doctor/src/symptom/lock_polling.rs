//! Asking repeatedly whether a file lock is free or a descriptor is ready, with a short wait
//! between.
//!
//! Healthy programs that look alike: a server that waits for clients without a time limit, or with one
//! that rarely expires.

use contend_record::doctor::{Cause, ThreadState};

use super::{Found, MIN_GAIN, described, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};
use crate::wait::{Object, Wait};

/// Longest time limit of a poll that counts as short, in seconds.
const MAX_LIMIT_SECONDS: f64 = 0.05;
/// Number of polls per second.
const MIN_POLLS_PER_SECOND: f64 = 10.0;

pub fn find(facts: &Facts) -> Option<Found> {
    poll(facts)
}

/// Finds a thread whose polls mostly end because their short time limit expires.
fn poll(facts: &Facts) -> Option<Found> {
    let limit = |thread: &ThreadFacts| {
        let poll =
            thread.waits.iter().find(|(wait, _)| matches!(wait.object, Object::Descriptors(_)));
        poll.and_then(|(wait, _)| wait.timeout()).map(|time| time.as_secs_f64())
    };
    let is_polling = |thread: &&ThreadFacts| {
        limit(thread).is_some_and(|limit| {
            limit > 0.0
                && limit <= MAX_LIMIT_SECONDS
                && thread.wait_length > 0.7 * limit
                && thread.runs_per_second >= MIN_POLLS_PER_SECOND
                && thread.in_state(ThreadState::Poll) > 0.3
        })
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(is_polling).collect();
    let first = *threads.first()?;
    let others_wait = facts.threads.iter().any(|other| {
        other.name.tid != first.name.tid && facts.wakes(first.name.tid, other.name.tid).count > 10
    });
    let lost = facts.by(Cause::Idle) + facts.by(Cause::Sleep);
    if !others_wait || lost < MIN_GAIN {
        return None;
    }
    let limit = limit(first)?;
    let polling = first.waiting(|wait: &Wait| wait.state == ThreadState::Poll);
    Some(Found {
        message: format!(
            "{} polls {} times per second with a time limit of {}, which mostly expires. No thread ran \
             for {} of the time.",
            described(first),
            rate(first.runs_per_second),
            length(limit),
            percent(lost),
        ),
        gain: Some(lost.min(polling)),
        argument: "the time in which no thread ran and this one polled",
        evidence: vec![("polls_per_second", first.runs_per_second), ("limit_seconds", limit)],
        threads: names(threads),
        remedy: "Wait for all sources of events in one call, without a time limit.".to_owned(),
        command: None,
        unless: "the program has nothing to do in this time",
    })
}
