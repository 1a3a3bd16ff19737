//! Runs the commands of an instance as processes connected by pipes.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use contend_sys::child::{self, ExitStatus};
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

use super::backoff::PollBackoff;
use super::chunk_input::ChunkInput;
use super::ended::{Cost, Ended, has_succeeded};
use super::error::GroupError;
use super::launcher::Launcher;
use super::pipe;
use super::sink::OutputSink;
use super::threads::{self, RetryLimit};
use crate::plan::ir::{Command, StatusRule};

const SIGPIPE: i32 = Signal::PIPE.as_raw();
/// The signals that a terminal sends to all foreground processes.
const KEYBOARD: [i32; 3] = [Signal::INT.as_raw(), Signal::QUIT.as_raw(), Signal::HUP.as_raw()];
/// Maximum number of bytes read or copied at a time.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// Minimum size in bytes of a read after which the pipe is polled again without a delay.
pub(super) const FULL_READ_BYTES: usize = 128 << 10;
/// Maximum number of bytes kept from the beginning of the commands' standard error.
const MAX_STDERR_BYTES: usize = 64 << 10;
/// Timeout of a poll, unless a delay ends earlier.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The processes of a pipeline over one chunk of the input, or over several.
#[derive(Debug)]
pub(super) struct Processes<'a> {
    launcher: &'a Launcher,
    commands: Vec<Running>,
    stdin: Option<File>,
    stdout: Option<File>,
    /// A file with the commands' standard error, if that is captured.
    stderr: Option<File>,
    block: Vec<u8>,
    feeding: PollBackoff,
    draining: PollBackoff,
}

/// A process of the pipeline.
#[derive(Debug)]
struct Running {
    pid: Pid,
    rule: StatusRule,
    /// Exit status and resource usage, or `None` until the process has been reaped.
    reaped: Option<child::Reaped>,
}

impl<'a> Processes<'a> {
    /// Starts a pipeline of commands. Their standard error is captured, and counts as a failure if
    /// it is not empty.
    ///
    /// # Errors
    /// Returns an error if a pipe or the file for standard error cannot be created, or if a command
    /// cannot be started.
    pub(super) fn start(
        launcher: &'a Launcher,
        commands: &[Command],
        limit: RetryLimit,
    ) -> io::Result<Self> {
        // Unlike a pipe, a file never blocks the commands.
        let stderr = threads::retried(limit, || Ok(memfd_create("remarks", MemfdFlags::CLOEXEC)?))?;
        Self::start_with(launcher, commands, None, Some(File::from(stderr)), limit)
    }

    /// Starts commands that inherit contend's standard error.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or a command cannot be started.
    pub(super) fn start_with_inherited_stderr(
        launcher: &'a Launcher,
        commands: &[Command],
    ) -> io::Result<Self> {
        Self::start_with(launcher, commands, None, None, RetryLimit::Long)
    }

    /// Starts commands that inherit contend's standard error. The first one reads `stdin` itself,
    /// and is not fed.
    ///
    /// # Errors
    /// Returns an error if a pipe cannot be created or a command cannot be started.
    pub(super) fn start_reading(
        launcher: &'a Launcher,
        commands: &[Command],
        stdin: File,
    ) -> io::Result<Self> {
        Self::start_with(launcher, commands, Some(stdin), None, RetryLimit::Long)
    }

    fn start_with(
        launcher: &'a Launcher,
        commands: &[Command],
        stdin: Option<File>,
        stderr: Option<File>,
        limit: RetryLimit,
    ) -> io::Result<Self> {
        let wide = || threads::retried(limit, pipe::wide);
        let (mut reader, stdin) = match stdin {
            Some(file) => (file, None),
            None => wide().map(|(reader, writer)| (reader, Some(writer)))?,
        };
        let feeding = PollBackoff::of(stdin.as_ref().map_or(0, pipe::capacity));
        // If a command cannot be started, those before it see their output pipe closed.
        let mut processes = Self {
            launcher,
            commands: Vec::new(),
            stdin,
            stdout: None,
            stderr,
            block: Vec::new(),
            feeding,
            draining: PollBackoff::of(0),
        };
        for command in commands {
            let (next, writer) = wide()?;
            let stdin = std::mem::replace(&mut reader, next);
            let streams = [Some(&stdin), Some(&writer), processes.stderr.as_ref()];
            let pid = launcher.start(command, streams, limit)?;
            processes.commands.push(Running { pid, rule: command.status, reaped: None });
        }
        processes.draining = PollBackoff::of(pipe::capacity(&reader));
        processes.stdout = Some(reader);
        for end in [&processes.stdin, &processes.stdout].into_iter().flatten() {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(processes)
    }

    /// Limits the capacity of the input pipe to about `piece` bytes, so that later input is left
    /// for workers that would otherwise be idle. Does nothing if the first command is not fed
    /// through a pipe.
    pub(super) fn in_pieces(mut self, piece: usize) -> Self {
        if let Some(stdin) = &self.stdin {
            self.feeding = PollBackoff::of(pipe::narrow(stdin, piece));
        }
        self
    }

    /// Writes `left` to the commands and forwards their output, until everything is written or the
    /// first command has closed its input. Returns `Break` if the reader wants no more output.
    ///
    /// # Errors
    /// Returns an error if reading, writing or forwarding fails.
    pub(super) fn feed(
        &mut self,
        left: &mut ChunkInput<'_>,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        while !left.is_empty() && self.stdin.is_some() {
            if self.turn(Some(left), output)?.is_break() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    }

    /// Waits until `source` is readable or has ended, the first command has closed its input, or
    /// the run is being ended. Forwards output in the meantime, and stops if its reader wants no
    /// more.
    ///
    /// # Errors
    /// Returns an error if polling fails, or if the output cannot be read or forwarded.
    pub(super) fn wait_for_source(
        &mut self,
        source: &File,
        output: &mut impl OutputSink,
    ) -> Result<Awaited, GroupError> {
        let time = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
        loop {
            let Some(stdin) = &self.stdin else { return Ok(Awaited::Gone) };
            let mut polled =
                vec![PollFd::new(source, PollFlags::IN), PollFd::new(stdin, PollFlags::empty())];
            let stdout = self.stdout.as_ref();
            polled.extend(stdout.map(|stdout| PollFd::new(stdout, PollFlags::IN)));
            match poll(&mut polled, Some(&time)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let [is_there, has_left, has_output] =
                [0, 1, 2].map(|at| polled.get(at).is_some_and(|end| !end.revents().is_empty()));
            if has_left || self.launcher.is_over() {
                return Ok(Awaited::Gone);
            }
            if has_output && self.turn(None, output)?.is_break() {
                return Ok(Awaited::Unwanted);
            }
            if is_there {
                return Ok(Awaited::Source);
            }
        }
    }

    /// Returns whether the first command still accepts input.
    pub(super) fn is_reading(&self) -> bool {
        self.stdin.is_some()
    }

    /// Closes the input and forwards the remaining output. Returns `Break` if the reader wants no
    /// more output.
    ///
    /// # Errors
    /// Returns an error if polling fails, or if the output cannot be read or forwarded.
    pub(super) fn drain(
        &mut self,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        self.stdin = None;
        while self.stdout.is_some() {
            if self.turn(None, output)?.is_break() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    }

    /// Closes the input and returns the output pipe, without waiting. If the output has already
    /// ended, returns an empty pipe instead.
    pub(super) fn hand_over(&mut self) -> io::Result<File> {
        self.stdin = None;
        let Some(stdout) = self.stdout.take() else {
            // The output has ended already. If the last command failed, its exit status shows that.
            let (nothing, _) = io::pipe()?;
            return Ok(File::from(OwnedFd::from(nothing)));
        };
        rustix::io::ioctl_fionbio(&stdout, false)?;
        Ok(stdout)
    }

    /// Polls once, and reads or writes the pipes that are ready. Returns `Break` if the reader
    /// wants no more output.
    fn turn(
        &mut self,
        left: Option<&mut ChunkInput<'_>>,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        let ready = self.wait(left.is_some())?;
        if let Some(left) = left.filter(|_| ready.stdin) {
            self.write(left)?;
        }
        if !ready.stdout {
            return Ok(Continue(()));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(BLOCK_BYTES, 0);
        let read = self.stdout.as_mut().map_or(Ok(0), |stdout| stdout.read(&mut block));
        let wanted = match read {
            Ok(0) => {
                self.stdout = None;
                Ok(Continue(()))
            }
            Ok(read) => {
                self.draining.moved(read);
                if read < FULL_READ_BYTES {
                    self.draining.note_idle(Instant::now());
                }
                output.write(&block[..read])
            }
            Err(error) if is_for_later(&error) => Ok(Continue(())),
            Err(error) => Err(error.into()),
        };
        self.block = block;
        wanted
    }

    fn wait(&self, writes: bool) -> io::Result<Ready> {
        let now = Instant::now();
        let [stdin, stdout] =
            [&self.feeding, &self.draining].map(|backoff| backoff.remaining_delay(now));
        let time =
            [stdin.filter(|_| writes), stdout].into_iter().flatten().min().unwrap_or(POLL_INTERVAL);
        let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        let stdin = self.stdin.as_ref().filter(|_| writes && stdin.is_none());
        let stdout = self.stdout.as_ref().filter(|_| stdout.is_none());
        let ends = [(stdin, PollFlags::OUT), (stdout, PollFlags::IN)];
        let there = ends.iter().filter_map(|(end, flags)| Some(PollFd::new((*end)?, *flags)));
        let mut polled: Vec<PollFd<'_>> = there.collect();
        match poll(&mut polled, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened = polled.iter().map(|end| !end.revents().is_empty());
        let [stdin, stdout] =
            ends.map(|(end, _)| end.is_some() && happened.next().unwrap_or(false));
        Ok(Ready { stdin, stdout })
    }

    fn write(&mut self, left: &mut ChunkInput<'_>) -> io::Result<()> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match left.write(stdin) {
            Ok(written) => {
                self.feeding.moved(written);
                if !left.is_empty() {
                    self.feeding.note_idle(Instant::now());
                }
            }
            Err(error) if is_for_later(&error) => {}
            // The command has closed its input; its exit status shows why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the first bytes that the commands have written to standard error so far, at most
    /// [`MAX_STDERR_BYTES`], or nothing if standard error is not captured.
    fn read_stderr(&self) -> io::Result<Vec<u8>> {
        let Some(file) = &self.stderr else { return Ok(Vec::new()) };
        let size =
            usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX).min(MAX_STDERR_BYTES);
        let mut text = vec![0; size];
        file.read_exact_at(&mut text, 0)?;
        Ok(text)
    }

    /// Waits until the first `commands` commands end, but not for the later ones. Returns whether
    /// these commands succeeded, and no command has written to the captured standard error so far.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub(super) fn wait_for_first(&mut self, commands: usize) -> io::Result<bool> {
        let mut succeeded = true;
        for place in 0..commands {
            let reaped = self.wait_for(place)?;
            succeeded &= has_succeeded(reaped.status, self.commands[place].rule);
        }
        Ok(succeeded && self.read_stderr()?.is_empty())
    }

    fn wait_for(&mut self, place: usize) -> io::Result<child::Reaped> {
        let command = &mut self.commands[place];
        if let Some(reaped) = command.reaped {
            return Ok(reaped);
        }
        let reaped = self.launcher.wait(command.pid)?;
        command.reaped = Some(reaped);
        // The terminal sends the same signal to contend.
        if KEYBOARD.map(ExitStatus::Signaled).contains(&reaped.status) {
            self.launcher.wait_for_signals();
        }
        Ok(reaped)
    }

    /// Waits until the commands end, and returns how they ended. Their output must have been
    /// drained or handed over.
    ///
    /// # Errors
    /// Returns an error if waiting fails.
    pub(super) fn end(mut self) -> io::Result<Ended> {
        self.stdin = None;
        let mut ended =
            Ended { statuses: Vec::new(), costs: Vec::new(), succeeded: true, stderr: Vec::new() };
        let last = self.commands.len().saturating_sub(1);
        for place in 0..self.commands.len() {
            let reaped = self.wait_for(place)?;
            // SIGPIPE: the next command needed no more input.
            let cut_off = place < last && reaped.status == ExitStatus::Signaled(SIGPIPE);
            ended.succeeded &= cut_off || has_succeeded(reaped.status, self.commands[place].rule);
            ended.statuses.push(reaped.status);
            ended.costs.push(Cost::of_process(reaped.usage.cpu()));
        }
        ended.stderr = self.read_stderr()?;
        ended.succeeded &= ended.stderr.is_empty();
        Ok(ended)
    }
}

impl Drop for Processes<'_> {
    /// Terminates and reaps the commands that are still running.
    fn drop(&mut self) {
        let left = self.commands.iter().filter(|command| command.reaped.is_none());
        let pids: Vec<Pid> = left.map(|command| command.pid).collect();
        self.launcher.signal(&pids, Signal::TERM);
        self.stdin = None;
        self.stdout = None;
        for pid in pids {
            let _ = self.launcher.wait(pid); // a destructor cannot report errors
        }
    }
}

/// The result of [`Processes::wait_for_source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The source is readable or has ended.
    Source,
    /// The commands have closed their input, or the run is being ended.
    Gone,
    /// The reader wants no more output.
    Unwanted,
}

/// Readiness of the pipes: of standard input for writing, and of standard output for reading.
struct Ready {
    stdin: bool,
    stdout: bool,
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{command, file, launcher, shell};
    use super::*;

    /// Runs commands over `input`; returns their output, exit statuses and costs.
    fn over(commands: &[Command], input: &[u8]) -> (Vec<u8>, Ended) {
        let launcher = launcher();
        let mut written = Vec::new();
        let mut take = |bytes: &[u8]| {
            written.extend_from_slice(bytes);
            Ok(Continue(()))
        };
        let mut processes =
            Processes::start(&launcher, commands, RetryLimit::Long).expect("processes");
        assert!(
            processes.feed(&mut ChunkInput::Bytes(input), &mut take).expect("fed").is_continue()
        );
        assert!(processes.drain(&mut take).expect("drained").is_continue());
        let ended = processes.end().expect("ours");
        assert_eq!(launcher.pids(), [], "all are reaped");
        (written, ended)
    }

    #[test]
    fn more_than_pipes_hold_goes_through_all_commands() {
        let input = "line\n".repeat(200_000);
        let commands = [command("cat", &[]), command("tr", &["a-z", "A-Z"]), command("cat", &[])];
        let (written, ended) = over(&commands, input.as_bytes());
        assert_eq!(written, input.to_uppercase().into_bytes());
        assert!(ended.succeeded && ended.statuses == [ExitStatus::Exited(0); 3]);
    }

    #[test]
    fn a_status_and_a_remark_are_failures() {
        let (written, ended) = over(&[shell("cat; exit 3")], b"text");
        assert_eq!((written.as_slice(), ended.succeeded), (b"text".as_slice(), false));
        assert_eq!(ended.statuses, [ExitStatus::Exited(3)]);
        let (_, ended) = over(&[shell("cat; echo remark >&2")], b"text");
        assert_eq!((ended.stderr.as_slice(), ended.succeeded), (b"remark\n".as_slice(), false));
        assert_eq!(ended.statuses, [ExitStatus::Exited(0)]);
    }

    #[test]
    fn a_command_that_reads_no_more_is_no_failure_of_those_before_it() {
        let input = "line\n".repeat(200_000);
        let commands = [command("cat", &[]), command("head", &["-n", "1"])];
        let (written, ended) = over(&commands, input.as_bytes());
        assert_eq!((written.as_slice(), ended.succeeded), (b"line\n".as_slice(), true));
    }

    #[test]
    fn break_ends_the_commands_and_leaves_no_process() {
        let launcher = launcher();
        let commands = [shell("while echo line; do :; done")];
        let mut processes =
            Processes::start(&launcher, &commands, RetryLimit::Long).expect("processes");
        assert!(processes.drain(&mut |_: &[u8]| Ok(Break(()))).expect("drained").is_break());
        assert_eq!(launcher.pids().len(), 1);
        drop(processes);
        assert_eq!(launcher.pids(), []);
    }

    #[test]
    fn files_are_fed_from_an_offset() {
        let launcher = launcher();
        let mut written = Vec::new();
        let mut take = |bytes: &[u8]| {
            written.extend_from_slice(bytes);
            Ok(Continue(()))
        };
        let commands = [command("cat", &[])];
        let mut processes =
            Processes::start(&launcher, &commands, RetryLimit::Long).expect("a process");
        let text = file("0123456789");
        let mut input = ChunkInput::File(&text, 3..7);
        assert!(processes.feed(&mut input, &mut take).expect("fed").is_continue());
        assert!(processes.drain(&mut take).expect("drained").is_continue());
        assert!(processes.end().expect("ours").succeeded);
        assert_eq!(written, b"3456");
    }

    #[test]
    fn a_program_that_is_not_there_says_so_and_fails() {
        let (_, ended) = over(&[command("no-such-program", &[])], b"");
        assert_eq!(ended.statuses, [ExitStatus::Exited(127)]);
        assert!(!ended.succeeded && ended.stderr.starts_with(b"contend: cannot start"));
    }

    #[test]
    fn nothing_is_started_once_all_is_being_ended() {
        let launcher = launcher();
        launcher.forbid_starts();
        let commands = [command("cat", &[])];
        assert!(Processes::start(&launcher, &commands, RetryLimit::Long).is_err());
    }
}
