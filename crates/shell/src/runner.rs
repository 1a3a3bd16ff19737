//! Runs shell source, such as a pipeline or one of its stages, or a command, and measures its wall and
//! CPU time.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread::Builder;
use std::time::{Duration, Instant};

use contend_sys::child::{self, Change, ExitStatus, Which};
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, Signal, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, kill_process_group, pidfd_open};

/// Settings for running shell source: the shell and its options.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a> {
    /// Name or path of the shell.
    pub shell: &'a str,
    /// Shell source to execute first in the same shell, with its output discarded.
    pub setup: Option<&'a str>,
    /// Whether to set `pipefail`, so that a pipeline fails if any stage does.
    pub pipefail: bool,
    /// The signals that ask contend to terminate.
    pub signals: &'a Signals,
}

/// The times and the exit status of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Wall time from just before the start of the shell or the command until contend notices its
    /// exit.
    pub wall: Duration,
    /// User CPU time of the shell or the command, and of its descendants that were waited for.
    pub user: Duration,
    /// System CPU time of the shell or the command, and of its descendants that were waited for.
    pub system: Duration,
    /// The exit status of the shell or the command.
    pub status: ExitStatus,
}

impl Timed {
    /// Returns user plus system CPU time.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The signal with this number asked contend to terminate.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// The run exceeded this time limit.
    #[error("timed out after {0:?}")]
    TooLong(Duration),
    /// A system call failed.
    #[error("cannot {what}")]
    Io {
        /// The failed operation, which completes "cannot …".
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

impl RunError {
    /// Returns a function for `map_err` that adds the failed operation to an I/O error.
    pub fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// A running shell or command, the leader of its process group.
struct Started {
    pid: Pid,
    /// A pidfd, readable once the process has ended; `None` if it cannot be opened, as on kernels
    /// before 5.3.
    ended: Option<OwnedFd>,
    begun: Instant,
}

/// Poll interval for processes without a pidfd.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

impl Runner<'_> {
    /// Runs shell source, and waits for its end. `input` is read from its start; if it is `None`,
    /// standard input is empty. `output`, which receives standard output, is truncated first.
    /// Standard error is discarded.
    ///
    /// # Errors
    /// Returns an error if the run exceeds `limit`, if a signal asks contend to terminate, or if a
    /// system call fails. In the first two cases, the process group of the run is killed.
    pub fn run(
        &self,
        text: &str,
        input: Option<&File>,
        output: &File,
        limit: Duration,
    ) -> Result<Timed, RunError> {
        let runs = self.run_copies(text, 1, input, &[output], limit)?;
        runs.into_iter().next().ok_or(RunError::TooLong(limit))
    }

    /// Runs `copies` copies of `text` concurrently, but not more than there are `outputs`. Each
    /// copy writes its standard output to one of these, in order. `input`, `limit` and the
    /// truncation of `outputs` are as in [`Self::run`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Self::run`]. The copies that are still running
    /// are killed first, unless collecting an exit status failed.
    pub fn run_copies(
        &self,
        text: &str,
        copies: usize,
        input: Option<&File>,
        outputs: &[&File],
        limit: Duration,
    ) -> Result<Vec<Timed>, RunError> {
        for output in outputs.iter().copied() {
            empty(output).map_err(RunError::io("empty a temporary file"))?;
        }
        let mut started = Vec::new();
        for output in outputs.iter().take(copies) {
            match start_with_files(self.command(text), input, output, self.signals) {
                Ok(one) => started.push(one),
                Err(error) => {
                    end_all(&started);
                    return Err(error);
                }
            }
        }
        wait_for(&started, limit, self.signals)
    }

    /// Runs shell source as in the middle of a pipeline. If `fed`, standard input is a pipe that a
    /// thread of contend fills from `input`; if `drained`, standard output is a pipe that another
    /// thread empties into `output`. The CPU time of these threads does not count. `input`,
    /// `output` and `limit` are as in [`Self::run`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Self::run`], and if a pipe or a thread cannot be
    /// created.
    pub fn run_between(
        &self,
        text: &str,
        input: &File,
        output: &File,
        (fed, drained): (bool, bool),
        limit: Duration,
    ) -> Result<Timed, RunError> {
        let made = RunError::io("create a pipe");
        let feed = fed.then(io::pipe).transpose().map_err(&made)?;
        let drain = drained.then(io::pipe).transpose().map_err(&made)?;
        empty(output).map_err(RunError::io("empty a temporary file"))?;
        let copied = |file: &File| file.try_clone().map(Stdio::from);
        std::thread::scope(|scope| {
            let (stdin, feeder) = match feed {
                Some((reader, writer)) => (Stdio::from(reader), Some(writer)),
                None => (reopened(input).map(Stdio::from).map_err(&made)?, None),
            };
            let (stdout, drainer) = match drain {
                Some((reader, writer)) => (Stdio::from(writer), Some(reader)),
                None => (copied(output).map_err(&made)?, None),
            };
            // Start the threads first: if one cannot be started, there is no process to kill.
            let threaded = RunError::io("start a thread");
            if let Some(mut writer) = feeder {
                let mut from = reopened(input).map_err(&made)?;
                // The command need not read all of its input.
                let feed = move || io::copy(&mut from, &mut writer).is_ok();
                Builder::new().spawn_scoped(scope, feed).map_err(&threaded)?;
            }
            if let Some(mut reader) = drainer {
                let mut to = output;
                let drain = move || io::copy(&mut reader, &mut to).is_ok();
                Builder::new().spawn_scoped(scope, drain).map_err(&threaded)?;
            }
            let started = start(self.command(text), stdin, stdout, self.signals)?;
            wait_for(&[started], limit, self.signals)?.pop().ok_or(RunError::TooLong(limit))
        })
    }

    /// Returns the command that runs the setup and `text` in the shell.
    fn command(&self, text: &str) -> Command {
        let pipefail = if self.pipefail { "set -o pipefail\n" } else { "" };
        let script = match self.setup {
            // The setup runs in the same shell, with its output discarded. Job control must be off:
            // it would put stages into separate process groups, which could not be killed together.
            Some(setup) => {
                format!("{{ {setup}\n}} >/dev/null 2>&1\nset +m\n{pipefail}{text}\n")
            }
            None => format!("{pipefail}{text}\n"),
        };
        let mut command = Command::new(self.shell);
        if self.shell.rsplit('/').next() == Some("busybox") {
            command.arg("sh");
        }
        command.arg("-c").arg(script);
        command
    }
}

/// Runs a command, and waits for its end. `input`, `output`, `limit` and the standard error are as in
/// [`Runner::run`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runner::run`].
pub fn run_command(
    command: Command,
    input: Option<&File>,
    output: &File,
    limit: Duration,
    signals: &Signals,
) -> Result<Timed, RunError> {
    empty(output).map_err(RunError::io("empty a temporary file"))?;
    let started = start_with_files(command, input, output, signals)?;
    wait_for(&[started], limit, signals)?.pop().ok_or(RunError::TooLong(limit))
}

fn start_with_files(
    command: Command,
    input: Option<&File>,
    output: &File,
    signals: &Signals,
) -> Result<Started, RunError> {
    let stdin = match input {
        Some(file) => Stdio::from(reopened(file).map_err(RunError::io("reopen the input"))?),
        None => Stdio::null(),
    };
    let stdout = output.try_clone().map_err(RunError::io("duplicate a temporary file"))?;
    start(command, stdin, stdout.into(), signals)
}

/// Starts a command in a process group of its own, with its standard error discarded.
fn start(
    mut command: Command,
    stdin: Stdio,
    stdout: Stdio,
    signals: &Signals,
) -> Result<Started, RunError> {
    command.stdin(stdin).stdout(stdout).stderr(Stdio::null()).process_group(0);
    // Orphans of the command become children of contend, so that it can reap them. Kernels before
    // 3.4 do not support this.
    let _ = child::become_subreaper();
    let begun = Instant::now();
    let child = spawn::spawn(&mut command, &[0, 1, 2], signals.mask_before(), Signal::TERM)
        .map_err(RunError::io("start a process"))?;
    let pid = Pid::from_child(&child);
    Ok(Started { pid, ended: pidfd_open(pid, PidfdFlags::empty()).ok(), begun })
}

fn wait_for(
    started: &[Started],
    limit: Duration,
    signals: &Signals,
) -> Result<Vec<Timed>, RunError> {
    let mut ended: Vec<Option<Timed>> = vec![None; started.len()];
    while ended.iter().any(Option::is_none) {
        for (one, slot) in started.iter().zip(&mut ended) {
            let is_over =
                || matches!(child::peek(Which::One(one.pid)), Ok(Some((_, Change::Ended))));
            if slot.is_none() && is_over() {
                let wall = one.begun.elapsed();
                let reaped = child::reap(one.pid).map_err(RunError::io("wait for a process"))?;
                let (user, system) = (reaped.usage.user, reaped.usage.system);
                *slot = Some(Timed { wall, user, system, status: reaped.status });
            }
        }
        if ended.iter().all(Option::is_some) {
            break;
        }
        let running: Vec<&Started> =
            started.iter().zip(&ended).filter(|(_, e)| e.is_none()).map(|(s, _)| s).collect();
        let rest = limit.saturating_sub(running[0].begun.elapsed());
        if let Some(error) = sleep(&running, rest, limit, signals) {
            end_all(running);
            return Err(error);
        }
    }
    Ok(ended.into_iter().flatten().collect())
}

/// Sleeps until one of the `running` processes may have ended, or until `rest`, the part of `limit`
/// that is left, has passed. Returns an error if the run must be abandoned, and `None` otherwise.
fn sleep(
    running: &[&Started],
    rest: Duration,
    limit: Duration,
    signals: &Signals,
) -> Option<RunError> {
    if rest.is_zero() {
        return Some(RunError::TooLong(limit));
    }
    let with_pidfd = running.iter().filter_map(|one| one.ended.as_ref());
    let mut fds: Vec<_> = with_pidfd.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let longest = if fds.len() == running.len() { Duration::from_hours(1) } else { POLL_INTERVAL };
    fds.push(PollFd::new(signals, PollFlags::IN));
    if let Ok(limit) = Timespec::try_from(rest.min(longest)) {
        let _ = poll(&mut fds, Some(&limit)); // after an early wake-up the loop checks again
    }
    signals.interrupted().map(RunError::Interrupted)
}

/// Truncates a file to length 0 and rewinds it.
fn empty(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0)).map(drop)
}

/// Opens a file again for reading, to get an independent file offset, which starts at 0.
fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Time between SIGTERM and SIGKILL, in which programs can remove their temporary files.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Longest wait for the end of a killed process. It may have to wait for a CPU, or for a device that does not
/// answer.
const MAX_KILL_TIME: Duration = Duration::from_secs(10);

/// Terminates the process groups of the given shells, and reaps their processes. They get SIGTERM
/// first, so that sort removes its temporary files, with SIGCONT in case they are stopped, and
/// SIGKILL after [`GRACE_PERIOD`].
fn end_all<'a>(started: impl IntoIterator<Item = &'a Started>) {
    let groups: Vec<Pid> = started.into_iter().map(|one| one.pid).collect();
    for &group in &groups {
        let _ = kill_process_group(group, Signal::TERM); // the group may have ended
        let _ = kill_process_group(group, Signal::CONT);
    }
    let asked = Instant::now();
    for &group in &groups {
        if !wait_until_ended(group, asked + GRACE_PERIOD) {
            let _ = kill_process_group(group, Signal::KILL);
            wait_until_ended(group, Instant::now() + MAX_KILL_TIME);
        }
    }
}

/// Reaps the processes of a group until all have ended. Returns `false` if some remain at the
/// deadline.
fn wait_until_ended(group: Pid, deadline: Instant) -> bool {
    while reap_ended(group) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Reaps the ended processes of a group. When the shell has ended, its stages are children of
/// contend. Returns whether any process of the group remains.
fn reap_ended(group: Pid) -> bool {
    loop {
        match child::peek(Which::Group(group)) {
            Ok(Some((pid, Change::Ended))) if child::reap(pid).is_ok() => {}
            Ok(_) => return true,
            Err(_) => return false, // no child left
        }
    }
}

/// Calls `test` with a runner of `sh` that executes `setup` first.
///
/// # Panics
/// Panics if signals cannot be blocked.
#[cfg(any(test, feature = "testing"))]
pub fn with_runner<T>(setup: Option<&str>, test: impl FnOnce(Runner<'_>) -> T) -> T {
    let signals = Signals::block().expect("a signalfd");
    test(Runner { shell: "sh", setup, pipefail: false, signals: &signals })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const TEST_TIMEOUT: Duration = Duration::from_mins(1);

    #[test]
    fn input_output_and_status_are_those_of_the_text() {
        let mut input = tempfile::tempfile().expect("a file");
        input.write_all(b"b\na\n").expect("room");
        let output = tempfile::tempfile().expect("a file");
        with_runner(Some("f() { sort; }; echo noise"), |runner| {
            for _ in 0..2 {
                let timed =
                    runner.run("f; exit 3", Some(&input), &output, TEST_TIMEOUT).expect("it runs");
                assert_eq!(timed.status, ExitStatus::Exited(3));
                let text = io::read_to_string(reopened(&output).expect("open")).expect("text");
                assert_eq!(text, "a\nb\n");
            }
        });
    }

    #[test]
    fn between_pipes_it_reads_and_writes_the_same() {
        let mut input = tempfile::tempfile().expect("a file");
        input.write_all(&b"line\n".repeat(100_000)).expect("room");
        let output = tempfile::tempfile().expect("a file");
        with_runner(None, |runner| {
            for ends in [(false, false), (true, false), (false, true), (true, true)] {
                let run = runner.run_between(
                    "test -p /dev/stdin; echo $?; cat",
                    &input,
                    &output,
                    ends,
                    TEST_TIMEOUT,
                );
                run.expect("it runs");
                let text = io::read_to_string(reopened(&output).expect("open")).expect("text");
                let expected = format!("{}\n{}", u8::from(!ends.0), "line\n".repeat(100_000));
                assert!(text == expected, "{ends:?}: {} bytes", text.len());
            }
            let early =
                runner.run_between("head -n 1", &input, &output, (true, true), TEST_TIMEOUT);
            early.expect("its feeder is not waited for");
        });
    }

    #[test]
    fn copies_run_at_the_same_time() {
        let outputs: Vec<_> = (0..3).map(|_| tempfile::tempfile().expect("a file")).collect();
        let outputs: Vec<_> = outputs.iter().collect();
        let begun = Instant::now();
        let runs =
            with_runner(None, |r| r.run_copies("sleep 1; echo x", 3, None, &outputs, TEST_TIMEOUT));
        let runs = runs.expect("they run");
        let sum: Duration = runs.iter().map(|run| run.wall).sum();
        assert!(runs.len() == 3 && begun.elapsed() < sum, "{runs:?}");
        assert!(outputs.iter().all(|file| file.metadata().is_ok_and(|data| data.len() == 2)));
    }

    #[test]
    fn a_timeout_kills_all_descendants() {
        let output = tempfile::tempfile().expect("a file");
        for text in ["sleep 4711 | sleep 4711", "trap '' TERM; sleep 4711 | sleep 4711"] {
            let limit = Duration::from_millis(50);
            let error = with_runner(None, |r| r.run(text, None, &output, limit));
            assert!(matches!(error, Err(RunError::TooLong(_))), "{error:?}");
        }
    }

    #[test]
    fn terminated_commands_can_remove_temporary_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = tempfile::tempfile().expect("a file");
        let path = folder.path().display();
        // sort spills to disk at once, and its input never ends.
        let text = format!("{{ seq 300000; sleep 4711; }} | sort -S 1M -T {path}");
        let spilled = || folder.path().read_dir().is_ok_and(|mut files| files.next().is_some());
        let error = std::thread::scope(|scope| {
            let seen = scope.spawn(|| {
                (0..5_000).any(|_| {
                    std::thread::sleep(Duration::from_millis(1));
                    spilled()
                })
            });
            let limit = Duration::from_secs(2);
            let error = with_runner(None, |r| r.run(&text, None, &output, limit));
            assert!(seen.join().expect("no panic"), "it writes temporary files");
            error
        });
        assert!(matches!(error, Err(RunError::TooLong(_))), "{error:?}");
        assert!(!spilled());
    }
}
