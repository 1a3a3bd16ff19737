//! Runs a shell in a fresh folder within limits, and records all effects of the run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use contend_sys::Pid;
use contend_sys::child::{self, ExitStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, kill_process_group,
    pidfd_open, setrlimit, wait,
};

use super::files;
use super::generate::{Script, Setting, Stdin, Stdout};

/// Maximum size, in bytes, of a file that a process writes, and of a script's standard output.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// Maximum address space of a process, in bytes.
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// Default of [`Runner::grace`].
const GRACE: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Interval between the first lines of [`Stdin::SlowPipe`].
const SLOW_INTERVAL: Duration = Duration::from_millis(10);
/// Number of lines of [`Stdin::SlowPipe`] that are written at intervals.
const SLOW_LINES: usize = 10;

/// The result of a run: status, outputs, files, and whether processes remained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit status of the shell; `None` if it was killed at the limit.
    pub status: Option<ExitStatus>,
    /// Bytes written to standard output.
    pub stdout: Vec<u8>,
    /// Bytes written to standard error.
    pub stderr: Vec<u8>,
    /// Files left in the working directory: kind, permissions and content by relative path.
    pub files: BTreeMap<PathBuf, Entry>,
    /// Paths, relative to `TMPDIR`, of files left there.
    pub temporary: Vec<PathBuf>,
    /// Whether processes were still running after [`Runner::grace`] had passed; `false` if the shell
    /// was killed.
    pub left_running: bool,
    /// Wall time of the shell.
    pub wall: Duration,
}

/// A file that a run has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file: permission bits and content.
    File(u32, Vec<u8>),
    /// A symbolic link and its target.
    Link(PathBuf),
    /// A folder: permission bits.
    Folder(u32),
    /// A pipe, a socket or a device: the mode, with the type.
    Other(u32),
}

/// A runner that executes one script at a time, so that all remaining processes belong to that
/// script.
#[derive(Debug)]
pub struct Runner {
    folder: tempfile::TempDir,
    /// Time after which a run is killed.
    pub limit: Duration,
    /// Time for which background processes may continue after the shell's exit.
    pub grace: Duration,
}

/// A command, with its streams and environment.
#[derive(Debug)]
pub struct Job<'a> {
    /// Program and arguments.
    pub command: &'a [String],
    /// Standard input and output, locale and `BASH_ENV`.
    pub setting: &'a Setting,
    /// Content of standard input, if it is a pipe.
    pub input: &'a [u8],
    /// Further environment variables.
    pub variables: &'a [(String, String)],
}

/// Makes this process adopt its orphaned descendants. A process must call this before it creates a
/// [`Runner`].
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn adopt_orphans() -> Result<()> {
    child::become_subreaper().context("cannot become a subreaper")
}

/// Limits the size of files and the address space of this process and its later children, and
/// disables core dumps.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn limit_resources() -> Result<()> {
    let limits = [
        (Resource::Fsize, MAX_OUTPUT_BYTES),
        (Resource::As, MAX_MEMORY_BYTES),
        (Resource::Core, 0),
    ];
    for (resource, most) in limits {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).context("cannot set a limit")?;
    }
    Ok(())
}

impl Runner {
    /// Creates a runner with a temporary folder. `limit` is the time after which it kills a run.
    /// This process must have called [`adopt_orphans`].
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn new(limit: Duration) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        Ok(Self { folder, limit, grace: GRACE })
    }

    /// Returns the path to which [`Runner::run`] writes the script.
    pub fn script(&self) -> PathBuf {
        self.folder.path().join("script.sh")
    }

    /// Runs `command`, a shell that runs `script`, in a fresh folder with the script's files, and
    /// returns the outcome.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started, or if a file cannot be written or read.
    pub fn run(&self, command: &[String], script: &Script) -> Result<Outcome> {
        fs::write(self.script(), script.text() + "\n")?;
        let job = Job { command, setting: &script.setting, input: &script.input, variables: &[] };
        self.run_job(&job, |work| files::write(work, &script.files, &script.input))
    }

    /// Runs a command in a fresh folder, to which `write_files` has written files, and returns the
    /// outcome.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started, or if a file cannot be written or read.
    pub fn run_job(
        &self,
        job: &Job<'_>,
        write_files: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Outcome> {
        let [work, temporary] = ["work", "tmp"].map(|name| self.folder.path().join(name));
        for folder in [&work, &temporary] {
            fresh(folder)?;
        }
        write_files(&work).context("cannot write the files")?;
        let mut command = prepare(job, &work, &temporary);
        let stderr = self.folder.path().join("stderr");
        command.stderr(File::create(&stderr)?);
        let feeder = feed(&mut command, job, &work)?;
        let collector = self.collect(&mut command, job.setting.stdout)?;
        let ended = self.wait(command)?;
        let stdout = collector.finish()?;
        // All readers of the pipe have exited, so the thread ends.
        let _ = feeder.map(JoinHandle::join);
        Ok(Outcome {
            stdout,
            stderr: fs::read(stderr)?,
            files: snapshot(&work)?,
            temporary: snapshot(&temporary)?.into_keys().collect(),
            ..ended
        })
    }

    fn collect(&self, command: &mut Command, stdout: Stdout) -> Result<Collector> {
        match stdout {
            Stdout::File => {
                let path = self.folder.path().join("stdout");
                command.stdout(File::create(&path)?);
                Ok(Collector::File(path))
            }
            Stdout::Pipe => {
                let (reader, writer) = io::pipe()?;
                command.stdout(writer);
                Ok(Collector::Pipe(thread::spawn(move || read_some(reader))))
            }
        }
    }

    /// Starts the shell, waits at most [`Runner::limit`] until it exits and at most
    /// [`Runner::grace`] until its descendants do, and kills those that remain. The outcome lacks
    /// outputs and files.
    fn wait(&self, mut command: Command) -> Result<Outcome> {
        let begun = Instant::now();
        let child = command.process_group(0).spawn().context("cannot start a shell")?;
        // The command holds this process's copies of the shell's pipe ends.
        drop(command);
        let pid = Pid::from_child(&child);
        let in_time = ends_within(pid, self.limit)?;
        let wall = begun.elapsed();
        if !in_time {
            let _ = kill_process_group(pid, Signal::KILL); // the group may just have ended
        }
        let status = child::reap(pid)?.status;
        let left_running = in_time && !all_end_within(self.grace);
        kill_descendants();
        Ok(Outcome {
            status: in_time.then_some(status),
            stdout: Vec::new(),
            stderr: Vec::new(),
            files: BTreeMap::new(),
            temporary: Vec::new(),
            left_running,
            wall,
        })
    }
}

/// The place where standard output is collected.
enum Collector {
    File(PathBuf),
    Pipe(JoinHandle<io::Result<Vec<u8>>>),
}

impl Collector {
    fn finish(self) -> Result<Vec<u8>> {
        match self {
            Self::File(path) => Ok(fs::read(path)?),
            Self::Pipe(thread) => match thread.join() {
                Ok(bytes) => Ok(bytes?),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}

/// Reads until EOF, or up to [`MAX_OUTPUT_BYTES`], after which the writer gets SIGPIPE.
fn read_some(reader: PipeReader) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn prepare(job: &Job<'_>, work: &Path, temporary: &Path) -> Command {
    // `Command` cannot close a descriptor, so a shell does.
    const CLOSE: [&str; 4] = ["bash", "-c", "exec \"$@\" <&-", "bash"];
    let closed = job.setting.stdin == Stdin::Closed;
    let before = if closed { &CLOSE[..] } else { &[] };
    let mut words = before.iter().copied().chain(job.command.iter().map(String::as_str));
    let mut command = Command::new(words.next().unwrap_or("bash"));
    command.args(words).current_dir(work).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", &job.setting.locale);
    command.env("HOME", work).env("TMPDIR", temporary);
    if let Some(folder) = std::env::var_os("LOCPATH") {
        command.env("LOCPATH", folder);
    }
    if job.setting.bash_env && !closed {
        command.env("BASH_ENV", work.join("env.sh"));
    }
    command.envs(job.variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Connects standard input. If it is a pipe, returns the thread that fills it.
fn feed(command: &mut Command, job: &Job<'_>, work: &Path) -> Result<Option<JoinHandle<()>>> {
    let interval = match job.setting.stdin {
        Stdin::Null | Stdin::Closed => {
            command.stdin(Stdio::null());
            return Ok(None);
        }
        Stdin::File => {
            command.stdin(File::open(work.join(files::INPUT))?);
            return Ok(None);
        }
        Stdin::Pipe => Duration::ZERO,
        Stdin::SlowPipe => SLOW_INTERVAL,
    };
    let (reader, writer) = io::pipe()?;
    command.stdin(reader);
    let input = job.input.to_vec();
    Ok(Some(thread::spawn(move || fill(writer, &input, interval))))
}

/// Writes the input, and waits for `interval` before each of the first [`SLOW_LINES`] lines. Stops
/// early if no reader is left.
fn fill(mut writer: PipeWriter, input: &[u8], interval: Duration) {
    let mut rest = input;
    if !interval.is_zero() {
        for line in input.split_inclusive(|&byte| byte == b'\n').take(SLOW_LINES) {
            thread::sleep(interval);
            if writer.write_all(line).is_err() {
                return;
            }
            rest = &rest[line.len()..];
        }
    }
    let _ = writer.write_all(rest); // the shell need not read all input
}

fn ends_within(pid: Pid, limit: Duration) -> Result<bool> {
    let handle = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch a shell")?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).context("a limit of this length")?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for a shell"),
        }
    }
}

/// Reaps children of this process until none is left or `limit` has passed. Returns whether none is
/// left.
fn all_end_within(limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while reap_exited() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

/// Reaps ended children. Returns whether any children are still running.
fn reap_exited() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Kills this process's descendants until none is left. Orphans among them become its children.
fn kill_descendants() {
    while reap_exited() {
        for pid in children(getpid()) {
            let _ = kill_process(pid, Signal::KILL); // the process may have ended in the meantime
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|&number| parent_of(number) == Some(parent)).filter_map(Pid::from_raw).collect()
}

fn parent_of(number: i32) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The program's name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
}

fn fresh(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).context("cannot empty a folder");
        }
        _ => {}
    }
    fs::create_dir(folder).context("cannot make a folder")
}

fn snapshot(folder: &Path) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            let entry = look_at(&path)?;
            if matches!(entry, Entry::Folder(_)) {
                folders.push(path.clone());
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            found.insert(name, entry);
        }
    }
    Ok(found)
}

fn look_at(path: &Path) -> Result<Entry> {
    let metadata = fs::symlink_metadata(path)?;
    let permissions = metadata.permissions().mode() & 0o7777;
    let kind = metadata.file_type();
    Ok(if kind.is_symlink() {
        Entry::Link(fs::read_link(path)?)
    } else if kind.is_dir() {
        Entry::Folder(permissions)
    } else if kind.is_file() {
        Entry::File(permissions, fs::read(path)?)
    } else {
        Entry::Other(metadata.mode())
    })
}
