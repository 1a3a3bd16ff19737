//! Takes samples of inputs, so that stages can read them repeatedly, and compares files.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;

use contend_record::advice::TrialInput;

/// Number of bytes copied or compared at a time.
const BLOCK_BYTES: usize = 1 << 20;
/// Length in bytes above which lines are cut.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// An input that can be read repeatedly.
#[derive(Debug)]
pub struct Sample {
    /// The file with the sample's bytes.
    pub file: File,
    /// How the sample relates to the real input.
    pub what: TrialInput,
}

impl Sample {
    /// Returns the size of the sample in bytes, or 0 if the pipelines open their input themselves.
    pub fn bytes(&self) -> u64 {
        match self.what {
            TrialInput::Own => 0,
            TrialInput::Whole { bytes }
            | TrialInput::Sample { bytes, .. }
            | TrialInput::Beginning { bytes, .. } => bytes,
        }
    }

    /// Creates a sample of a regular file. A file of up to `most` bytes is used as a whole. From a
    /// larger file, pieces of the start, the middle and the end are copied into an unnamed file.
    /// The pieces consist of whole lines, unless a line is longer than 16 MiB, and together have
    /// about `most` bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or there is no space for the copy.
    pub fn of(file: File, most: u64) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        if bytes <= most {
            return Ok(Self { file, what: TrialInput::Whole { bytes } });
        }
        let mut copy = temporary(most)?;
        let part = most / 3;
        let end = copy_lines(&file, 0, part, &mut copy)?;
        // A long line may extend the previous piece into this one.
        let middle = after_line(&file, (bytes / 2 - part / 2).max(end))?;
        let end = copy_lines(&file, middle, part, &mut copy)?;
        let tail = after_line(&file, (bytes - part).max(end))?;
        copy_range(&file, tail, bytes - tail, &mut copy)?;
        let copied = copy.stream_position()?;
        let what = TrialInput::Sample { bytes: copied, of_bytes: bytes };
        Ok(Self { file: copy, what })
    }

    /// Creates a sample of at most `most` bytes from the beginning of an input that can be read
    /// only once. If the input is longer, the sample ends with a complete line, unless it contains
    /// no newline.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or there is no space for the copy.
    pub fn beginning(mut from: impl Read, most: u64) -> io::Result<Self> {
        let mut copy = temporary(most)?;
        let mut bytes = io::copy(&mut from.by_ref().take(most), &mut copy)?;
        let complete = from.read(&mut [0])? == 0;
        if !complete {
            let end = last_line_end(&copy, bytes)?;
            copy.set_len(end)?;
            bytes = end;
        }
        Ok(Self { file: copy, what: TrialInput::Beginning { bytes, complete } })
    }
}

/// Creates an unnamed file, in memory (`/dev/shm`) if that has space for 8 times `most` bytes, and
/// otherwise in the directory for temporary files.
///
/// # Errors
/// Returns an error if the file cannot be created.
pub fn temporary(most: u64) -> io::Result<File> {
    let shared = "/dev/shm";
    let room = rustix::fs::statvfs(shared).map_or(0, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    if room / 8 >= most
        && let Ok(file) = tempfile::tempfile_in(shared)
    {
        return Ok(file);
    }
    tempfile::tempfile()
}

/// Space that must remain free for temporary files, in bytes.
const SPARE_BYTES: u64 = 4 << 20;

/// Returns whether the file system of `file` has space for `more` further files of the same size,
/// and a reserve. On a full disk, all outputs would be cut at the same offset and compare equal.
///
/// # Errors
/// Returns an error if the size of the file or the free space cannot be read.
pub fn has_room(file: &File, more: u64) -> io::Result<bool> {
    let written = file.metadata()?.len();
    let disk = rustix::fs::fstatvfs(file)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize) > more * written + SPARE_BYTES)
}

/// Returns the offset after the first newline at or after `place`. Returns the end of the file if
/// there is no newline, and `place` itself if none is found within `MAX_LINE_BYTES`.
fn after_line(file: &File, place: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 64 << 10];
    let mut at = place;
    while at < place + MAX_LINE_BYTES {
        let count = file.read_at(&mut buffer, at)?;
        if count == 0 {
            return Ok(at);
        }
        if let Some(found) = buffer[..count].iter().position(|&byte| byte == b'\n') {
            return Ok(at + found as u64 + 1);
        }
        at += count as u64;
    }
    Ok(place)
}

/// Copies `length` bytes from offset `from` on and the remainder of their last line, and returns
/// the offset at which the copy ended.
fn copy_lines(file: &File, from: u64, length: u64, to: &mut File) -> io::Result<u64> {
    let end = after_line(file, from + length)?;
    copy_range(file, from, end - from, to)?;
    Ok(end)
}

fn copy_range(file: &File, from: u64, length: u64, to: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK_BYTES];
    let (mut at, end) = (from, from + length);
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        let count = file.read_at(&mut buffer[..wanted], at)?;
        if count == 0 {
            break;
        }
        to.write_all(&buffer[..count])?;
        at += count as u64;
    }
    Ok(())
}

fn last_line_end(file: &File, length: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 64 << 10];
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(buffer.len() as u64);
        let wanted = usize::try_from(end - start).unwrap_or(0);
        file.read_exact_at(&mut buffer[..wanted], start)?;
        if let Some(found) = buffer[..wanted].iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + found as u64 + 1);
        }
        end = start;
    }
    Ok(length)
}

/// The first difference between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Position of the first differing byte, from 1.
    pub byte: u64,
    /// Number of the line that contains the byte, from 1.
    pub line: u64,
    /// The line around the byte in the first file, shortened to 72 bytes; `None` if the file ends
    /// before the byte.
    pub first: Option<String>,
    /// The same for the second file.
    pub second: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { byte, line, first, second } = self;
        let excerpts = [first, second].into_iter().flatten();
        if !excerpts.into_iter().all(|excerpt| is_text(excerpt)) {
            return write!(f, "byte {byte} of binary data");
        }
        let shown = |excerpt: &Option<String>| match excerpt.as_deref() {
            None => "the end".to_owned(),
            Some("") => "an empty line".to_owned(),
            Some(excerpt) => format!("`{excerpt}`"),
        };
        write!(f, "line {line}, byte {byte}: {} instead of {}", shown(second), shown(first))
    }
}

/// Returns whether an excerpt of a file consists of printable characters, tabs and carriage returns.
/// A character that the excerpt cuts at either end does not count.
fn is_text(excerpt: &str) -> bool {
    let excerpt = excerpt.trim_matches(char::REPLACEMENT_CHARACTER);
    let is_binary =
        |c: char| c == char::REPLACEMENT_CHARACTER || c.is_control() && !"\t\r".contains(c);
    !excerpt.contains(is_binary)
}

/// Returns the first difference between two files, or `None` if they are equal. Reads both from
/// their start, whatever their offsets are.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn difference(first: &File, second: &File) -> io::Result<Option<Difference>> {
    let (mut ours, mut theirs) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    let (mut at, mut lines) = (0, 1);
    loop {
        let a = read_full(first, &mut ours, at)?;
        let b = read_full(second, &mut theirs, at)?;
        let common = a.min(b);
        let differs = (0..common).find(|&i| ours[i] != theirs[i]);
        let place = differs.or_else(|| (a != b).then_some(common));
        let seen = place.unwrap_or(common);
        lines += ours[..seen].iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>();
        if let Some(place) = place {
            let byte = at + place as u64;
            let shown = |file, length| (place < length).then(|| line_at(file, byte)).transpose();
            let (first, second) = (shown(first, a)?, shown(second, b)?);
            return Ok(Some(Difference { byte: byte + 1, line: lines, first, second }));
        }
        if a == 0 {
            return Ok(None);
        }
        at += common as u64;
    }
}

fn read_full(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Returns at most 72 bytes of the line around the byte at offset `byte`, with U+FFFD for bytes
/// that are not UTF-8.
fn line_at(file: &File, byte: u64) -> io::Result<String> {
    const BEFORE: u64 = 30;
    let start = byte.saturating_sub(BEFORE);
    let mut buffer = [0; 72];
    let count = read_full(file, &mut buffer, start)?;
    let place = usize::try_from(byte - start).unwrap_or(0).min(count);
    let begin = buffer[..place].iter().rposition(|&b| b == b'\n').map_or(0, |found| found + 1);
    let end = buffer[place..count].iter().position(|&b| b == b'\n').map_or(count, |f| place + f);
    Ok(String::from_utf8_lossy(&buffer[begin..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("room");
        file
    }

    fn content(sample: &Sample) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(sample.bytes()).expect("small")];
        sample.file.read_exact_at(&mut bytes, 0).expect("all of it");
        bytes
    }

    #[test]
    fn a_small_file_is_taken_whole() {
        let sample = Sample::of(file_of(b"a\nb"), 100).expect("a sample");
        assert_eq!(sample.what, TrialInput::Whole { bytes: 3 });
        assert_eq!(content(&sample), b"a\nb");
    }

    #[test]
    fn the_beginning_ends_with_a_line() {
        let sample = Sample::beginning(&b"one\ntwo\nthree"[..], 9).expect("a sample");
        assert_eq!(sample.what, TrialInput::Beginning { bytes: 8, complete: false });
        let sample = Sample::beginning(&b"one\ntwo"[..], 7).expect("a sample");
        assert_eq!(sample.what, TrialInput::Beginning { bytes: 7, complete: true });
    }

    #[test]
    fn the_first_difference_is_found() {
        let first = file_of(b"a\nsame\nhere x\n");
        let found = difference(&first, &file_of(b"a\nsame\nhere y\nmore"));
        let found = found.expect("readable").expect("different");
        assert_eq!((found.byte, found.line), (13, 3));
        assert_eq!(found.to_string(), "line 3, byte 13: `here y` instead of `here x`");
        assert_eq!(difference(&first, &first).expect("readable"), None);
        let shorter = difference(&first, &file_of(b"a\n")).expect("readable").expect("different");
        assert_eq!(shorter.to_string(), "line 2, byte 3: the end instead of `same`");
        let longer = difference(&file_of(b""), &file_of(b"\n")).expect("readable");
        let longer = longer.expect("different").to_string();
        assert_eq!(longer, "line 1, byte 1: an empty line instead of the end");
    }

    #[test]
    fn only_text_is_shown() {
        let shown = |first: &[u8], second: &[u8]| {
            let found = difference(&file_of(first), &file_of(second)).expect("readable");
            found.expect("different").to_string()
        };
        assert_eq!(
            shown("ä\tb".as_bytes(), "ö\tb".as_bytes()),
            "line 1, byte 2: `ö\tb` instead of `ä\tb`"
        );
        let cut = ["é".repeat(60), "x".to_owned()].concat();
        assert!(shown(cut.as_bytes(), "é".repeat(60).as_bytes()).contains("instead of"));
        assert_eq!(
            shown(&[0x1f, 0x8b, 8, 4, 200], &[0x1f, 0x8b, 8, 0, 201]),
            "byte 4 of binary data"
        );
    }

    proptest! {
        #[test]
        fn a_sample_is_whole_lines_from_head_middle_and_tail(
            lines in prop::collection::vec("[a-z]{0,20}", 50..200), most in 150..400_u64,
        ) {
            let numbered: Vec<String> =
                lines.iter().enumerate().map(|(n, line)| format!("{n} {line}")).collect();
            let text = numbered.join("\n") + "\n";
            let sample = Sample::of(file_of(text.as_bytes()), most).expect("a sample");
            let taken = String::from_utf8(content(&sample)).expect("text");
            let places: Vec<usize> = taken
                .lines()
                .map(|line| numbered.iter().position(|n| n == line).expect("a whole line"))
                .collect();
            prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
            prop_assert_eq!(places.first(), Some(&0));
            let last = numbered[numbered.len() - 1].clone() + "\n";
            prop_assert!(taken.ends_with(&last));
            prop_assert!(taken.len() <= usize::try_from(most).expect("small") + 3 * 40);
        }
    }
}
