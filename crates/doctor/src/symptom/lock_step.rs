//! Working in turn: of a group of threads or processes, never more than one runs, because each waits
//! for the other after a small piece of work.
//!
//! Healthy programs that look alike: request and response with time to think between them. There, the
//! hand-over is a small part of the time, and so is the estimated gain.

use contend_record::doctor::Cause;

use super::{Found, MIN_GAIN, described, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};

/// Share of a thread's runs that the other one must start.
const MIN_TURN_SHARE: f64 = 0.5;
/// Share of the program's CPU time that the two threads must use.
const MIN_PAIR_SHARE: f64 = 0.8;
/// CPU time of the one thread, as a share of that of the other, below which it only serves the other.
const MIN_BALANCE: f64 = 0.2;
/// Longest piece of work after which a hand-over is worth to be avoided, in seconds.
const MAX_RUN_SECONDS: f64 = 2e-3;
/// Share of the time with more than one running thread from which they do not work in turn.
const MAX_TOGETHER: f64 = 0.3;

pub fn find(facts: &Facts) -> Option<Found> {
    if !facts.has_switches || facts.from_level(2) > MAX_TOGETHER {
        return None;
    }
    let (first, second) = pair(facts)?;
    let hand_overs = facts.wakes(first.name.tid, second.name.tid).count as f64
        + facts.wakes(second.name.tid, first.name.tid).count as f64;
    let across = facts.wakes(first.name.tid, second.name.tid).across_cpus as f64
        + facts.wakes(second.name.tid, first.name.tid).across_cpus as f64;
    let pair_running = first.running + second.running;
    let balance = first.running.min(second.running) / first.running.max(second.running);
    if pair_running < MIN_PAIR_SHARE * facts.running || balance < MIN_BALANCE {
        return None;
    }
    let run_length = 0.5 * (first.run_length + second.run_length);
    if run_length > MAX_RUN_SECONDS {
        return None;
    }
    // Without hand-overs, the work in user mode is left, and both can do it at the same time.
    let work = facts.running * (1.0 - facts.system_share());
    let waiting = facts.by(Cause::Idle) + facts.by(Cause::Lock) + facts.by(Cause::Unknown);
    let per_hand_over = waiting * facts.wall / hand_overs.max(1.0);
    // Longer gaps are not hand-overs, but time to think, or waiting for others.
    let gaps = if per_hand_over < 1e-4 { waiting } else { 0.0 };
    let taken = facts.at_level(1) + facts.from_level(2) + gaps;
    let needed = work / facts.cpus.min(2.0);
    let gain = (taken - needed).clamp(0.0, 1.0);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} and {} work in turn: they hand over {} times per second, after {} of work each, and \
             both ran at the same time for {} of the time.",
            described(first),
            described(second),
            rate(hand_overs / facts.wall),
            length(run_length),
            percent(facts.from_level(2)),
        ),
        gain: Some(gain),
        argument: "the work in user mode, divided among two CPUs, without hand-overs",
        evidence: vec![
            ("hand_overs_per_second", hand_overs / facts.wall),
            ("run_seconds", run_length),
            ("across_cpus_share", across / hand_overs.max(1.0)),
            ("together_share", facts.from_level(2)),
        ],
        threads: names([first, second]),
        remedy:
            "Hand over larger batches, so that both work at the same time, or do the work in one \
                 thread; if that is impossible, keep both on one CPU."
                .to_owned(),
        command: None,
        unless: "each piece of work needs the result of the one before, which only the other can give",
    })
}

/// Returns the two threads with the most hand-overs in both directions, if these start most of their
/// runs.
fn pair(facts: &Facts) -> Option<(&ThreadFacts, &ThreadFacts)> {
    let both_ways = facts.all_wakes().filter_map(|(waker, woken, wakes)| {
        let back = facts.wakes(woken, waker).count;
        (waker < woken).then_some((waker, woken, wakes.count.min(back)))
    });
    let (first, second, count) = both_ways.max_by_key(|(_, _, count)| *count)?;
    let (first, second) = (facts.thread(first)?, facts.thread(second)?);
    let runs = first.runs_per_second.min(second.runs_per_second) * facts.wall;
    (count as f64 >= MIN_TURN_SHARE * runs && count > 100).then_some((first, second))
}
