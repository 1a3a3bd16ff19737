//! Detection of the resource limit that keeps a model from serving more connections.

use std::io::{self, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::unit::of_unit;
use crate::support::limits::{self, Exhaustion, UnitKind, WatchedLimit};

/// Prints a line on standard output, which the process of the case reads, and flushes it.
///
/// # Errors
/// Returns an error if standard output cannot be written, such as after its reader has ended.
pub fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Returns whether an error of `accept(2)` shows no limit: it concerns only the connection to be
/// accepted, or a signal has interrupted the call.
pub fn is_connection_error(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Reporter of the first resource limit that stops the server. It reports at most once.
#[derive(Debug)]
pub struct LimitReporter {
    /// Limits on the processes or threads created for connections; empty if there are none.
    watched: Mutex<Vec<WatchedLimit>>,
    has_reported: AtomicBool,
}

impl LimitReporter {
    /// Creates a reporter. It watches the limits on units of kind `task_per_connection`, which
    /// serve the connections. With `None`, it only knows limits that an error reveals.
    pub fn watch(task_per_connection: Option<UnitKind>) -> Self {
        let limits = task_per_connection.map(|kind| limits::limits_on(kind, of_unit(kind)));
        Self {
            watched: Mutex::new(limits.unwrap_or_default()),
            has_reported: AtomicBool::new(false),
        }
    }

    /// Prints that the server cannot do `what` because of `error`, and which limit was reached, if
    /// that is known. Only the first call does this; later calls do nothing.
    pub fn report(&self, what: &str, error: &io::Error) {
        if self.has_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let limit = of_error(error).or_else(|| self.reached_limit());
        let limit = limit.unwrap_or_else(|| "unknown limit".to_owned());
        // If printing fails, the case has ended.
        let _ = print_line(&format!("stopped cannot {what}: {error}: {limit}"));
    }

    /// Returns a description of the watched limit that was reached: the first for which the kernel
    /// has counted a refusal, or else the first full one. Returns `None` if there is no such limit.
    fn reached_limit(&self) -> Option<String> {
        let watched = self.watched.lock().ok()?;
        let mut full = None;
        for watched in watched.iter() {
            let name = &watched.limit.name;
            match watched.read_exhaustion() {
                Exhaustion::Refused { evidence, .. } => return Some(format!("{name}: {evidence}")),
                Exhaustion::Full(evidence) => full = full.or(Some(evidence)),
                Exhaustion::No => {}
            }
        }
        full
    }

    /// Accepts a connection. Returns `None` if there is none or it has failed. If a limit prevents
    /// accepting, reports it, pauses for 100 ms so that other connections can close, and returns
    /// `None`.
    pub fn accept(&self, listener: &TcpListener) -> Option<TcpStream> {
        const RETRY_DELAY: Duration = Duration::from_millis(100);
        match listener.accept() {
            Ok((stream, _)) => stream.set_nodelay(true).is_ok().then_some(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock || is_connection_error(&error) => {
                None
            }
            Err(error) => {
                self.report("accept", &error);
                std::thread::sleep(RETRY_DELAY);
                None
            }
        }
    }
}

/// Returns the limit on files or epoll watches that causes the error, with its value, or `None` if
/// the error has another cause.
fn of_error(error: &io::Error) -> Option<String> {
    let error = rustix::io::Errno::from_io_error(error)?;
    if error == rustix::io::Errno::MFILE {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        return Some(format!("RLIMIT_NOFILE = {limit}"));
    }
    let limit = match error {
        rustix::io::Errno::NFILE => "fs.file-max",
        rustix::io::Errno::NOSPC => "fs.epoll.max_user_watches",
        _ => return None,
    };
    let path = format!("/proc/sys/{}", limit.replace('.', "/"));
    let value = std::fs::read_to_string(path).unwrap_or_default();
    Some(format!("{limit} = {}", value.trim()))
}
