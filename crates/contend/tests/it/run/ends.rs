//! Tests of early ends: signals, readers that close the output, and outputs that accept no data.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use contend_sys::{Pid, Signal};
use rustix::process::{kill_process, kill_process_group};
use tempfile::TempDir;

use super::{Environment, Input, bash, code, contend_run, folder, words};
use crate::support::{Child, Command, has, skip, text, wait_until};

/// Environment variable that identifies the processes of a run by its value.
const MARK_VARIABLE: &str = "CONTEND_TEST_MARK";
/// Options for chunks of a few thousand lines, and for little memory.
const SMALL_CHUNK_OPTIONS: &[&str] = &["-j", "3", "--part-size", "50k", "--memory", "16M"];
/// Number of bytes written to a run at its start.
const INITIAL_INPUT_BYTES: usize = 24_000_000;
/// Number of bytes written every few milliseconds after that.
const INPUT_STEP_BYTES: usize = 100_000;

/// Returns the command lines of the processes of the run with the given mark.
fn processes(mark: &str) -> Vec<String> {
    let mark = format!("{MARK_VARIABLE}={mark}");
    let has_mark = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    std::fs::read_dir("/proc")
        .expect("procfs")
        .flatten()
        .filter(has_mark)
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

/// Returns the names of the files in a folder.
fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A run that receives input as long as it lives, so that it cannot end and its workers stay busy.
struct Running {
    child: Child,
    mark: String,
    temporary: TempDir,
}

impl Running {
    /// Starts a run and writes its first input.
    fn start(mark: &str, pipeline: &str) -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let mark = format!("{mark}-{}", std::process::id());
        let mut child = contend_run(SMALL_CHUNK_OPTIONS, pipeline)
            .env(MARK_VARIABLE, &mark)
            .env("TMPDIR", temporary.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let text = words(1_000_000);
        for _ in 0..INITIAL_INPUT_BYTES / text.len() {
            stdin.write_all(&text).expect("it reads");
        }
        std::thread::spawn(move || {
            while stdin.write_all(&text[..INPUT_STEP_BYTES]).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self { child, mark, temporary }
    }

    /// Waits until the run has a process of the given program, and asserts that the run does not
    /// end before that.
    fn with(mut self, program: &str) -> Self {
        wait_until(&format!("{program} runs in {}", self.mark), || {
            let ended = self.child.try_wait().expect("it is ours");
            assert_eq!(ended, None, "{}: {} ended", self.mark, program);
            processes(&self.mark).iter().any(|line| line.starts_with(program))
        });
        self
    }

    /// Waits until the run has created a temporary file.
    fn wait_for_spill(self) -> Self {
        wait_until("it spills", || !file_names(self.temporary.path()).is_empty());
        self
    }

    /// Sends a signal, asserts that the signal ended the run, and returns the messages.
    fn end_by_signal(&mut self, signal: Signal) -> String {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        let status = self.child.wait().expect("it is ours");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("text");
        said
    }
}

/// Pipelines with busy workers, each with the program of one worker, and whether the pipeline
/// writes temporary files.
const BUSY_PIPELINES: &[(&str, &str, bool)] = &[
    ("sed 's/a/b/g' | sort -s -k2", "sort", true),
    ("sed 's/a/b/g' | sort -s -k2 | uniq -c | tail -n 3", "sed", true),
    ("sed 's/a/b/g' | sort -u", "sed", false),
    ("grep -v foo | wc -l", "wc", false),
    ("sort -s -k2 | sed -n '$p'", "sort", true),
    ("tr a b | awk '!seen[$0]++' | sort -s -k2", "awk", false),
];

#[test]
fn a_killed_run_leaves_no_processes() {
    for (number, &(pipeline, worker, spills)) in BUSY_PIPELINES.iter().enumerate() {
        let running = Running::start(&format!("kill{number}"), pipeline).with(worker);
        let mut running = if spills { running.wait_for_spill() } else { running };
        running.end_by_signal(Signal::KILL);
        wait_until(&format!("{pipeline}: nothing runs"), || processes(&running.mark).is_empty());
        // Each process has removed its own files.
        assert_eq!(file_names(running.temporary.path()), [""; 0], "{pipeline}");
    }
}

#[test]
fn a_signal_ends_the_run_and_all_of_its_processes() {
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    for (number, &(pipeline, worker, spills)) in BUSY_PIPELINES.iter().enumerate() {
        let running = Running::start(&format!("end{number}"), pipeline).with(worker);
        let mut running = if spills { running.wait_for_spill() } else { running };
        let said = running.end_by_signal(signals[number % signals.len()]);
        assert_eq!(said, "", "{pipeline}");
        // Once contend has exited, so have all processes of the run.
        assert_eq!(processes(&running.mark), [""; 0], "{pipeline}");
        assert_eq!(file_names(running.temporary.path()), [""; 0], "{pipeline}");
    }
}

#[test]
fn a_signal_ends_a_plain_run() {
    for (number, pipeline) in ["sed -n 1p | cat -n", "tac | cat -n"].into_iter().enumerate() {
        let mut running = Running::start(&format!("plain{number}"), pipeline).with("cat");
        running.end_by_signal(Signal::TERM);
        assert_eq!(processes(&running.mark), [""; 0], "{pipeline}");
    }
}

#[test]
fn a_check_that_waits_for_a_background_job_can_be_ended() {
    let mark = format!("background-{}", std::process::id());
    let sleep = format!("sleep {}", 1000 + std::process::id());
    let pipeline = format!("{{ {sleep} & echo begun; }}");
    let mut command = contend_run(&["--check"], &pipeline);
    command
        .env(MARK_VARIABLE, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let starts_with = |program: &str| processes(&mark).iter().any(|line| line.starts_with(program));
    wait_until("only what is in the background runs", || {
        starts_with("sleep") && !starts_with("bash")
    });
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let status = child.wait().expect("it is ours");
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status:?}");
    let killed = Command::new("pkill").args(["-x", "-f", &sleep]).status();
    assert!(killed.is_ok_and(|status| status.success()), "it was there still");
}

#[test]
fn a_signal_ends_a_check_without_reporting_a_difference() {
    for (name, signal) in [("TERM", Signal::TERM), ("HUP", Signal::HUP), ("INT", Signal::INT)] {
        let mark = format!("original-{name}-{}", std::process::id());
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo").display().to_string();
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("coreutils").success());
        let pipeline = format!("{{ cat {fifo}; echo done; }} | cat | sort -S 1M");
        let mut command = contend_run(&["--check"], &pipeline);
        command
            .env(MARK_VARIABLE, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // This ends the input of the first run. That of the original never ends.
        drop(std::fs::OpenOptions::new().write(true).open(&fifo).expect("a reader"));
        // The output of contend is complete before the original run starts.
        let mut done = [0; 5];
        child.stdout.as_mut().expect("piped").read_exact(&mut done).expect("its output");
        let reads = || processes(&mark).iter().any(|line| *line == format!("cat {fifo} "));
        wait_until("the original runs", reads);
        let pid = Pid::from_child(&child);
        if signal == Signal::INT {
            // A terminal, too, signals the process group.
            kill_process_group(pid, signal).expect("they run");
        } else {
            kill_process(pid, signal).expect("it runs");
        }
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{name}: {output:?}");
        assert_eq!(text(&output.stderr), "", "{name}");
        // A killed process needs a moment to exit; `cat` itself would never end.
        wait_until("all have ended", || processes(&mark).is_empty());
    }
}

/// Runs a command with an endless standard input, which it must not read to the end. Returns the
/// output, the messages and the exit status.
fn run_with_endless_input(command: &mut Command) -> (Vec<u8>, String, i32) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        let block = words(100_000);
        scope.spawn(move || while stdin.write_all(&block).is_ok() {});
        child.wait_with_output().expect("it ends")
    });
    (output.stdout, text(&output.stderr), code(output.status))
}

#[test]
fn an_early_exit_ends_the_run() {
    if !has("bash") {
        return skip("an_early_exit_ends_the_run", "there is no bash");
    }
    for pipeline in [
        "head -n 5",
        "sed 's/a/b/' | head -n 1",
        "grep foo | tr a-z A-Z | head -n 3 | sort",
        "cut -c 1-3 | cat -n | head -n 2",
        "yes | sed s/y/x/ | head -n 5",
        "yes | grep y | head -n 100000 | sort -u",
        "cat | sed 3q",
        "sed 's/a/b/' | uniq -c | head -n 4",
        "rev | head -c 100",
        "awk '{ print $1 }' | grep -m 2 o",
    ] {
        let expected = run_with_endless_input(&mut bash(pipeline));
        for options in [&["-j", "3"][..], &["-j", "3", "--part-size", "20k"]] {
            let found = run_with_endless_input(&mut contend_run(options, pipeline));
            assert_eq!(found, expected, "{pipeline} {options:?}");
        }
    }
}

/// Runs a command whose reader closes the pipe after the first line. Returns that line and the
/// messages, which end with the exit status of the command.
fn run_with_closing_reader(run: &str) -> String {
    let script = format!("{{ {run}; echo $? >&2; }} | head -n 1 >first; cat first");
    let folder = folder(&words(4_000_000));
    let output = bash(&script).current_dir(folder.path()).output().expect("bash");
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_closing_reader_ends_the_run_by_sigpipe() {
    if !has("bash") {
        return skip("a_closing_reader_ends_the_run_by_sigpipe", "there is no bash");
    }
    let contend = crate::support::contend();
    for pipeline in ["sed s/a/b/ in", "cat in | sort", "sort -k2 in", "cat in | sort | uniq -c"] {
        let expected = run_with_closing_reader(&format!("bash -c '{pipeline}'"));
        for options in ["-j 3", "-j 3 --part-size 100k"] {
            let run = format!("{contend} run {options} '{pipeline}'");
            assert_eq!(run_with_closing_reader(&run), expected, "{run}");
        }
    }
}

#[test]
fn an_output_that_accepts_no_data_is_an_error() {
    if !has("bash") {
        return skip("an_output_that_accepts_no_data_is_an_error", "there is no bash");
    }
    let folder = folder(&words(300_000));
    let full = |mut command: Command| {
        let full = File::options().write(true).open("/dev/full").expect("Linux");
        command.stdin(File::open(folder.path().join("in")).expect("there"));
        command.stdout(full).output().expect("it starts")
    };
    let pipelines = [
        "sed s/a/b/",
        "sort",
        "sort -k2",
        "sort -s -k2",
        "wc -l",
        "grep foo | sed -n 2p",
        "grep foo",
        "uniq -c",
        "awk '{ print $1 }'",
        "sort | awk '{ print $1 }'",
        "tr a b | cut -c 1-9",
    ];
    for pipeline in pipelines {
        let expected = full(super::bash(pipeline)).status;
        for options in [&["-j", "3"][..], &["-j", "3", "--part-size", "20k"]] {
            let output = full(contend_run(options, pipeline));
            let error = text(&output.stderr);
            // GNU programs do not always name the error.
            let told = ["No space left on device", "write error"];
            assert!(told.iter().any(|told| error.contains(told)), "{pipeline}: {error}");
            assert_eq!(output.status, expected, "{pipeline} {options:?}");
        }
    }
}

#[test]
fn closed_descriptors_give_bash_s_result() {
    if !has("bash") {
        return skip("closed_descriptors_give_bash_s_result", "there is no bash");
    }
    let folder = folder(&words(5_000));
    let environment = Environment { folder: folder.path(), input: Input::File, locale: "C" };
    for pipeline in ["sed s/a/b/", "sort", "grep foo | wc -l", "sort missing"] {
        for redirection in [">&-", "2>&-", "<&-", "<&- >&-", ">&- 2>&-"] {
            let run = |command: &str| {
                environment.run(bash(&format!("{command} '{pipeline}' {redirection}")))
            };
            let expected = run("bash -c");
            let contend = crate::support::contend();
            assert_eq!(
                run(&format!("{contend} run -j 3 --part-size 300")),
                expected,
                "{pipeline} {redirection}"
            );
        }
    }
}
