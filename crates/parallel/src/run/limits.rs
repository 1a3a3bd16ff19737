//! Detects resource limits that are too low for chunks. Stages that run as written need no more
//! than under a shell, because contend then starts and opens nothing else.

use std::thread;

use rustix::process::{Resource, getrlimit};

use super::settings::Settings;
use crate::plan::ir::{Command, Plan, Step};

/// Maximum number of files that contend itself opens.
const OWN_FILES: usize = 48;
/// Number of file descriptors to allow for each command that runs over a chunk.
const FILES_EACH: usize = 4;
/// Limit on open files below which there is no room for contend's own files and those of a
/// pipeline.
const MIN_OPEN_FILES: u64 = 16;
/// Limit on address space, in bytes, below which threads and buffers may not fit.
const MIN_ADDRESS_SPACE_BYTES: u64 = 8 << 30;
/// Limit on processes at or above which contend does not test whether enough can be started.
const PROCESS_LIMIT_TO_TEST: u64 = 4096;
/// Stack size in bytes of a thread that only tests whether a thread can be started.
const PROBE_STACK_BYTES: usize = 16 << 10;

/// Returns why chunks cannot be used, or `None` if no resource limit forbids them.
pub(super) fn obstacle(plan: &Plan, settings: &Settings) -> Option<String> {
    let commands: usize = plan.steps.iter().map(|step| commands_of(step).len()).sum();
    let tasks = settings.jobs() * (commands + 1) + plan.steps.len();
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    if limit(Resource::Fsize) < u64::MAX {
        return Some("the size of files is limited".to_owned());
    }
    if limit(Resource::As).min(limit(Resource::Data)) < MIN_ADDRESS_SPACE_BYTES {
        return Some("its address space is limited".to_owned());
    }
    if limit(Resource::Nofile) < (OWN_FILES + FILES_EACH * tasks) as u64 {
        return Some("it may have too few files open".to_owned());
    }
    let is_low = limit(Resource::Nproc) < PROCESS_LIMIT_TO_TEST;
    (is_low && !can_start_tasks(tasks)).then(|| "it may have too few processes".to_owned())
}

/// Returns whether the limit on open files is too low for contend. It may be enough for a shell.
pub(super) fn leaves_files_only_to_a_shell() -> bool {
    getrlimit(Resource::Nofile).current.is_some_and(|limit| limit < MIN_OPEN_FILES)
}

fn commands_of(step: &Step) -> &[Command] {
    match step {
        Step::Serial(commands) => commands,
        Step::Parallel(group) => &group.serial,
    }
}

/// Returns whether `tasks` more processes can be started. Tests this with threads, which count
/// against the same limit.
fn can_start_tasks(tasks: usize) -> bool {
    let spawn = |_| thread::Builder::new().stack_size(PROBE_STACK_BYTES).spawn(thread::park).ok();
    let threads: Vec<_> = (0..tasks).map_while(spawn).collect();
    let all_started = threads.len() == tasks;
    for thread in threads {
        thread.thread().unpark();
        let _ = thread.join(); // the thread does nothing
    }
    all_started
}
