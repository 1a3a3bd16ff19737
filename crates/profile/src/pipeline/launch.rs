//! Starts the stages in such a way that contend becomes their parent: a subshell, the *starter*,
//! starts them and is then ended by contend. [`super::script`] has a diagram of the protocol.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use contend_shell::parse::Parsed;
use contend_sys::child::{self, Change, ExitStatus, Which};
use contend_sys::inherited;
use contend_sys::interrupt::Signals;
use contend_sys::procfs::{self, InKernel, Stat, parse_pids};
use contend_sys::signal::ReceivedSignal;
use contend_sys::{Pid, Signal, spawn, syscall};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::kill_process;

use super::gate::{Gate, proc_path};
use super::script::{ScriptOptions, ScriptPaths, script};

/// A pipeline to launch, and the settings for it.
#[derive(Debug)]
pub struct LaunchSpec<'a> {
    /// The shell, by name or path.
    pub shell: &'a str,
    /// Source text that the shell executes before the pipeline, if any.
    pub setup: Option<&'a str>,
    /// The parsed pipeline.
    pub parsed: &'a Parsed,
    /// Whether the pipeline's exit code is that of its last failing stage; the setup may also
    /// request this.
    pub pipefail: bool,
    /// Standard input of the pipeline; `None` to inherit contend's own.
    pub stdin: Option<File>,
    /// Standard output of the pipeline.
    pub output: Output,
    /// Whether to collect what each stage does over time.
    pub trace: bool,
}

/// Where the output of a pipeline goes.
#[derive(Debug)]
pub enum Output {
    /// To contend's own standard output.
    Inherited,
    /// Nowhere.
    Discarded,
    /// To this file.
    File(File),
}

/// The reason why a pipeline could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The shell's program could not be executed.
    #[error("cannot start the shell '{shell}'")]
    Shell {
        /// The shell's name or path.
        shell: String,
        /// The cause of the failure.
        source: io::Error,
    },
    /// An operation that contend needs failed.
    #[error("cannot {what}")]
    Prepare {
        /// The failed operation, as a phrase that follows "cannot" in the message.
        what: &'static str,
        /// The cause of the failure.
        source: io::Error,
    },
    /// A signal interrupted contend before the pipeline started.
    #[error("interrupted by signal {0} before the pipeline started")]
    Interrupted(i32),
    /// The shell ended before it reached the pipeline.
    #[error("the shell exited with status {} before it started the pipeline", .status.shell_code())]
    Setup {
        /// The shell's exit status.
        status: ExitStatus,
    },
    /// The shell could not start every stage.
    #[error(
        "the shell started only {started} of {wanted} stages: check the limits on processes \
         (`ulimit -u`, and pids.max of the cgroup)"
    )]
    Stages {
        /// Number of stages started.
        started: usize,
        /// Number of stages in the pipeline.
        wanted: usize,
    },
}

/// The stages of a launched pipeline. They are children of this process, and wait at the gate.
#[derive(Debug)]
pub struct Launched {
    /// The stages' processes, first to last.
    pub stages: Vec<Pid>,
    /// Whether `pipefail` is on, set by the setup or requested by the user.
    pub pipefail: bool,
    /// The closed gate at which the stages wait.
    pub gate: Gate,
    /// The shell, which has run the setup and waits for the pipeline's end.
    pub shell: WaitingShell,
}

/// A shell that waits for the pipeline's end, and then runs its last commands, such as an EXIT
/// trap.
#[derive(Debug)]
pub struct WaitingShell {
    pid: Pid,
    /// A pipe from which the shell reads the exit codes, or EOF if contend dies.
    end: (io::PipeReader, io::PipeWriter),
}

/// Starts the shell and blocks until all stages wait at the gate.
///
/// # Errors
/// Returns an error if the pipeline cannot be started; see [`LaunchError`]. On failure, the shell
/// and its stages have ended.
pub fn launch(spec: LaunchSpec<'_>, signals: &Signals) -> Result<Launched, LaunchError> {
    try_launch(spec, signals).map_err(|error| match signals.interrupted() {
        Some(signal) => LaunchError::Interrupted(signal),
        None => error,
    })
}

fn try_launch(spec: LaunchSpec<'_>, signals: &Signals) -> Result<Launched, LaunchError> {
    let prepare = |what| move |source| LaunchError::Prepare { what, source };
    child::become_subreaper().map_err(prepare("become the parent of orphaned processes"))?;
    let gate =
        Gate::new().map_err(prepare("create the file lease or FIFO that holds back the stages"))?;
    let end = io::pipe().map_err(prepare("make a pipe"))?;
    let (receiver, sender) = io::pipe().map_err(prepare("make a pipe"))?;

    let paths =
        ScriptPaths { gate: gate.path(), channel: proc_path(&sender), end: proc_path(&end.0) };
    let mentions_sigpipe = spec.setup.is_some_and(|setup| setup.contains("PIPE"));
    let script_options = ScriptOptions {
        pipefail: spec.pipefail,
        silent: (inherited::children_survive_sigpipe() || mentions_sigpipe)
            && inherited::was_open(2),
    };
    let text = script(spec.setup, spec.parsed, script_options, &paths);
    let shell = start_shell(spec.shell, &text, spec.stdin, spec.output, signals)?;
    let waiting = WaitingShell { pid: shell, end };

    let (options, starter) = read_channel(receiver, shell, signals)?;
    let wanted = spec.parsed.stages.len();
    let stages = match wait_for_stages(starter, wanted) {
        Ok(stages) => {
            // Before a stage waits at the gate, the shell may still be moving the stage's
            // descriptors.
            for &stage in &stages {
                wait_at_gate(stage);
            }
            end_starter(starter, &stages);
            stages
        }
        Err(started) => {
            kill_all(&waiting, &started);
            return Err(LaunchError::Stages { started: started.len(), wanted });
        }
    };
    let pipefail = spec.pipefail || option_is_on(&options, "pipefail");
    Ok(Launched { stages, pipefail, gate, shell: waiting })
}

fn start_shell(
    shell: &str,
    script: &str,
    stdin: Option<File>,
    output: Output,
    signals: &Signals,
) -> Result<Pid, LaunchError> {
    let mut command = Command::new(shell);
    if shell.rsplit('/').next() == Some("busybox") {
        command.arg("sh");
    }
    command.arg("-c").arg(script);
    let mut redirected = Vec::new();
    if let Some(file) = stdin {
        command.stdin(file);
        redirected.push(0);
    }
    match output {
        Output::Inherited => {}
        Output::Discarded => {
            command.stdout(discard_output());
            redirected.push(1);
        }
        Output::File(file) => {
            command.stdout(file);
            redirected.push(1);
        }
    }
    let child = spawn::spawn(&mut command, &redirected, signals.mask_before(), Signal::TERM)
        .map_err(|source| LaunchError::Shell { shell: shell.to_owned(), source })?;
    Ok(Pid::from_child(&child))
}

/// Returns a file that discards output: `/dev/zero` or, if that cannot be opened, `/dev/null`. GNU
/// grep stops at its first match if its output goes to `/dev/null`.
fn discard_output() -> Stdio {
    let file = File::options().write(true).open("/dev/zero");
    file.map_or_else(|_| Stdio::null(), Stdio::from)
}

/// Reads what the script writes to the channel, until the line with the starter's process id has
/// arrived. Passes on signals to the shell meanwhile. Returns the text read, which includes the
/// shell's options, and the process id.
///
/// # Errors
/// Returns [`LaunchError::Setup`] if the shell ends first.
fn read_channel(
    mut channel: io::PipeReader,
    shell: Pid,
    signals: &Signals,
) -> Result<(String, Pid), LaunchError> {
    let mut received = String::new();
    let mut buffer = [0; 4096];
    loop {
        let mut fds = [PollFd::new(&channel, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        let _ = poll(&mut fds, None); // an early return is harmless
        if fds[0].revents().contains(PollFlags::IN) {
            let length = channel.read(&mut buffer).unwrap_or(0);
            received.push_str(&String::from_utf8_lossy(&buffer[..length]));
            if let Some(pid) = starter_in(&received) {
                return Ok((received, pid));
            }
        }
        while let Some(arrived) = signals.next_ending() {
            pass_on(arrived, shell);
        }
        if matches!(child::peek(Which::One(shell)), Ok(Some((_, Change::Ended)))) {
            let status = child::reap(shell).map_or(ExitStatus::Exited(1), |reaped| reaped.status);
            return Err(LaunchError::Setup { status });
        }
    }
}

/// Returns the process id from a complete line in the format of `/proc/PID/stat`, or `None` if
/// there is no such line yet.
fn starter_in(received: &str) -> Option<Pid> {
    let complete = &received[..=received.rfind('\n')?];
    complete.lines().find_map(|line| {
        let (pid, rest) = line.split_once(' ')?;
        rest.starts_with('(').then(|| Pid::from_raw(pid.parse().ok()?)).flatten()
    })
}

/// Returns whether `options`, the output of `set -o`, shows the option `name` as on.
fn option_is_on(options: &str, name: &str) -> bool {
    options.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(name) && words.next() == Some("on")
    })
}

/// Waits until the starter has started all stages, and returns them in start order.
///
/// # Errors
/// Returns the stages started so far if the starter ends first.
fn wait_for_stages(starter: Pid, wanted: usize) -> Result<Vec<Pid>, Vec<Pid>> {
    let mut last = Vec::new();
    loop {
        match children_of(starter) {
            Some(children) if children.len() >= wanted => return Ok(children),
            Some(children) => last = children,
            None => return Err(last),
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Waits until the process is in a call that opens a file, for at most 200 ms. If its calls cannot
/// be read, sleeps for 2 ms instead.
fn wait_at_gate(stage: Pid) {
    let path = format!("/proc/{}/syscall", stage.as_raw_nonzero());
    let begun = Instant::now();
    let mut buffer = [0; 256];
    while begun.elapsed() < Duration::from_millis(200) {
        match procfs::read_once(&path, &mut buffer).ok().and_then(InKernel::parse) {
            Some(InKernel::Call { number, .. }) if syscall::is_open(number) => return,
            Some(_) => std::thread::sleep(Duration::from_micros(20)),
            None => return std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Returns the children of a process in start order, or `None` if the process has ended.
pub(super) fn children_of(pid: Pid) -> Option<Vec<Pid>> {
    let raw = pid.as_raw_nonzero();
    let mut buffer = [0; 8192];
    let stat = Stat::of(pid).ok()?;
    if stat.state == b'Z' {
        return None;
    }
    match procfs::read_once(&format!("/proc/{raw}/task/{raw}/children"), &mut buffer) {
        Ok(text) => Some(parse_pids(text).filter_map(Pid::from_raw).collect()),
        Err(_) => Some(scan_for_children(pid)), // a kernel without CONFIG_PROC_CHILDREN
    }
}

fn scan_for_children(parent: Pid) -> Vec<Pid> {
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: Vec<(u64, i32)> = pids
        .filter_map(|pid: i32| {
            let stat = Stat::of(Pid::from_raw(pid)?).ok()?;
            (stat.parent == parent.as_raw_nonzero().get()).then_some((stat.started, pid))
        })
        .collect();
    children.sort_unstable();
    children.into_iter().filter_map(|(_, pid)| Pid::from_raw(pid)).collect()
}

/// Ends the starter and waits until contend is the parent of its children. Shells do not report
/// deaths by SIGPIPE, so this sends SIGPIPE, but SIGKILL if SIGPIPE is ignored or blocked, or has
/// no effect for 20 ms.
fn end_starter(starter: Pid, stages: &[Pid]) {
    let own = std::process::id().cast_signed();
    let mut gentle = !inherited::children_survive_sigpipe();
    let begun = Instant::now();
    let _ = kill_process(starter, if gentle { Signal::PIPE } else { Signal::KILL });
    loop {
        if Stat::of(stages[0]).map_or(true, |stat| stat.parent == own) {
            return;
        }
        if gentle && begun.elapsed() > Duration::from_millis(20) {
            gentle = false;
            let _ = kill_process(starter, Signal::KILL);
        }
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Kills the shell and the given stages, for use when a launch has failed, and reaps the shell and
/// all other children that have ended.
pub(super) fn kill_all(shell: &WaitingShell, stages: &[Pid]) {
    for &pid in stages.iter().chain([&shell.pid]) {
        let _ = kill_process(pid, Signal::KILL);
    }
    while let Ok(Some((pid, _))) = child::peek(Which::Any) {
        let _ = child::reap(pid);
    }
    let _ = child::reap(shell.pid);
}

impl WaitingShell {
    /// Returns the shell's process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends the exit codes to the shell and waits for its end, passing on signals that arrive
    /// meanwhile. Returns the shell's exit code, which an EXIT trap may have changed, or `None` if
    /// a signal killed the shell or it cannot be waited for. `exit_codes` is a line as
    /// [`format_exit_codes`](super::script::format_exit_codes) returns it.
    pub fn finish(self, exit_codes: &str, signals: &Signals) -> Option<i32> {
        let (reader, mut writer) = self.end;
        // The text fits into the pipe, so this does not block. An error means that the shell has
        // died and does not need it.
        let _ = writer.write_all(exit_codes.as_bytes());
        drop(writer);
        loop {
            match child::peek(Which::One(self.pid)) {
                Ok(Some((_, Change::Ended))) => break,
                Ok(Some((_, Change::Stopped))) => {
                    let _ = child::take_stop(self.pid);
                }
                Ok(None) => {}
                Err(_) => return None,
            }
            let mut fds = [PollFd::new(signals, PollFlags::IN)];
            let limit = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = poll(&mut fds, Some(&limit));
            while let Some(arrived) = signals.next_ending() {
                pass_on(arrived, self.pid);
            }
        }
        drop(reader);
        match child::reap(self.pid).ok()?.status {
            ExitStatus::Exited(status) => Some(status),
            ExitStatus::Signaled(_) => None,
        }
    }
}

/// Passes a signal on to another process, unless the signal came from a terminal, which has sent it
/// to both.
fn pass_on(arrived: ReceivedSignal, to: Pid) {
    if arrived.from_process
        && let Some(signal) = Signal::from_named_raw(arrived.signal)
    {
        let _ = kill_process(to, signal); // the process may have ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starter_is_found_among_the_options() {
        let received = "errexit        \toff\npipefail       \ton\n4711 (bash) S 4710 1 1\n";
        assert_eq!(starter_in(received), Pid::from_raw(4711));
        assert_eq!(starter_in("pipefail off\n471"), None);
        assert!(option_is_on(received, "pipefail"));
        assert!(!option_is_on(received, "errexit"));
    }

    #[test]
    fn a_scan_finds_the_same_children() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep");
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let pid = Pid::from_child(&child);
        assert!(scan_for_children(own).contains(&pid));
        child.kill().expect("alive");
        child.wait().expect("a child");
    }
}
