//! Starts programs for tests, with known signal dispositions and a deadline.
//!
//! [`Command`] and [`Child`] are used like those of the standard library, with these differences:
//!
//! - A program starts with every signal at its default action and none blocked, whatever the tests
//!   themselves inherited. [`Command::ignoring`] and [`Command::blocking`] change that.
//! - contend saves nothing, unless the test sets `XDG_CONFIG_HOME` or asks for it.
//! - A program leads a process group. After [`DEADLINE`], the group is killed, and the test fails
//!   with the output so far. A test that fails earlier kills the group as well.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, CommandArgs, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use contend_sys::dispositions::Dispositions;
use contend_sys::spawn::spawn_bound;
use contend_sys::{Pid, Signal, child};
use rustix::process::kill_process_group;

/// Default time limit of a program, long enough for a busy machine.
const DEADLINE: Duration = Duration::from_mins(5);
/// Maximum number of bytes to show from the end of each output of a killed program.
const SHOWN_OUTPUT_BYTES: usize = 4000;

/// Configuration in which contend saves nothing.
const CONFIGURATION: &str = include_str!("../../../../testdata/config/contend/config.toml");

/// Returns the directory of a configuration in which contend saves nothing. Other programs that
/// tests start may write to it.
fn configuration() -> &'static Path {
    static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("config");
        let file = directory.join("contend/config.toml");
        if std::fs::read_to_string(&file).is_ok_and(|text| text == CONFIGURATION) {
            return directory;
        }
        // Tests that start at the same time write the same file.
        std::fs::create_dir_all(directory.join("contend")).expect("a directory");
        let temporary = directory.join(format!("contend/{}", process::id()));
        std::fs::write(&temporary, CONFIGURATION).expect("room");
        std::fs::rename(&temporary, &file).expect("the same directory");
        directory
    });
    &DIRECTORY
}

/// A program to start, with its signal dispositions and deadline.
#[derive(Debug)]
pub struct Command {
    inner: process::Command,
    dispositions: Dispositions,
    /// Whether standard input, output and error have been set.
    set: [bool; 3],
    deadline: Duration,
}

impl Command {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut inner = process::Command::new(program);
        inner.process_group(0).env("XDG_CONFIG_HOME", configuration());
        Self { inner, dispositions: Dispositions::default(), set: [false; 3], deadline: DEADLINE }
    }

    /// Makes the program start with the given signal ignored.
    pub fn ignoring(&mut self, signal: Signal) -> &mut Self {
        self.dispositions = self.dispositions.ignoring(signal);
        self
    }

    /// Makes the program start with the given signal blocked.
    pub fn blocking(&mut self, signal: Signal) -> &mut Self {
        self.dispositions = self.dispositions.blocking(signal);
        self
    }

    /// Sets the time after which the program is killed, instead of [`DEADLINE`].
    pub fn deadline(&mut self, deadline: Duration) -> &mut Self {
        self.deadline = deadline;
        self
    }

    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.inner.arg(argument);
        self
    }

    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.inner.args(arguments);
        self
    }

    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.inner.env(name, value);
        self
    }

    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.inner.env_remove(name);
        self
    }

    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.inner.current_dir(folder);
        self
    }

    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.set[0] = true;
        self.inner.stdin(stdin);
        self
    }

    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.set[1] = true;
        self.inner.stdout(stdout);
        self
    }

    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.set[2] = true;
        self.inner.stderr(stderr);
        self
    }

    pub fn get_program(&self) -> &OsStr {
        self.inner.get_program()
    }

    pub fn get_args(&self) -> CommandArgs<'_> {
        self.inner.get_args()
    }

    pub fn spawn(&mut self) -> io::Result<Child> {
        self.dispositions.apply_to(&mut self.inner);
        let child = spawn_bound(&mut self.inner)?;
        let command = format!("{:?}", self.inner);
        let watch = Watch::start(Pid::from_child(&child), command, self.deadline);
        Ok(Child { child, watch })
    }

    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn()?.wait()
    }

    pub fn output(&mut self) -> io::Result<Output> {
        let [stdin, stdout, stderr] = self.set;
        if !stdin {
            self.stdin(Stdio::null());
        }
        if !stdout {
            self.stdout(Stdio::piped());
        }
        if !stderr {
            self.stderr(Stdio::piped());
        }
        self.spawn()?.wait_with_output()
    }
}

/// A running program, whose process group is killed at the deadline.
#[derive(Debug)]
pub struct Child {
    child: process::Child,
    watch: Arc<Watch>,
}

impl Deref for Child {
    type Target = process::Child;

    fn deref(&self) -> &process::Child {
        &self.child
    }
}

impl DerefMut for Child {
    fn deref_mut(&mut self) -> &mut process::Child {
        &mut self.child
    }
}

impl Child {
    /// Closes the standard input, and waits until the program exits.
    ///
    /// # Panics
    /// Panics if the program was killed at the deadline.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        let status = self.reap()?;
        assert!(!self.watch.has_killed(), "{}", self.watch.timeout_message());
        Ok(status)
    }

    /// Closes the standard input, reads standard output and standard error to EOF, and waits until
    /// the program exits.
    ///
    /// # Panics
    /// Panics if the program was killed at the deadline.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.child.stdin.take());
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let (stdout, stderr) = thread::scope(|scope| {
            let stderr = scope.spawn(|| read_to_end_of(stderr));
            (read_to_end_of(stdout), stderr.join().expect("it does not panic"))
        });
        let (stdout, stderr) = (stdout?, stderr?);
        let status = self.reap()?;
        if self.watch.has_killed() {
            let mut timeout_message = self.watch.timeout_message();
            for (name, bytes) in [("output", &stdout), ("error", &stderr)] {
                let shown = &bytes[bytes.len().saturating_sub(SHOWN_OUTPUT_BYTES)..];
                let shown = String::from_utf8_lossy(shown);
                let _ =
                    write!(timeout_message, "\nstandard {name}, {} bytes: {shown}", bytes.len());
            }
            panic!("{timeout_message}");
        }
        Ok(Output { status, stdout, stderr })
    }

    /// Returns the exit status, or `None` if the program is still running.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.watch.state();
        let status = self.child.try_wait()?;
        state.is_reaped |= status.is_some();
        self.watch.changed.notify_all();
        Ok(status)
    }

    /// Waits until the program exits, and reaps it while the state of the watch is locked, so that
    /// the watch cannot kill another process with the same pid.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if !self.watch.state().is_reaped {
            child::wait_for_end(Pid::from_child(&self.child))?;
        }
        let mut state = self.watch.state();
        let status = self.child.wait()?;
        state.is_reaped = true;
        self.watch.changed.notify_all();
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.watch.state().is_reaped {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL); // it may have ended
            let _ = self.reap();
        }
    }
}

fn read_to_end_of(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// A watch that kills a process group at the deadline.
#[derive(Debug)]
struct Watch {
    group: Pid,
    command: String,
    deadline: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the program has been reaped, after which another process may have its pid.
    is_reaped: bool,
    has_killed: bool,
}

impl Watch {
    fn start(group: Pid, command: String, deadline: Duration) -> Arc<Self> {
        let state = Mutex::default();
        let watch = Arc::new(Self { group, command, deadline, state, changed: Condvar::new() });
        let own = Arc::clone(&watch);
        thread::spawn(move || own.wait());
        watch
    }

    fn wait(&self) {
        let begun = Instant::now();
        let mut state = self.state();
        while !state.is_reaped && begun.elapsed() < self.deadline {
            let left = self.deadline.saturating_sub(begun.elapsed());
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.is_reaped {
            state.has_killed = true;
            let _ = kill_process_group(self.group, Signal::KILL); // it may have ended
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_killed(&self) -> bool {
        self.state().has_killed
    }

    fn timeout_message(&self) -> String {
        format!("not over after {:?}: {}", self.deadline, self.command)
    }
}
