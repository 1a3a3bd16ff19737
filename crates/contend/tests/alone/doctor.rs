//! Tests that `contend doctor` finds the planted fault of a program, and nothing in its healthy twin.
//!
//! The programs are in `bench/doctor/`. `bench-doctor` examines all of them, with several seeds, and
//! compares the gains; here, each symptom has one program, observed for a short time.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use contend_sys::{Pid, Signal};
use rustix::process::kill_process;
use serde_json::Value;

use crate::support::{Child, Command, contend, has, number, skip, text};
use crate::{in_quiet, run_exclusively};

/// Maximum number of observations of a program that no other programs disturb.
const MAX_UNDISTURBED: usize = 3;
/// Maximum number of observations of a program that other programs disturb.
const MAX_DISTURBED: usize = 12;
/// Longest pause between two observations.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// CPU time of other programs, as a share of the CPUs, from which a wrong finding proves nothing.
const MAX_OTHERS: f64 = 0.1;
/// Time for which a running program is observed.
const OBSERVED: &str = "1.5s";
/// Time that a program has to start its threads before it is observed.
const WARM_UP: Duration = Duration::from_millis(300);
/// Seed that determines the sizes of a program.
const SEED: &str = "1";

/// A symptom with a program that has it, and of which there is a healthy twin.
struct Case {
    symptom: &'static str,
    /// File in `bench/doctor/`.
    program: &'static str,
    observed: Observed,
}

/// Which part of a program is observed.
#[derive(Clone, Copy)]
enum Observed {
    /// A short time while it runs.
    Middle,
    /// From start to exit, because the end matters.
    All,
}

/// The result of all observations of a variant.
enum Verdict {
    /// The first finding is the expected one.
    Right,
    /// It is another one, although at least once no other programs disturbed the observation.
    Wrong(String),
    /// It is another one, and other programs used the CPUs each time.
    Disturbed(String),
}

const fn case(symptom: &'static str, program: &'static str, observed: Observed) -> Case {
    Case { symptom, program, observed }
}

const CASES: &[Case] = &[
    case("sleep-polling", "c/flag_poll.c", Observed::Middle),
    case("lock-step", "c/condvar_ping_pong.c", Observed::Middle),
    case("lock-contention", "c/one_mutex.c", Observed::Middle),
    case("interpreter-lock", "python/gil_threads.py", Observed::Middle),
    case("serial-section", "c/serial_setup.c", Observed::Middle),
    case("uneven-work", "c/straggler.c", Observed::All),
    case("oversubscription", "c/barrier_crowd.c", Observed::Middle),
    case("cpu-limit", "c/pinned.c", Observed::Middle),
    case("tiny-io", "c/byte_writes.c", Observed::Middle),
    case("fork-storm", "c/fork_exec.c", Observed::Middle),
    case("lock-polling", "c/lock_retry.c", Observed::Middle),
    case("spinning", "c/spin_flag.c", Observed::Middle),
    case("not-concurrency", "c/page_faults.c", Observed::Middle),
    case("pipeline", "shell/slow_stage.sh", Observed::Middle),
];

#[test]
fn planted_faults_are_found_and_healthy_twins_are_not_accused() {
    const TEST: &str = "planted_faults_are_found_and_healthy_twins_are_not_accused";
    run_exclusively(|| {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
            return skip(TEST, "there is only one CPU");
        }
        if let Some(reason) = why_no_switches() {
            return skip(TEST, &format!("context switches are not recorded: {reason}"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut problems = Vec::new();
        for case in CASES {
            let verdicts = match case.build(folder.path()) {
                Ok(command) => case.check(&command),
                Err(missing) => {
                    skip(TEST, &format!("{} needs {missing}", case.program));
                    continue;
                }
            };
            for verdict in verdicts {
                match verdict {
                    Verdict::Right => {}
                    Verdict::Wrong(message) => problems.push(message),
                    Verdict::Disturbed(message) => {
                        skip(TEST, &format!("other programs used the CPUs: {message}"));
                    }
                }
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    });
}

#[test]
fn every_symptom_has_a_program() {
    let schema = Command::new(contend()).args(["generate", "schema", "doctor"]).output();
    let schema: Value =
        serde_json::from_slice(&schema.expect("it starts").stdout).expect("a schema");
    let all = schema["$defs"]["Symptom"]["oneOf"].as_array().expect("symptoms");
    let all: Vec<_> = all.iter().filter_map(|symptom| symptom["const"].as_str()).collect();
    let tested: Vec<_> = CASES.iter().map(|case| case.symptom).collect();
    assert_eq!(tested, all);
}

/// Two processes that exchange bytes without pause switch so often that their switches are recorded in
/// bursts. With a trace, which has no gaps, the figures are about the same.
#[test]
fn very_many_context_switches_are_recorded_in_bursts() {
    const TEST: &str = "very_many_context_switches_are_recorded_in_bursts";
    const SCRIPT: &str = "import os, sys\n\
                          (a, b), (c, d) = os.pipe(), os.pipe()\n\
                          child = os.fork() == 0\n\
                          source, sink = (a, d) if child else (c, b)\n\
                          for _ in range(60000):\n    \
                              child or os.write(sink, b'x')\n    \
                              os.read(source, 1)\n    \
                              child and os.write(sink, b'x')\n\
                          child or os.wait()\n";
    if !has("python3") {
        return skip(TEST, "there is no python3");
    }
    in_quiet(|| {
        if let Some(reason) = why_no_switches() {
            return skip(TEST, &format!("context switches are not recorded: {reason}"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report").display().to_string();
        let trace = folder.path().join("trace.json").display().to_string();
        let command = ["--", "taskset", "-c", "0", "python3", "-c", SCRIPT];
        let bursts = doctor(&[&["--output", &report], &command[..]].concat());
        let recorded = number(&bursts["observation"]["switches_share"]);
        assert!(recorded > 0.0 && recorded < 0.9, "{bursts:#}");
        let report = std::fs::read_to_string(&report).expect("a report");
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains("context switches for "), "{report}");

        let whole = doctor(&[&["--output", "/dev/null", "--trace", &trace], &command[..]].concat());
        assert_eq!(whole["observation"]["switches_share"], 1.0);
        for cause in ["busy", "serial", "idle"] {
            let (part, all) = (share_of(&bursts, cause), share_of(&whole, cause));
            assert!((part - all).abs() < 0.25, "{cause}: {part} and {all}: {bursts:#}");
        }
    });
}

/// Returns the share of the time for which this is why CPUs were unused.
fn share_of(record: &Value, cause: &str) -> f64 {
    let moments = record["moments"].as_array().expect("moments");
    let found = moments.iter().find(|moment| moment["cause"] == cause);
    found.map_or(0.0, |moment| number(&moment["share"]))
}

impl Case {
    /// Builds the program in `folder` if it has to be compiled, and returns the words that start it, or
    /// the name of a missing compiler or interpreter.
    fn build(&self, folder: &Path) -> Result<Vec<String>, &'static str> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/doctor");
        let source = sources.join(self.program);
        let source_name = source.to_str().expect("UTF-8").to_owned();
        let interpreter = match source.extension().and_then(|kind| kind.to_str()) {
            Some("c") => "cc",
            Some("py") => "python3",
            _ => "bash",
        };
        if !has(interpreter) {
            return Err(interpreter);
        }
        if interpreter != "cc" {
            return Ok(vec![interpreter.to_owned(), source_name]);
        }
        let binary = folder.join(source.file_stem().expect("a name"));
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-std=gnu11", "-pthread", "-o"]).arg(&binary).arg(&source);
        assert!(compiler.status().expect("cc starts").success(), "{}", self.program);
        Ok(vec![binary.to_str().expect("UTF-8").to_owned()])
    }

    /// Checks the findings about the sick program and about its twin.
    fn check(&self, command: &[String]) -> [Verdict; 2] {
        [("sick", Some(self.symptom)), ("twin", None)]
            .map(|(variant, expected)| self.check_variant(command, variant, expected))
    }

    /// Observes a variant until the first finding is the expected one, or until one of the limits on
    /// the number of observations is reached.
    fn check_variant(&self, command: &[String], variant: &str, expected: Option<&str>) -> Verdict {
        let (mut undisturbed, mut disturbed) = (Vec::new(), Vec::new());
        while undisturbed.len() < MAX_UNDISTURBED && disturbed.len() < MAX_DISTURBED {
            let record = self.record(command, variant);
            let found = record["findings"][0]["symptom"].as_str();
            if found == expected {
                return Verdict::Right;
            }
            let others = number(&record["observation"]["others_cpu_share"]);
            let message = format!(
                "{} {variant}: {found:?} instead of {expected:?}: {}",
                self.program, record["diagnosis"]
            );
            let messages = if others > MAX_OTHERS { &mut disturbed } else { &mut undisturbed };
            messages.push(message);
            let pause = Duration::from_secs((undisturbed.len() + disturbed.len()) as u64);
            std::thread::sleep(pause.min(MAX_PAUSE));
        }
        let wrong = undisturbed.pop().map(Verdict::Wrong);
        wrong.or(disturbed.pop().map(Verdict::Disturbed)).expect("an observation")
    }

    /// Observes a variant of the program.
    fn record(&self, command: &[String], variant: &str) -> Value {
        let words: Vec<&str> = command.iter().map(String::as_str).chain([variant, SEED]).collect();
        match self.observed {
            Observed::All => doctor(&[&["--output", "/dev/null", "--"], words.as_slice()].concat()),
            Observed::Middle => {
                let program = Running::start(&words);
                std::thread::sleep(WARM_UP);
                doctor(&[
                    "--output",
                    "/dev/null",
                    "--for",
                    OBSERVED,
                    &program.pid().as_raw_nonzero().to_string(),
                ])
            }
        }
    }
}

/// A program that is killed at the end, with all its children.
struct Running(Child);

impl Running {
    fn start(words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("the program starts"))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for pid in contend_sys::procfs::with_descendants(self.pid()) {
            let _ = kill_process(pid, Signal::KILL); // it may have ended
        }
        let _ = self.0.wait();
    }
}

/// Returns the record of `contend doctor` with the arguments.
fn doctor(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let json: PathBuf = folder.path().join("record.json");
    let mut command = Command::new(contend());
    command.args(["doctor", "--json"]).arg(&json).args(arguments);
    let output = command.output().expect("contend starts");
    let record = std::fs::read_to_string(json).unwrap_or_default();
    serde_json::from_str(&record).unwrap_or_else(|_| panic!("{record}{}", text(&output.stderr)))
}

/// Returns why contend may not record context switches here; `None` if it may.
fn why_no_switches() -> Option<String> {
    let record = doctor(&["--output", "/dev/null", "--", "sleep", "0.1"]);
    let layers = record["observation"]["layers"].as_array().expect("layers");
    let switches = layers.iter().find(|layer| layer["id"] == "switches").expect("a layer");
    (switches["used"] != true).then(|| switches["reason"].to_string())
}
