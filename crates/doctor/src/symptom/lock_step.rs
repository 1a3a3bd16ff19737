//! Working in turn: of a group of threads or processes, never more than one runs, because each waits
//! for the other after a small piece of work.
//!
//! Healthy programs that look alike: request and response with time to think between them. There, the
//! hand-over is a small part of the time, and so is the estimated gain.

use std::collections::BTreeSet;

use contend_record::doctor::{Cause, ThreadState};

use super::{Found, MIN_GAIN, described, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};

/// Share of a thread's waits that the other one must end.
const MIN_TURN_SHARE: f64 = 0.5;
/// Share of the program's CPU time that the two threads, or those of a ring, must use.
const MIN_PAIR_SHARE: f64 = 0.8;
/// CPU time of the one thread, as a share of that of the other, below which it only serves the other.
const MIN_BALANCE: f64 = 0.2;
/// Longest piece of work after which a hand-over is worth to be avoided, in seconds.
const MAX_RUN_SECONDS: f64 = 2e-3;
/// Longest mean gap between two hand-overs that belongs to them, in seconds.
const MAX_GAP_SECONDS: f64 = 1e-4;
/// Longest mean run of a thread in a ring, in seconds.
const MAX_RING_SECONDS: f64 = 1e-4;
/// Share of the wake-ups of a thread in a ring by the same other one.
const MIN_RING_SHARE: f64 = 0.6;
/// Share of the CPU time of Go in channels from which goroutines work in turn.
const MIN_CHANNELS: f64 = 0.02;
/// Share of the larger one of two goroutines in their CPU time, above which the other one only serves it.
const MAX_ONE_SIDED: f64 = 0.75;
/// Mean number of running threads of Go below which a program mostly waits for others, or thinks. When goroutines work in turn,
/// the scheduler of Go spins for a while at each hand-over.
const MIN_GO_RUNNING: f64 = 0.5;
/// Mean number of running threads of Go from which goroutines do not work in turn.
const MAX_GO_RUNNING: f64 = 1.5;
/// Number of times per second that a thread wakes to exchange a message.
const MIN_MESSAGES_PER_SECOND: f64 = 500.0;
/// Share of the runs of these threads that another one of them must start.
const MIN_AMONG: f64 = 0.2;
/// Longest mean run of a thread that exchanges small messages, in seconds.
const MAX_MESSAGE_SECONDS: f64 = 5e-4;
/// Share of the CPU time in the kernel that messages must take.
const MIN_MESSAGE_SYSTEM: f64 = 0.15;
/// Share of the time with more than one running thread from which they do not work in turn.
const MAX_TOGETHER: f64 = 0.3;

pub fn find(facts: &Facts) -> Option<Found> {
    if !facts.has_switches {
        return None;
    }
    if facts.processes.iter().any(|process| process.goroutines.is_some()) {
        return goroutines(facts);
    }
    messages(facts).or_else(|| turns(facts)).or_else(|| circle(facts))
}

/// Finds a program in Go, two of whose goroutines use most of the CPU time, and pass values through
/// channels.
fn goroutines(facts: &Facts) -> Option<Found> {
    let (process, goroutines) =
        facts.processes.iter().find_map(|process| Some((process, process.goroutines.as_ref()?)))?;
    let is_in_turn = goroutines.channels >= MIN_CHANNELS
        && goroutines.channels > goroutines.locking
        && goroutines.share(0) <= MAX_ONE_SIDED * (goroutines.share(0) + goroutines.share(1))
        && (MIN_GO_RUNNING..MAX_GO_RUNNING).contains(&process.running);
    if !is_in_turn {
        return None;
    }
    let work = process.running * (1.0 - goroutines.channels) * (1.0 - facts.system_share());
    let own = facts.threads.iter().filter(|thread| thread.name.pid == process.pid);
    let gain = (1.0 - work / facts.cpus.min(2.0)).clamp(0.0, 1.0);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "Goroutines of {} and {} use {} and {} of the CPU time, in turn: {} of it is spent in \
             channels, and {:.1} threads run on average.",
            goroutines.name(0),
            goroutines.name(1),
            percent(goroutines.share(0)),
            percent(goroutines.share(1)),
            percent(goroutines.channels),
            process.running,
        ),
        gain: Some(gain),
        argument: "the work outside of channels and of the kernel, divided among two CPUs",
        evidence: vec![
            ("channels_share", goroutines.channels),
            ("running_threads", process.running),
        ],
        threads: names(own.filter(|thread| thread.running > 0.02)),
        remedy:
            "Send slices with many values, or give the channel a buffer, so that both work at the \
                 same time; or do the work in one goroutine."
                .to_owned(),
        command: None,
        unless: "each value needs the result of the one before, which only the other can give",
    })
}

/// Finds threads or processes that exchange small messages through pipes or sockets, so that most of
/// the time is spent in the kernel.
pub fn messages(facts: &Facts) -> Option<Found> {
    let exchanges = |thread: &&ThreadFacts| {
        let waits = thread.in_state(ThreadState::Pipe) + thread.in_state(ThreadState::Socket);
        let others = thread.in_state(ThreadState::Lock) + thread.in_state(ThreadState::Condition);
        thread.running > 0.05
            && waits + others > 0.03
            && thread.runs_per_second >= MIN_MESSAGES_PER_SECOND
            && thread.run_length <= MAX_MESSAGE_SECONDS
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(exchanges).collect();
    let processes: BTreeSet<i32> = threads.iter().map(|thread| thread.name.pid).collect();
    let switches: f64 = threads.iter().map(|thread| thread.runs_per_second).sum();
    // The workers of a server also wake for each request, but not each other.
    let among = |waker: &ThreadFacts| {
        let woken = threads.iter().map(|woken| facts.wakes(waker.name.tid, woken.name.tid).count);
        woken.sum::<u64>() as f64
    };
    let wakes: f64 = threads.iter().map(|waker| among(waker)).sum();
    let is_exchange =
        threads.len() >= 3 && processes.len() >= 2 && wakes >= MIN_AMONG * switches * facts.wall;
    if !is_exchange || facts.system_share() < MIN_MESSAGE_SYSTEM {
        return None;
    }
    let mean_run =
        threads.iter().map(|thread| thread.run_length).sum::<f64>() / threads.len() as f64;
    // The program's own work for each message is saved in part, too.
    let work = 0.5 * facts.running * (1.0 - facts.system_share());
    let gain = (taken(facts, switches * facts.wall) - work / facts.cpus).clamp(0.0, 1.0);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} threads of {} processes exchange small messages: they wake {} times per second in all, \
             for {} of work each, and {} of the CPU time is spent in the kernel.",
            threads.len(),
            processes.len(),
            rate(switches),
            length(mean_run),
            percent(facts.system_share()),
        ),
        gain: Some(gain),
        argument: "half of the work in user mode, divided among the CPUs, without messages",
        evidence: vec![
            ("wakes_per_second", switches),
            ("run_seconds", mean_run),
            ("system_share", facts.system_share()),
        ],
        threads: names(threads.iter().copied()),
        remedy: "Send larger batches, such as chunksize of multiprocessing.Pool.map.".to_owned(),
        command: None,
        unless: "each message must be answered at once",
    })
}

/// Finds at least three threads that work in turn, each of which wakes the next one.
fn circle(facts: &Facts) -> Option<Found> {
    let threads = ring(facts)?;
    let wakes: f64 = threads.iter().map(|thread| thread.runs_per_second).sum();
    let run_length =
        threads.iter().map(|thread| thread.run_length).sum::<f64>() / threads.len() as f64;
    let work = facts.running * (1.0 - facts.system_share());
    let needed = work / facts.cpus.min(threads.len() as f64);
    let gain = (taken(facts, wakes * facts.wall) - needed).clamp(0.0, 1.0);
    if gain < MIN_GAIN {
        return None;
    }
    Some(Found {
        message: format!(
            "{} threads work in turn: each wakes the next one, {} times per second in all, after {} of \
             work each.",
            threads.len(),
            rate(wakes),
            length(run_length),
        ),
        gain: Some(gain),
        argument: "the work in user mode, divided among the CPUs, without hand-overs",
        evidence: vec![
            ("hand_overs_per_second", wakes),
            ("run_seconds", run_length),
            ("together_share", facts.from_level(2)),
        ],
        threads: names(threads),
        remedy:
            "Hand over larger batches, so that all work at the same time, or do the work in one \
                 thread."
                .to_owned(),
        command: None,
        unless: "each piece of work needs the result of the one before, which only the other can give",
    })
}

/// Returns at least three threads that wake each other in a ring: most times that one begins to run,
/// the same other one has woken it, and each wakes one.
pub fn ring(facts: &Facts) -> Option<Vec<&ThreadFacts>> {
    let threads: Vec<&ThreadFacts> = facts
        .workers()
        .filter(|thread| thread.running > 0.05 && thread.run_length <= MAX_RING_SECONDS)
        .collect();
    let waker = |thread: &ThreadFacts| {
        let all = || {
            let others = threads.iter().filter(|other| other.name.tid != thread.name.tid);
            others.map(|other| (other.name.tid, facts.wakes(other.name.tid, thread.name.tid).count))
        };
        let (id, most) = all().max_by_key(|(_, count)| *count)?;
        let sum: u64 = all().map(|(_, count)| count).sum();
        (most > 100 && most as f64 >= MIN_RING_SHARE * sum as f64).then_some(id)
    };
    let wakers: Option<BTreeSet<i32>> = threads.iter().map(|thread| waker(thread)).collect();
    // Another thread that does most of the work may wake each of them in turn.
    let running: f64 = threads.iter().map(|thread| thread.running).sum();
    let is_ring = wakers?.len() == threads.len()
        && threads.len() >= 3
        && running >= MIN_PAIR_SHARE * facts.running;
    is_ring.then_some(threads)
}

/// Finds two threads that work in turn.
fn turns(facts: &Facts) -> Option<Found> {
    if facts.from_level(2) > MAX_TOGETHER {
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
    let needed = work / facts.cpus.min(2.0);
    let gain = (taken(facts, hand_overs) - needed).clamp(0.0, 1.0);
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

/// Returns the share of the time that the work and its hand-overs take, with the gaps between them if these are short.
fn taken(facts: &Facts, hand_overs: f64) -> f64 {
    let waiting = facts.by(Cause::Idle) + facts.by(Cause::Lock) + facts.by(Cause::Unknown);
    let per_hand_over = waiting * facts.wall / hand_overs.max(1.0);
    // Longer gaps are not hand-overs, but time to think, or waiting for others.
    let gaps = if per_hand_over < MAX_GAP_SECONDS { waiting } else { 0.0 };
    facts.at_level(1) + facts.from_level(2) + gaps
}

/// Returns the two threads with the most hand-overs in both directions, if these end most of their
/// waits.
fn pair(facts: &Facts) -> Option<(&ThreadFacts, &ThreadFacts)> {
    let both_ways = facts.all_wakes().filter_map(|(waker, woken, wakes)| {
        let back = facts.wakes(woken, waker).count;
        (waker < woken).then_some((waker, woken, wakes.count.min(back)))
    });
    let (first, second, count) = both_ways.max_by_key(|(_, _, count)| *count)?;
    let (first, second) = (facts.thread(first)?, facts.thread(second)?);
    // Not their runs: preemption by other programs splits these, and the kernel counts all of them, while waits and wake-ups
    // may be extrapolated from a part of the time.
    let waits = first.waits_per_second.min(second.waits_per_second) * facts.wall;
    (count as f64 >= MIN_TURN_SHARE * waits && count > 100).then_some((first, second))
}
