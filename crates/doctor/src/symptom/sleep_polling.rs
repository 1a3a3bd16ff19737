//! Sleeping for a fixed time and looking whether something has happened.
//!
//! A thread sleeps for a short time, repeatedly. The event that it waits for happens while it
//! sleeps, and the thread that caused the event then waits, too, until the sleep is over.
//!
//! Healthy programs that look alike: a timer that does work of its own, because nothing waits for it;
//! a client that thinks between requests, because it waits for the answer itself, and nothing happens
//! while it sleeps.

use contend_record::doctor::{Cause, Runtime};

use super::{Found, MIN_GAIN, described, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};
use crate::timeline::SHORT_SLEEP;

/// Number of sleeps per second from which a thread polls.
const MIN_SLEEPS_PER_SECOND: f64 = 5.0;
/// Share of the sleeps in which another thread must begin to run.
const MIN_EVENT_SHARE: f64 = 0.3;
/// Share of the sleeps after which a thread that does not poll wakes another one, with a request.
const MAX_REQUEST_SHARE: f64 = 0.5;
/// Share of a thread's runs after which it waits for an answer, rather than polls.
const MAX_ANSWER_SHARE: f64 = 0.25;
/// Share of the sleeps after which the sleeper must wake the other thread.
const MIN_WOKEN_SHARE: f64 = 0.25;
/// Longest sleep, in seconds, of a thread that polls and wakes others when it finds something. A timer
/// that gives work to others has longer ones.
const MAX_POLL_SECONDS: f64 = 3e-3;
/// Share of the CPU time that a goroutine must use to be taken for the one that polls.
const MIN_SHARE: f64 = 0.002;
/// Share of the time for which the goroutine must work that the sleeping one waits for.
const MIN_GOROUTINE_WORK: f64 = 0.1;
/// Share of the CPU time that a goroutine which polls may use itself.
const MAX_OWN_SHARE: f64 = 0.5;
/// Share of a thread's time that it must sleep.
const MIN_SLEEPING: f64 = 0.3;
/// Share of the time for which one of two threads that sleep for longer than a poll must run.
const MIN_WORK: f64 = 0.02;

pub fn find(facts: &Facts) -> Option<Found> {
    let lost = facts.by(Cause::Sleep);
    if lost < MIN_GAIN {
        return None;
    }
    threads(facts, lost).or_else(|| goroutines(facts, lost)).or_else(|| programs(facts, lost))
}

/// Finds scripts that execute `sleep` repeatedly, while other processes run in the meantime.
fn programs(facts: &Facts, lost: f64) -> Option<Found> {
    let sleeps = facts.sleep_programs();
    let events = sleeps.sleeps_with_event as f64;
    let is_frequent = sleeps.short_sleeps as f64 >= MIN_SLEEPS_PER_SECOND * facts.wall;
    if !is_frequent || events < MIN_EVENT_SHARE * sleeps.short_sleeps as f64 {
        return None;
    }
    let period = sleeps.life_nanos as f64 / 1e9 / sleeps.count.max(1) as f64;
    let per_second = sleeps.count as f64 / facts.wall;
    Some(Found {
        message: format!(
            "sleep is executed {} times per second, for {} each, and other processes run in the \
             meantime. Nothing ran for {} of the time because of that.",
            rate(per_second),
            length(period),
            percent(lost),
        ),
        gain: Some(lost),
        argument: ARGUMENT,
        evidence: evidence(per_second, period, lost),
        threads: Vec::new(),
        remedy: "Wait for the event itself: a line from a FIFO, wait for a child, or inotifywait."
            .to_owned(),
        command: None,
        unless: UNLESS,
    })
}

/// Finds a program in Go, one of whose goroutines sleeps repeatedly, while others do the work.
fn goroutines(facts: &Facts, lost: f64) -> Option<Found> {
    let (process, goroutines) =
        facts.processes.iter().find_map(|process| Some((process, process.goroutines.as_ref()?)))?;
    // A goroutine that does the work itself after each sleep is a timer. One that polls uses so little
    // CPU time that it may never be found in `time.Sleep`.
    let works = |name: &str| {
        let entry = goroutines.entries.iter().find(|(entry, _)| entry == name);
        entry.is_some_and(|(_, share)| *share >= MAX_OWN_SHARE)
    };
    let sleeper = goroutines.sleepers.iter().map(String::as_str).find(|sleeper| !works(sleeper));
    let sleeper = sleeper.or((goroutines.share(1) >= MIN_SHARE).then(|| goroutines.name(1)))?;
    let period = goroutines.timer_seconds.filter(|period| *period <= MAX_POLL_SECONDS)?;
    // One that sleeps between two messages has others that hardly work.
    if goroutines.share(0) * process.running < MIN_GOROUTINE_WORK {
        return None;
    }
    let own = facts.threads.iter().filter(|thread| thread.name.pid == process.pid);
    let per_second = own.clone().map(|thread| thread.short_sleeps as f64).sum::<f64>() / facts.wall;
    if per_second < MIN_SLEEPS_PER_SECOND {
        return None;
    }
    Some(Found {
        message: format!(
            "A goroutine of {sleeper} calls time.Sleep, for {} at most, and others work for it in the \
             meantime ({}). No thread ran for {} of the time because of that.",
            length(period),
            goroutines.name(0),
            percent(lost),
        ),
        gain: Some(lost),
        argument: ARGUMENT,
        evidence: evidence(per_second, period, lost),
        threads: names(own.filter(|thread| thread.running > 0.02)),
        remedy: "Receive from a channel, or wait for a sync.Cond or WaitGroup, instead of calling \
                 time.Sleep in a loop."
            .to_owned(),
        command: None,
        unless: UNLESS,
    })
}

const ARGUMENT: &str = "the time in which no thread ran and at least one was in a short sleep";
const UNLESS: &str = "the sleeps are intended, for instance to limit a rate";

fn evidence(per_second: f64, period: f64, lost: f64) -> Vec<(&'static str, f64)> {
    vec![("sleeps_per_second", per_second), ("sleep_seconds", period), ("lost_share", lost)]
}

/// Finds threads that sleep repeatedly, while other threads run in the meantime.
fn threads(facts: &Facts, lost: f64) -> Option<Found> {
    let sleepers: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| polls(facts, thread)).collect();
    let first = sleepers.first()?;
    let period = period(facts, first);
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
        argument: ARGUMENT,
        evidence: evidence(sleeps, period, lost),
        threads: names(sleepers.iter().copied()),
        remedy:
            "Wait for the event itself: a semaphore, a condition variable, a channel, a pipe, or \
                 a descriptor in poll, instead of a sleep."
                .to_owned(),
        command: None,
        unless: UNLESS,
    })
}

fn sleeps_per_second(facts: &Facts, thread: &ThreadFacts) -> f64 {
    if facts.has_switches {
        thread.short_sleeps as f64 / facts.wall
    } else {
        thread.runs_per_second
    }
}

/// Returns the usual length of a thread's sleeps in seconds: as requested or, if that is unknown, the
/// mean.
fn period(facts: &Facts, thread: &ThreadFacts) -> f64 {
    let requested = thread
        .waits
        .iter()
        .find_map(|(wait, _)| wait.is_timer(thread.runtime).then(|| wait.timeout()).flatten());
    let measured = match thread.short_sleeps {
        0 => thread.wait_length,
        count => thread.in_timers() * facts.wall / count as f64,
    };
    requested.map_or(measured, |time| time.as_secs_f64())
}

fn polls(facts: &Facts, thread: &ThreadFacts) -> bool {
    let sleeping = thread.in_timers();
    let is_frequent = sleeps_per_second(facts, thread) >= MIN_SLEEPS_PER_SECOND;
    let is_short = period(facts, thread) <= SHORT_SLEEP.as_secs_f64();
    // The goroutines of Go move between threads.
    let is_go = thread.runtime == Some(Runtime::Go);
    if sleeping < MIN_SLEEPING || !is_frequent || !is_short || thread.is_helper() || is_go {
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
    // Of two timers, one also fires while the other thread sleeps. If both do hardly any work, they are
    // more likely unrelated.
    let works = |thread: &ThreadFacts| thread.running >= MIN_WORK;
    let is_long = period(facts, thread) > MAX_POLL_SECONDS;
    let also_sleeps = |other: &ThreadFacts| {
        other.in_timers() >= MIN_SLEEPING
            && !other.is_helper()
            && (!is_long || works(other) || works(thread))
    };
    // A thread that wakes others after each sleep may be a timer that gives them work.
    let is_woken = |other: &ThreadFacts| {
        let woken = facts.wakes(id, other.name.tid).count as f64;
        let others_runs = other.runs_per_second * facts.wall;
        woken > 0.0 && woken > MIN_WOKEN_SHARE * others_runs.min(thread.short_sleeps as f64)
    };
    let is_timer = is_long;
    // A client that thinks wakes its server after each sleep; one that polls mostly finds nothing.
    let woken: f64 = others().map(|other| facts.wakes(id, other.name.tid).count as f64).sum();
    if is_timer && woken > MAX_REQUEST_SHARE * thread.short_sleeps as f64 {
        return false;
    }
    others().any(|other| also_sleeps(other) || !is_timer && is_woken(other))
}
