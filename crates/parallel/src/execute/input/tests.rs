//! Tests of chunks of files and of streams.

use std::io::Write as _;

use super::super::instance::Instance;
use super::super::testing::{self, command, launcher};
use super::super::threads::RetryLimit;
use super::files::MAX_WINDOW_BYTES;
use super::*;
use crate::plan::ir::Records;

fn slice(text: &str) -> Slice {
    Slice::from_here(testing::file(text)).expect("a file")
}

fn bytes(chunks: &ChunkSource<'_>, data: ChunkData) -> Vec<u8> {
    chunks.bytes(data).expect("readable").expect("fit")
}

fn all(chunks: &ChunkSource<'_>, wanted: usize) -> Vec<String> {
    let mut found = Vec::new();
    while let NextChunk::Chunk(chunk) = chunks.take(wanted).expect("readable") {
        assert_eq!(chunk.index, found.len());
        found.push(String::from_utf8(bytes(chunks, chunk.data)).expect("text"));
    }
    found
}

fn lines() -> Cut {
    Cut::between(Records::Lines)
}

#[test]
fn files_are_cut_as_if_they_were_one() {
    let input = Input::Files(vec![slice("a\nb"), slice("c\nd\n"), slice("")]);
    let launcher = launcher();
    let chunks = ChunkSource::new(&launcher, input, &lines(), &Guard::NONE);
    assert_eq!(chunks.size(), Some(7));
    assert_eq!(all(&chunks, 1), ["a\n", "bc\n", "d\n"]);
    let mut again = String::new();
    chunks.rest().read_to_string(&mut again).expect("readable");
    assert_eq!(again, "a\nbc\nd\n");
}

#[test]
fn a_line_longer_than_a_part_stays_whole() {
    let length = 3 * usize::try_from(MAX_WINDOW_BYTES).expect("not much");
    let long = "x".repeat(length);
    let text = format!("{long}\ny\n{long}");
    let launcher = launcher();
    let chunks =
        ChunkSource::new(&launcher, Input::Files(vec![slice(&text)]), &lines(), &Guard::NONE);
    let found = all(&chunks, 10);
    assert_eq!(found.concat(), text);
    assert!(found.iter().all(|chunk| chunk.len() == 2 || chunk.len() >= length));
}

#[test]
fn a_stream_is_cut_and_what_is_given_back_comes_first() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"b\nc\nd").expect("room");
    drop(writer);
    let stream = File::from(std::os::fd::OwnedFd::from(reader));
    let input = Input::Stream(b"a\n".to_vec(), stream);
    let launcher = launcher();
    let chunks = ChunkSource::new(&launcher, input, &lines(), &Guard::NONE);
    let taken = [chunks.take(3).expect("readable"), chunks.take(1).expect("readable")];
    let [NextChunk::Chunk(first), NextChunk::Chunk(second)] = taken else { panic!("two parts") };
    chunks.give_back(second);
    chunks.stop();
    assert!(matches!(chunks.take(1), Ok(NextChunk::Eof)));
    let mut rest = bytes(&chunks, first.data);
    chunks.rest().read_to_end(&mut rest).expect("readable");
    assert_eq!(rest, b"a\nb\nc\nd");
}

#[test]
fn rejected_chunks_are_not_taken() {
    let guard = Guard { without: [0].into_iter().collect(), ..Guard::NONE };
    let launcher = launcher();
    let chunks =
        ChunkSource::new(&launcher, Input::Files(vec![slice("a\nb\0\n")]), &lines(), &guard);
    let found = [chunks.take(1).expect("readable"), chunks.take(1).expect("readable")];
    let [NextChunk::Chunk(first), NextChunk::Chunk(second)] = found else { panic!("two parts") };
    assert_eq!(bytes(&chunks, first.data), b"a\n");
    assert_eq!(chunks.bytes(second.data).expect("readable"), None);
    assert_eq!(
        chunks.refused(),
        Some("its input contains the byte 0x00, which a command treats specially")
    );
}

/// Feeds `cat` with one chunk that consists of files with the given texts. Returns its output and
/// the result of feeding.
fn fed(texts: &[&str], guard: &Guard) -> (String, Fed) {
    let launcher = launcher();
    let input = Input::Files(texts.iter().map(|text| slice(text)).collect());
    let chunks = ChunkSource::new(&launcher, input, &lines(), guard);
    let size = chunks.size().expect("files");
    let cat = command("cat", &[]);
    let mut instance = Instance::start(&launcher, &[cat], RetryLimit::Long).expect("cat");
    let mut written = Vec::new();
    let mut take = |bytes: &[u8]| {
        written.extend_from_slice(bytes);
        Ok(std::ops::ControlFlow::Continue(()))
    };
    let fed =
        chunks.feed(&ChunkData::FileRange(0..size), &mut instance, &mut take).expect("readable");
    assert!(instance.drain(&mut take).expect("readable").is_continue());
    assert!(instance.end().expect("an end").succeeded);
    (String::from_utf8(written).expect("text"), fed)
}

#[test]
fn commands_get_the_contents_of_files() {
    let long = "a line\n".repeat(300_000);
    let (text, all) = fed(&[&long, "", "b\n\u{e9}", "\u{e9}\n"], &Guard::NONE);
    assert_eq!(all, Fed::All);
    assert_eq!(text, long.clone() + "b\n\u{e9}\u{e9}\n");
    let utf8 = Guard { utf8: true, ..Guard::NONE };
    // Characters cross the boundaries of the checked windows.
    let long = format!("x{}\n", "\u{e9}\u{20ac}".repeat(200_000));
    assert_eq!(fed(&[&long], &utf8), (long, Fed::All));
}

#[test]
fn commands_get_nothing_shortly_before_what_they_do_not_want() {
    let guard = Guard { without: [0].into_iter().collect(), ..Guard::NONE };
    let long = "a line\n".repeat(300_000);
    let (text, end) = fed(&[&long, "\0", &long], &guard);
    assert_eq!(end, Fed::Rejected);
    let length = text.len();
    assert!(long.starts_with(&text) && (1 << 20..long.len() - (96 << 10)).contains(&length));
    assert_eq!(
        fed(&["a\nb"], &Guard { terminated: true, ..guard }),
        (String::new(), Fed::Rejected)
    );
}

#[test]
fn every_byte_read_is_counted_once() {
    let launcher = launcher();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"b\nc\nd").expect("room");
    drop(writer);
    let stream = File::from(std::os::fd::OwnedFd::from(reader));
    for (input, size) in [
        (Input::Stream(b"a\n".to_vec(), stream), None),
        (Input::Files(vec![slice("a\nb\nc\nd")]), Some(7)),
    ] {
        let tally = super::super::Tally::default();
        let chunks =
            ChunkSource::new(&launcher, input, &lines(), &Guard::NONE).counted(tally.input());
        assert_eq!((tally.bytes(), tally.size()), (0, size));
        let taken = [chunks.take(1).expect("readable"), chunks.take(1).expect("readable")];
        let [NextChunk::Chunk(first), NextChunk::Chunk(second)] = taken else {
            panic!("two parts")
        };
        assert_eq!(tally.chunks(), 2);
        let is_stream = !chunks.can_be_read_again();
        let taken = (first.data.size() + second.data.size()) as u64;
        assert_eq!(tally.bytes(), if is_stream { taken } else { 0 }, "files have not been read");
        bytes(&chunks, first.data);
        assert_eq!(tally.bytes(), if is_stream { taken } else { 2 });
        chunks.give_back(second);
        chunks.stop();
        chunks.rest().read_to_end(&mut Vec::new()).expect("readable");
        assert_eq!((tally.bytes(), tally.chunks()), (7, 2));
    }
}

#[test]
fn shares_are_whole_records() {
    let text = "aa\nbb\ncc\ndd\n";
    let launcher = launcher();
    let chunks =
        ChunkSource::new(&launcher, Input::Files(vec![slice(text)]), &lines(), &Guard::NONE);
    let shares = chunks.shares(2).expect("readable").expect("files");
    assert_eq!(shares, [0..6, 6..12]);
    let mut share = shares[1].clone();
    let Ok(NextChunk::Chunk(chunk)) = chunks.take_of(&mut share, 1) else { panic!("a part") };
    assert_eq!((bytes(&chunks, chunk.data), share), (b"cc\n".to_vec(), 9..12));
}
