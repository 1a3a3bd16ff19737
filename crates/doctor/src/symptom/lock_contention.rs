//! Threads that wait for a lock while about one of them runs.
//!
//! The operation and the value in `futex(2)` tell a lock from a condition variable, and the address
//! tells which lock. Go and Java put waiting threads aside themselves, so their waits look like those
//! for condition variables. For Go, the stacks tell, and for Java, if its threads spin before they wait.
//! Otherwise, at least three threads that share the work, each with short waits and about one running,
//! are taken for contention.
//!
//! Healthy programs that look alike: an idle pool on a condition variable, and locks that are held for
//! a small part of the time.

use std::collections::BTreeMap;

use contend_record::doctor::{Runtime, ThreadState};
use contend_record::remedy::Library;

use super::{Found, MIN_GAIN, described, lock_step, names, percent};
use crate::facts::{Facts, ThreadFacts, Waiters, waiters};
use crate::goroutines::Goroutines;
use crate::wait::{Object, Wait};

/// Mean number of threads that wait for the lock, from which it is contended.
const MIN_WAITING: f64 = 0.4;
/// Mean number of threads that wait for the lock, from which it is contended by frequent, brief waits.
const MIN_BRIEF_WAITING: f64 = 0.1;
/// Length of a wait below which it is brief, in seconds.
const MAX_BRIEF_SECONDS: f64 = 1e-4;
/// Number of brief waits per second from which they are frequent.
const MIN_BRIEF_PER_SECOND: f64 = 2_000.0;
/// The same of each thread whose waits are mostly too brief for samples, and of all of them: number of waits,
/// mean number of waiting threads, share of the CPU time in the kernel.
const MIN_BRIEF_PER_THREAD: f64 = 500.0;
const MIN_UNSAMPLED_WAITING: f64 = 0.04;
const MIN_UNSAMPLED_SYSTEM: f64 = 0.1;
/// Share of the time in which at least two threads with brief waits run. With less, they mostly wait for something else: of
/// two that work in turn, one may find the lock still held by the one that woke it, but mostly waits for its turn.
const MIN_TOGETHER: f64 = 0.3;
/// Share of the waits of such a thread that are for a lock, or were not sampled.
const MIN_LOCK_SHARE: f64 = 0.6;
/// Share of the CPU time in the kernel from which frequent waits matter.
const MIN_SYSTEM: f64 = 0.15;
/// Longest wait of a thread that shares the work, in seconds.
const MAX_WAIT_SECONDS: f64 = 0.05;
/// Share of the CPU time of the two busiest threads from which they work in turn, without the others.
const MAX_PAIR_SHARE: f64 = 0.85;
/// Share of the samples in which the same thread owned the lock, from which it is named.
const MIN_HOLDING: f64 = 0.5;
/// Share of the CPUs that are in use from which a program with queued threads is not limited by locks.
const MIN_SATURATED: f64 = 0.7;
/// Share of the CPU time in code of monitors from which they are contended.
const MIN_SPINNING: f64 = 0.15;
/// Share of the samples in code of contended locks of Go.
const MIN_LOCKING: f64 = 0.004;
/// Mean number of running threads below which a program without visible locks has nothing to do.
const MIN_RUNNING: f64 = 0.6;
/// Mean number of running threads from which no such lock limits it.
const MAX_RUNNING: f64 = 1.4;

/// Threads that wait for a lock.
struct Contention<'a> {
    threads: Vec<&'a ThreadFacts>,
    /// Mean number of them that wait without using a CPU.
    waiting: f64,
    /// Mean number of them that wait in code of the lock.
    spinning: f64,
    /// The lock that they mostly wait for, if it can be seen, with its address.
    lock: Option<(u64, Waiters)>,
}

pub fn find(facts: &Facts) -> Option<Found> {
    let contention = visible(facts)
        .or_else(|| frequent(facts))
        .or_else(|| goroutines(facts).map(blocked))
        .or_else(|| monitors(facts))
        .or_else(|| hidden(facts).map(blocked))?;
    let Contention { threads, waiting, spinning, lock } = contention;
    // Without waits, there are no calls of the kernel for the lock either.
    let work = (facts.running - spinning).max(0.0) * (1.0 - facts.system_share());
    let gain = facts.parallel_gain_of(work, threads.len());
    if gain < MIN_GAIN {
        return None;
    }
    let file = lock.and_then(|(address, _)| facts.lock_files.get(&address));
    let is_in_c_library = file.is_some_and(|file| is_c_library(file));
    let place = match (lock, file) {
        (None, _) => String::new(),
        (Some((address, _)), None) => format!(" (at {address:#x})"),
        (Some((address, _)), Some(file)) => format!(" (at {address:#x}, in {file})"),
    };
    let how = if lock.is_some() { "wait for a lock" } else { "block each other" };
    let mut details = String::new();
    if let Some((thread, share)) = lock.and_then(|(address, _)| facts.owner(address))
        && share >= MIN_HOLDING
    {
        details = format!(" {} held it in {} of the samples.", described(thread), percent(share));
    }
    if spinning > 0.0 {
        let share = spinning / facts.running.max(f64::MIN_POSITIVE);
        details
            .push_str(&format!(" {} of the CPU time is spent in code of locks.", percent(share)));
    }
    let mut evidence = vec![
        ("waiting_threads", waiting),
        ("running_threads", facts.running),
        ("threads", threads.len() as f64),
    ];
    if let Some((_, waiters)) = lock {
        evidence.extend([
            ("threads_at_lock", waiters.threads as f64),
            ("waiting_at_lock", waiters.share),
        ]);
    }
    if spinning > 0.0 {
        evidence.push(("threads_in_lock_code", spinning));
    }
    let remedy = if is_in_c_library {
        "The lock is in the C library: that of the memory allocator, or of a stream such as stdout. \
         Allocate less often, or use an allocator with a heap for each thread, such as jemalloc or \
         mimalloc (LD_PRELOAD); write to a stream from one thread."
    } else {
        "Hold the lock for a shorter time, or split the data that it protects: a lock for each part, \
         or data of each thread that is merged at the end."
    };
    Some(Found {
        message: format!(
            "{} threads {how}{place}: on average {waiting:.1} wait while {:.1} run, and at least two \
             ran at the same time for {} of the time.{details}",
            threads.len(),
            facts.running,
            percent(facts.from_level(2)),
        ),
        gain: Some(gain),
        argument: "the CPU time in user mode, divided evenly among the CPUs",
        evidence,
        threads: names(threads.iter().copied()),
        remedy: remedy.to_owned(),
        command: None,
        unless: "the protected work cannot be divided",
    })
}

/// Returns whether a file is the C library (glibc or musl).
fn is_c_library(name: &str) -> bool {
    let has_version = |rest: &str| rest.is_empty() || rest.starts_with(".6");
    name.strip_prefix("libc.so").is_some_and(has_version) || name.starts_with("ld-musl-")
}

/// Returns whether a lock is one of the Python interpreter, which guards its global lock: another symptom
/// judges that.
fn is_of_interpreter(facts: &Facts, address: u64) -> bool {
    let file = facts.lock_files.get(&address);
    file.is_some_and(|file| file.starts_with("libpython") || file.starts_with("python"))
}

/// Returns threads that wait in calls for locks.
fn visible(facts: &Facts) -> Option<Contention<'_>> {
    let waiters = waiters(&facts.threads);
    // Only one thread waits for the end of another one, which looks like a lock with musl.
    let is_contended = |wait: &Wait| {
        wait.is_for_lock()
            && match wait.object {
                Object::Futex(futex) => {
                    let waiters = waiters.get(&futex.address);
                    waiters.is_some_and(|waiters| waiters.threads >= 2)
                        && !is_of_interpreter(facts, futex.address)
                }
                _ => true,
            }
    };
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| thread.waiting(is_contended) > 0.02).collect();
    let waiting: f64 = threads.iter().map(|thread| thread.waiting(is_contended)).sum();
    // Where all CPUs are in use, and others are queued for them, the lock costs nothing.
    // Frequent waits cost time in the kernel even if they are brief.
    let waits: f64 = threads
        .iter()
        .filter(|thread| (0.0..MAX_BRIEF_SECONDS).contains(&thread.wait_length))
        .map(|thread| thread.runs_per_second)
        .sum();
    let is_frequent = waiting >= MIN_BRIEF_WAITING
        && waits >= MIN_BRIEF_PER_SECOND
        && facts.system_share() >= MIN_SYSTEM
        && facts.from_level(2) >= MIN_TOGETHER;
    let is_saturated = facts.running >= MIN_SATURATED * facts.cpus && facts.queued > waiting;
    if waiting < MIN_WAITING && !is_frequent || threads.len() < 2 || is_saturated {
        return None;
    }
    let contended = waiters
        .into_iter()
        .filter(|(address, waiters)| waiters.threads >= 2 && !is_of_interpreter(facts, *address));
    let lock = contended.max_by(|a, b| a.1.share.total_cmp(&b.1.share));
    Some(Contention { threads, waiting, spinning: 0.0, lock })
}

/// Returns threads of a process that wait often, but so briefly that few samples find them at it. Those that do
/// show the lock.
fn frequent(facts: &Facts) -> Option<Contention<'_>> {
    let share = |thread: &ThreadFacts| {
        thread.in_state(ThreadState::Lock) + thread.in_state(ThreadState::Unknown)
    };
    let waits_briefly = |thread: &&ThreadFacts| {
        thread.runs_per_second >= MIN_BRIEF_PER_THREAD
            && (0.0..MAX_BRIEF_SECONDS).contains(&thread.wait_length)
            && share(thread) >= MIN_LOCK_SHARE * (thread.life - thread.running - thread.queued)
    };
    let mut processes: BTreeMap<i32, Vec<&ThreadFacts>> = BTreeMap::new();
    for thread in facts.threads.iter().filter(waits_briefly) {
        processes.entry(thread.name.pid).or_default().push(thread);
    }
    let threads = processes.into_values().max_by_key(Vec::len)?;
    let waiting: f64 = threads.iter().map(|thread| share(thread)).sum();
    let waits: f64 = threads.iter().map(|thread| thread.runs_per_second).sum();
    let known = threads.iter().flat_map(|thread| &thread.waits);
    let (address, waiters) = known
        .filter_map(|(wait, share)| match wait.object {
            Object::Futex(futex)
                if wait.is_for_lock() && !is_of_interpreter(facts, futex.address) =>
            {
                Some((futex.address, Waiters { threads: threads.len(), share: *share }))
            }
            _ => None,
        })
        .max_by(|a, b| a.1.share.total_cmp(&b.1.share))?;
    let is_contended = threads.len() >= 2
        && waiting >= MIN_UNSAMPLED_WAITING
        && waits >= MIN_BRIEF_PER_SECOND
        && facts.system_share() >= MIN_UNSAMPLED_SYSTEM
        && facts.from_level(2) >= MIN_TOGETHER;
    let lock = Some((address, waiters));
    is_contended.then_some(Contention { threads, waiting, spinning: 0.0, lock })
}

/// Returns how threads wait that a runtime puts aside.
fn blocked(threads: Vec<&ThreadFacts>) -> Contention<'_> {
    let waiting = threads.iter().map(|thread| thread.in_state(ThreadState::Condition)).sum();
    Contention { threads, waiting, spinning: 0.0, lock: None }
}

/// Returns threads of Java that use much CPU time to enter monitors: they spin before they wait.
fn monitors(facts: &Facts) -> Option<Contention<'_>> {
    let in_lock = |thread: &ThreadFacts| {
        thread.code.as_ref().map_or(0.0, |code| code.locking) * thread.running
    };
    let is_java = |thread: &&ThreadFacts| thread.runtime == Some(Runtime::Java);
    let takes_part = |thread: &&ThreadFacts| !thread.is_helper() && in_lock(thread) > 0.02;
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(is_java).filter(takes_part).collect();
    let spinning: f64 = threads.iter().map(|thread| in_lock(thread)).sum();
    let is_contended = threads.len() >= 2 && spinning >= MIN_SPINNING * facts.running;
    is_contended.then(|| Contention { spinning, ..blocked(threads) })
}

/// Returns the threads of a program in Go that execute code of contended locks.
fn goroutines(facts: &Facts) -> Option<Vec<&ThreadFacts>> {
    let process = facts.processes.iter().find(|process| {
        let is_locking = |goroutines: &Goroutines| {
            goroutines.locking >= MIN_LOCKING && goroutines.locking > goroutines.channels
        };
        (MIN_RUNNING..1.5).contains(&process.running)
            && process.goroutines.as_ref().is_some_and(is_locking)
    })?;
    let is_own = |thread: &&ThreadFacts| {
        thread.name.pid == process.pid && thread.running > 0.02 && !thread.is_helper()
    };
    let threads: Vec<&ThreadFacts> = facts.threads.iter().filter(is_own).collect();
    (threads.len() >= 2).then_some(threads)
}

/// Returns the threads that seem to contend for a lock which looks like a condition variable: one of the
/// runtime (Java) or a semaphore.
fn hidden(facts: &Facts) -> Option<Vec<&ThreadFacts>> {
    // Threads that hand over a lock overlap in the kernel, which wakes one while the other goes to sleep.
    let in_user_mode = facts.running * (1.0 - facts.system_share());
    let is_limited = facts.running >= MIN_RUNNING && in_user_mode < MAX_RUNNING;
    if !is_limited || lock_step::ring(facts).is_some() {
        return None;
    }
    let hands_over = |thread: &ThreadFacts| {
        thread.runtime == Some(Runtime::Java)
            && thread.runs_per_second >= MIN_BRIEF_PER_THREAD
            && thread.wait_length < MAX_BRIEF_SECONDS
    };
    // The threads of OpenMP wait for each other at barriers.
    let has_barriers = |pid: i32| {
        facts
            .processes
            .iter()
            .any(|process| process.pid == pid && process.libraries.contains(&Library::Openmp))
    };
    let shares_work = |thread: &&ThreadFacts| {
        // The goroutines of Go are judged by their stacks.
        !thread.is_helper()
            && thread.runtime != Some(Runtime::Go)
            && !has_barriers(thread.name.pid)
            && thread.running > 0.05
            && thread.in_state(ThreadState::Condition) > 0.2 * thread.life
            && (0.0..MAX_WAIT_SECONDS).contains(&thread.wait_length)
            && (facts.running < MAX_RUNNING || hands_over(thread))
    };
    let mut groups: BTreeMap<Group, Vec<&ThreadFacts>> = BTreeMap::new();
    for thread in facts.threads.iter().filter(shares_work) {
        groups.entry(Group::of(thread)).or_default().push(thread);
    }
    groups.into_values().find(|threads| {
        let sum: f64 = threads.iter().map(|thread| thread.running).sum();
        let two: f64 = threads.iter().take(2).map(|thread| thread.running).sum();
        threads.len() >= 3 && two < MAX_PAIR_SHARE * sum && sum > 0.8 * facts.running
    })
}

/// Threads that may contend for the same lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Those of one process, whose runtime puts waiting threads aside.
    Process(i32),
    /// Those that wait on words of memory at the same address, which forked processes may share.
    Address(u64),
}

impl Group {
    fn of(thread: &ThreadFacts) -> Self {
        let address = thread.waits.iter().find_map(|(wait, _)| match wait.object {
            Object::Futex(futex) => Some(futex.address),
            _ => None,
        });
        match (thread.runtime, address) {
            (Some(Runtime::Java), _) | (_, None) => Self::Process(thread.name.pid),
            (_, Some(address)) => Self::Address(address),
        }
    }
}
