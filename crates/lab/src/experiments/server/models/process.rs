//! Servers with a process for each connection or a fixed number of processes. The parent has a
//! single thread, so that children may allocate and lock after fork.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;

use contend_sys::child::{self, Which};
use contend_sys::process::{exit_now, fork};
use contend_sys::signal::SignalFd;
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, poll};

use super::super::http::Handler;
use super::super::limit_reporter::LimitReporter;
use super::{POOL_SIZE, serve_connection, wait_for_stdin_eof};
use crate::support::limits::UnitKind;

/// Accepts connections until standard input ends, and forks a process for each, which ends when the
/// connection is closed.
///
/// # Errors
/// Returns an error if the parent cannot block SIGCHLD, make `listener` non-blocking, wait for
/// events, read standard input or reap a child. A fork that fails is reported as a limit instead.
#[expect(clippy::needless_pass_by_value, reason = "same signature as the other models")]
pub fn serve_per_connection(listener: TcpListener, handler: Handler) -> io::Result<()> {
    let reporter = LimitReporter::watch(Some(UnitKind::Process));
    let ends = SignalFd::block(&[Signal::CHILD.as_raw()])?;
    let stdin = io::stdin();
    listener.set_nonblocking(true)?;
    loop {
        let input = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [stdin.as_fd(), listener.as_fd(), ends.as_fd()].map(input);
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [has_input, has_connection, child_ended] = fds.map(|fd| !fd.revents().is_empty());
        if has_input && rustix::io::read(&stdin, &mut [0; 64])? == 0 {
            return Ok(());
        }
        if child_ended {
            while ends.next().is_some() {}
            while let Ok(Some((pid, _))) = child::peek(Which::Any) {
                child::reap(pid)?;
            }
        }
        if !has_connection {
            continue;
        }
        let Some(stream) = reporter.accept(&listener) else { continue };
        if let Err(error) = fork_bound_to_parent(|| serve_connection(&stream, handler)) {
            reporter.report("fork", &error);
        }
    }
}

/// Forks a fixed number of processes, and waits until standard input ends. Each of them serves one
/// connection until that is closed, and then the next.
///
/// # Errors
/// Returns an error if a process cannot be forked, or standard input cannot be read.
pub fn serve_with_pool(listener: TcpListener, handler: Handler) -> io::Result<()> {
    for _ in 0..POOL_SIZE {
        fork_bound_to_parent(|| {
            let reporter = LimitReporter::watch(None);
            loop {
                if let Some(stream) = reporter.accept(&listener) {
                    serve_connection(&stream, handler);
                }
            }
        })?;
    }
    drop(listener);
    wait_for_stdin_eof()
}

/// Forks a process that calls `run` and then exits. The kernel kills the process if its parent ends
/// first. Returns its PID.
fn fork_bound_to_parent(run: impl FnOnce()) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    fork(|| {
        let is_set = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        // The parent may have ended before the death signal was set.
        if is_set.is_err() || rustix::process::getppid() != Some(parent) {
            exit_now(1);
        }
        run();
        0
    })
}
