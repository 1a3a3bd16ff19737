//! Parts of files and of streams.

use super::*;
use crate::rewrite::environment::Paths;
use contend_record::run::Records;
use std::io::{Seek as _, Write as _};

fn launcher() -> Launcher {
    let signals = contend_sys::interrupt::Signals::block().expect("signals");
    Launcher::new(signals.mask_before(), Paths::new(), Vec::new())
}

fn slice(text: &str) -> Slice {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("room");
    file.rewind().expect("a file");
    Slice::from_here(file).expect("a file")
}

fn all(parts: &Parts<'_>, wanted: usize) -> Vec<String> {
    let mut found = Vec::new();
    while let Taken::Part(part) = parts.take(wanted).expect("readable") {
        assert_eq!(part.index, found.len());
        found.push(String::from_utf8(part.bytes).expect("text"));
    }
    found
}

fn lines() -> Cut {
    Cut::between(Records::Lines)
}

#[test]
fn files_are_cut_as_if_they_were_one() {
    let input = Input::Files(vec![slice("a\nb"), slice("c\nd\n"), slice("")]);
    assert_eq!(input.size(), Some(7));
    let launcher = launcher();
    let parts = Parts::new(&launcher, input, &lines(), &Guard::NONE);
    assert_eq!(all(&parts, 1), ["a\n", "bc\n", "d\n"]);
    let mut again = String::new();
    parts.rest().read_to_string(&mut again).expect("readable");
    assert_eq!(again, "a\nbc\nd\n");
}

#[test]
fn a_line_longer_than_a_part_stays_whole() {
    let long = "x".repeat(3 * WINDOW);
    let text = format!("{long}\ny\n{long}");
    let launcher = launcher();
    let parts = Parts::new(&launcher, Input::Files(vec![slice(&text)]), &lines(), &Guard::NONE);
    let found = all(&parts, 10);
    assert_eq!(found.concat(), text);
    assert!(found.iter().all(|part| part.len() == 2 || part.len() >= 3 * WINDOW));
}

#[test]
fn a_stream_is_cut_and_what_is_given_back_comes_first() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"b\nc\nd").expect("room");
    drop(writer);
    let stream = File::from(std::os::fd::OwnedFd::from(reader));
    let input = Input::Stream(b"a\n".to_vec(), stream);
    let launcher = launcher();
    let parts = Parts::new(&launcher, input, &lines(), &Guard::NONE);
    let taken = [parts.take(3).expect("readable"), parts.take(1).expect("readable")];
    let [Taken::Part(first), Taken::Part(second)] = taken else { panic!("two parts") };
    parts.give_back(second);
    parts.stop();
    assert!(matches!(parts.take(1), Ok(Taken::End)));
    let mut rest = first.bytes;
    parts.rest().read_to_end(&mut rest).expect("readable");
    assert_eq!(rest, b"a\nb\nc\nd");
}

#[test]
fn what_the_guard_refuses_is_not_taken() {
    let guard = Guard { without: [0].into_iter().collect(), ..Guard::NONE };
    let launcher = launcher();
    let parts = Parts::new(&launcher, Input::Files(vec![slice("a\nb\0\n")]), &lines(), &guard);
    assert!(matches!(parts.take(1), Ok(Taken::Part(_))));
    assert!(matches!(parts.take(1), Ok(Taken::Unfit)));
    assert_eq!(parts.refused(), Some("its input holds the byte 0x00, for which it matters"));
}

#[test]
fn what_is_read_is_counted_once() {
    let launcher = launcher();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"b\nc\nd").expect("room");
    drop(writer);
    let stream = File::from(std::os::fd::OwnedFd::from(reader));
    for input in [Input::Stream(b"a\n".to_vec(), stream), Input::Files(vec![slice("a\nb\nc\nd")])] {
        let tally = super::super::Tally::default();
        let size = input.size();
        let parts = Parts::new(&launcher, input, &lines(), &Guard::NONE).counted(tally.input());
        assert_eq!((tally.bytes(), tally.size()), (0, size));
        let taken = [parts.take(1).expect("readable"), parts.take(1).expect("readable")];
        let [Taken::Part(first), Taken::Part(second)] = taken else { panic!("two parts") };
        let taken = (first.bytes.len() + second.bytes.len()) as u64;
        assert_eq!((tally.bytes(), tally.parts()), (taken, 2));
        parts.give_back(second);
        parts.stop();
        parts.rest().read_to_end(&mut Vec::new()).expect("readable");
        assert_eq!((tally.bytes(), tally.parts()), (7, 2));
    }
}

#[test]
fn shares_are_whole_records() {
    let text = "aa\nbb\ncc\ndd\n";
    let launcher = launcher();
    let parts = Parts::new(&launcher, Input::Files(vec![slice(text)]), &lines(), &Guard::NONE);
    let shares = parts.shares(2).expect("readable").expect("files");
    assert_eq!(shares, [0..6, 6..12]);
    let mut share = shares[1].clone();
    let Ok(Taken::Part(part)) = parts.take_of(&mut share, 4) else { panic!("a part") };
    assert_eq!((part.bytes.as_slice(), share), (b"cc\nd".as_slice(), 10..12));
}
