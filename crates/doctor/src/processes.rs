//! The observed processes: the named ones, their descendants, and those that share their pipes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use contend_record::doctor::{Relation, Runtime};
use contend_sys::Pid;
use contend_sys::procfs::{self, Io, ProcFile, Stat, children, read_once};

use crate::libraries::Libraries;
use crate::runtime;
use crate::thread;

/// An observed process.
#[derive(Debug)]
pub struct Observed {
    /// The PID.
    pub pid: Pid,
    /// PID of the parent when it was found.
    pub parent: i32,
    /// Why it is observed.
    pub relation: Relation,
    /// Its command line, or its name in brackets.
    pub command: String,
    /// Its runtime, if it was recognised.
    pub runtime: Option<Runtime>,
    /// Its libraries that determine which remedies have an effect.
    pub libraries: Libraries,
    /// Number of its threads that are observed now.
    pub threads: usize,
    /// Largest number of its threads that were observed at the same time.
    pub most_threads: usize,
    /// Minor page faults, user and system ticks when it was found, and at the last sample.
    pub first: Option<Stat>,
    /// The same at the last sample.
    pub last: Option<Stat>,
    /// Bytes and calls when it was found; `None` if they may not be read.
    pub first_io: Option<Io>,
    /// The same at the last sample.
    pub last_io: Option<Io>,
    /// The pipes at its standard input and output; `None` until they have been read for its program.
    pub pipes: Option<HashSet<PipeEnd>>,
    /// Whether one of its threads has run since the counters were last read.
    pub is_changed: bool,
    has_ended: bool,
    /// `None` if the files are opened each time that they are read.
    open: Option<OpenFiles>,
}

/// The files of a process that stay open.
#[derive(Debug)]
struct OpenFiles {
    /// `None` if it may not be read.
    io: Option<ProcFile>,
    stat: ProcFile,
}

/// Number of descriptors that the files of a process take up while they stay open.
pub const DESCRIPTORS: usize = 2;

impl Observed {
    /// Reads the files of a process for the first time.
    ///
    /// # Errors
    /// Returns an error if there is no such process, or no file can be opened.
    pub fn open(pid: Pid, relation: Relation) -> io::Result<Self> {
        let stat = Stat::of(pid)?;
        if has_ended(&stat) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let first_io = Self::read_io(pid, None, &mut [0; 1024]);
        Ok(Self {
            pid,
            parent: stat.parent,
            relation,
            command: command(pid),
            runtime: runtime::recognise(pid),
            libraries: Libraries::default(),
            threads: 0,
            most_threads: 0,
            first: Some(stat),
            last: Some(stat),
            first_io,
            last_io: first_io,
            pipes: None,
            is_changed: true,
            has_ended: false,
            open: None,
        })
    }

    /// Keeps the files open, which takes [`DESCRIPTORS`] descriptors. Does nothing if that fails.
    pub fn keep_open(&mut self) {
        let folder = format!("/proc/{}", self.pid.as_raw_nonzero());
        let Ok(stat) = ProcFile::open(&format!("{folder}/stat")) else { return };
        let io = self.first_io.and_then(|_| ProcFile::open(&format!("{folder}/io")).ok());
        self.open = Some(OpenFiles { io, stat });
    }

    /// Returns whether the files are open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Reads the counters again. Counters that cannot be read, as after its end, keep their values.
    pub fn update(&mut self, buffer: &mut [u8]) {
        self.is_changed = false;
        if self.has_ended {
            return;
        }
        if self.first_io.is_some() {
            self.last_io = Self::read_io(self.pid, self.open.as_ref(), buffer).or(self.last_io);
        }
        match self.read_stat(buffer) {
            Ok(stat) if !has_ended(&stat) && self.is_same(&stat) => self.last = Some(stat),
            Err(error) if thread::is_out_of_descriptors(&error) => return,
            // It has ended, and needs no descriptors any more.
            _ => {
                (self.has_ended, self.open) = (true, None);
                return;
            }
        }
        self.libraries.update(self.pid);
        if self.pipes.is_none() {
            self.pipes = Some(standard_pipes(self.pid.as_raw_nonzero().get()));
        }
    }

    /// Returns whether the counters are those of this process, and not of another one with its PID.
    fn is_same(&self, stat: &Stat) -> bool {
        self.first.is_none_or(|first| first.started == stat.started)
    }

    fn read_io(pid: Pid, open: Option<&OpenFiles>, buffer: &mut [u8]) -> Option<Io> {
        Io::parse(match open {
            Some(files) => files.io.as_ref()?.read(buffer).ok()?,
            None => read_once(&format!("/proc/{}/io", pid.as_raw_nonzero()), buffer).ok()?,
        })
    }

    fn read_stat(&self, buffer: &mut [u8]) -> io::Result<Stat> {
        let text = match &self.open {
            Some(files) => files.stat.read(buffer)?,
            None => read_once(&format!("/proc/{}/stat", self.pid.as_raw_nonzero()), buffer)?,
        };
        Stat::parse(text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns whether it has ended, as far as the counters have shown.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Updates command, runtime and libraries, after it has executed another program.
    pub fn update_program(&mut self) {
        self.command = command(self.pid);
        self.runtime = runtime::recognise(self.pid);
        self.pipes = None;
        self.libraries = Libraries::default();
    }

    /// Returns a copy without open files, whose counters do not change any more.
    pub fn snapshot(&self) -> Self {
        Self {
            command: self.command.clone(),
            pipes: self.pipes.clone(),
            libraries: self.libraries.clone(),
            open: None,
            ..*self
        }
    }

    /// Returns a snapshot whose counters begin at those of `earlier`, a previous one of this process.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self { first: earlier.last, first_io: earlier.last_io, ..self.snapshot() }
    }

    /// Returns the increase of bytes and calls; `None` if they may not be read.
    pub fn io_increase(&self) -> Option<Io> {
        Some(self.last_io?.since(self.first_io?))
    }
}

/// Returns whether a process has ended. If only its main thread has ended, that is a zombie, too, but
/// the others are counted.
pub fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, b'Z' | b'X') && stat.threads <= 1
}

/// Returns the command line of a process, with words separated by spaces, or its name in brackets if
/// there is no command line, as for a thread of the kernel or a zombie.
pub fn command(pid: Pid) -> String {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let words = fs::read(format!("{folder}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&words);
    let words: Vec<&str> = text.split('\0').filter(|word| !word.is_empty()).collect();
    if !words.is_empty() {
        return words.join(" ");
    }
    let name = fs::read_to_string(format!("{folder}/comm")).unwrap_or_default();
    format!("[{}]", name.trim_end())
}

/// Returns the processes to observe for the named ones: themselves, their descendants and processes
/// that share their pipes, except for `own` and its ancestors.
pub fn related(named: &[Pid], own: Pid) -> Vec<(Pid, Relation)> {
    let mut found: BTreeMap<i32, Relation> = BTreeMap::new();
    let mut queue: Vec<Pid> = Vec::new();
    for &pid in named {
        found.insert(pid.as_raw_nonzero().get(), Relation::Named);
        queue.push(pid);
    }
    while let Some(pid) = queue.pop() {
        for child in children(pid) {
            let id = child.as_raw_nonzero().get();
            if child != own && !found.contains_key(&id) {
                found.insert(id, Relation::Descendant);
                queue.push(child);
            }
        }
    }
    let hidden = ancestors(own);
    let ends: HashSet<PipeEnd> = found.keys().flat_map(|&pid| pipe_ends(pid)).collect();
    if !ends.is_empty() {
        for pid in procfs::processes().iter().map(|pid| pid.as_raw_nonzero().get()) {
            let shares = || pipe_ends(pid).iter().any(|end| ends.contains(&end.other()));
            if !hidden.contains(&pid) && !found.contains_key(&pid) && shares() {
                found.insert(pid, Relation::SharesPipe);
            }
        }
    }
    found.into_iter().filter_map(|(pid, relation)| Some((Pid::from_raw(pid)?, relation))).collect()
}

/// Returns the ID of a process and those of its ancestors.
fn ancestors(pid: Pid) -> BTreeSet<i32> {
    let mut all = BTreeSet::new();
    let mut next = Some(pid);
    while let Some(pid) = next {
        if !all.insert(pid.as_raw_nonzero().get()) {
            break;
        }
        next = Stat::of(pid).ok().and_then(|stat| Pid::from_raw(stat.parent));
    }
    all
}

/// An end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PipeEnd {
    /// Number of the pipe.
    pub pipe: u64,
    /// Whether it is the end to write to.
    pub is_writer: bool,
}

impl PipeEnd {
    /// Returns the other end of the pipe.
    pub fn other(&self) -> Self {
        Self { is_writer: !self.is_writer, ..*self }
    }
}

/// Returns the ends of pipes that are a process's standard input and output; none if they may not be
/// read.
fn standard_pipes(pid: i32) -> HashSet<PipeEnd> {
    let end = |fd: u32| Some(PipeEnd { pipe: pipe_at(pid, fd)?, is_writer: fd == 1 });
    [0, 1].into_iter().filter_map(end).collect()
}

/// Returns the number of the pipe at a descriptor; `None` if it is something else or may not be read.
fn pipe_at(pid: i32, fd: u32) -> Option<u64> {
    parse_pipe(&fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?)
}

/// Parses the name of a pipe, as in `pipe:[7]`.
fn parse_pipe(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok()
}

/// Returns the ends of pipes that a process has open, except for its standard error, which many
/// processes share; none if they may not be read.
fn pipe_ends(pid: i32) -> HashSet<PipeEnd> {
    const OWNER_MAY_WRITE: u32 = 0o200;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let end = |entry: fs::DirEntry| {
        let pipe = parse_pipe(&fs::read_link(entry.path()).ok()?)?;
        // The permissions of the link are those of the descriptor.
        let is_writer = entry.metadata().ok()?.permissions().mode() & OWNER_MAY_WRITE != 0;
        (entry.file_name() != "2").then_some(PipeEnd { pipe, is_writer })
    };
    descriptors.filter_map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn own() -> Pid {
        Pid::from_raw(std::process::id().cast_signed()).expect("a process id")
    }

    #[test]
    fn descendants_and_processes_at_the_same_pipe_are_found() {
        let mut reader = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let pipe = reader.stdin.take().expect("a pipe");
        let mut writer = Command::new("sh")
            .args(["-c", "sleep 100 & wait"])
            .stdout(pipe)
            .spawn()
            .expect("a shell");
        let shell = Pid::from_child(&writer);
        let mut sleeper = None;
        for _ in 0..2000 {
            sleeper = children(shell).first().copied();
            if sleeper.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let sleeper = sleeper.expect("a child of the shell");
        let found = related(&[shell], own());
        let observed = Observed::open(shell, Relation::Named).expect("alive");
        rustix::process::kill_process(sleeper, contend_sys::Signal::KILL).expect("alive");
        writer.kill().and_then(|()| writer.wait()).expect("a child");
        let expected = [
            (shell, Relation::Named),
            (sleeper, Relation::Descendant),
            (Pid::from_child(&reader), Relation::SharesPipe),
        ];
        reader.wait().expect("a child");
        let sort = |mut all: Vec<(Pid, Relation)>| {
            all.sort_by_key(|(pid, _)| pid.as_raw_nonzero());
            all
        };
        assert_eq!(sort(found), sort(expected.to_vec()));
        assert_eq!(observed.command, "sh -c sleep 100 & wait");
        assert_eq!(observed.runtime, Some(Runtime::Shell));
        assert_eq!(observed.io_increase(), Some(Io::default()));
    }

    #[test]
    fn this_process_is_never_observed() {
        let parent = rustix::process::getppid().expect("a parent");
        let found = related(&[parent], own());
        assert!(found.iter().all(|(pid, _)| *pid != own()), "{found:?}");
    }
}
