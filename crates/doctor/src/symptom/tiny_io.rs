//! System calls that move few bytes each, so that the kernel takes much of the CPU time.
//!
//! Healthy programs that look alike: small messages between which the program waits; there, the calls
//! are few, and the CPU time is small. Messages between processes of the program are left to the rule about
//! working in turn.

use super::{Found, MIN_GAIN, lock_step, names, percent, rate};
use crate::facts::{Facts, ProcessFacts};

/// Number of calls per second of a process from which their cost matters.
const MIN_CALLS_PER_SECOND: f64 = 20_000.0;
/// Largest mean number of bytes per call.
const MAX_BYTES_PER_CALL: f64 = 512.0;
/// Mean number of its threads that must run.
const MIN_RUNNING: f64 = 0.3;
/// Share of the CPU time in the kernel.
const MIN_SYSTEM: f64 = 0.25;

pub fn find(facts: &Facts) -> Option<Found> {
    let calls = |process: &ProcessFacts| {
        process.io.map_or(0.0, |io| (io.reads + io.writes) as f64) / facts.wall
    };
    // The counts of a process include those of children that it has waited for.
    let is_active = |process: &&ProcessFacts| process.running >= MIN_RUNNING;
    let active = facts.processes.iter().filter(is_active);
    let process = active.max_by(|a, b| calls(a).total_cmp(&calls(b)))?;
    let io = process.io?;
    let per_second = calls(process);
    let bytes = (io.read_bytes + io.write_bytes) as f64 / (io.reads + io.writes).max(1) as f64;
    let running = process.running;
    if per_second < MIN_CALLS_PER_SECOND
        || bytes > MAX_BYTES_PER_CALL
        || facts.system_share() < MIN_SYSTEM
    {
        return None;
    }
    // Small messages between processes are a matter of turns.
    let exchanges = |found: &Found| found.threads.iter().any(|thread| thread.pid == process.pid);
    if lock_step::messages(facts).as_ref().is_some_and(exchanges) {
        return None;
    }
    // The program's own work for each call is saved in part, too.
    let saved = 0.5 * (1.0 + facts.system_share());
    let gain = (saved * running.min(1.0)).min(0.99);
    if gain < MIN_GAIN {
        return None;
    }
    let threads = facts.threads.iter().filter(|thread| thread.name.pid == process.pid);
    Some(Found {
        message: format!(
            "Process {} makes {} read and write calls per second that move {bytes:.0} bytes each; {} of \
             the CPU time is spent in the kernel.",
            process.pid,
            rate(per_second),
            percent(facts.system_share()),
        ),
        gain: Some(gain),
        argument: "the CPU time in the kernel, which larger calls hardly need, and half of the rest",
        evidence: vec![
            ("calls_per_second", per_second),
            ("bytes_per_call", bytes),
            ("system_share", facts.system_share()),
        ],
        threads: names(threads),
        remedy: "Read and write through a buffer, of 64 KiB for instance.".to_owned(),
        command: None,
        unless: "each message must arrive on its own, at once",
    })
}
