//! Page faults, a disk, the network or a child dominates: changing the concurrency of the program would
//! hardly help.

use contend_record::doctor::{Cause, ThreadState};

use super::{Found, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};

/// Number of page faults per second from which they matter.
const MIN_FAULTS_PER_SECOND: f64 = 50_000.0;
/// Share of the CPU time in the kernel that page faults must take.
const MIN_SYSTEM: f64 = 0.3;
/// Mean number of threads that wait for a disk.
const MIN_DISK: f64 = 0.5;
/// Share of the time in which no thread ran and at least one waited for a disk, which suffices as well.
const MIN_NONE_RAN: f64 = 0.3;

pub fn find(facts: &Facts) -> Option<Found> {
    page_faults(facts).or_else(|| disk(facts))
}

fn page_faults(facts: &Facts) -> Option<Found> {
    if facts.faults_per_second < MIN_FAULTS_PER_SECOND || facts.system_share() < MIN_SYSTEM {
        return None;
    }
    let workers: Vec<&ThreadFacts> = facts.workers().collect();
    Some(Found {
        message: format!(
            "The program causes {} page faults per second, and {} of its CPU time is spent in the \
             kernel. This is a matter of memory, not of concurrency.",
            rate(facts.faults_per_second),
            percent(facts.system_share()),
        ),
        gain: Some((facts.system_share() * facts.running.min(1.0)).min(0.99)),
        argument: "the CPU time in the kernel",
        evidence: vec![
            ("faults_per_second", facts.faults_per_second),
            ("system_share", facts.system_share()),
        ],
        threads: names(workers),
        remedy:
            "Keep memory instead of returning it to the kernel and mapping it again, or use larger \
                 pages."
                .to_owned(),
        command: None,
        unless: "the memory is really new each time",
    })
}

fn disk(facts: &Facts) -> Option<Found> {
    let waiting = |thread: &ThreadFacts| {
        thread.in_state(ThreadState::Disk) + thread.in_state(ThreadState::PageFault)
    };
    let threads: Vec<&ThreadFacts> =
        facts.threads.iter().filter(|thread| waiting(thread) > 0.1).collect();
    let sum: f64 = threads.iter().map(|thread| waiting(thread)).sum();
    let none_ran = facts.by(Cause::Disk);
    if (sum < MIN_DISK || facts.running > 0.5) && none_ran < MIN_NONE_RAN || threads.is_empty() {
        return None;
    }
    Some(Found {
        message: format!(
            "On average {sum:.1} threads wait for a disk or a file system, and {:.1} run. For {} of the \
             time, none ran and one waited for a disk. The program is limited by storage, not by \
             concurrency.",
            facts.running,
            percent(none_ran),
        ),
        gain: Some(none_ran).filter(|share| *share >= MIN_NONE_RAN),
        argument: if none_ran >= MIN_NONE_RAN {
            "the time in which no thread ran and one waited for a disk"
        } else {
            "what faster storage would bring is unknown"
        },
        evidence: vec![("waiting_threads", sum), ("waiting_share", none_ran)],
        threads: names(threads),
        remedy: "Write in larger batches with fewer calls of fsync, or use faster storage."
            .to_owned(),
        command: None,
        unless: "the data must be on the disk after each step",
    })
}
