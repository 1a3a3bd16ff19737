//! Tests of interactive writers, which wait for an answer: contend must answer as soon as the
//! stages would have answered in bash.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::{bash, contend_run, words};
use crate::support::{Child, Command, contend, has, skip};

/// Maximum time to wait for the next part of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// Sets of options: the default ones, and some for several sizes of chunks.
const OPTIONS: &[&[&str]] =
    &[&[], &["-j", "3", "--part-size", "1"], &["-j", "3", "--part-size", "50k"]];

/// Pipelines that answer every line immediately, with the program that they need, and the answer to
/// `one`.
const ANSWERING_PIPELINES: &[(&str, &str, &str)] = &[
    ("grep --line-buffered .", "grep", "one\n"),
    ("grep --line-buffered -v x | cat", "grep", "one\n"),
    ("grep --line-buffered -m 2000 o", "grep", "one\n"),
    ("sed -u s/o/0/", "sed", "0ne\n"),
    ("cat | sed -u s/o/0/ | sed -u s/e/3/", "sed", "0n3\n"),
    ("sed -u 's/o/0/' | grep --line-buffered n", "sed", "0ne\n"),
    ("xargs -n 1 echo", "xargs", "one\n"),
    ("xargs -n 1 echo | sed -u s/o/0/", "xargs", "0ne\n"),
    ("jq --unbuffered -R .", "jq", "\"one\"\n"),
    ("mawk -W interactive '{ print }'", "mawk", "one\n"),
    ("stdbuf -oL tr a-z A-Z", "stdbuf", "ONE\n"),
    ("stdbuf -oL tr e x | grep --line-buffered -v z", "stdbuf", "onx\n"),
    ("grep --line-buffered o | stdbuf -oL cut -c 2-", "stdbuf", "ne\n"),
    ("grep --line-buffered o | stdbuf -oL rev", "rev", "eno\n"),
    ("stdbuf -oL expand", "stdbuf", "one\n"),
    ("stdbuf -oL fold -w 9", "stdbuf", "one\n"),
    ("sed -u -n 1~1p | sed -u s/o/0/", "sed", "0ne\n"),
    ("cat", "cat", "one\n"),
];

/// A running pipeline with its standard input and output.
struct Conversation {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
}

impl Conversation {
    fn begin(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.env("LC_ALL", "C").spawn().expect("it starts");
        let (sender, output) = mpsc::channel();
        let mut stdout = child.stdout.take().expect("piped");
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(read) = stdout.read(&mut block) {
                if read == 0 || sender.send(block[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, output }
    }

    fn say(&mut self, text: &[u8]) {
        self.stdin.as_mut().expect("it is open").write_all(text).expect("it reads");
    }

    /// Reads until the answer has at least `bytes` bytes, the output ends, or nothing arrives for
    /// [`ANSWER_TIMEOUT`]. Returns the bytes that have arrived.
    fn answer(&self, bytes: usize) -> Vec<u8> {
        let mut answer = Vec::new();
        while answer.len() < bytes {
            match self.output.recv_timeout(ANSWER_TIMEOUT) {
                Ok(more) => answer.extend(more),
                Err(_) => break,
            }
        }
        answer
    }

    /// Closes the input, and returns the remaining output.
    fn end(mut self) -> Vec<u8> {
        self.stdin = None;
        let rest = self.output.iter().flatten().collect();
        self.child.wait().expect("it is ours");
        rest
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Asserts that the pipeline answers each of three lines, and writes nothing else.
fn assert_answers(pipeline: &str, command: Command, expected: &str) {
    let how = format!("{pipeline}: {command:?}");
    let mut conversation = Conversation::begin(command);
    for _ in 0..3 {
        conversation.say(b"one\n");
        let answer = conversation.answer(expected.len());
        assert_eq!(String::from_utf8_lossy(&answer), expected, "{how}");
    }
    assert_eq!(conversation.end(), b"", "{how}");
}

/// Returns a command that runs a script file with contend.
fn script(options: &[&str], file: &Path) -> Command {
    let mut command = Command::new(contend());
    command.arg("run").args(options).arg("-f").arg(file);
    command
}

#[test]
fn every_line_is_answered_before_the_next_is_written() {
    if !has("bash") {
        return skip("every_line_is_answered_before_the_next_is_written", "there is no bash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("script");
    for (pipeline, program, expected) in ANSWERING_PIPELINES {
        if !has(program) {
            continue;
        }
        assert_answers(pipeline, bash(pipeline), expected);
        for options in OPTIONS {
            assert_answers(pipeline, contend_run(options, pipeline), expected);
        }
        let text = format!("x=1; {pipeline}");
        assert_answers(pipeline, contend_run(&[], &text), expected);
        assert_answers(pipeline, contend_run(OPTIONS[1], &text), expected);
        std::fs::write(&file, pipeline).expect("room");
        assert_answers(pipeline, script(&[], &file), expected);
        assert_answers(pipeline, script(OPTIONS[2], &file), expected);
    }
}

/// Pipelines that print `3` before they read anything.
const GREETING_PIPELINES: &[&str] = &[
    "sed -u s/a/b/ | awk 'BEGIN { print 3; fflush() } 1'",
    "awk 'BEGIN { print 3; fflush() } 1' | sed -u s/a/b/",
    "tr a b | sh -c 'echo 3; cat'",
    "sort | cut -c 1 | sh -c 'echo 3; cat' | cat",
    "grep -v zzz | awk 'BEGIN { system(\"echo 3\") } 1'",
    "tr a b | awk 'BEGIN { while ((\"echo 3\" | getline line) > 0) print line; fflush() } 1'",
    "sort | sed -u s/a/b/ | awk 'BEGIN { print 3; fflush() } { print $1 }' | sed -u s/b/c/",
];

#[test]
fn a_stage_that_writes_before_it_reads_does_not_wait_for_input() {
    if !has("bash") {
        return skip(
            "a_stage_that_writes_before_it_reads_does_not_wait_for_input",
            "there is no bash",
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("script");
    for pipeline in GREETING_PIPELINES {
        std::fs::write(&file, pipeline).expect("room");
        let in_a_shell = format!("x=1; {pipeline}");
        let forms = [&[][..], OPTIONS[1], &["--pipefail"]].into_iter().flat_map(|options| {
            [
                contend_run(options, pipeline),
                contend_run(options, &in_a_shell),
                script(options, &file),
            ]
        });
        for command in forms.chain([bash(pipeline)]) {
            let how = format!("{pipeline}: {command:?}");
            let conversation = Conversation::begin(command);
            assert_eq!(String::from_utf8_lossy(&conversation.answer(2)), "3\n", "{how}");
            assert_eq!(conversation.end(), b"", "{how}");
        }
    }
}

#[test]
fn a_stream_may_pause_after_much_data() {
    let much = words(3_000_000);
    for pipeline in [
        "sed -u s/zzz/y/",
        "grep --line-buffered -v zzz",
        "sed -u s/zzz/y/ | grep --line-buffered -v zzz",
        "sed -u s/zzz/y/ | stdbuf -oL tr z y | sed -u s/yyy/z/",
    ] {
        for options in OPTIONS.iter().filter(|options| !options.contains(&"1")) {
            let mut conversation = Conversation::begin(contend_run(options, pipeline));
            let mut expected = much.len();
            let mut stdin = conversation.stdin.take().expect("piped");
            let (much, told) = (much.clone(), conversation.answer(0));
            assert_eq!(told, b"", "{pipeline}");
            let writer = std::thread::spawn(move || {
                stdin.write_all(&much).expect("it reads");
                stdin
            });
            let answer = conversation.answer(expected);
            assert_eq!(answer.len(), expected, "{pipeline} {options:?}: after much");
            conversation.stdin = Some(writer.join().expect("it writes"));
            for line in ["more\n", "and more\n"] {
                conversation.say(line.as_bytes());
                expected = line.len();
                assert_eq!(
                    conversation.answer(expected),
                    line.as_bytes(),
                    "{pipeline} {options:?}"
                );
            }
            assert_eq!(conversation.end(), b"", "{pipeline} {options:?}");
        }
    }
}

#[test]
fn steady_single_lines_are_answered_without_a_lull() {
    for options in OPTIONS {
        let mut conversation = Conversation::begin(contend_run(options, "sed -u s/o/0/"));
        let mut stdin = conversation.stdin.take().expect("piped");
        let (stop, stopped) = mpsc::channel::<()>();
        let writer = std::thread::spawn(move || {
            // The writer never pauses long enough for a lull.
            while stopped.recv_timeout(Duration::from_millis(5)).is_err() {
                stdin.write_all(b"one\n").expect("it reads");
            }
        });
        let answer = conversation.answer(40);
        assert!(answer.starts_with(b"0ne\n0ne\n0ne\n0ne\n"), "{options:?}: {answer:?}");
        stop.send(()).expect("it waits");
        writer.join().expect("it writes");
    }
}

#[test]
fn partial_lines_are_passed_on_as_in_bash() {
    // The last word is incomplete. The contents of a block-buffered command's buffer are not an
    // answer.
    for (pipeline, text, expected) in [
        ("xargs -n 1 echo", "a b c".to_owned(), "a\nb\n".to_owned()),
        ("tr a b", "a".repeat(20_000), "b".repeat(16_384)),
        (
            "cat | tr a b",
            format!("x\n{}", "a".repeat(20_000)),
            format!("x\n{}", "b".repeat(16_382)),
        ),
    ] {
        for options in OPTIONS {
            let mut conversation = Conversation::begin(contend_run(options, pipeline));
            conversation.say(text.as_bytes());
            let answer = conversation.answer(expected.len());
            assert!(answer.starts_with(expected.as_bytes()), "{pipeline} {options:?}");
        }
    }
}
