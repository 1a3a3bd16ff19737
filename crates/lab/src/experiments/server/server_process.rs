//! A server that runs, as whoever measures it sees it.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use contend_sys::child::{self, Which};
use contend_sys::{Pid, procfs, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::http::Handler;
use super::table::Model;
use super::verb::VERB;
use crate::engine::experiment::{Attempt, SubjectError};
use crate::support::tree::{self, Taken};

/// A server in processes of its own, beside which this process has no other children. Dropped, it ends with all of
/// them, and they are waited for.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// It ends when this does.
    _input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Where it listens, on loopback.
    pub port: u16,
    stopped: Option<String>,
}

impl ServerProcess {
    /// Starts a server, and waits until it listens.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(model: &Model, handler: Handler) -> Result<Self, SubjectError> {
        // What a server has started is handed to this process when the server ends.
        child::become_subreaper().attempt("become the parent of orphans")?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("contend").args([VERB, model.name, handler.name()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn::spawn_bound(&mut command).attempt("start the server")?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| SubjectError::wrong("it has no output"))?;
        let output = BufReader::new(output);
        let mut running = Self { child, _input: input, output, port: 0, stopped: None };
        let line = running.line().unwrap_or_default();
        let port = line.strip_prefix("port ").and_then(|port| port.parse().ok());
        running.port = port.ok_or_else(|| SubjectError::wrong("the server did not start"))?;
        Ok(running)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Processes that it consists of.
    pub fn processes(&self) -> u64 {
        procfs::with_descendants(self.pid()).len() as u64
    }

    /// WaitFor until it consists of as many processes as wanted: those of closed connections end, and those of a pool
    /// are still being made when the first of them serves. Whether it has come to that in five seconds.
    pub fn comes_to(&self, wanted: impl Fn(u64) -> bool) -> bool {
        const STEP: Duration = Duration::from_millis(20);
        const STEPS: usize = 250;
        (0..STEPS).any(|_| {
            let is_there = wanted(self.processes());
            if !is_there {
                std::thread::sleep(STEP);
            }
            is_there
        })
    }

    /// What all of its processes take.
    ///
    /// # Errors
    /// When this user may not see it.
    pub fn taken(&self) -> Result<Taken, SubjectError> {
        tree::taken(self.pid())
    }

    /// CPU time of all of its processes so far.
    pub fn cpu(&self) -> Duration {
        tree::cpu(self.pid())
    }

    /// What has stood in its way, if it has said so by now.
    pub fn stopped(&mut self) -> Option<String> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_said = |output: &ChildStdout| {
            let mut fds = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
        };
        while self.stopped.is_none()
            && (!self.output.buffer().is_empty() || has_said(self.output.get_ref()))
        {
            let line = self.line()?;
            self.stopped = line.strip_prefix("stopped ").map(str::to_owned);
        }
        self.stopped.clone()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Those that it has started end with it, and become children of this process.
        while let Ok(found) = child::peek(Which::Any) {
            match found {
                Some((pid, _)) => drop(child::reap(pid)),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}
