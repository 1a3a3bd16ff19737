//! Asking repeatedly whether a file lock is free or a descriptor is ready, with a short wait
//! between.
//!
//! Healthy programs that look alike: a server that waits for clients without a time limit, or with one
//! that rarely expires.

use contend_record::doctor::{Cause, Runtime, ThreadState};

use super::{Found, MIN_GAIN, described, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};
use crate::wait::{Object, Wait};

/// Longest time limit of a poll that counts as short, in seconds.
const MAX_LIMIT_SECONDS: f64 = 0.05;
/// Largest sum of the time limits, as a share of the time: with more polls, some end before their limit.
const MAX_EXPIRED: f64 = 1.2;
/// Number of polls per second.
const MIN_POLLS_PER_SECOND: f64 = 10.0;

/// Share of the readings in which a file lock must be held.
const MIN_LOCKED: f64 = 0.1;
/// Share of the readings in which a file lock must be held, from which a single thread that retries counts.
const MIN_HELD: f64 = 0.8;
/// Mean number of threads that must run in that case.
const MIN_WORKING: f64 = 0.6;
/// Part of the time asleep that is saved: threads still wait while another one holds the lock. Found with
/// the programs of `bench-doctor`.
const SAVED_SHARE: f64 = 0.75;
/// Number of executions of `flock`, as a share of the sleeps.
const MIN_CALLS: f64 = 0.3;
/// Share of a thread's time that it must sleep, and the same for each of several.
const MIN_SLEEPING: f64 = 0.2;
const MIN_SLEEPING_EACH: f64 = 0.1;

pub fn find(facts: &Facts) -> Option<Found> {
    file_lock(facts).or_else(|| held(facts)).or_else(|| programs(facts)).or_else(|| poll(facts))
}

/// Finds scripts that call `flock` repeatedly, with a sleep between.
fn programs(facts: &Facts) -> Option<Found> {
    let sleeps = facts.sleep_programs();
    let (_, locks) = facts.programs.iter().find(|(name, _)| &**name == "flock")?;
    // At least two processes take part, each of which sleeps for half of the sum.
    let asleep = 0.5 * sleeps.life_nanos as f64 / 1e9 / facts.wall;
    let idle = 1.0 - facts.running / facts.cpus;
    let lost = (SAVED_SHARE * asleep).min(idle).max(facts.by(Cause::Sleep)).min(1.0);
    let is_retry = sleeps.count as f64 >= MIN_POLLS_PER_SECOND * facts.wall
        && locks.count as f64 >= MIN_CALLS * sleeps.count as f64;
    if !is_retry || lost < MIN_GAIN {
        return None;
    }
    let per_second = sleeps.count as f64 / facts.wall;
    Some(Found {
        message: format!(
            "flock is executed {} times per second and sleep {} times: the script seems to retry until \
             a lock is free. That costs about {} of the time.",
            rate(locks.count as f64 / facts.wall),
            rate(per_second),
            percent(lost),
        ),
        gain: Some(lost),
        argument: "three quarters of the time asleep, as far as the CPUs are not in use",
        evidence: vec![
            ("sleeps_per_second", per_second),
            ("locks_per_second", locks.count as f64 / facts.wall),
            ("lost_share", lost),
        ],
        threads: Vec::new(),
        remedy: "Wait for the lock in flock itself: leave out -n, or give it a time limit with -w."
            .to_owned(),
        command: None,
        unless: "the sleeps have nothing to do with the lock",
    })
}

/// Finds several threads that sleep for short times while one of them holds a file lock.
fn file_lock(facts: &Facts) -> Option<Found> {
    let retries = |thread: &&ThreadFacts| {
        thread.in_timers() >= MIN_SLEEPING_EACH
            && thread.short_sleeps as f64 >= MIN_POLLS_PER_SECOND * facts.wall
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(retries).collect();
    if facts.file_lock_share < MIN_LOCKED || threads.len() < 2 {
        return None;
    }
    // With a lock that wakes the next one at once, no thread would sleep; but the program takes at least as
    // long as the lock is held, as its busiest thread runs, and as its work takes on all CPUs.
    let count = threads.len() as f64;
    let asleep = threads.iter().map(|thread| thread.in_timers()).sum::<f64>() / count;
    let busiest = threads.iter().map(|thread| thread.running).fold(0.0, f64::max);
    let least = facts.file_lock_share.max(busiest).max(facts.running / facts.cpus);
    let lost = (SAVED_SHARE * asleep).min(1.0 - least).max(facts.by(Cause::Sleep)).min(1.0);
    if lost < MIN_GAIN {
        return None;
    }
    let sleeps: f64 = threads.iter().map(|thread| thread.short_sleeps as f64).sum();
    Some(Found {
        message: format!(
            "{} threads sleep {} times per second in all, while one of them holds a file lock ({} of the \
             readings): they seem to retry until the lock is free. That costs about {} of the time.",
            threads.len(),
            rate(sleeps / facts.wall),
            percent(facts.file_lock_share),
            percent(lost),
        ),
        gain: Some(lost),
        argument: "three quarters of the time asleep, as far as neither the lock nor the CPUs are in use",
        evidence: vec![
            ("sleeps_per_second", sleeps / facts.wall),
            ("locked_share", facts.file_lock_share),
            ("lost_share", lost),
        ],
        threads: names(threads),
        remedy: "Wait for the lock in the call that takes it (flock without LOCK_NB, F_SETLKW), or hold \
                 it for a shorter time."
            .to_owned(),
        command: None,
        unless: "the sleeps have nothing to do with the lock",
    })
}

/// Finds a thread that retries until a file lock is free, which others hold nearly always: they work under
/// the lock, so that it keeps a second CPU from being used.
fn held(facts: &Facts) -> Option<Found> {
    let retries = |thread: &&ThreadFacts| {
        let asleep = thread.in_timers();
        asleep >= MIN_SLEEPING
            && thread.short_sleeps as f64 >= MIN_POLLS_PER_SECOND * asleep * facts.wall
    };
    let thread = facts.threads.iter().find(retries)?;
    let gain = facts.parallel_gain_of(facts.running, 2);
    // If hardly any thread runs, the holder waits, such as for a disk.
    if facts.file_lock_share < MIN_HELD || facts.running < MIN_WORKING || gain < MIN_GAIN {
        return None;
    }
    let per_second = thread.short_sleeps as f64 / facts.wall;
    Some(Found {
        message: format!(
            "{} sleeps {} times per second, while another process holds a file lock ({} of the \
             readings): it seems to retry until the lock is free. On average, {:.1} threads run.",
            described(thread),
            rate(per_second),
            percent(facts.file_lock_share),
            facts.running,
        ),
        gain: Some(gain),
        argument: "the CPU time, divided between two CPUs, if most work needs no lock",
        evidence: vec![
            ("sleeps_per_second", per_second),
            ("locked_share", facts.file_lock_share),
            ("running_threads", facts.running),
        ],
        threads: names([thread]),
        remedy: "Hold the lock for a shorter time: compute before it is taken, and write several results \
                 at once."
            .to_owned(),
        command: None,
        unless: "the work must be done under the lock",
    })
}

/// Finds a thread whose polls mostly end because their short time limit expires.
fn poll(facts: &Facts) -> Option<Found> {
    let limit = |thread: &ThreadFacts| {
        let poll =
            thread.waits.iter().find(|(wait, _)| matches!(wait.object, Object::Descriptors(_)));
        poll.and_then(|(wait, _)| wait.timeout()).map(|time| time.as_secs_f64())
    };
    // These runtimes wait for their timers in a poll.
    let has_timers =
        |thread: &ThreadFacts| matches!(thread.runtime, Some(Runtime::Go | Runtime::Node));
    let is_polling = |thread: &&ThreadFacts| {
        !has_timers(thread)
            && limit(thread).is_some_and(|limit| {
                limit > 0.0
                    && limit <= MAX_LIMIT_SECONDS
                    && thread.wait_length > 0.7 * limit
                    && thread.runs_per_second >= MIN_POLLS_PER_SECOND
                    && thread.runs_per_second * limit <= MAX_EXPIRED
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
