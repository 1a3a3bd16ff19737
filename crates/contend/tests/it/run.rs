//! Tests that `contend run` gives the same results as bash, including cases where both fail.

mod application;
mod disk;
mod endless;
mod ends;
mod features;
mod interactive;
mod limits;
mod random;
mod reasons;
mod refusals;
mod same;
mod shell;

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use fastrand::Rng;
use tempfile::TempDir;

use crate::support::{Command, contend};

/// Name of the file that pipelines read.
const INPUT: &str = "in";
/// Name of a second, sorted file.
const OTHER: &str = "other";
const OTHER_TEXT: &str = "\n-3\n42\n7\nError\na\naa\nb\nend\nfoo\nfoo bar\nthe\nx,y,z\n";

/// Standard input of a pipeline: a file, a pipe with the contents of the file, `/dev/null`, or a
/// closed descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    File,
    Pipe,
    Nothing,
    Closed,
}

/// The result of a pipeline.
struct PipelineResult {
    stdout: Vec<u8>,
    /// Sorted words of the messages.
    stderr: Vec<String>,
    status: i32,
}

impl PipelineResult {
    /// Returns the parts that are compared: the output, the sorted characters of the messages, and
    /// the exit status. Words of messages are not compared, because stages write concurrently, some
    /// in pieces, so words may be joined.
    fn comparison_key(&self) -> (&[u8], Vec<char>, i32) {
        let mut letters: Vec<char> = self.stderr.concat().chars().collect();
        letters.sort_unstable();
        (&self.stdout, letters, self.status)
    }
}

impl PartialEq for PipelineResult {
    fn eq(&self, other: &Self) -> bool {
        self.comparison_key() == other.comparison_key()
    }
}

/// The environment in which a pipeline runs.
struct Environment<'a> {
    folder: &'a Path,
    input: Input,
    locale: &'a str,
}

/// Creates a folder with the files that pipelines read.
fn folder(input: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(INPUT), input).expect("room");
    std::fs::write(folder.path().join(OTHER), OTHER_TEXT).expect("room");
    folder
}

/// Returns a command that runs the pipeline with bash.
fn bash(pipeline: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", pipeline]);
    command
}

/// Returns a command that runs the pipeline with contend.
fn contend_run(options: &[&str], pipeline: &str) -> Command {
    let mut command = Command::new(contend());
    command.arg("run").args(options).arg(pipeline);
    command
}

impl Environment<'_> {
    /// Runs a command in this environment, and waits until it exits.
    fn run(&self, command: Command) -> PipelineResult {
        let mut command = if self.input == Input::Closed { closed(&command) } else { command };
        let file = || File::open(self.folder.join(INPUT)).expect("it is there");
        command.stdin(match self.input {
            Input::File => file().into(),
            Input::Pipe => Stdio::piped(),
            Input::Nothing | Input::Closed => Stdio::null(),
        });
        command.current_dir(self.folder).env("LC_ALL", self.locale);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                let Some(mut stdin) = stdin else { return Ok(0) };
                std::io::copy(&mut file(), &mut stdin) // it may go unread
            });
            child.wait_with_output().expect("it ends")
        });
        let said = String::from_utf8_lossy(&output.stderr);
        // Skip bash's messages about the processes of a pipeline in which one was killed.
        let of_jobs = |line: &str| line.contains(" Killed ") || line.contains(" Done ");
        let said = said.lines().filter(|line| !of_jobs(line));
        let mut stderr: Vec<_> = said.flat_map(str::split_whitespace).map(str::to_owned).collect();
        stderr.sort();
        PipelineResult { stdout: output.stdout, stderr, status: code(output.status) }
    }

    /// Returns a description of how contend with the given options differs from bash, or `None` if
    /// it does not.
    fn difference(&self, options: &[&str], pipeline: &str) -> Option<String> {
        let expected = self.run(bash(pipeline));
        let found = self.run(contend_run(options, pipeline));
        (expected != found).then(|| {
            format!(
                "{pipeline}\n  {options:?}, {:?} in {}\n  bash:    {expected:?}\n  contend: {found:?}",
                self.input, self.locale
            )
        })
    }
}

/// Returns a command with the same program and arguments, but with standard input closed.
fn closed(command: &Command) -> Command {
    let mut without = Command::new("sh");
    without.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(command.get_program());
    without.args(command.get_args());
    without
}

/// Returns the exit status as a shell reports it.
fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("it ended")
}

impl std::fmt::Debug for PipelineResult {
    /// Formats the status, the messages, and the beginning of the output with its length and a
    /// checksum.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.stdout[..self.stdout.len().min(100)];
        write!(
            formatter,
            "status {}, {} bytes with the sum {:x}: {}, said {}",
            self.status,
            self.stdout.len(),
            self.stdout.iter().fold(7_u64, |sum, &byte| sum.wrapping_mul(31) + u64::from(byte)),
            shown.escape_ascii(),
            self.stderr.join(" ")
        )
    }
}

/// Asserts that the list of differences is empty.
fn assert_no_differences(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

const WORDS: &[&str] = &[
    "a",
    "b",
    "the",
    "The",
    "foo",
    "bar",
    "foo bar",
    "x,y,z",
    "7",
    "42",
    "-3",
    "1.50",
    "Error",
    "error",
    "end",
    "abc",
    "aa",
    "k=v",
    "a:b:c",
    "é",
    "日本語",
    "",
];

/// Returns at least `bytes` bytes of lines of words. Some lines are repeated, and some are empty.
fn words(bytes: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(5);
    let mut text = Vec::with_capacity(bytes + 100);
    let mut line = String::new();
    while text.len() < bytes {
        if random.u8(..3) > 0 {
            let count = random.usize(..7);
            let words: Vec<_> = (0..count).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
            line = words.join(" ");
        }
        writeln!(text, "{line}").expect("memory");
    }
    text
}

/// Returns at least `bytes` bytes: lines with NUL, CR and invalid UTF-8, one long line, and a last
/// line without a newline.
fn awkward_lines(bytes: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(6);
    let pieces: [&[u8]; 8] =
        [b"\0", b"\r\n", b"\xff", b"\xc3", b"\n\n", b"a\x80b", b"\t \t", b"foo"];
    let mut text = Vec::new();
    for line in words(bytes).split_inclusive(|&byte| byte == b'\n') {
        let piece = pieces[random.usize(..pieces.len())];
        text.extend_from_slice(if random.u8(..4) == 0 { piece } else { b"" });
        text.extend_from_slice(line);
    }
    text.extend_from_slice(&b"long ".repeat(2000));
    text.extend_from_slice(b"\nfoo and no end");
    text
}
