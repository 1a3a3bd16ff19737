//! Limits of this process that leave no room for parts. What a shell manages within them, so do
//! the stages as they are: nothing else is started then, and no file opened.

use std::thread;

use rustix::process::{Resource, getrlimit};

use super::settings::Settings;
use crate::plan::ir::{Command, Plan, Step};

/// Open files of contend's own, beside those of commands.
const OWN_FILES: usize = 48;
/// Open files for each command over a part, and for all of them together.
const FILES_EACH: usize = 4;
/// With fewer open files than this, contend's own are too many beside those of a pipeline.
const FEWEST_FILES: u64 = 16;
/// With less address space than this, threads and buffers may be too much for it, in bytes.
const ADDRESS_SPACE: u64 = 8 << 30;
/// With a higher limit on processes it is not tried whether there can be enough.
const MANY_PROCESSES: u64 = 4096;
/// The stack of a thread that only shows that there can be one, in bytes.
const STACK: usize = 16 << 10;

/// Why there cannot be parts, if a limit forbids them.
pub(super) fn obstacle(plan: &Plan, settings: &Settings) -> Option<String> {
    let commands: usize = plan.steps.iter().map(|step| commands_of(step).len()).sum();
    let tasks = settings.jobs() * (commands + 1) + plan.steps.len();
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    if limit(Resource::Fsize) < u64::MAX {
        return Some("the size of files is limited".to_owned());
    }
    if limit(Resource::As).min(limit(Resource::Data)) < ADDRESS_SPACE {
        return Some("its address space is limited".to_owned());
    }
    if limit(Resource::Nofile) < (OWN_FILES + FILES_EACH * tasks) as u64 {
        return Some("it may have too few files open".to_owned());
    }
    let is_low = limit(Resource::Nproc) < MANY_PROCESSES;
    (is_low && !can_have(tasks)).then(|| "it may have too few processes".to_owned())
}

/// Whether so few files may be open that a shell manages with them and contend does not.
pub(super) fn leaves_files_only_to_a_shell() -> bool {
    getrlimit(Resource::Nofile).current.is_some_and(|limit| limit < FEWEST_FILES)
}

fn commands_of(step: &Step) -> &[Command] {
    match step {
        Step::Serial(commands) => commands,
        Step::Parallel(group) => &group.serial,
    }
}

/// Whether there can be so many more processes. Threads count as such.
fn can_have(tasks: usize) -> bool {
    let spawn = |_| thread::Builder::new().stack_size(STACK).spawn(thread::park).ok();
    let threads: Vec<_> = (0..tasks).map_while(spawn).collect();
    let can_have = threads.len() == tasks;
    for thread in threads {
        thread.thread().unpark();
        let _ = thread.join(); // it does nothing
    }
    can_have
}
