//! Many short-lived processes or threads: starting them takes a large part of the time.
//!
//! Healthy programs that look alike: a build or a pool whose children compute for long.

use contend_record::doctor::ThreadState;

use super::{Found, MIN_GAIN, length, names, percent, rate};
use crate::facts::{Facts, ThreadFacts};

/// Number of ended threads or processes per second.
const MIN_PER_SECOND: f64 = 20.0;
/// Longest mean life, in seconds.
const MAX_LIFE_SECONDS: f64 = 0.05;
/// Longest mean CPU time, in seconds: a longer one is work.
const MAX_CPU_SECONDS: f64 = 0.01;
/// Longest time that the start of a process takes, with that of its program, in seconds.
const PROCESS_START_SECONDS: f64 = 2e-3;
/// The same for a thread.
const THREAD_START_SECONDS: f64 = 2e-4;
/// Largest gain: something remains.
const MAX_GAIN: f64 = 0.99;

/// Returns the programs that most of the processes execute, in a clause.
fn programs(facts: &Facts) -> String {
    const MAX_NAMES: usize = 3;
    let mut programs: Vec<(&str, u64)> =
        facts.programs.iter().map(|(name, all)| (&**name, all.count)).collect();
    programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<String> =
        programs.iter().take(MAX_NAMES).map(|(name, count)| format!("{name}: {count}")).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

pub fn find(facts: &Facts) -> Option<Found> {
    let ended = facts.ended;
    // Programs that only sleep take no time of others.
    let sleeps = facts.sleep_programs();
    let short_lived = ended.short_lived.saturating_sub(sleeps.count);
    let count = short_lived.max(1) as f64;
    let per_second = short_lived as f64 / facts.wall;
    let life = ended.life_nanos.saturating_sub(sleeps.life_nanos) as f64 / 1e9 / count;
    let cpu = ended.run_nanos.saturating_sub(sleeps.run_nanos) as f64 / 1e9 / count;
    if per_second < MIN_PER_SECOND || life > MAX_LIFE_SECONDS || cpu > MAX_CPU_SECONDS {
        return None;
    }
    // The lives overlap if several are started at the same time.
    let lives = life * per_second;
    let is_process = 2 * ended.processes > ended.threads;
    // Children that mostly wait cost no more than their CPU time and their start.
    let start = if is_process { PROCESS_START_SECONDS } else { THREAD_START_SECONDS };
    let costs = ((cpu + start) * per_second).min(lives);
    let gain = (costs / facts.cpus.min(lives.max(1.0))).min(MAX_GAIN);
    if gain < MIN_GAIN {
        return None;
    }
    let what = if is_process { "processes" } else { "threads" };
    // The parent waits for its children, or starts the next ones.
    let waits = |thread: &ThreadFacts| thread.in_state(ThreadState::Child) + thread.running;
    let parent = facts.threads.iter().max_by(|a, b| waits(a).total_cmp(&waits(b)));
    let programs = if is_process { programs(facts) } else { String::new() };
    Some(Found {
        message: format!(
            "{} {what} per second start and end{}, with a mean life of {} and {} of CPU time each. They \
             take {} of the time.",
            rate(per_second),
            programs,
            length(life),
            length(cpu),
            percent(gain),
        ),
        gain: Some(gain),
        argument: "the time for which such children lived, as far as they computed or were started",
        evidence: vec![
            ("children_per_second", per_second),
            ("life_seconds", life),
            ("cpu_seconds", cpu),
        ],
        threads: names(parent),
        remedy: if is_process {
            "Give one process many items (xargs, find -exec … +), or do the work without a command."
                .to_owned()
        } else {
            "Keep the threads, in a pool, and give them the items.".to_owned()
        },
        command: None,
        unless: "each child does work that takes as long without it",
    })
}
