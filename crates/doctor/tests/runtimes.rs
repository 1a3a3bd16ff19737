//! What a thread waits for, in each runtime. Small programs make a thread wait for each primitive, and
//! an observation of each program is compared with a table.
//!
//! The programs are in `programs/`, and name their threads after the primitives. Where a table has a
//! state that does not match the name, the arguments of the call do not tell the primitives apart.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contend_doctor::observe::{Config, Observation, observe};
use contend_doctor::trace::MAX_SPANS;
use contend_record::doctor::{Runtime, ThreadState};
use contend_record::trace::{Activity, WaitObject};
use contend_sys::Pid;
use contend_sys::interrupt::Signals;

/// Number of observations until the program must be in the expected state: about a minute.
const MAX_OBSERVATIONS: u32 = 600;
/// Length of an observation.
const OBSERVATION: Duration = Duration::from_millis(50);

/// How a thread waits, as the doctor records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    state: ThreadState,
    object: Kind,
    /// Whether the wait is for a lock other than that of the interpreter.
    is_for_lock: bool,
    /// Whether the wait ends by a timer of the program.
    is_timer: bool,
}

/// The kind of the object that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Futex,
    Descriptor,
    Timer,
    Descriptors,
    Unknown,
}

impl Found {
    const fn new(state: ThreadState, object: Kind) -> Self {
        Self { state, object, is_for_lock: false, is_timer: false }
    }

    const fn timed(self) -> Self {
        Self { is_timer: true, ..self }
    }
}

const LOCK: Found = Found { is_for_lock: true, ..Found::new(ThreadState::Lock, Kind::Futex) };
const FILE_LOCK: Found =
    Found { is_for_lock: true, ..Found::new(ThreadState::Lock, Kind::Unknown) };
const INTERPRETER_LOCK: Found = Found::new(ThreadState::Lock, Kind::Futex);
const CONDITION: Found = Found::new(ThreadState::Condition, Kind::Futex);
const COUNTER: Found = Found::new(ThreadState::Condition, Kind::Descriptor);
const SLEEP: Found = Found::new(ThreadState::Sleep, Kind::Timer).timed();
const TIMER: Found = Found::new(ThreadState::Sleep, Kind::Descriptor).timed();
const PIPE: Found = Found::new(ThreadState::Pipe, Kind::Descriptor);
const SOCKET: Found = Found::new(ThreadState::Socket, Kind::Descriptor);
const CONNECTION: Found = Found::new(ThreadState::Socket, Kind::Unknown);
const TERMINAL: Found = Found::new(ThreadState::Terminal, Kind::Descriptor);
const POLL: Found = Found::new(ThreadState::Poll, Kind::Descriptors);
const CHILD: Found = Found::new(ThreadState::Child, Kind::Unknown);
const SIGNAL: Found = Found::new(ThreadState::Other, Kind::Unknown);

/// A thread, as an observation shows it.
#[derive(Debug)]
struct Thread {
    name: String,
    /// Whether it did not run during the observation.
    is_steady: bool,
    /// Its longest wait; `None` if it did not wait.
    wait: Option<Found>,
}

/// A running program, which ends with this value. Its children end when its standard input, a pipe,
/// is closed.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).spawn().expect("the program starts"))
    }

    /// Observes the program for a short time.
    fn observe(&self) -> Observation {
        // An observation of one program could find processes of another test by a pipe that they
        // hold until they execute a program.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let config = Config {
            targets: vec![Pid::from_child(&self.0)],
            limit: Some(OBSERVATION),
            interval: Duration::from_millis(5),
            switches: false,
            wakes: false,
            trace: Some(MAX_SPANS),
        };
        let signals = Signals::block().expect("signals");
        observe(&config, &signals, &mut |_| ControlFlow::Continue(())).expect("its own child")
    }

    /// Observes the program, and returns its threads; none if its runtime is another, as before it
    /// has replaced the script that starts it.
    fn threads(&self, runtime: Option<Runtime>) -> Vec<Thread> {
        let observation = self.observe();
        let pid = Pid::from_child(&self.0);
        let mut processes = observation.processes.iter();
        if !processes.any(|process| process.pid == pid && process.runtime == runtime) {
            return Vec::new();
        }
        let process = pid.as_raw_nonzero().get();
        let tracks = observation.timeline.tracks.iter();
        tracks
            .filter(|(_, track)| track.process == process)
            .map(|(&id, track)| {
                let longest = track.waits.iter().max_by_key(|(_, time)| time.nanos);
                let wait = longest.map(|(wait, _)| Found {
                    state: wait.state,
                    object: object(&observation, id, wait.state),
                    is_for_lock: wait.is_for_lock(),
                    is_timer: wait.is_timer(runtime),
                });
                let name = observation.names.get(&id).cloned().unwrap_or_default();
                Thread { name, is_steady: track.slices == 0, wait }
            })
            .collect()
    }

    /// Observes the program until each named thread waits as the table says, without running. A
    /// thread whose name has several rows waits as one of them says.
    fn check(self, runtime: Option<Runtime>, table: &[(&str, Found)]) {
        self.await_waits(runtime, table, |thread| thread.is_steady);
    }

    /// As [`Self::check`], for threads that run and wait in turn. The longest wait counts.
    fn check_busy(self, runtime: Option<Runtime>, table: &[(&str, Found)]) {
        self.await_waits(runtime, table, |thread| !thread.is_steady);
    }

    fn await_waits(
        mut self,
        runtime: Option<Runtime>,
        table: &[(&str, Found)],
        is_ready: impl Fn(&Thread) -> bool,
    ) {
        let mut differences = Vec::new();
        for _ in 0..MAX_OBSERVATIONS {
            let ended = self.0.try_wait().expect("its own child");
            assert_eq!(ended, None, "the program has ended; before that: {differences:#?}");
            let threads = self.threads(runtime);
            let difference = |&(name, _): &(&str, Found)| {
                let rows = table.iter().filter(|row| row.0 == name);
                let expected: Vec<Found> = rows.map(|row| row.1).collect();
                let named = threads.iter().filter(|thread| thread.name == name);
                let named: Vec<&Thread> = named.collect();
                let is_right = |thread: &&Thread| {
                    is_ready(thread) && thread.wait.is_some_and(|wait| expected.contains(&wait))
                };
                let are_right = !named.is_empty() && named.iter().all(is_right);
                (!are_right).then(|| format!("{name}: {named:?}, not {expected:?}"))
            };
            differences = table.iter().filter_map(difference).collect();
            if differences.is_empty() {
                return;
            }
        }
        panic!("{differences:#?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the kind of the object of a thread's last wait in `state`.
fn object(observation: &Observation, id: i32, state: ThreadState) -> Kind {
    let trace = observation.trace.as_ref().expect("it was requested");
    let thread = trace.threads.iter().find(|thread| thread.tid == id);
    let mut waits =
        thread.into_iter().flat_map(|thread| thread.spans.iter().rev()).filter_map(|span| {
            let Activity::Waiting { wait, .. } = span.activity else { return None };
            trace.waits.get(wait as usize)
        });
    match waits.find(|wait| wait.state == state).and_then(|wait| wait.object.as_ref()) {
        Some(WaitObject::Futex { .. }) => Kind::Futex,
        Some(WaitObject::Descriptor { .. }) => Kind::Descriptor,
        Some(WaitObject::Timer { .. }) => Kind::Timer,
        Some(WaitObject::Descriptors { .. }) => Kind::Descriptors,
        None => Kind::Unknown,
    }
}

/// Returns the path of a program's source.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Returns whether programs are in `PATH`. Otherwise prints directly to standard error, bypassing
/// the harness's capture, that the test is skipped. CI counts these lines.
fn has(test: &str, programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing =
        |name: &&&str| !std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let Some(missing) = programs.iter().find(is_missing) else { return true };
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no {missing} here");
    false
}

/// Compiles with a command line.
fn compile(command: &mut Command) {
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn waits_of_c_programs_are_recognised() {
    if !has("waits_of_c_programs_are_recognised", &["gcc"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("waits");
    let options = ["-std=gnu11", "-pthread", "-o"];
    compile(Command::new("gcc").args(options).arg(&program).arg(source("waits.c")));
    Program::start(&mut Command::new(program)).check(
        None,
        &[
            ("mutex", LOCK),
            ("recursive", LOCK),
            ("robust", LOCK),
            ("inheriting", LOCK),
            ("shared", LOCK),
            ("mutex_timed", LOCK),
            // The arguments may be those of a condition variable of Rust's std.
            ("mutex_clock", CONDITION),
            ("read_lock", LOCK),
            ("write_lock", LOCK),
            ("drain_readers", LOCK),
            // The arguments may be those of a wait for the end of a thread, whose ID is small in
            // containers.
            ("shared_write", CONDITION),
            ("writer_first", LOCK),
            // The expected value counts readers, as that of a condition variable counts signals.
            ("behind_writer", CONDITION),
            ("condition", CONDITION),
            ("cond_timed", CONDITION),
            ("cond_clock", CONDITION),
            ("semaphore", CONDITION),
            ("sem_timed", CONDITION),
            ("barrier", CONDITION),
            // In this round, the expected value is that of a mutex: two threads have passed before.
            ("barrier_second", LOCK),
            ("join", CONDITION),
            ("nanosleep", SLEEP),
            ("sleep_until", SLEEP),
            ("poll", POLL),
            ("poll_none", SLEEP),
            ("select", POLL),
            ("epoll", POLL),
            ("read_pipe", PIPE),
            ("write_pipe", PIPE),
            ("main_pipe", PIPE),
            ("receive", SOCKET),
            ("accept", CONNECTION),
            ("terminal", TERMINAL),
            ("timerfd", TIMER),
            ("eventfd", COUNTER),
            ("flock", FILE_LOCK),
            ("fcntl", FILE_LOCK),
            ("fcntl_ofd", FILE_LOCK),
            ("child", CHILD),
            ("sigwait", SIGNAL),
        ],
    );
}

#[test]
fn waits_of_rust_programs_are_recognised() {
    if !has("waits_of_rust_programs_are_recognised", &["rustc"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("waits");
    let options = ["--edition", "2024", "-o"];
    compile(Command::new("rustc").args(options).arg(&program).arg(source("waits.rs")));
    Program::start(&mut Command::new(program)).check(
        None,
        &[
            ("mutex", LOCK),
            ("read_lock", LOCK),
            ("write_lock", LOCK),
            // All bits of the state are set, as in that of a parked thread.
            ("crowded_read", CONDITION),
            ("drain_readers", LOCK),
            ("behind_writer", LOCK),
            ("condvar", CONDITION),
            ("condvar_1", CONDITION),
            // After two notifications, the expected value is that of a mutex.
            ("condvar_2", LOCK),
            ("condvar_timed", CONDITION),
            ("park", CONDITION),
            ("park_timed", CONDITION),
            ("sleep", SLEEP),
            ("recv", CONDITION),
            ("recv_timed", CONDITION),
            ("barrier", CONDITION),
            ("join", CONDITION),
            ("scope", CONDITION),
            ("initialiser", CONDITION),
            ("once", CONDITION),
            ("socket", SOCKET),
            ("child", CHILD),
            ("waits", PIPE),
        ],
    );
}

#[test]
fn waits_of_go_programs_are_recognised() {
    if !has("waits_of_go_programs_are_recognised", &["go"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("waits");
    compile(Command::new("go").args(["build", "-o"]).arg(&program).arg(source("waits.go")));
    Program::start(&mut Command::new(program)).check(
        Some(Runtime::Go),
        &[
            ("mutex", CONDITION),
            ("read_lock", CONDITION),
            ("write_lock", CONDITION),
            ("condition", CONDITION),
            ("wait_group", CONDITION),
            ("initialiser", CONDITION),
            ("receive", CONDITION),
            ("send", CONDITION),
            ("select", CONDITION),
            ("sleep", CONDITION),
            ("polled_pipe", CONDITION),
            ("raw_pipe", PIPE),
            ("nanosleep", Found { is_timer: false, ..SLEEP }),
            ("child", CHILD),
            ("main_pipe", PIPE),
            // Idle threads, of which one waits for descriptors and timers, and the monitor thread.
            ("waits", CONDITION),
            ("waits", CONDITION.timed()),
            ("waits", POLL),
            ("waits", POLL.timed()),
        ],
    );
}

#[test]
fn waits_of_java_programs_are_recognised() {
    if !has("waits_of_java_programs_are_recognised", &["java", "javac"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    compile(Command::new("javac").arg("-d").arg(folder.path()).arg(source("Waits.java")));
    let mut command = Command::new("java");
    command.args(["-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp"]).arg(folder.path()).arg("Waits");
    Program::start(&mut command).check(
        Some(Runtime::Java),
        &[
            // Before JDK 24, the first thread checks the monitor once in a while.
            ("monitor", CONDITION),
            ("monitor", CONDITION.timed()),
            ("monitor_next", CONDITION),
            ("reentrant", CONDITION),
            ("read_lock", CONDITION),
            ("write_lock", CONDITION),
            ("lock_timed", CONDITION.timed()),
            ("wait", CONDITION),
            ("wait_timed", CONDITION.timed()),
            ("park", CONDITION),
            ("park_timed", CONDITION.timed()),
            ("sleep", CONDITION.timed()),
            ("join", CONDITION),
            ("semaphore", CONDITION),
            ("latch", CONDITION),
            ("barrier", CONDITION),
            ("take", CONDITION),
            ("hand_over", CONDITION),
            ("accept", CONNECTION),
            ("child", CONDITION),
            ("process reaper ", CHILD),
            ("pipe", PIPE),
        ],
    );
}

#[test]
fn waits_of_python_programs_are_recognised() {
    if !has("waits_of_python_programs_are_recognised", &["python3"]) {
        return;
    }
    let program = || {
        let mut command = Command::new("python3");
        command.arg(source("waits.py"));
        command
    };
    Program::start(&mut program()).check(
        Some(Runtime::Python),
        &[
            ("lock", CONDITION),
            ("rlock", CONDITION),
            ("lock_timed", CONDITION),
            ("condition", CONDITION),
            ("cond_timed", CONDITION),
            ("event", CONDITION),
            ("event_timed", CONDITION),
            ("semaphore", CONDITION),
            ("barrier", CONDITION),
            ("queue", CONDITION),
            ("queue_timed", CONDITION),
            ("simple_queue", CONDITION),
            ("join", CONDITION),
            ("sleep", SLEEP),
            ("pipe", PIPE),
            ("select", POLL),
            ("socket", SOCKET),
            ("socket_timed", POLL),
            ("flock", FILE_LOCK),
            ("child", CHILD),
        ],
    );
    Program::start(program().arg("compute")).check_busy(
        Some(Runtime::Python),
        &[("compute_1", INTERPRETER_LOCK), ("compute_2", INTERPRETER_LOCK)],
    );
}

#[test]
fn waits_of_node_programs_are_recognised() {
    if !has("waits_of_node_programs_are_recognised", &["node"]) {
        return;
    }
    Program::start(Command::new("node").arg(source("waits.cjs"))).check(
        Some(Runtime::Node),
        &[
            // V8 sets a timer of some seconds to collect garbage.
            ("main_loop", POLL),
            ("main_loop", POLL.timed()),
            ("pool", CONDITION),
            ("atomics", CONDITION),
            ("atomics_timed", CONDITION),
            ("loop", POLL),
            ("loop", POLL.timed()),
            ("timer", POLL.timed()),
        ],
    );
}

#[test]
fn waits_of_ruby_programs_are_recognised() {
    if !has("waits_of_ruby_programs_are_recognised", &["ruby"]) {
        return;
    }
    let program = || {
        let mut command = Command::new("ruby");
        command.arg(source("waits.rb"));
        command
    };
    let mut table = vec![("pipe", POLL), ("select", POLL), ("socket", POLL), ("child", CHILD)];
    // Before Ruby 3.3, one of the threads that would wait for a condition variable polls for signals
    // instead, and children are among these.
    for name in ["mutex", "condition", "queue", "sized_queue", "sleep", "stop", "join", "child"] {
        table.extend([(name, CONDITION), (name, POLL)]);
    }
    Program::start(&mut program()).check(Some(Runtime::Ruby), &table);
    // The lock of the interpreter is a condition variable, too.
    Program::start(program().arg("compute"))
        .check_busy(Some(Runtime::Ruby), &[("compute_1", CONDITION), ("compute_2", CONDITION)]);
}
