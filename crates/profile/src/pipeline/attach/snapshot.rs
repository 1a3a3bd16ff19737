//! The processes of the machine, with the pipes at their standard input and output.

use std::collections::BTreeMap;
use std::fs;

use contend_record::shell::quote;
use contend_sys::Pid;
use contend_sys::procfs::Stat;

/// A process, as far as it matters for finding stages.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub parent: i32,
    pub group: i32,
    /// Start time in clock ticks since boot.
    pub started: u64,
    /// The pipe at standard input, as in `pipe:[7]`; `None` if that is something else or cannot be
    /// read.
    pub input: Option<String>,
    /// The pipe at standard output, like `input`.
    pub output: Option<String>,
    /// Whether its descriptors may be examined.
    pub is_readable: bool,
    /// Whether it is a zombie.
    pub has_ended: bool,
}

impl Process {
    pub fn has_same_pipes(&self, other: &Self) -> bool {
        self.input == other.input && self.output == other.output
    }

    pub fn has_pipe(&self) -> bool {
        self.input.is_some() || self.output.is_some()
    }
}

/// The processes of the machine by ID, at one time.
pub(super) type Snapshot = BTreeMap<i32, Process>;

/// Returns all processes whose state can be read.
pub(super) fn read() -> Snapshot {
    let Ok(folder) = fs::read_dir("/proc") else { return Snapshot::new() };
    let ids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

fn process(pid: i32) -> Option<Process> {
    let stat = Stat::of(Pid::from_raw(pid)?).ok()?;
    let pipe = |fd: i32| {
        let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?.to_str()?.to_owned();
        link.starts_with("pipe:").then_some(link)
    };
    Some(Process {
        parent: stat.parent,
        group: stat.group,
        started: stat.started,
        input: pipe(0),
        output: pipe(1),
        is_readable: fs::read_dir(format!("/proc/{pid}/fd")).is_ok(),
        has_ended: matches!(stat.state, b'Z' | b'X'),
    })
}

/// Returns whether process `pid` is `ancestor` or one of its descendants.
pub(super) fn is_in_tree(processes: &Snapshot, pid: i32, ancestor: i32) -> bool {
    let parent = |pid: &i32| processes.get(pid).map(|process| process.parent);
    std::iter::successors(Some(pid), parent).take(processes.len()).any(|pid| pid == ancestor)
}

/// Returns a descriptor of process `pid`, other than standard input and output, that refers to
/// `pipe` and is open for writing, or for reading if `writes` is false. Returns `None` if there is
/// none or it cannot be read.
pub(super) fn descriptor_of(pid: i32, pipe: &str, writes: bool) -> Option<i32> {
    const ACCESS_MODE: u32 = 3;
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let leads_to_pipe = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|link| link.to_str() == Some(pipe))
    };
    let is_open_for_it = |fd: &i32| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let mode = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        // Read-only is 0, write-only 1, and both 2.
        let unwanted = u32::from(!writes);
        mode.is_some_and(|flags| flags & ACCESS_MODE != unwanted)
    };
    let entries = folder.flatten().filter(leads_to_pipe);
    let fds = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    fds.filter(|fd| *fd > 1).find(is_open_for_it)
}

/// Returns the command line of a process, quoted for a shell; its name in brackets if it has none.
pub(super) fn text(pid: i32) -> String {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let line = read("cmdline");
    if line.is_empty() {
        return format!("[{}]", String::from_utf8_lossy(&read("comm")).trim());
    }
    // Every argument ends with a NUL, unless the process has overwritten its command line.
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    let words = line.split(|byte| *byte == 0);
    words.map(|word| quote(&String::from_utf8_lossy(word))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn descriptors_of_a_pipe_are_told_apart_by_direction() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let link = fs::read_link(format!("/proc/self/fd/{}", reader.as_raw_fd())).expect("a link");
        let link = link.to_str().expect("UTF-8");
        assert_eq!(descriptor_of(own, link, false), Some(reader.as_raw_fd()));
        assert_eq!(descriptor_of(own, link, true), Some(writer.as_raw_fd()));
        drop(writer);
        assert_eq!(descriptor_of(own, link, true), None);
    }

    #[test]
    fn empty_arguments_are_kept() {
        let mut command = std::process::Command::new("sh");
        let mut child = command.args(["-c", "sleep 60; :", "", "two words"]).spawn().expect("sh");
        let pid = i32::try_from(child.id()).expect("an ID");
        // Until it executes the shell, the child is a copy of this process.
        while !text(pid).starts_with("sh ") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(text(pid), "sh -c 'sleep 60; :' '' 'two words'");
        for pid in contend_sys::procfs::with_descendants(Pid::from_child(&child)) {
            let _ = rustix::process::kill_process(pid, contend_sys::Signal::KILL);
        }
        child.wait().expect("a child");
    }
}
