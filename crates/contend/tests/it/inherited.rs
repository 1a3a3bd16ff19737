//! Tests of signals that are ignored or blocked when contend starts, as under `nohup`, in
//! background jobs of scripts and on some CI services. The pipeline inherits them as it would from
//! bash, and contend does not react to them.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use contend_sys::{Pid, Signal};
use rustix::process::{kill_process, kill_process_group};

use crate::support::{
    Child, Command, PublicFolder, cases, contend, has, lab_record_of, output, skip, text,
};

/// A command that prints the signals that its process blocks, ignores and catches.
const SHOW_SIGNALS: &str = "grep -hE '^Sig(Blk|Ign|Cgt)' /proc/self/status";
const KEYBOARD_SIGNALS: [Signal; 3] = [Signal::INT, Signal::QUIT, Signal::HUP];
/// Options for chunks so small that even a small input has several.
const SMALL_CHUNK_OPTIONS: [&str; 4] = ["-j", "2", "--part-size", "1k"];

/// The inherited signal state: ignored and blocked signals.
#[derive(Debug, Clone, Copy)]
struct State {
    ignored: &'static [Signal],
    blocked: &'static [Signal],
}

impl State {
    const fn ignoring(ignored: &'static [Signal]) -> Self {
        Self { ignored, blocked: &[] }
    }

    const fn blocking(blocked: &'static [Signal]) -> Self {
        Self { ignored: &[], blocked }
    }

    fn apply_to(self, command: &mut Command) {
        for &signal in self.ignored {
            command.ignoring(signal);
        }
        for &signal in self.blocked {
            command.blocking(signal);
        }
    }
}

const STATES: [State; 9] = [
    State::ignoring(&[]),
    State::ignoring(&KEYBOARD_SIGNALS),
    State::ignoring(&[Signal::TERM, Signal::TSTP, Signal::USR1]),
    State::ignoring(&[Signal::PIPE]),
    State::ignoring(&[Signal::CHILD]),
    State::blocking(&[Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM, Signal::TSTP]),
    State::blocking(&[Signal::PIPE]),
    State::blocking(&[Signal::CHILD, Signal::CONT]),
    State { ignored: &[Signal::INT, Signal::PIPE], blocked: &[Signal::INT, Signal::USR1] },
];

/// Returns a command that runs contend with the given arguments.
fn contend_with(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(arguments);
    command
}

fn bash(text: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", text]);
    command
}

/// Runs a command in the given folder and signal state, and returns the distinct lines of its
/// output, its messages and its exit status.
fn result_of(
    command: &mut Command,
    folder: &Path,
    state: State,
) -> (BTreeSet<String>, String, ExitStatus) {
    state.apply_to(command);
    let done = output(command.current_dir(folder).stdin(Stdio::null()));
    let lines = text(&done.stdout).lines().map(str::to_owned).collect();
    (lines, text(&done.stderr), done.status)
}

#[test]
fn stages_inherit_ignored_and_blocked_signals_as_from_bash() {
    if !has("bash") {
        return skip("stages_inherit_ignored_and_blocked_signals_as_from_bash", "there is no bash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in"), "a line\n".repeat(1000)).expect("room");
    let [plain, grouped] =
        [format!("{SHOW_SIGNALS} | cat"), format!("{{ {SHOW_SIGNALS}; }} | cat")];
    let over_chunks = format!("cat in | {SHOW_SIGNALS} - | cat");
    std::fs::write(folder.path().join("script"), &plain).expect("room");
    let quiet = ["pipe", "--no-advice", "--output", "/dev/null"];
    let ways: [(&str, Vec<&str>); 8] = [
        (SHOW_SIGNALS, vec!["run", SHOW_SIGNALS]),
        (&plain, vec!["run", &plain]),
        (&grouped, vec!["run", &grouped]),
        (&plain, vec!["run", "-f", "script"]),
        (
            &over_chunks,
            [&["run", "--map", SHOW_SIGNALS], &SMALL_CHUNK_OPTIONS[..], &[&over_chunks]].concat(),
        ),
        (SHOW_SIGNALS, [&quiet[..], &[SHOW_SIGNALS]].concat()),
        (&plain, [&quiet[..], &[&plain]].concat()),
        (&plain, [&quiet[..], &["--setup", "true", &plain]].concat()),
    ];
    for state in STATES {
        for (text, arguments) in &ways {
            let expected = result_of(&mut bash(text), folder.path(), state);
            assert_eq!(expected.0.len(), 3, "{state:?}: {expected:?}");
            let found = result_of(&mut contend_with(arguments), folder.path(), state);
            assert_eq!(found, expected, "{state:?}: {arguments:?}");
        }
    }
}

#[test]
fn the_input_of_a_map_command_has_several_chunks() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in"), "a line\n".repeat(1000)).expect("room");
    let over_chunks = format!("cat in | {SHOW_SIGNALS} - | cat");
    let mut command = contend_with(&["run", "--map", SHOW_SIGNALS]);
    command.args(SMALL_CHUNK_OPTIONS).arg(over_chunks).current_dir(folder.path());
    let shown = text(&output(&mut command).stdout);
    assert!(shown.lines().count() > 3, "what the test above compares: {shown}");
}

#[test]
fn a_trial_runs_its_stages_with_the_same_signals() {
    if !has("bash") {
        return skip("a_trial_runs_its_stages_with_the_same_signals", "there is no bash");
    }
    let folder = PublicFolder::new();
    let shown = folder.path().join("shown");
    // contend does not know that this program writes a file.
    let program = format!("#!/bin/bash\n{SHOW_SIGNALS} >>{}\nexec cat\n", shown.display());
    let original = folder.path().join("original");
    std::fs::write(&original, program).expect("room");
    folder.install(original.to_str().expect("UTF-8"), "show", 0o755);
    let state = State { ignored: &[Signal::INT, Signal::CHILD], blocked: &[Signal::USR1] };
    let stages = "./show | sort";
    result_of(&mut bash(stages), folder.path(), state);
    let expected = std::fs::read_to_string(&shown).expect("it was run");
    std::fs::write(&shown, "").expect("room");
    let trial = ["pipe", "--try", "--budget", "1", "--sample", "all", "--stdin", "original"];
    // There is always a change to try: fusing the two `sed` stages.
    let mut trial = contend_with(&trial);
    trial.args(["--output", "/dev/null", "./show | sed s/a/b/ | sed s/c/d/"]);
    let found = result_of(&mut trial, folder.path(), state);
    assert!(found.2.success(), "{found:?}");
    let found = std::fs::read_to_string(&shown).expect("it was run");
    assert!(found.len() > 2 * expected.len(), "it was tried again: {found}");
    assert_eq!(found, expected.repeat(found.len() / expected.len()));
}

/// Returns arguments of contend for pipelines that copy their input as it arrives.
fn copying_commands() -> [Vec<&'static str>; 4] {
    let parts = [&["run"], &SMALL_CHUNK_OPTIONS[..], &["tr a a | sed s/x/x/"]].concat();
    let quiet = ["pipe", "--no-advice", "--output", "/dev/null", "cat | cat"];
    [vec!["run", "cat | cat"], vec!["run", "{ cat; } | cat"], parts, quiet.to_vec()]
}

/// Starts a command, writes lines to its standard input, which stays open, and waits for its first
/// byte of output.
fn start_copying(command: &mut Command) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stdin = child.stdin.as_mut().expect("piped");
    stdin.write_all(&b"a line\n".repeat(2000)).expect("it reads");
    child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it prints");
    child
}

#[test]
fn ignored_or_blocked_signals_do_not_end_a_run() {
    if !has("bash") {
        let test = "ignored_or_blocked_signals_do_not_end_a_run";
        return skip(test, "there is no bash");
    }
    for state in [State::ignoring(&KEYBOARD_SIGNALS), State::blocking(&KEYBOARD_SIGNALS)] {
        for arguments in copying_commands() {
            let mut command = contend_with(&arguments);
            state.apply_to(&mut command);
            let mut child = start_copying(&mut command);
            let group = Pid::from_child(&child);
            for signal in KEYBOARD_SIGNALS {
                kill_process(group, signal).expect("it runs");
                kill_process_group(group, signal).expect("it runs");
            }
            let stdin = child.stdin.as_mut().expect("piped");
            stdin.write_all(&b"a line\n".repeat(2000)).expect("it reads");
            let done = child.wait_with_output().expect("it ends");
            let found = (done.status.code(), done.stdout.len(), text(&done.stderr));
            let expected = (Some(0), 4000 * "a line\n".len() - 1, String::new());
            assert_eq!(found, expected, "{state:?}: {arguments:?}");
        }
    }
}

#[test]
fn a_process_that_ignores_an_interrupt_can_still_be_terminated() {
    for arguments in copying_commands() {
        let mut command = contend_with(&arguments);
        State::ignoring(&KEYBOARD_SIGNALS).apply_to(&mut command);
        let child = start_copying(&mut command);
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let done = child.wait_with_output().expect("it ends");
        assert_eq!(done.status.signal(), Some(Signal::TERM.as_raw()), "{arguments:?}");
    }
}

/// Tests a rule of POSIX: a shell cannot set traps for signals that were ignored when it started.
#[test]
fn traps_for_ignored_signals_cannot_be_set() {
    if !has("bash") {
        return skip("traps_for_ignored_signals_cannot_be_set", "there is no bash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let trap = "trap 'echo got it' INT; kill -INT $$; echo after";
    std::fs::write(folder.path().join("script"), trap).expect("room");
    let stage = "bash script | cat";
    let state = State::ignoring(&[Signal::INT]);
    let expected = result_of(&mut bash(stage), folder.path(), state);
    assert_eq!(expected.0, BTreeSet::from(["after".to_owned()]));
    let ways: [&[&str]; 4] = [
        &["run", stage],
        &["run", "-f", "script"],
        &["run", trap],
        &["pipe", "--no-advice", "--output", "/dev/null", stage],
    ];
    for arguments in ways {
        let found = result_of(&mut contend_with(arguments), folder.path(), state);
        assert_eq!(found, expected, "{arguments:?}");
    }
}

#[test]
fn statuses_are_bash_s_with_sigchld_ignored_or_blocked() {
    let folder = tempfile::tempdir().expect("a folder");
    let ways: [&[&str]; 4] = [
        &["run", "cat | sh -c 'exit 3'"],
        &["run", "{ cat; } | sh -c 'exit 3'"],
        &["run", "--stats", "cat | sh -c 'exit 3'"],
        &["pipe", "--no-advice", "--output", "/dev/null", "cat | sh -c 'exit 3'"],
    ];
    for state in [State::ignoring(&[Signal::CHILD]), State::blocking(&[Signal::CHILD])] {
        for arguments in ways {
            let (_, said, status) = result_of(&mut contend_with(arguments), folder.path(), state);
            assert_eq!(status.code(), Some(3), "{state:?}: {arguments:?}: {said}");
        }
    }
}

/// Tests that the lab can measure its cases if it inherits ignored or blocked signals.
#[test]
fn the_lab_measures_with_signals_ignored_or_blocked() {
    let some = &[Signal::CHILD, Signal::USR1, Signal::ALARM, Signal::INT];
    for state in [State::ignoring(some), State::blocking(some)] {
        let mut command = Command::new(contend());
        command.args(["lab", "run", "units/startup", "sharing/process", "--smallest"]);
        command.args(["--only", "command=fork", "--step-seconds", "0"]);
        state.apply_to(&mut command);
        let record = lab_record_of(&mut command);
        assert!(cases(&record).len() > 1, "{record}");
        for case in cases(&record) {
            assert!(case["skipped"].is_null(), "{state:?}: {case}");
            assert!(case["samples"].as_array().is_some_and(|all| !all.is_empty()), "{case}");
        }
    }
}

/// Runs a command whose output has no reader, and returns its exit status.
fn status_without_reader(command: &mut Command, folder: &Path, state: State) -> ExitStatus {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    state.apply_to(command);
    let command = command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    command.stdout(writer).status().expect("it starts")
}

#[test]
fn output_without_a_reader_fails_if_sigpipe_is_ignored() {
    if !has("bash") {
        return skip("output_without_a_reader_fails_if_sigpipe_is_ignored", "there is no bash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in"), "a line\n".repeat(50_000)).expect("room");
    let texts = ["cat in | sed s/a/b/", "cat in | sort", "cat in | tr a b", "yes | sed s/y/x/"];
    let states = [State::ignoring(&[Signal::PIPE]), State::blocking(&[Signal::PIPE])];
    for state in states.into_iter().chain([State::ignoring(&[])]) {
        for text in texts {
            let code = |status: ExitStatus| {
                status.code().unwrap_or(128 + status.signal().unwrap_or_default())
            };
            let expected = code(status_without_reader(&mut bash(text), folder.path(), state));
            let mut over_chunks = contend_with(&["run"]);
            over_chunks.args(SMALL_CHUNK_OPTIONS).arg(text);
            for mut command in [over_chunks, contend_with(&["run", text])] {
                let found = code(status_without_reader(&mut command, folder.path(), state));
                assert_eq!(found, expected, "{state:?}: {text}");
            }
        }
    }
}
