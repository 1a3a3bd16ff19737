//! Starts a web server for a case, and ends all of the server's processes afterwards.
//!
//! ```text
//! process of the case --stdin, stdout--> supervisor ----> puma, unicorn, … ----> its workers
//!   load generator                         scratch folder     (loopback port)
//! ```
//!
//! The supervisor is this program itself, in a process of its own. It ends the server when it gets
//! SIGINT, SIGTERM or SIGHUP, and when its standard input ends, which also happens if the process
//! of the case is killed. It is the subreaper of the server's processes, so that it can find and
//! end all of them before it exits.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use contend_sys::child::{self, Which};
use contend_sys::procfs::Stat;
use contend_sys::signal::SignalFd;
use contend_sys::{Pid, Signal, procfs, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, sockopt};
use tempfile::TempDir;

use super::limit_reporter::print_line;
use super::programs::{INTERPRETER_FILE, Launch, Program};
use super::response::{Response, check};
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::engine::isolate::{RUN_VARIABLE, SCRATCH_VARIABLE};
use crate::experiments::runtimes::summarize_output;

/// Time limit for a server's first response and the start of all of its processes.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Time between two checks of whether a server is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit for each read of the first response.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Name of the file that receives the server's standard output and standard error.
const LOG_FILE: &str = "log";
/// Environment variables that a server does not inherit: they would change how it runs.
const VARIABLES: [&str; 9] = [
    "RACK_ENV",
    "RAILS_ENV",
    "PORT",
    "WEB_CONCURRENCY",
    "PUMA_MAX_THREADS",
    "GUNICORN_CMD_ARGS",
    "UNICORN_FD",
    "NGINX",
    "NODE_OPTIONS",
];

/// Starts a program on a free port instead of `launch.port`, checks its response, and prints its
/// port, PID and version. Ends the program when standard input ends.
///
/// # Errors
/// Returns an error in these cases:
/// - This process cannot become a subreaper, block signals or reserve a port.
/// - The program cannot be started, is not ready within a minute, answers wrongly or ends early.
/// - Standard input ends before the program is ready.
/// - A line cannot be printed.
/// - This process gets SIGINT, SIGTERM or SIGHUP.
pub fn serve(program: &'static Program, mut launch: Launch) -> Result<(), SubjectError> {
    child::become_subreaper().context("become the parent of orphans")?;
    let (interrupt, terminate, hang_up) = (Signal::INT, Signal::TERM, Signal::HUP);
    let signals = [interrupt, terminate, hang_up, Signal::CHILD].map(Signal::as_raw);
    let signals = SignalFd::block(&signals).context("receive signals")?;
    let (reserved, port) = reserve_port().context("reserve a port")?;
    launch.port = port;
    let server = Server::start(program, &launch, &signals)?;
    server.wait_until_ready(&launch, &signals)?;
    drop(reserved);
    print_line(&format!("port {port}")).context("print the port")?;
    print_line(&format!("pid {}", server.pid().as_raw_nonzero())).context("print the process")?;
    print_line(&format!("version {}", server.version())).context("print the version")?;
    while server.wait(&signals, None)? == Wake::Timeout {}
    Ok(())
}

/// Reason why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// The time limit has passed, or an event has to be ignored, such as the end of a worker.
    Timeout,
    /// Standard input has ended: the case is over.
    EndOfInput,
}

/// Reserves a port on loopback by binding a socket without listening, and returns both. While the
/// socket is open, the kernel does not choose the port for other programs, but a server that sets
/// `SO_REUSEADDR` can listen on it.
fn reserve_port() -> io::Result<(OwnedFd, u16)> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((socket, address.port()))
}

/// A running program and its folder. Dropping it ends all descendants of this process.
struct Server {
    program: &'static Program,
    child: Child,
    folder: TempDir,
    /// Scratch directory that contains the folder and that cases share, or `None` if there is none.
    shared: Option<PathBuf>,
}

impl Server {
    fn start(
        program: &'static Program,
        launch: &Launch,
        signals: &SignalFd,
    ) -> Result<Self, SubjectError> {
        let path = program.path().ok_or_else(|| {
            SubjectError::unexpected(
                program.missing().unwrap_or_else(|| "it is not installed".into()),
            )
        })?;
        let shared = std::env::var_os(SCRATCH_VARIABLE).map(Into::into);
        let folder = make_folder(shared.as_deref()).context("create a scratch folder")?;
        for (name, text) in (program.files)(launch) {
            fs::write(folder.path().join(name), text).context("write a configuration")?;
        }
        let log = File::create(folder.path().join(LOG_FILE)).context("create a log")?;
        let mut command = Command::new(path);
        command.args(program.arguments).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().context("share a log")?).stderr(log);
        for name in VARIABLES {
            command.env_remove(name);
        }
        let mask = signals.mask_before();
        let child = spawn::spawn(&mut command, &[0, 1, 2], mask, Signal::KILL)
            .context(&format!("start {}", program.name))?;
        Ok(Self { program, child, folder, shared })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits up to a minute for the server's first response and the start of all of its processes.
    fn wait_until_ready(&self, launch: &Launch, signals: &SignalFd) -> Result<(), SubjectError> {
        let deadline = Instant::now() + START_TIMEOUT;
        let processes = 1 + (self.program.other_processes)(launch.concurrency);
        let mut has_answered = false;
        while !has_answered || (procfs::with_descendants(self.pid()).len() as u64) < processes {
            if Instant::now() >= deadline {
                return Err(self.failed(&format!("not ready within {} s", START_TIMEOUT.as_secs())));
            }
            has_answered = has_answered || self.is_answering(launch.port)?;
            if self.wait(signals, Some(POLL_INTERVAL))? == Wake::EndOfInput {
                return Err(self.failed("the case ended before it was ready"));
            }
        }
        Ok(())
    }

    /// Returns `true` if the server answers as expected, and `false` if it does not listen yet. Any
    /// other outcome is an error.
    fn is_answering(&self, port: u16) -> Result<bool, SubjectError> {
        match first_response(port) {
            Ok(response) => match check(&response) {
                Response::Complete { .. } => Ok(true),
                Response::Incomplete | Response::Wrong => {
                    let text = summarize_output(&String::from_utf8_lossy(&response));
                    Err(self.failed(&format!("unexpected response: {text}")))
                }
            },
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
            Err(error) => Err(self.failed(&format!("no answer: {error}"))),
        }
    }

    /// Waits for input, the end of standard input or a signal, for at most `limit` (`None`:
    /// forever). Returns an error if the program has ended, or if a signal other than SIGCHLD has
    /// arrived.
    fn wait(&self, signals: &SignalFd, limit: Option<Duration>) -> Result<Wake, SubjectError> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let stdin = io::stdin();
        let mut fds =
            [stdin.as_fd(), signals.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("wait"),
        }
        let has_input = !fds[0].revents().is_empty();
        while let Some(arrived) = signals.next() {
            if arrived.signal != Signal::CHILD.as_raw() {
                let name = self.program.name;
                return Err(SubjectError::unexpected(format!("{name}: interrupted by a signal")));
            }
        }
        if let Ok(Some(_)) = child::peek(Which::One(self.pid())) {
            return Err(self.failed("the program ended"));
        }
        if has_input && rustix::io::read(&stdin, &mut [0; 64]).context("read")? == 0 {
            return Ok(Wake::EndOfInput);
        }
        Ok(Wake::Timeout)
    }

    /// Returns an error with the given reason and a summary of the program's output, if any.
    fn failed(&self, reason: &str) -> SubjectError {
        let name = self.program.name;
        let log = fs::read(self.folder.path().join(LOG_FILE)).unwrap_or_default();
        match summarize_output(&String::from_utf8_lossy(&log)) {
            log if log.is_empty() => SubjectError::unexpected(format!("{name}: {reason}")),
            log => SubjectError::unexpected(format!("{name}: {reason}; output: {log}")),
        }
    }

    /// Returns the names and versions of the program and, if known, of its application's language.
    fn version(&self) -> String {
        let mut command = Command::new(self.program.path().unwrap_or_default());
        let output = command.arg(self.program.version).stdin(Stdio::null()).output();
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let number = version_number(&text).unwrap_or_default();
        let interpreter = fs::read_to_string(self.folder.path().join(INTERPRETER_FILE));
        let interpreter = interpreter.map(|text| format!(", {text}")).unwrap_or_default();
        format!("{} {number}{interpreter}", self.program.name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // first, or it would start new workers
        end_descendants();
        // Normally the run removes the shared directory, but it may have been killed.
        let shared = self.shared.take().filter(|_| !is_run_alive());
        if let Some(shared) = shared {
            let _ = fs::remove_dir_all(self.folder.path());
            let _ = fs::remove_dir(shared); // fails while other cases use it
        }
    }
}

/// Returns whether the process that runs the experiments is still alive. Normally it is the
/// grandparent of this process, and if the process of the case has ended, the parent. Returns
/// `false` if its PID is not known.
fn is_run_alive() -> bool {
    let run = std::env::var(RUN_VARIABLE).ok().and_then(|text| text.parse::<i32>().ok());
    let (Some(run), Some(parent)) = (run, rustix::process::getppid()) else { return false };
    parent.as_raw_nonzero().get() == run || Stat::of(parent).is_ok_and(|stat| stat.parent == run)
}

/// Kills and reaps descendants of this process, which must be a subreaper, until it has none.
pub fn end_descendants() {
    while let Ok(found) = child::peek(Which::Any) {
        if let Some((pid, _)) = found {
            let _ = child::reap(pid);
            continue;
        }
        let own = rustix::process::getpid();
        for pid in procfs::with_descendants(own).into_iter().filter(|&pid| pid != own) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn make_folder(shared: Option<&Path>) -> io::Result<TempDir> {
    let builder = || tempfile::Builder::new().prefix("contend-server-").to_owned();
    match shared {
        Some(shared) => {
            fs::create_dir_all(shared)?;
            builder().tempdir_in(shared)
        }
        None => builder().tempdir(),
    }
}

/// Sends a request on a new connection, and returns the bytes until EOF, at most 4096.
fn first_response(port: u16) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.take(4096).read_to_end(&mut response)?;
    Ok(response)
}

/// Returns the first word of `text` that begins with a digit after an optional `v`, without the
/// `v`. Returns `None` if there is no such word. Words end at white space, parentheses and slashes.
fn version_number(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "()/".contains(c));
    let mut numbers = words.map(|word| word.strip_prefix('v').unwrap_or(word));
    numbers.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_output() {
        for (text, version) in [
            ("puma version 5.6.5\n", "5.6.5"),
            ("unicorn v6.0.0\n", "6.0.0"),
            ("gunicorn (version 20.1.0)\n", "20.1.0"),
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("v20.20.2\n", "20.20.2"),
        ] {
            assert_eq!(version_number(text), Some(version));
        }
        assert_eq!(version_number("no version"), None);
    }

    #[test]
    fn a_server_can_listen_on_a_reserved_port() {
        let (reserved, port) = reserve_port().expect("a port");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        assert_eq!(listener.expect("it is free").local_addr().expect("bound").port(), port);
        drop(reserved);
    }
}
