//! Sleeping for a fixed time and looking whether something has happened.
//!
//! A thread sleeps for a short time, repeatedly. The event that it waits for happens while it
//! sleeps, and the thread that caused the event then waits, too, until the sleep is over.
//!
//! Healthy programs that look alike: a timer that does work of its own, because nothing waits for it;
//! a client that thinks between requests, because it waits for the answer itself, and nothing happens
//! while it sleeps.

use contend_record::doctor::Cause;

use super::{Found, MIN_GAIN, described, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};
use crate::timeline::SHORT_SLEEP;

/// Number of sleeps per second from which a thread polls.
const MIN_SLEEPS_PER_SECOND: f64 = 5.0;
/// Share of the sleeps in which another thread must begin to run.
const MIN_EVENT_SHARE: f64 = 0.3;
/// Share of a thread's runs after which it waits for an answer, rather than polls.
const MAX_ANSWER_SHARE: f64 = 0.25;
/// Share of the sleeps after which the sleeper must wake the other thread.
const MIN_WOKEN_SHARE: f64 = 0.25;
/// Longest sleep, in seconds, of a thread that polls and wakes others when it finds something. A timer
/// that gives work to others has longer ones.
const MAX_POLL_SECONDS: f64 = 3e-3;
/// Share of a thread's time that it must sleep.
const MIN_SLEEPING: f64 = 0.3;

pub fn find(facts: &Facts) -> Option<Found> {
    let lost = facts.by(Cause::Sleep);
    if lost < MIN_GAIN {
        return None;
    }
    let sleepers: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| polls(facts, thread)).collect();
    let first = sleepers.first()?;
    let period = period(first);
    let sleeps: f64 = sleepers.iter().map(|thread| sleeps_per_second(facts, thread)).sum();
    Some(Found {
        message: format!(
            "{} sleeps {} times per second, for {} each, and other threads run in the \
             meantime. No thread of the program ran for {} of the time because of that.",
            described(first),
            rate(sleeps_per_second(facts, first)),
            length(period),
            percent(lost),
        ),
        gain: Some(lost),
        argument: "the time in which no thread ran and at least one was in a short sleep",
        evidence: vec![
            ("sleeps_per_second", sleeps),
            ("sleep_seconds", period),
            ("lost_share", lost),
        ],
        threads: names(sleepers.iter().copied()),
        remedy:
            "Wait for the event itself: a semaphore, a condition variable, a channel, a pipe, or \
                 a descriptor in poll, instead of a sleep."
                .to_owned(),
        command: None,
        unless: "the sleeps are intended, for instance to limit a rate",
    })
}

fn sleeps_per_second(facts: &Facts, thread: &ThreadFacts) -> f64 {
    if facts.has_switches {
        thread.short_sleeps as f64 / facts.wall
    } else {
        thread.runs_per_second
    }
}

/// Returns the usual length of a thread's sleeps in seconds: as requested or, if that is unknown, as
/// measured.
fn period(thread: &ThreadFacts) -> f64 {
    let requested = thread
        .waits
        .iter()
        .find_map(|(wait, _)| wait.is_timer(thread.runtime).then(|| wait.timeout()).flatten());
    requested.map_or(thread.wait_length, |time| time.as_secs_f64())
}

fn polls(facts: &Facts, thread: &ThreadFacts) -> bool {
    let sleeping = thread.in_timers();
    let is_frequent = sleeps_per_second(facts, thread) >= MIN_SLEEPS_PER_SECOND;
    let is_short = period(thread) <= SHORT_SLEEP.as_secs_f64();
    if sleeping < MIN_SLEEPING || !is_frequent || !is_short || thread.is_helper() {
        return false;
    }
    let id = thread.name.tid;
    let others = || facts.threads.iter().filter(|other| other.name.tid != id);
    if !facts.has_switches {
        // Who wakes whom is unknown; another thread must at least run as often.
        return others().any(|other| other.runs_per_second >= 0.2 * thread.runs_per_second);
    }
    let events = thread.sleeps_with_event as f64 / thread.short_sleeps.max(1) as f64;
    if events < MIN_EVENT_SHARE {
        return false;
    }
    // A sleeper that is woken by another thread waits for an answer, and thinks in between.
    let runs = thread.runs_per_second * facts.wall;
    let answers: f64 = others().map(|other| facts.wakes(other.name.tid, id).count as f64).sum();
    if answers > MAX_ANSWER_SHARE * runs {
        return false;
    }
    let also_sleeps = |other: &ThreadFacts| other.in_timers() >= MIN_SLEEPING;
    // A thread that wakes others after each sleep may be a timer that gives them work.
    let is_woken = |other: &ThreadFacts| {
        let woken = facts.wakes(id, other.name.tid).count as f64;
        let others_runs = other.runs_per_second * facts.wall;
        woken > 0.0 && woken > MIN_WOKEN_SHARE * others_runs.min(thread.short_sleeps as f64)
    };
    let is_timer = period(thread) > MAX_POLL_SECONDS;
    others().any(|other| also_sleeps(other) || !is_timer && is_woken(other))
}
