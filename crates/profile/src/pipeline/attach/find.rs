//! Finds the stages of a pipeline that already runs, by the pipes at their standard input and
//! output.
//!
//! ```text
//! shell ─┬─ zcat ──────── 1 ▶ pipe:[7] ▶ 0 ─ ( subshell ) ── 1 ▶ pipe:[8] ▶ 0 ─ gzip
//!        │                                      └─ grep: the same pipes
//!        └─ …
//! ```
//!
//! A stage is the topmost process that has a pipe as its standard input or output; its descendants
//! with the same pipes belong to it. Only links in `/proc` are read, so no end of a pipe is held.

use contend_sys::Pid;
use contend_sys::procfs::Stat;

use super::snapshot::{self, Process, Snapshot};
use super::unseen;

/// What to attach to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The pipeline that the process with this ID belongs to.
    Process(i32),
    /// The pipeline in the process group with this ID.
    Group(i32),
    /// The pipeline in the process group that the process with this ID, a shell, has started last.
    /// Groups of its ancestors and of contend do not count.
    LastJob(i32),
}

/// A pipeline that has been found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPipeline {
    /// The stages, first to last; at least one.
    pub stages: Vec<FoundStage>,
    /// Sentences about processes at the pipeline's pipes that are not part of a stage.
    pub unseen: Vec<String>,
}

/// A stage that has been found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundStage {
    /// ID of the stage's own process.
    pub pid: Pid,
    /// The process's command line, quoted for a shell; its name in brackets if it has none.
    pub text: String,
    /// Start time of the process in clock ticks since boot.
    started: u64,
}

impl FoundStage {
    /// Returns whether the process that has the ID now is the one that was found, so that the kernel
    /// has not reused the ID.
    ///
    /// # Errors
    /// Returns an error if there is no process with the ID, or no file can be opened.
    pub(in crate::pipeline) fn is_same_process(&self) -> std::io::Result<bool> {
        Ok(Stat::of(self.pid)?.started == self.started)
    }
}

/// The reason why no pipeline was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no process with this ID.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// The process is a zombie.
    #[error("process {0} has ended, and its parent has not waited for it yet")]
    Ended(i32),
    /// There is no process group with this ID.
    #[error("there is no process group {0}")]
    NoGroup(i32),
    /// The shell has no other job.
    #[error("the shell (process {0}) has no other job: start the pipeline with `&`, or use --pid")]
    NoJob(i32),
    /// The process's descriptors may not be examined by this user.
    #[error("process {0} belongs to another user, or may not be examined: run contend as root")]
    Denied(i32),
}

/// Returns the pipeline that `target` names.
///
/// # Errors
/// Returns an error if the target does not exist, has ended, or may not be examined.
pub fn pipeline(target: Target) -> Result<FoundPipeline, FindError> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut processes = snapshot::read();
    let first = member(target, &processes, own)?;
    processes.remove(&own); // its output may be a pipe of the pipeline's shell
    match processes.get(&first) {
        Some(process) if process.has_ended => return Err(FindError::Ended(first)),
        Some(process) if process.is_readable => {}
        _ => return Err(FindError::Denied(first)),
    }
    let pids = chain(first, &processes);
    let found = |pid: &i32| {
        let started = processes.get(pid)?.started;
        Some(FoundStage { pid: Pid::from_raw(*pid)?, text: snapshot::text(*pid), started })
    };
    let stages = pids.iter().filter_map(found).collect();
    Ok(FoundPipeline { stages, unseen: unseen::describe(&pids, &processes) })
}

/// Returns the ID of a process of the target's pipeline.
fn member(target: Target, processes: &Snapshot, own: i32) -> Result<i32, FindError> {
    match target {
        Target::Process(pid) => {
            processes.contains_key(&pid).then_some(pid).ok_or(FindError::NoProcess(pid))
        }
        Target::Group(group) => member_of_group(group, processes).ok_or(FindError::NoGroup(group)),
        Target::LastJob(shell) => {
            let own_group = processes.get(&own).map(|own| own.group);
            let shell_group = processes.get(&shell).map(|shell| shell.group);
            let is_job = |process: &&Process| {
                process.parent == shell
                    && !process.has_ended
                    && Some(process.group) != own_group
                    && Some(process.group) != shell_group
            };
            let last = processes.values().filter(is_job).max_by_key(|process| process.started);
            let found = last.and_then(|process| member_of_group(process.group, processes));
            found.ok_or(FindError::NoJob(shell))
        }
    }
}

/// Returns the first process of a group that has a pipe to another process of the group. The shell
/// of a script, in the same group, may have pipes from outside. Without such a process, returns one
/// with any pipe, or the first one; `None` if the group has no running process.
fn member_of_group(group: i32, processes: &Snapshot) -> Option<i32> {
    let running = |process: &Process| process.group == group && !process.has_ended;
    let members: Vec<_> = processes.iter().filter(|(_, process)| running(process)).collect();
    let writes_to_member = |process: &Process| {
        let reads = |(_, other): &(&i32, &Process)| other.input == process.output;
        process.output.is_some() && members.iter().any(reads)
    };
    let first = |wanted: &dyn Fn(&Process) -> bool| {
        members.iter().find(|(_, process)| wanted(process)).map(|(pid, _)| **pid)
    };
    first(&writes_to_member).or_else(|| first(&Process::has_pipe)).or_else(|| first(&|_| true))
}

/// Returns the IDs of the stages of the pipeline to which process `first` belongs, first to last.
fn chain(first: i32, processes: &Snapshot) -> Vec<i32> {
    let mut stages = vec![top(first, processes)];
    // A process that reads and writes the same pipe would make a cycle.
    while let Some(before) = neighbour(stages[0], processes, true) {
        if stages.contains(&before) {
            break;
        }
        stages.insert(0, before);
    }
    while let Some(after) = stages.last().and_then(|last| neighbour(*last, processes, false)) {
        if stages.contains(&after) {
            break;
        }
        stages.push(after);
    }
    stages
}

/// Returns the topmost ancestor of `pid` that has the same pipes as `pid`, or `pid` itself if it has
/// no pipes.
fn top(pid: i32, processes: &Snapshot) -> i32 {
    let Some(process) = processes.get(&pid) else { return pid };
    if !process.has_pipe() {
        return pid;
    }
    let mut top = pid;
    while let Some(parent) = processes.get(&top).map(|process| process.parent)
        && processes.get(&parent).is_some_and(|parent| parent.has_same_pipes(process))
    {
        top = parent;
    }
    top
}

/// Returns the stage before or after `stage`: of the processes at the other end of its pipe, the one
/// that started first, with its ancestors at the same pipes. Returns `None` if there is none.
fn neighbour(stage: i32, processes: &Snapshot, before: bool) -> Option<i32> {
    let own = processes.get(&stage)?;
    let pipe = if before { own.input.as_ref()? } else { own.output.as_ref()? };
    let other_end = |process: &Process| {
        let end = if before { &process.output } else { &process.input };
        end.as_ref() == Some(pipe)
    };
    let at_it = processes.iter().filter(|(pid, process)| **pid != stage && other_end(process));
    let (pid, _) = at_it.min_by_key(|(pid, process)| (process.started, **pid))?;
    Some(top(*pid, processes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn process(parent: i32, started: u64, input: &str, output: &str) -> Process {
        let pipe = |name: &str| (!name.is_empty()).then(|| format!("pipe:[{name}]"));
        Process {
            parent,
            group: 10,
            started,
            input: pipe(input),
            output: pipe(output),
            is_readable: true,
            has_ended: false,
        }
    }

    /// Returns `zcat | ( grep ) | gzip`, started by process 1, where the second stage is a subshell.
    fn processes() -> Snapshot {
        BTreeMap::from([
            (1, process(0, 1, "", "")),
            (10, process(1, 5, "", "7")),
            (11, process(1, 6, "7", "8")),
            (12, process(11, 9, "7", "8")),
            (13, process(1, 7, "8", "")),
        ])
    }

    #[test]
    fn stages_are_found_from_each_of_their_processes() {
        for first in [10, 11, 12, 13] {
            assert_eq!(chain(first, &processes()), [10, 11, 13], "from {first}");
        }
        assert_eq!(chain(1, &processes()), [1], "the shell has no pipes");
    }

    #[test]
    fn a_cycle_of_pipes_ends() {
        let cycle = BTreeMap::from([(10, process(1, 1, "1", "2")), (11, process(1, 2, "2", "1"))]);
        assert_eq!(chain(10, &cycle), [11, 10]);
        assert_eq!(chain(5, &BTreeMap::from([(5, process(1, 1, "3", "3"))])), [5]);
    }

    #[test]
    fn a_group_or_job_is_found_by_a_process_with_a_pipe() {
        let mut processes = processes();
        processes.get_mut(&1).expect("the shell").group = 1;
        assert_eq!(member(Target::Group(10), &processes, 99), Ok(10));
        assert_eq!(member(Target::Group(3), &processes, 99), Err(FindError::NoGroup(3)));
        assert_eq!(member(Target::LastJob(1), &processes, 99), Ok(10));
        assert_eq!(member(Target::LastJob(13), &processes, 99), Err(FindError::NoJob(13)));
        assert_eq!(member(Target::Process(77), &processes, 99), Err(FindError::NoProcess(77)));
    }

    #[test]
    fn the_shell_of_a_script_is_not_taken_for_its_pipeline() {
        // The script's own standard input and output are pipes of the program that started it.
        let script = Process { group: 10, ..process(0, 1, "1", "2") };
        let (writer, reader) = (process(10, 5, "1", "7"), process(10, 6, "7", "2"));
        let mut processes = BTreeMap::from([(10, script), (11, writer), (12, reader)]);
        assert_eq!(member_of_group(10, &processes), Some(11));
        processes.remove(&12);
        assert_eq!(member_of_group(10, &processes), Some(10), "any process with a pipe");
        for process in processes.values_mut() {
            process.has_ended = true;
        }
        assert_eq!(member_of_group(10, &processes), None);
    }

    #[test]
    fn a_reused_id_is_noticed() {
        let own = rustix::process::getpid();
        let started = Stat::of(own).expect("it runs").started;
        let stage = |started| FoundStage { pid: own, text: String::new(), started };
        assert!(stage(started).is_same_process().expect("it runs"));
        assert!(!stage(started + 1).is_same_process().expect("it runs"));
    }

    #[test]
    fn a_running_pipeline_is_found() {
        use std::process::{Command, Stdio};
        let mut child = Command::new("sh")
            .args(["-c", "sleep 30 | cat | cat >/dev/null"])
            .stdin(Stdio::null())
            .spawn()
            .expect("a shell");
        let pid = i32::try_from(child.id()).expect("an ID");
        let has_three = |found: &FoundPipeline| {
            let stages = &found.stages;
            stages.len() == 3 && stages.iter().all(|stage| !stage.text.contains("sh"))
        };
        let sleeper = || {
            let children = contend_sys::procfs::with_descendants(Pid::from_child(&child));
            children.into_iter().map(|pid| pid.as_raw_nonzero().get()).find(|one| *one != pid)
        };
        let found = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let found = pipeline(Target::Process(sleeper()?)).ok()?;
            Some(found).filter(has_three)
        });
        for pid in contend_sys::procfs::with_descendants(Pid::from_child(&child)) {
            let _ = rustix::process::kill_process(pid, contend_sys::Signal::KILL);
        }
        let _ = child.wait();
        let found = found.expect("the stages");
        let texts: Vec<_> = found.stages.into_iter().map(|stage| stage.text).collect();
        assert_eq!(texts, ["sleep 30", "cat", "cat"]);
    }
}
