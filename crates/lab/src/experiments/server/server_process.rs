//! A running server, as the process of a case sees it.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use contend_sys::child;
use contend_sys::{Pid, procfs, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::footprint::Footprint;
use super::http::Handler;
use super::programs::Concurrency;
use super::setup::{Server, Setup};
use super::supervisor::end_descendants;
use super::verb::SERVER_VERB;
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::support::process_tree::{self, MemoryUse};

/// A server in processes of its own. Dropping it ends and reaps all descendants of this process,
/// which therefore must have no other children.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// Pipe to the standard input of the child, which exits when the pipe is closed; `None` once it
    /// has been closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Port of the server on loopback.
    pub port: u16,
    stopped: Option<String>,
    /// The program that the child supervises, or `None` if the child is the server itself.
    supervised: Option<Supervised>,
}

/// A program that a supervisor has started.
#[derive(Debug)]
struct Supervised {
    /// The program's first process.
    pid: Pid,
    version: String,
}

impl ServerProcess {
    /// Starts a server and waits until it listens. For a program, also waits until it has answered
    /// a request and has all of its processes. Makes this process a subreaper.
    ///
    /// # Errors
    /// Returns an error if the server cannot be started.
    pub fn start(setup: &Setup, handler: Handler) -> Result<Self, SubjectError> {
        // Processes of the server become children of this one when their parent ends.
        child::become_subreaper().context("become the parent of orphans")?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("contend").args([SERVER_VERB, setup.server.name(), handler.name()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = match setup.server {
            Server::Model(_) => spawn::spawn_bound(&mut command),
            // A supervisor has to clean up, so the death of this process must not kill it.
            Server::Program(_, Concurrency { processes, threads }) => command
                .args([processes, threads, setup.connections].map(|number| number.to_string()))
                .stderr(Stdio::null())
                .spawn(),
        }
        .context("start the server")?;
        let input = child.stdin.take();
        let output = child
            .stdout
            .take()
            .ok_or_else(|| SubjectError::unexpected("the server has no output"))?;
        let output = BufReader::new(output);
        let mut server = Self { child, input, output, port: 0, stopped: None, supervised: None };
        server.port = server.value("port")?;
        if let Server::Program(..) = setup.server {
            let pid = Pid::from_raw(server.value("pid")?);
            let pid = pid.ok_or_else(|| SubjectError::unexpected("the server has no process"))?;
            server.supervised = Some(Supervised { pid, version: server.value("version")? });
        }
        Ok(server)
    }

    /// Reads the next line, which must consist of `name` and a value, and returns the value.
    fn value<T: FromStr>(&mut self, name: &str) -> Result<T, SubjectError> {
        let line = self.line().unwrap_or_default();
        if let Some(reason) = line.strip_prefix("failed ") {
            return Err(SubjectError::unexpected(reason));
        }
        let value = line.strip_prefix(name).and_then(|value| value.trim_start().parse().ok());
        value.ok_or_else(|| SubjectError::unexpected("the server did not start"))
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Returns the PID of the server's first process, which is not the supervisor.
    fn pid(&self) -> Pid {
        self.supervised.as_ref().map_or_else(|| Pid::from_child(&self.child), |server| server.pid)
    }

    /// Returns the names and versions of the program and, if known, of its application's language,
    /// or `None` for a model.
    pub fn version(&self) -> Option<&str> {
        self.supervised.as_ref().map(|server| server.version.as_str())
    }

    /// Reads the server's memory and counts its processes and threads.
    ///
    /// # Errors
    /// Returns an error if the memory of the server's first process cannot be read.
    pub fn footprint(&self) -> Result<Footprint, SubjectError> {
        Footprint::of(self.pid())
    }

    /// Returns the number of the server's processes that are visible in `/proc`.
    pub fn processes(&self) -> u64 {
        procfs::with_descendants(self.pid()).len() as u64
    }

    /// Waits up to five seconds until `wanted` returns true for the number of the server's
    /// processes, and returns whether it did. Processes of closed connections may not have ended
    /// yet, and those of a pool may not have been forked yet.
    pub fn await_processes(&self, wanted: impl Fn(u64) -> bool) -> bool {
        const POLL_INTERVAL: Duration = Duration::from_millis(20);
        const MAX_POLLS: usize = 250;
        (0..MAX_POLLS).any(|_| {
            let is_reached = wanted(self.processes());
            if !is_reached {
                std::thread::sleep(POLL_INTERVAL);
            }
            is_reached
        })
    }

    /// Reads the memory of all of the server's processes.
    ///
    /// # Errors
    /// Returns an error if the memory of one of them cannot be read.
    pub fn memory_use(&self) -> Result<MemoryUse, SubjectError> {
        process_tree::memory_use(self.pid())
    }

    /// Returns the CPU time that the server's processes have used so far. It includes ended
    /// processes for which the server's first process has waited.
    pub fn cpu(&self) -> Duration {
        process_tree::cpu(self.pid())
    }

    /// Returns what the server has reported as stopping it: the call that failed and the limit.
    /// Returns `None` if it has reported nothing yet.
    pub fn stopped(&mut self) -> Option<String> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_line = |output: &ChildStdout| {
            let mut fds = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
        };
        while self.stopped.is_none()
            && (!self.output.buffer().is_empty() || has_line(self.output.get_ref()))
        {
            let line = self.line()?;
            self.stopped = line.strip_prefix("stopped ").map(str::to_owned);
        }
        self.stopped.clone()
    }
}

impl ServerProcess {
    /// Waits up to ten seconds for the child to exit.
    fn await_end(&mut self) {
        const POLL_INTERVAL: Duration = Duration::from_millis(5);
        const MAX_POLLS: usize = 2000;
        for _ in 0..MAX_POLLS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        if self.supervised.is_some() {
            self.await_end(); // the supervisor removes its files
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The child's own children are children of this process now.
        end_descendants();
    }
}
