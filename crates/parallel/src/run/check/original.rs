//! Runs the original with the shell, after the run that is compared with it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use contend_record::run::Check as Record;
use contend_sys::interrupt::Signals;
use contend_sys::procfs::with_descendants;
use contend_sys::{Pid, Signal, child, spawn};
use rustix::process::{getpid, kill_process};

use super::super::error::{Context as _, RunError};
use super::super::shutdown::{Escalation, Shutdown};
use super::digests::Digests;
use super::{CopyResult, Waited, pass_on, pipe, start};

/// The poll interval for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of bytes of the original's standard error that are shown.
const MAX_STDERR_BYTES: u64 = 64 << 10;

/// The output, exit code and wall time of the original.
#[derive(Debug)]
pub(super) struct Original {
    pub digests: Digests,
    pub status: i32,
    pub wall: Duration,
    /// The beginning of the original's standard error.
    pub stderr: String,
}

impl Original {
    /// Compares the original with the output and the exit code of a run.
    pub(super) fn compared_with(&self, output: &Digests, exit_code: i32) -> Record {
        let first_difference = output.first_difference(&self.digests);
        Record {
            same: first_difference.is_none() && self.status == exit_code,
            first_difference,
            bytes: output.bytes(),
            original_bytes: self.digests.bytes(),
            exit_code: self.status,
            wall_seconds: self.wall.as_secs_f64(),
        }
    }

    /// Runs the original, and waits until it has ended.
    ///
    /// # Errors
    /// Returns an error if the original cannot be started or waited for, if its output cannot be
    /// read, or if no pipe, thread or temporary file can be created.
    pub(super) fn run(mut command: Command, signals: &Signals) -> Result<Waited<Self>, RunError> {
        let (reader, writer) = pipe()?;
        let no_room = "there is no room for what it remarks";
        let stderr = tempfile::tempfile().context(no_room)?;
        let (sender, ended) = mpsc::channel();
        let (started, original) = mpsc::channel();
        // Start the thread before the shell: if that fails, no shell is left behind.
        start(move || {
            let output = pass_on(reader, None);
            let Ok(pid) = original.recv() else { return };
            // The process stays a zombie until it is reaped, so signals cannot reach another
            // process.
            let _ =
                sender.send(output.and_then(|output| child::wait_for_end(pid).map(|()| output)));
        })?;
        let begun = Instant::now();
        let pid = {
            command
                .stdin(Stdio::inherit())
                .stdout(writer)
                .stderr(stderr.try_clone().context(no_room)?);
            let child = spawn::spawn(&mut command, &[1, 2], signals.mask_before(), Signal::TERM)
                .context("cannot start the shell for --check")?;
            drop(command); // closes this process's write end of the pipe
            Pid::from_child(&child)
        };
        let _ = started.send(pid); // the thread is waiting for the process ID
        let output = match wait_for_output(&ended, signals)? {
            Waited::Done(output) => output,
            Waited::Interrupted(signal) => return Ok(Waited::Interrupted(signal)),
        };
        let wall = begun.elapsed();
        let reaped = child::reap(pid).context("cannot wait for the shell")?;
        let status = reaped.status.shell_code();
        let stderr = beginning_of(stderr).context(no_room)?;
        Ok(Waited::Done(Original { digests: output.digests, status, wall, stderr }))
    }
}

/// Waits until the original has ended. A signal that asks contend to end also ends the original and
/// all processes that it has started.
fn wait_for_output(
    ended: &mpsc::Receiver<io::Result<CopyResult>>,
    signals: &Signals,
) -> Result<Waited<CopyResult>, RunError> {
    let mut escalation = Escalation::new(false);
    loop {
        let output = match ended.recv_timeout(POLL_INTERVAL) {
            Ok(output) => Some(output.context("cannot read what the original writes")?),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(RunError::OriginalLost),
        };
        let step = escalation.advance(signals.next_ending(), Instant::now());
        // A keyboard interrupt reaches the original as well, so its output is incomplete.
        if let (Some(signal), true) =
            (signals.interrupted(), output.is_some() || step == Some(Shutdown::Abandon))
        {
            return Ok(Waited::Interrupted(signal));
        }
        match (output, step) {
            (Some(output), _) => return Ok(Waited::Done(output)),
            (None, Some(Shutdown::Terminate)) => signal_all(Signal::TERM),
            (None, Some(Shutdown::Kill)) => signal_all(Signal::KILL),
            (None, _) => {}
        }
    }
}

/// Sends a signal to the original and all processes that it has started. contend has no other
/// children at this point.
fn signal_all(signal: Signal) {
    // From now on, the orphaned children of a shell become contend's. Kernels before 3.4 do not
    // support this.
    let _ = child::become_subreaper();
    let own = getpid();
    for pid in with_descendants(own).into_iter().filter(|&pid| pid != own) {
        let _ = kill_process(pid, signal); // the process may have ended
        if signal == Signal::TERM {
            let _ = kill_process(pid, Signal::CONT); // a stopped process could not handle the signal
        }
    }
}

/// Returns at most the first `MAX_STDERR_BYTES` bytes of a file as a string, without trailing
/// whitespace.
fn beginning_of(mut file: File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(MAX_STDERR_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
