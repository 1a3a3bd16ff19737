//! Tests of how `--check` handles outputs, inputs and the original.

use super::*;
use crate::run::testing::Recorder;

fn digests(text: &[u8]) -> Digests {
    let mut digests = Digests::default();
    digests.add(text);
    digests
}

fn original(text: &[u8], status: i32) -> Original {
    let (digests, wall) = (digests(text), Duration::from_secs(2));
    Original { digests, status, wall, stderr: String::new() }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Reads a pipe until EOF.
fn all_of(mut reader: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("a pipe");
    bytes
}

#[test]
fn outputs_and_exit_codes_are_compared() {
    let same = original(b"abc", 1).compared_with(&digests(b"abc"), 1);
    assert!(same.same && same.first_difference.is_none());
    assert_eq!((same.bytes, same.original_bytes, same.exit_code), (3, 3, 1));
    let status = original(b"abc", 1).compared_with(&digests(b"abc"), 0);
    assert!(!status.same && status.first_difference.is_none());
    let bytes = original(b"abc", 0).compared_with(&digests(b"abd"), 0);
    assert_eq!((bytes.same, bytes.first_difference), (false, Some(0)));
    let length = original(b"abcd", 0).compared_with(&digests(b"abc"), 0);
    assert_eq!((length.same, length.bytes, length.original_bytes), (false, 3, 4));
}

#[test]
fn an_output_is_passed_on_to_its_end() {
    let text = vec![b'x'; 3 * BLOCK_BYTES + 1];
    let (reader, mut writer) = pipe().expect("a pipe");
    let (passed, to) = pipe().expect("a pipe");
    let copy = start(move || pass_on(reader, Some(to))).expect("a thread");
    let sink = start(move || all_of(passed)).expect("a thread");
    writer.write_all(&text).expect("it is read");
    drop(writer);
    let copied = joined(copy).expect("pipes");
    assert!(copied.whole);
    assert_eq!(copied.digests.bytes(), text.len() as u64);
    assert_eq!(copied.digests.first_difference(&digests(&text)), None);
    assert_eq!(joined(sink), text);
}

#[test]
fn an_output_whose_reader_has_gone_is_not_whole() {
    let (reader, mut writer) = pipe().expect("a pipe");
    let (passed, to) = pipe().expect("a pipe");
    drop(passed);
    // A child that another test starts at the same time has a copy of `passed` until it executes its
    // program, so one write may not suffice.
    let writing = start(move || while writer.write_all(b"text").is_ok() {}).expect("a thread");
    let copied = pass_on(reader, Some(to)).expect("no failure");
    assert!(!copied.whole);
    joined(writing);
}

#[test]
fn an_input_is_kept_while_it_is_read() {
    let (reader, mut writer) = pipe().expect("a pipe");
    let (passed, to) = pipe().expect("a pipe");
    let file = tempfile::tempfile().expect("room");
    let keeping = start(move || keep(reader, file, to)).expect("a thread");
    writer.write_all(b"all of it").expect("room in a pipe");
    drop(writer);
    assert_eq!(all_of(passed), b"all of it");
    let SavedStream { mut file, rest } = joined(keeping).expect("pipes");
    assert!(rest.is_none(), "the input is over");
    file.rewind().expect("a file");
    assert_eq!(all_of(file), b"all of it");
}

#[test]
fn unread_input_is_not_consumed() {
    let (reader, mut writer) = pipe().expect("a pipe");
    let (mut passed, to) = pipe().expect("a pipe");
    let file = tempfile::tempfile().expect("room");
    let keeping = start(move || keep(reader, file, to)).expect("a thread");
    writer.write_all(b"read").expect("room in a pipe");
    passed.read_exact(&mut [0; 4]).expect("it is passed on");
    drop(passed);
    let SavedStream { mut file, rest } = joined(keeping).expect("pipes");
    writer.write_all(b"left").expect("its reader is kept");
    drop(writer);
    file.rewind().expect("a file");
    assert_eq!(all_of(file), b"read");
    assert_eq!(all_of(rest.expect("it was not over")), b"left");
}

#[test]
fn the_original_is_run_to_its_end() {
    let signals = Signals::block().expect("a descriptor");
    let script = "printf abc; echo oops >&2; exit 3";
    let Ok(Waited::Done(original)) = Original::run(shell(script), &signals) else {
        panic!("it runs")
    };
    assert_eq!(original.digests.first_difference(&digests(b"abc")), None);
    assert_eq!((original.status, original.stderr.as_str()), (3, "oops"));
}

#[test]
fn an_original_that_cannot_be_started_is_an_error() {
    let signals = Signals::block().expect("a descriptor");
    let error = Original::run(Command::new("/no/such/shell"), &signals).expect_err("no shell");
    assert_eq!(error.to_string(), "cannot start the shell for --check");
}

/// Compares a run that wrote `output` with a run of the given script.
fn compared(output: &[u8], whole: bool, exit_code: i32, script: &str) -> (i32, Outcome, Recorder) {
    let signals = Signals::block().expect("a descriptor");
    let mut recorder = Recorder::default();
    let mut outcome = Outcome { exit_code, ..Outcome::default() };
    let check = Check { input: Input::AsItIs, original: shell(script) };
    let written = FinishedRun { check, output: CopyResult { digests: digests(output), whole } };
    match written.compare(true, &mut outcome, &signals, &mut recorder).expect("it runs") {
        Waited::Done(code) => (code, outcome, recorder),
        Waited::Interrupted(signal) => panic!("interrupted by {signal}"),
    }
}

#[test]
fn a_difference_is_told_and_ends_with_1() {
    let (code, outcome, recorder) = compared(b"abc", true, 3, "printf abc; exit 3");
    assert_eq!((code, recorder.notices.as_slice()), (3, &["compared, same true".to_owned()][..]));
    assert!(outcome.check.expect("compared").same);
    let (code, outcome, recorder) = compared(b"abd", true, 3, "printf abc; exit 3");
    assert_eq!(
        (code, recorder.notices.as_slice()),
        (1, &["compared, same false, byte 3".to_owned()][..])
    );
    assert_eq!(outcome.check.expect("compared").first_difference, Some(0));
}

#[test]
fn an_output_that_is_not_whole_is_not_compared() {
    let (code, outcome, recorder) = compared(b"a", false, 3, "exit 9");
    assert_eq!((code, recorder.notices.as_slice()), (3, &["not compared".to_owned()][..]));
    assert!(outcome.check.is_none());
}
