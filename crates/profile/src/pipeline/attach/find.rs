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
//! with the same pipes belong to it. Nothing is opened but links in `/proc`, so no end of a pipe is
//! held.

use std::collections::BTreeMap;

use contend_record::shell::quote;
use contend_sys::Pid;
use contend_sys::procfs::{self, Stat};

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

/// A stage that has been found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundStage {
    /// ID of the stage's own process.
    pub pid: Pid,
    /// The process's command line, quoted for a shell; its name in brackets if it has none.
    pub text: String,
}

/// The reason why no pipeline was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no process with this ID.
    #[error("there is no process {0}")]
    NoProcess(i32),
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

/// A process, as far as it matters for finding stages.
#[derive(Debug, Clone, Default)]
struct Process {
    parent: i32,
    group: i32,
    /// Start time in clock ticks since boot.
    started: u64,
    /// The pipes at standard input and output, as in `pipe:[7]`.
    input: Option<String>,
    output: Option<String>,
    is_readable: bool,
}

impl Process {
    fn has_same_pipes(&self, other: &Self) -> bool {
        self.input == other.input && self.output == other.output
    }
}

/// Returns the stages of the pipeline, first to last, at least one.
///
/// # Errors
/// Returns an error if the target does not exist or may not be examined.
pub fn stages(target: Target) -> Result<Vec<FoundStage>, FindError> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut processes = processes();
    let first = member(target, &processes, own)?;
    processes.remove(&own); // its output may be a pipe of the pipeline's shell
    if !processes.get(&first).is_some_and(|process| process.is_readable) {
        return Err(FindError::Denied(first));
    }
    let found = |pid: i32| Some(FoundStage { pid: Pid::from_raw(pid)?, text: text(pid) });
    Ok(chain(first, &processes).into_iter().filter_map(found).collect())
}

/// Returns the ID of a process of the target's pipeline.
fn member(target: Target, processes: &BTreeMap<i32, Process>, own: i32) -> Result<i32, FindError> {
    // The pipeline's processes have pipes; the shell of a script in the same group has none.
    let of_group = |group: i32| {
        let members = || processes.iter().filter(|(_, process)| process.group == group);
        let has_pipe = |process: &Process| process.input.is_some() || process.output.is_some();
        let with_pipe = members().find(|(_, process)| has_pipe(process));
        with_pipe.or_else(|| members().next()).map(|(pid, _)| *pid)
    };
    match target {
        Target::Process(pid) => {
            processes.contains_key(&pid).then_some(pid).ok_or(FindError::NoProcess(pid))
        }
        Target::Group(group) => of_group(group).ok_or(FindError::NoGroup(group)),
        Target::LastJob(shell) => {
            let own_group = processes.get(&own).map(|own| own.group);
            let shell_group = processes.get(&shell).map(|shell| shell.group);
            let is_job = |process: &&Process| {
                process.parent == shell
                    && Some(process.group) != own_group
                    && Some(process.group) != shell_group
            };
            let last = processes.values().filter(is_job).max_by_key(|process| process.started);
            last.and_then(|process| of_group(process.group)).ok_or(FindError::NoJob(shell))
        }
    }
}

/// Returns the IDs of the stages of the pipeline to which process `first` belongs, first to last.
fn chain(first: i32, processes: &BTreeMap<i32, Process>) -> Vec<i32> {
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
fn top(pid: i32, processes: &BTreeMap<i32, Process>) -> i32 {
    let Some(process) = processes.get(&pid) else { return pid };
    if process.input.is_none() && process.output.is_none() {
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
fn neighbour(stage: i32, processes: &BTreeMap<i32, Process>, before: bool) -> Option<i32> {
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

/// Returns all processes that can be read.
fn processes() -> BTreeMap<i32, Process> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let ids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|pid| Some((pid, read(pid)?))).collect()
}

fn read(pid: i32) -> Option<Process> {
    let mut buffer = [0; 1024];
    let text = procfs::read_once(&format!("/proc/{pid}/stat"), &mut buffer).ok()?;
    let stat = Stat::parse(text)?;
    let link = |fd: i32| std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    let pipe = |fd: i32| {
        let link = link(fd).ok()?.to_str()?.to_owned();
        link.starts_with("pipe:").then_some(link)
    };
    Some(Process {
        parent: stat.parent,
        group: stat.group,
        started: stat.started,
        input: pipe(0),
        output: pipe(1),
        is_readable: std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok(),
    })
}

fn text(pid: i32) -> String {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let line = read("cmdline");
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| quote(&String::from_utf8_lossy(word)))
        .collect();
    if words.is_empty() {
        return format!("[{}]", String::from_utf8_lossy(&read("comm")).trim());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(parent: i32, started: u64, input: &str, output: &str) -> Process {
        let pipe = |name: &str| (!name.is_empty()).then(|| format!("pipe:[{name}]"));
        Process {
            parent,
            group: 10,
            started,
            input: pipe(input),
            output: pipe(output),
            is_readable: true,
        }
    }

    /// Returns `zcat | ( grep ) | gzip`, started by process 1, where the second stage is a subshell.
    fn pipeline() -> BTreeMap<i32, Process> {
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
            assert_eq!(chain(first, &pipeline()), [10, 11, 13], "from {first}");
        }
        assert_eq!(chain(1, &pipeline()), [1], "the shell has no pipes");
    }

    #[test]
    fn a_cycle_of_pipes_ends() {
        let cycle = BTreeMap::from([(10, process(1, 1, "1", "2")), (11, process(1, 2, "2", "1"))]);
        assert_eq!(chain(10, &cycle), [11, 10]);
        assert_eq!(chain(5, &BTreeMap::from([(5, process(1, 1, "3", "3"))])), [5]);
    }

    #[test]
    fn a_group_or_job_is_found_by_a_process_with_a_pipe() {
        let mut processes = pipeline();
        processes.get_mut(&1).expect("the shell").group = 1;
        assert_eq!(member(Target::Group(10), &processes, 99), Ok(10));
        assert_eq!(member(Target::Group(3), &processes, 99), Err(FindError::NoGroup(3)));
        assert_eq!(member(Target::LastJob(1), &processes, 99), Ok(10));
        assert_eq!(member(Target::LastJob(13), &processes, 99), Err(FindError::NoJob(13)));
        assert_eq!(member(Target::Process(77), &processes, 99), Err(FindError::NoProcess(77)));
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
        let has_three = |stages: &Vec<FoundStage>| {
            stages.len() == 3 && stages.iter().all(|stage| !stage.text.contains("sh"))
        };
        let sleeper = || {
            let children = procfs::with_descendants(Pid::from_child(&child));
            children.into_iter().map(|pid| pid.as_raw_nonzero().get()).find(|one| *one != pid)
        };
        let found = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let found = stages(Target::Process(sleeper()?)).ok()?;
            Some(found).filter(has_three)
        });
        for pid in procfs::with_descendants(Pid::from_child(&child)) {
            let _ = rustix::process::kill_process(pid, contend_sys::Signal::KILL);
        }
        let _ = child.wait();
        let texts: Vec<_> =
            found.expect("the stages").into_iter().map(|stage| stage.text).collect();
        assert_eq!(texts, ["sleep 30", "cat", "cat"]);
    }
}
