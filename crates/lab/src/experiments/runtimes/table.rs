//! The kinds of units, a row each.

use std::time::Duration;

use super::builtin::{self, Make};
use super::program::Program;
use crate::support::limits::Kind;

/// A kind of unit.
#[derive(Debug)]
pub struct Row {
    /// What it is called.
    pub unit: &'static str,
    /// The runtime that has it.
    pub runtime: &'static str,
    /// What it is, and what it waits for.
    pub summary: &'static str,
    /// What makes it.
    pub source: Source,
    /// What the probe knows it by, where that is not its name.
    pub argument: &'static str,
    /// More than so many are not tried unless they are asked for.
    pub most: u64,
    /// What one takes to be made, at most, where all are due at one time; none where they are not.
    pub each: Option<Duration>,
    /// What one takes, about: by it is known for how many there is no memory.
    pub bytes: u64,
    /// What each of them is to the kernel, if it knows them.
    pub task: Option<Kind>,
    /// Whether its probe exchanges messages with it.
    pub has_messages: bool,
}

/// What makes units.
#[derive(Debug)]
pub enum Source {
    /// This program itself.
    BuiltIn(Make),
    /// A program in another language, and how it is started in its folder.
    Program { program: &'static Program, run: &'static [&'static str] },
}

impl Row {
    /// Why it cannot be made here, if so.
    pub fn missing(&self) -> Option<String> {
        match &self.source {
            Source::BuiltIn(_) => None,
            Source::Program { program, .. } => program.missing(),
        }
    }

    /// How long after the beginning so many units that wait for time are due: when all have been
    /// made, and their memory has been read.
    pub fn hold(&self, n: u64) -> Duration {
        const READING: Duration = Duration::from_millis(1500);
        let making = self.each.map_or(0.0, |each| each.as_secs_f64() * n as f64);
        READING + Duration::from_secs_f64(making)
    }
}

/// What most rows have.
pub const DEFAULT: Row = Row {
    unit: "",
    runtime: "",
    summary: "",
    source: Source::BuiltIn(builtin::callback),
    argument: "",
    most: 1_000_000,
    each: None,
    bytes: 0,
    task: None,
    has_messages: true,
};

/// As many as most systems allow of what the kernel knows.
const MAX_TASKS: u64 = 10_000;

// What the units of a runtime have in common.
const TASK: Row = Row { runtime: "Linux", most: MAX_TASKS, ..DEFAULT };
const TOKIO: Row = Row { runtime: "tokio", ..DEFAULT };
const GO_UNIT: Row = of("Go", &GO, &["./probe"]);
const JAVA_UNIT: Row = of("Java", &JAVA, JAVA_RUN);
const NODE_UNIT: Row = of("Node", &NODE, NODE_RUN);
const PYTHON_UNIT: Row = of("Python", &PYTHON, PYTHON_RUN);
const BEAM_UNIT: Row = of("BEAM", &BEAM, BEAM_RUN);
const SISTER_UNIT: Row = of("Elixir", &SISTER, SISTER_RUN);

/// A unit of this runtime, whose probe is this program, started like this.
const fn of(runtime: &'static str, program: &'static Program, run: &'static [&'static str]) -> Row {
    Row { runtime, source: Source::Program { program, run }, ..DEFAULT }
}

/// All of them.
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
        summary: "a process made by fork, which reads from a pipe",
        source: Source::BuiltIn(builtin::fork),
        task: Some(Kind::Process),
        bytes: 150_000,
        ..TASK
    },
    Row {
        unit: "thread",
        summary: "a thread (std::thread), which waits on a condition",
        source: Source::BuiltIn(builtin::thread),
        task: Some(Kind::Thread),
        bytes: 40_000,
        ..TASK
    },
    Row {
        unit: "tokio-sleep",
        summary: "a task that sleeps",
        source: Source::BuiltIn(builtin::sleep),
        each: Some(Duration::from_micros(3)),
        has_messages: false,
        bytes: 450,
        ..TOKIO
    },
    Row {
        unit: "tokio-pending",
        summary: "a task that waits for nothing",
        source: Source::BuiltIn(builtin::pending),
        has_messages: false,
        bytes: 320,
        ..TOKIO
    },
    Row {
        unit: "tokio-oneshot",
        summary: "a task that waits for the message of a oneshot channel",
        source: Source::BuiltIn(builtin::oneshot),
        has_messages: false,
        bytes: 330,
        ..TOKIO
    },
    Row {
        unit: "tokio-mpsc",
        summary: "a task that waits for messages of a channel",
        source: Source::BuiltIn(builtin::mpsc),
        bytes: 1200,
        ..TOKIO
    },
    Row {
        unit: "smol",
        runtime: "smol",
        summary: "a task that waits for a timer",
        source: Source::BuiltIn(builtin::smol),
        each: Some(Duration::from_micros(2)),
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
        summary: "a timer with a function (time.AfterFunc)",
        argument: "afterfunc",
        each: Some(Duration::from_micros(2)),
        has_messages: false,
        bytes: 150,
        ..GO_UNIT
    },
    Row {
        unit: "java-platform",
        summary: "a platform thread that waits for a latch",
        argument: "platform",
        most: MAX_TASKS,
        task: Some(Kind::Thread),
        bytes: 50_000,
        ..JAVA_UNIT
    },
    Row {
        unit: "java-virtual",
        summary: "a virtual thread that waits for a latch",
        argument: "virtual",
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
        summary: "a timer with a function (setTimeout)",
        argument: "timer",
        each: Some(Duration::from_micros(3)),
        has_messages: false,
        bytes: 180,
        ..NODE_UNIT
    },
    Row {
        unit: "node-promise",
        summary: "a function that waits for a promise (then)",
        argument: "promise",
        bytes: 290,
        ..NODE_UNIT
    },
    Row {
        unit: "node-async",
        summary: "an async function that sleeps",
        argument: "async",
        each: Some(Duration::from_micros(8)),
        bytes: 760,
        ..NODE_UNIT
    },
    Row {
        unit: "python-thread",
        summary: "a thread (threading.Thread) that waits",
        argument: "thread",
        most: MAX_TASKS,
        task: Some(Kind::Thread),
        bytes: 50_000,
        ..PYTHON_UNIT
    },
    Row {
        unit: "asyncio",
        summary: "a task that sleeps (asyncio.sleep)",
        each: Some(Duration::from_micros(15)),
        bytes: 1600,
        ..PYTHON_UNIT
    },
    Row {
        unit: "asyncio-call-later",
        summary: "a timer with a function (loop.call_at)",
        argument: "call_later",
        each: Some(Duration::from_micros(8)),
        has_messages: false,
        bytes: 190,
        ..PYTHON_UNIT
    },
    Row {
        unit: "greenlet",
        summary: "a greenlet that has switched back",
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
        summary: "a process in receive, whose heap begins with 12 words (+hms 12)",
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
        each: Some(Duration::from_micros(3)),
        has_messages: false,
        bytes: 160,
        ..BEAM_UNIT
    },
    Row {
        unit: "sister-registered",
        summary: "a registered function of the library in elixir/ that waits for a time",
        argument: "registered",
        each: Some(Duration::from_micros(5)),
        bytes: 30,
        ..SISTER_UNIT
    },
    Row {
        unit: "sister-closure",
        summary: "a closure of the library in elixir/ that waits for a time",
        argument: "closure",
        each: Some(Duration::from_micros(40)),
        bytes: 150,
        ..SISTER_UNIT
    },
];

/// The evaluation of 2018, which has a form for its unit.
pub const DOCUMENT: Row = Row {
    unit: "document",
    runtime: "Elixir",
    summary: "a function that sleeps",
    source: Source::Program { program: &SISTER, run: EVALUATION_RUN },
    ..DEFAULT
};

const GO: Program = Program {
    files: &[("go.go", include_str!("../../../probes/go.go"))],
    tools: &["go"],
    version: "version",
    make: &["go", "build", "-o", "probe", "go.go"],
    // No other toolchain is fetched, and nothing but the standard library is used.
    environment: &[("GOTOOLCHAIN", "local"), ("GO111MODULE", "off"), ("CGO_ENABLED", "0")],
};

const JAVA: Program = Program {
    files: &[("Units.java", include_str!("../../../probes/Units.java"))],
    tools: &["java", "javac"],
    version: "-version",
    make: &["javac", "Units.java"],
    environment: &[],
};
/// A young generation of one size, so that what is taken grows with the units alone; no warnings
/// among the answers.
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
};

const NODE: Program = Program {
    files: &[("node.js", include_str!("../../../probes/node.js"))],
    tools: &["node"],
    version: "--version",
    make: &[],
    environment: &[],
};
/// A young generation of one size, so that what is taken grows with the units alone.
const NODE_RUN: &[&str] =
    &["node", "--expose-gc", "--max-semi-space-size=1", "--max-old-space-size=8192", "node.js"];

const PYTHON: Program = Program {
    files: &[("python.py", include_str!("../../../probes/python.py"))],
    tools: &["python3"],
    version: "--version",
    make: &[],
    environment: &[],
};
const PYTHON_RUN: &[&str] = &["python3", "python.py"];

/// Room for a million processes, none of them waiting busily, and no dump of memory where something
/// goes wrong.
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
};
const BEAM_RUN: &[&str] = &["erl", "-noshell", "-run", "beam", "main"];
const BEAM_RUN_SMALL: &[&str] = &["erl", "+hms", "12", "-noshell", "-run", "beam", "main"];

/// A file of the library in elixir/, and its text.
macro_rules! sister {
    ($name:literal) => {
        (concat!("lib/", $name), include_str!(concat!("../../../../../elixir/lib/", $name)))
    };
}

const SISTER: Program = Program {
    files: &[
        ("sister.exs", include_str!("../../../probes/sister.exs")),
        ("document.exs", include_str!("../../../probes/document.exs")),
        sister!("callback_thread.ex"),
        sister!("callback_thread/application.ex"),
        sister!("callback_thread/clock.ex"),
        sister!("callback_thread/crew.ex"),
        sister!("callback_thread/directory.ex"),
        sister!("callback_thread/functions.ex"),
        sister!("callback_thread/inbox.ex"),
        sister!("callback_thread/memory.ex"),
        sister!("callback_thread/options.ex"),
        sister!("callback_thread/outcome.ex"),
        sister!("callback_thread/parked.ex"),
        sister!("callback_thread/ready.ex"),
        sister!("callback_thread/receptor.ex"),
        sister!("callback_thread/route.ex"),
        sister!("callback_thread/runner.ex"),
        sister!("callback_thread/slots.ex"),
        sister!("callback_thread/threads.ex"),
        sister!("callback_thread/watchers.ex"),
        sister!("callback_thread/worker.ex"),
    ],
    tools: &["elixir", "elixirc"],
    version: "--version",
    make: &["sh", "-c", "elixirc -o . lib/callback_thread.ex lib/callback_thread/*.ex"],
    environment: EMULATOR,
};
const SISTER_RUN: &[&str] = &["elixir", "-pa", ".", "sister.exs"];

const EVALUATION_RUN: &[&str] = &["elixir", "-pa", ".", "document.exs"];

/// The kind of this name.
pub fn find(unit: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.unit == unit)
}

/// The names of all kinds.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|row| row.unit).collect()
}
