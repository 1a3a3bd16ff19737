//! The table of the kinds of units, with a row for each.

use std::time::Duration;

use super::builtin::{self, Make};
use super::program::Program;
use super::requirements;
use crate::support::limits::UnitKind;

/// A kind of unit: one row of the table.
#[derive(Debug)]
pub struct Row {
    /// Value of the `unit` parameter.
    pub unit: &'static str,
    /// Name of the runtime that provides the unit.
    pub runtime: &'static str,
    /// Description of the unit and of the event that wakes it.
    pub summary: &'static str,
    /// Probe that creates the unit.
    pub source: Source,
    /// The probe's name for the unit, or an empty string if it is the same as `unit`.
    pub argument: &'static str,
    /// Largest number of units by default.
    pub max_units: u64,
    /// Upper bound on the time to create one unit, for units that are ended by timers, all at the
    /// same time; `None` if units are woken.
    pub max_create_time: Option<Duration>,
    /// Approximate memory of one unit in bytes. Cases whose units would need more memory than is
    /// available are left out.
    pub bytes: u64,
    /// Kind of kernel task that each unit is: a process or a thread. `None` if units are not kernel
    /// tasks.
    pub task: Option<UnitKind>,
    /// Returns why the installed runtime does not have the unit, or `None` if it has it, or if that
    /// is not known. Called only if the programs of the probe are installed.
    pub requirement_missing: fn() -> Option<String>,
    /// Whether `runtime/round-trip` measures the unit: it takes messages, and no other unit
    /// represents its runtime.
    pub has_messages: bool,
}

/// The origin of a probe.
#[derive(Debug)]
pub enum Source {
    /// A probe that is part of this program.
    BuiltIn(Make),
    /// A program in another language, with the command that runs it in the folder of its files.
    Program { program: &'static Program, run: &'static [&'static str] },
}

impl Row {
    /// Returns why the unit cannot be created here, or `None` if it can, as far as is known without
    /// starting the probe.
    pub fn missing(&self) -> Option<String> {
        match &self.source {
            Source::BuiltIn(_) => None,
            Source::Program { program, .. } => {
                program.missing().or_else(|| (self.requirement_missing)())
            }
        }
    }

    /// Returns the time from the command `park` until the timers of `n` units are due. This is
    /// enough time to create all units and to read their memory.
    pub fn hold(&self, n: u64) -> Duration {
        const MEMORY_READ_TIME: Duration = Duration::from_millis(1500);
        let making = self
            .max_create_time
            .map_or(0.0, |max_create_time| max_create_time.as_secs_f64() * n as f64);
        MEMORY_READ_TIME + Duration::from_secs_f64(making)
    }
}

/// Default row, whose fields most rows share.
pub const DEFAULT: Row = Row {
    unit: "",
    runtime: "",
    summary: "",
    source: Source::BuiltIn(builtin::callback),
    argument: "",
    max_units: 1_000_000,
    max_create_time: None,
    bytes: 0,
    task: None,
    requirement_missing: || None,
    has_messages: true,
};

/// Default maximum number of units that are processes or threads. Most systems allow this many.
const MAX_TASKS: u64 = 10_000;

// Rows with the fields that all units of a runtime share.
const TASK: Row = Row { runtime: "Linux", max_units: MAX_TASKS, ..DEFAULT };
const TOKIO: Row = Row { runtime: "tokio", ..DEFAULT };
const GO_UNIT: Row = runtime_row("Go", &GO, &["./probe"]);
const JAVA_UNIT: Row = runtime_row("Java", &JAVA, JAVA_RUN);
const NODE_UNIT: Row = runtime_row("Node", &NODE, NODE_RUN);
const PYTHON_UNIT: Row = runtime_row("Python", &PYTHON, PYTHON_RUN);
const BEAM_UNIT: Row = runtime_row("BEAM", &BEAM, BEAM_RUN);
const ELIXIR_UNIT: Row = runtime_row("Elixir", &ELIXIR, ELIXIR_RUN);

/// Returns a row with the fields that units of a runtime share: its name, its probe and the command
/// that runs the probe.
const fn runtime_row(
    runtime: &'static str,
    program: &'static Program,
    run: &'static [&'static str],
) -> Row {
    Row { runtime, source: Source::Program { program, run }, ..DEFAULT }
}

/// All kinds of units, in display order.
pub const TABLE: &[Row] = &[
    Row {
        unit: "callback",
        runtime: "contend-callback",
        summary: "a callback thread that waits for a message, on one Worker",
        bytes: 30,
        ..DEFAULT
    },
    Row {
        unit: "fork",
        summary: "a forked process that reads from a pipe",
        source: Source::BuiltIn(builtin::fork),
        task: Some(UnitKind::Process),
        bytes: 150_000,
        ..TASK
    },
    Row {
        unit: "thread",
        summary: "a thread (std::thread) that waits on a condition variable",
        source: Source::BuiltIn(builtin::thread),
        task: Some(UnitKind::Thread),
        bytes: 40_000,
        ..TASK
    },
    Row {
        unit: "tokio-sleep",
        summary: "a task that sleeps",
        source: Source::BuiltIn(builtin::sleep),
        max_create_time: Some(Duration::from_micros(3)),
        has_messages: false,
        bytes: 450,
        ..TOKIO
    },
    Row {
        unit: "tokio-pending",
        summary: "a task that is pending for ever",
        source: Source::BuiltIn(builtin::pending),
        has_messages: false,
        bytes: 320,
        ..TOKIO
    },
    Row {
        unit: "tokio-oneshot",
        summary: "a task that waits on a oneshot channel",
        source: Source::BuiltIn(builtin::oneshot),
        has_messages: false,
        bytes: 330,
        ..TOKIO
    },
    Row {
        unit: "tokio-mpsc",
        summary: "a task that waits on an mpsc channel",
        source: Source::BuiltIn(builtin::mpsc),
        bytes: 1200,
        ..TOKIO
    },
    Row {
        unit: "smol",
        runtime: "smol",
        summary: "a task that waits for a timer",
        source: Source::BuiltIn(builtin::smol),
        max_create_time: Some(Duration::from_micros(2)),
        bytes: 270,
        ..DEFAULT
    },
    Row {
        unit: "goroutine",
        summary: "a goroutine that receives from a channel",
        bytes: 2800,
        ..GO_UNIT
    },
    Row {
        unit: "go-afterfunc",
        summary: "a timer with a callback (time.AfterFunc)",
        argument: "afterfunc",
        max_create_time: Some(Duration::from_micros(2)),
        has_messages: false,
        bytes: 150,
        ..GO_UNIT
    },
    Row {
        unit: "java-platform",
        summary: "a platform thread that waits for a latch",
        argument: "platform",
        max_units: MAX_TASKS,
        task: Some(UnitKind::Thread),
        bytes: 50_000,
        ..JAVA_UNIT
    },
    Row {
        unit: "java-virtual",
        summary: "a virtual thread that waits for a latch",
        argument: "virtual",
        requirement_missing: requirements::virtual_threads_missing,
        bytes: 800,
        ..JAVA_UNIT
    },
    Row {
        unit: "coroutine",
        runtime: "C++",
        summary: "a suspended coroutine",
        source: Source::Program { program: &CPP, run: &["./probe"] },
        bytes: 80,
        ..DEFAULT
    },
    Row {
        unit: "node-timer",
        summary: "a timer with a callback (setTimeout)",
        argument: "timer",
        max_create_time: Some(Duration::from_micros(3)),
        has_messages: false,
        bytes: 180,
        ..NODE_UNIT
    },
    Row {
        unit: "node-promise",
        summary: "a callback on a promise (then)",
        argument: "promise",
        bytes: 290,
        ..NODE_UNIT
    },
    Row {
        unit: "node-async",
        summary: "an async function that sleeps",
        argument: "async",
        max_create_time: Some(Duration::from_micros(8)),
        bytes: 760,
        ..NODE_UNIT
    },
    Row {
        unit: "python-thread",
        summary: "a thread (threading.Thread) that waits",
        argument: "thread",
        max_units: MAX_TASKS,
        task: Some(UnitKind::Thread),
        bytes: 50_000,
        ..PYTHON_UNIT
    },
    Row {
        unit: "asyncio",
        summary: "a task that sleeps (asyncio.sleep)",
        max_create_time: Some(Duration::from_micros(15)),
        bytes: 1600,
        ..PYTHON_UNIT
    },
    Row {
        unit: "asyncio-call-later",
        summary: "a timer with a callback (loop.call_at)",
        argument: "call_later",
        max_create_time: Some(Duration::from_micros(8)),
        has_messages: false,
        bytes: 190,
        ..PYTHON_UNIT
    },
    Row {
        unit: "greenlet",
        summary: "a greenlet that has switched back",
        requirement_missing: requirements::greenlet_missing,
        bytes: 6200,
        ..PYTHON_UNIT
    },
    Row {
        unit: "beam-process",
        summary: "a process in receive",
        argument: "process",
        bytes: 2700,
        ..BEAM_UNIT
    },
    Row {
        unit: "beam-process-hms-12",
        summary: "a process in receive, with an initial heap of 12 words (+hms 12)",
        source: Source::Program { program: &BEAM, run: BEAM_RUN_SMALL },
        argument: "process",
        bytes: 900,
        ..BEAM_UNIT
    },
    Row {
        unit: "beam-hibernated",
        summary: "a process in receive, hibernated",
        argument: "hibernated",
        bytes: 860,
        ..BEAM_UNIT
    },
    Row {
        unit: "beam-send-after",
        summary: "a timer that sends a message (erlang:send_after)",
        argument: "send_after",
        max_create_time: Some(Duration::from_micros(3)),
        has_messages: false,
        bytes: 160,
        ..BEAM_UNIT
    },
    Row {
        unit: "sister-registered",
        summary: "a registered function of the library in elixir/ that waits for a timer",
        argument: "registered",
        max_create_time: Some(Duration::from_micros(5)),
        bytes: 30,
        ..ELIXIR_UNIT
    },
    Row {
        unit: "sister-closure",
        summary: "a closure of the library in elixir/ that waits for a timer",
        argument: "closure",
        max_create_time: Some(Duration::from_micros(40)),
        bytes: 150,
        ..ELIXIR_UNIT
    },
];

/// The row for `runtime/document`. The experiment sets `argument` to its parameter `form`: what
/// runs the functions.
pub const DOCUMENT: Row = Row {
    unit: "document",
    runtime: "Elixir",
    summary: "a function that sleeps",
    source: Source::Program { program: &ELIXIR, run: EVALUATION_RUN },
    ..DEFAULT
};

const GO: Program = Program {
    files: &[("go.go", include_str!("../../../probes/go.go"))],
    tools: &["go"],
    version: "version",
    make: &["go", "build", "-o", "probe", "go.go"],
    // Do not download another toolchain; the probe uses the standard library only.
    environment: &[("GOTOOLCHAIN", "local"), ("GO111MODULE", "off"), ("CGO_ENABLED", "0")],
    is_cached: true,
};

const JAVA: Program = Program {
    files: &[("Units.java", include_str!("../../../probes/Units.java"))],
    tools: &["java", "javac"],
    version: "-version",
    make: &["javac", "Units.java"],
    environment: &[],
    is_cached: true,
};
/// Command that runs the Java probe, with these options:
///
/// - the serial collector and a young generation of fixed size, so that only the units make memory
///   grow;
/// - no compilation in the background;
/// - warnings on standard error instead of standard output.
const JAVA_RUN: &[&str] = &[
    "java",
    "-XX:+UseSerialGC",
    "-Xmn16m",
    "-Xbatch",
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
    "-cp",
    ".",
    "Units",
];

const CPP: Program = Program {
    files: &[("coroutine.cpp", include_str!("../../../probes/coroutine.cpp"))],
    tools: &["g++"],
    version: "--version",
    make: &["g++", "-std=c++20", "-O2", "-o", "probe", "coroutine.cpp"],
    environment: &[],
    is_cached: true,
};

const NODE: Program = Program {
    files: &[("node.js", include_str!("../../../probes/node.js"))],
    tools: &["node"],
    version: "--version",
    make: &[],
    environment: &[],
    is_cached: true,
};
/// Command that runs the Node.js probe, with these options:
///
/// - garbage collection on request;
/// - a small young generation, so that only the units make memory grow;
/// - an old generation of up to 8 GiB.
const NODE_RUN: &[&str] =
    &["node", "--expose-gc", "--max-semi-space-size=1", "--max-old-space-size=8192", "node.js"];

const PYTHON: Program = Program {
    files: &[("python.py", include_str!("../../../probes/python.py"))],
    tools: &["python3"],
    version: "--version",
    make: &[],
    environment: &[],
    is_cached: true,
};
const PYTHON_RUN: &[&str] = &["python3", "python.py"];

/// Environment of the Erlang emulator: a limit of a million processes, no busy-waiting schedulers,
/// and no crash dump.
const EMULATOR: &[(&str, &str)] = &[
    ("ERL_FLAGS", "+P 1048576 +sbwt none +sbwtdcpu none +sbwtdio none"),
    ("ERL_CRASH_DUMP_BYTES", "0"),
];

const BEAM: Program = Program {
    files: &[("beam.erl", include_str!("../../../probes/beam.erl"))],
    tools: &["erl", "erlc"],
    version: "-version",
    make: &["erlc", "beam.erl"],
    environment: EMULATOR,
    is_cached: true,
};
const BEAM_RUN: &[&str] = &["erl", "-noshell", "-run", "beam", "main"];
const BEAM_RUN_SMALL: &[&str] = &["erl", "+hms", "12", "-noshell", "-run", "beam", "main"];

/// Expands to the name and contents of a file of the library in `elixir/`.
macro_rules! elixir_library_file {
    ($name:literal) => {
        (concat!("lib/", $name), include_str!(concat!("../../../../../elixir/lib/", $name)))
    };
}

const ELIXIR: Program = Program {
    files: &[
        ("sister.exs", include_str!("../../../probes/sister.exs")),
        ("document.exs", include_str!("../../../probes/document.exs")),
        elixir_library_file!("callback_thread.ex"),
        elixir_library_file!("callback_thread/application.ex"),
        elixir_library_file!("callback_thread/clock.ex"),
        elixir_library_file!("callback_thread/runner_pool.ex"),
        elixir_library_file!("callback_thread/directory.ex"),
        elixir_library_file!("callback_thread/functions.ex"),
        elixir_library_file!("callback_thread/inbox.ex"),
        elixir_library_file!("callback_thread/memory.ex"),
        elixir_library_file!("callback_thread/options.ex"),
        elixir_library_file!("callback_thread/outcome.ex"),
        elixir_library_file!("callback_thread/parked.ex"),
        elixir_library_file!("callback_thread/ready.ex"),
        elixir_library_file!("callback_thread/receptor.ex"),
        elixir_library_file!("callback_thread/route.ex"),
        elixir_library_file!("callback_thread/runner.ex"),
        elixir_library_file!("callback_thread/slots.ex"),
        elixir_library_file!("callback_thread/threads.ex"),
        elixir_library_file!("callback_thread/watchers.ex"),
        elixir_library_file!("callback_thread/worker.ex"),
    ],
    tools: &["elixir", "elixirc"],
    version: "--version",
    make: &["sh", "-c", "elixirc -o . lib/callback_thread.ex lib/callback_thread/*.ex"],
    environment: EMULATOR,
    is_cached: true,
};
const ELIXIR_RUN: &[&str] = &["elixir", "-pa", ".", "sister.exs"];

const EVALUATION_RUN: &[&str] = &["elixir", "-pa", ".", "document.exs"];

/// Returns the row of the given unit, or `None` if there is none.
pub fn find(unit: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.unit == unit)
}

/// Returns the names of all kinds of units.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|row| row.unit).collect()
}
