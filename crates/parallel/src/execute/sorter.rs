//! Sorts lines in memory, and on disk if they do not fit.
//!
//! An external `sort` would receive its input and return its output through pipes, and would move
//! equal lines like all others. Here, lines stay where they were stored. Only entries move: the
//! offset of a line, and a prefix of its key, which decides most comparisons. If equal lines are
//! merged or counted, most are found by their hashes and stored once. The others are merged when
//! sorting has made them neighbours.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::Path;

use contend_sys::procfs::MemInfo;
use memchr::{memchr, memchr_iter};

use super::entry::Entry;
use super::order::{Equal, Kind};
use super::seen::Seen;
use super::{counted, keyed};

/// Maximum size in bytes of the lines in memory: offsets have 32 bits.
const MAX_TEXT_BYTES: usize = 1 << 31;
/// Minimum ratio of available memory to the memory in use for lines at which the latter may be
/// doubled, if there is no room on disk. It is large, because other workers may double theirs at
/// the same time.
const MEMORY_DIVISOR: u64 = 8;

/// A collector of lines, which sorts them in memory and spills them to disk if there are too many.
#[derive(Debug)]
pub(super) struct Sorter<'a> {
    kind: Kind<'a>,
    /// The maximum memory for lines, in bytes.
    limit: usize,
    folder: &'a Path,
    text: Vec<u8>,
    entries: Vec<Entry>,
    /// Index of the stored lines. It stays empty if equal lines are all kept.
    seen: Seen,
    /// The beginning of an incomplete line.
    unfinished: Vec<u8>,
    /// Sorted runs that did not fit into memory, on disk.
    spilled: Vec<File>,
    has_doubtful_numbers: bool,
    /// Available memory in bytes that replaces the system's value in tests.
    available: Option<u64>,
}

/// The error for lines that fit neither into memory nor on disk.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write temporary files for sorting to {folder} (set TMPDIR to use another directory)"
)]
struct NoRoom {
    folder: String,
    source: io::Error,
}

/// Sorted lines, in memory and on disk.
#[derive(Debug)]
pub(super) struct Sorted {
    pub text: Vec<u8>,
    pub entries: Vec<Entry>,
    /// Sorted runs on disk. If there are any, `text` and `entries` are empty, unless the last run
    /// could not be written to disk.
    pub spilled: Vec<File>,
    /// Whether versions of `sort` may read numbers in the lines differently.
    pub has_doubtful_numbers: bool,
}

impl<'a> Sorter<'a> {
    pub(super) fn new(kind: Kind<'a>, limit: usize, folder: &'a Path) -> Self {
        Self {
            kind,
            limit,
            folder,
            text: Vec::new(),
            entries: Vec::new(),
            seen: Seen::new(),
            unfinished: Vec::new(),
            spilled: Vec::new(),
            has_doubtful_numbers: false,
            available: None,
        }
    }

    /// Adds a piece of the input, which may begin or end within a line.
    ///
    /// # Errors
    /// Returns an error if lines fit neither into memory nor on disk.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let separator = self.kind.order.separator;
        if !self.unfinished.is_empty() {
            let Some(end) = memchr(separator, bytes) else {
                self.unfinished.extend_from_slice(bytes);
                return Ok(());
            };
            let mut line = std::mem::take(&mut self.unfinished);
            line.extend_from_slice(&bytes[..end]);
            self.line(&line)?;
            bytes = &bytes[end + 1..];
        }
        let mut start = 0;
        for end in memchr_iter(separator, bytes) {
            self.line(&bytes[start..end])?;
            start = end + 1;
        }
        self.unfinished.extend_from_slice(&bytes[start..]);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.has_doubtful_numbers |= self.kind.has_doubtful_numbers(line);
        if self.kind.equal == Equal::Kept {
            let start = self.add(line, 0);
            self.entries.push(Entry::new(self.kind, line, start)?);
        } else {
            self.line_once(line)?;
        }
        if self.used() > self.limit || self.text.len() > MAX_TEXT_BYTES {
            self.spill()?;
        }
        Ok(())
    }

    fn line_once(&mut self, line: &[u8]) -> io::Result<()> {
        let Self { seen, entries, text, .. } = self;
        let next = u32::try_from(entries.len()).map_err(io::Error::other)?;
        if let Some(place) =
            seen.find_or_insert(line, next, |place| entries[place as usize].line(text))
        {
            entries[place as usize].count_more(text, 1);
            return Ok(());
        }
        let start = self.add(line, 1);
        self.entries.push(Entry::new(self.kind, line, start)?);
        Ok(())
    }

    /// Appends a line to the text, preceded by its number of occurrences unless that is 0. Returns
    /// the offset of the line.
    fn add(&mut self, line: &[u8], count: u64) -> usize {
        if count > 0 {
            self.text.extend_from_slice(&count.to_le_bytes());
        }
        let start = self.text.len();
        self.text.extend_from_slice(line);
        start
    }

    /// Returns the memory in use for lines, in bytes.
    fn used(&self) -> usize {
        let beside = if self.kind.order.keys.is_empty() { 0 } else { keyed::BYTES_PER_ENTRY };
        self.text.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.entries.len() * beside
            + self.seen.used()
    }

    fn sort(&mut self) {
        let Self { kind, entries, text, .. } = self;
        if kind.order.keys.is_empty() {
            entries.sort_unstable_by(|one, other| one.compare(text, other, text, *kind));
        } else {
            keyed::sort(*kind, text, entries, 0);
        }
        if self.seen.has_missed() {
            self.merge_equal();
        }
    }

    /// Merges neighbouring equal lines.
    fn merge_equal(&mut self) {
        let Self { entries, text, .. } = self;
        entries.dedup_by(|again, first| {
            let is_equal = again.prefix() == first.prefix() && again.line(text) == first.line(text);
            if is_equal {
                let times = again.count(text);
                first.count_more(text, times);
            }
            is_equal
        });
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        match self.write_run() {
            Ok(file) => self.spilled.push(file),
            // GNU sort might need no room on disk here, because it uses more memory by default.
            Err(_) if self.may_grow() => {
                self.limit = self.limit.max(self.used()).saturating_mul(2);
                if self.kind.equal != Equal::Kept {
                    self.seen.forget_places();
                }
                return Ok(());
            }
            Err(source) => {
                let folder = self.folder.display().to_string();
                return Err(io::Error::other(NoRoom { folder, source }));
            }
        }
        // `clear` would keep the memory, and the next line would exceed the limit again.
        self.text = Vec::new();
        self.entries = Vec::new();
        self.seen.clear();
        Ok(())
    }

    /// Returns whether the memory for lines can be doubled.
    fn may_grow(&self) -> bool {
        let available = self.available.unwrap_or_else(|| MemInfo::read().available);
        self.text.len() < MAX_TEXT_BYTES / 2 && self.used() as u64 <= available / MEMORY_DIVISOR
    }

    /// Writes the sorted lines to an unnamed file, which the system deletes once it is closed.
    /// Returns the file, positioned at its beginning.
    fn write_run(&self) -> io::Result<File> {
        let file = tempfile::tempfile_in(self.folder)?;
        let mut writer = BufWriter::with_capacity(256 << 10, file);
        let mut out = Vec::new();
        for entry in &self.entries {
            out.clear();
            write(&mut out, self.kind, entry.line(&self.text), || entry.count(&self.text));
            writer.write_all(&out)?;
        }
        let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    }

    /// Sorts the remaining lines, and returns all of them.
    ///
    /// # Errors
    /// Returns an error if lines fit neither into memory nor on disk.
    pub(super) fn finish(mut self) -> io::Result<Sorted> {
        let last = std::mem::take(&mut self.unfinished);
        if !last.is_empty() {
            self.line(&last)?;
        }
        if self.spilled.is_empty() {
            self.sort();
        } else if !self.entries.is_empty() {
            self.sort();
            if let Ok(file) = self.write_run() {
                self.spilled.push(file);
                (self.text, self.entries) = (Vec::new(), Vec::new());
            }
        }
        Ok(Sorted {
            text: self.text,
            entries: self.entries,
            spilled: self.spilled,
            has_doubtful_numbers: self.has_doubtful_numbers,
        })
    }
}

/// Appends a line and its separator to `out`, preceded by its number of occurrences if lines are
/// counted.
pub(super) fn write(out: &mut Vec<u8>, kind: Kind<'_>, line: &[u8], count: impl Fn() -> u64) {
    if kind.equal == Equal::Counted {
        counted::write(out, count(), line);
    } else {
        out.extend_from_slice(line);
    }
    out.push(kind.order.separator);
}

#[cfg(test)]
mod tests {
    use super::super::order::BYTES;
    use super::*;
    use crate::plan::ir::{FieldPlace, LineOrder, SortKey};
    use proptest::prelude::*;

    fn sorted(pieces: &[Vec<u8>], kind: Kind<'_>, limit: usize) -> (Vec<u8>, usize) {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new(kind, limit, &folder);
        for piece in pieces {
            sorter.push(piece).expect("room");
        }
        let sorted = sorter.finish().expect("room");
        let mut out = Vec::new();
        for entry in &sorted.entries {
            let count = || entry.count(&sorted.text);
            write(&mut out, kind, entry.line(&sorted.text), count);
        }
        (out, sorted.spilled.len())
    }

    #[test]
    fn counted_lines_are_kept_once() {
        let pieces = [b"b\na".to_vec(), b"\nb\n\n".to_vec(), b"abcdefghij\nb".to_vec()];
        let kind = Kind { order: &BYTES, equal: Equal::Counted };
        let (text, spilled) = sorted(&pieces, kind, 1 << 20);
        let wanted = "      1 \n      1 a\n      1 abcdefghij\n      3 b\n";
        assert_eq!((String::from_utf8_lossy(&text).as_ref(), spilled), (wanted, 0));
    }

    #[test]
    fn excess_lines_are_spilled_to_disk() {
        let lines: Vec<u8> = (0..2000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let kind = Kind { order: &BYTES, equal: Equal::Kept };
        let (text, spilled) = sorted(&[lines], kind, 16 << 10);
        assert!(text.is_empty() && (2..10).contains(&spilled), "{spilled}");
    }

    fn text_of(lines: &[String]) -> String {
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    #[test]
    fn a_folder_that_takes_nothing_is_named() {
        let folder = Path::new("/proc/no-such-folder");
        let kind = Kind { order: &BYTES, equal: Equal::Kept };
        let mut sorter = Sorter { available: Some(0), ..Sorter::new(kind, 1, folder) };
        let error = sorter.push(b"a\nb\n").expect_err("there is no such folder");
        let text = error.to_string();
        assert!(text.contains("/proc/no-such-folder"), "{text}");
    }

    #[test]
    fn runs_stay_in_memory_if_the_folder_is_full() {
        let folder = Path::new("/proc/no-such-folder");
        let lines: Vec<u8> =
            (0..4000).flat_map(|n| format!("{}\n", n % 3000).into_bytes()).collect();
        for equal in [Equal::Kept, Equal::One, Equal::Counted] {
            let kind = Kind { order: &BYTES, equal };
            let limit = 16 << 10;
            let mut sorter =
                Sorter { available: Some(1 << 30), ..Sorter::new(kind, limit, folder) };
            for piece in lines.chunks(1000) {
                sorter.push(piece).expect("memory");
            }
            let sorted = sorter.finish().expect("memory");
            let count = |entry: &Entry| {
                if equal == Equal::Kept { 1 } else { entry.count(&sorted.text) }
            };
            assert!(sorted.spilled.is_empty(), "{equal:?}");
            assert_eq!(sorted.entries.iter().map(count).sum::<u64>(), 4000, "{equal:?}");
            let kept = if equal == Equal::Kept { 4000 } else { 3000 };
            assert_eq!(sorted.entries.len(), kept, "{equal:?}");
            let lines = || sorted.entries.iter().map(|entry| entry.line(&sorted.text));
            assert!(lines().is_sorted(), "{equal:?}");
        }
    }

    fn key(field: usize) -> impl Strategy<Value = SortKey> {
        let place = move |bytes| FieldPlace { field, bytes, skips_blanks: bytes == 2 };
        (0_usize..3, any::<(bool, bool, bool)>()).prop_map(move |(to, (numeric, fold, reverse))| {
            SortKey { from: place(0), to: Some(place(to)), numeric, fold, reverse }
        })
    }

    #[test]
    fn equal_lines_that_were_missed_are_merged() {
        // Few lines repeat at first.
        let numbers = || (0..200_000).chain((0..3).flat_map(|_| 150_000..200_000));
        let text: Vec<u8> = numbers().flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let mut lines: Vec<(String, u64)> =
            (0..200_000).map(|n| (n.to_string(), if n < 150_000 { 1 } else { 4 })).collect();
        lines.sort();
        let counted = lines.iter().map(|(line, count)| format!("{count:7} {line}\n"));
        let kind = Kind { order: &BYTES, equal: Equal::Counted };
        let (all, spilled) = sorted(&[text], kind, 1 << 30);
        assert_eq!(spilled, 0);
        assert!(all == counted.collect::<String>().into_bytes(), "other lines or counts");
    }

    proptest! {
        #[test]
        fn keys_one_after_the_other_are_the_same_as_for_each_comparison(
            mut lines in prop::collection::vec("[ab, ]{0,3}[ ,][aAb]{0,9}[ ,]-?[01.]{0,3}", 0..30),
            keys in (key(0), key(2)),
            separator in prop::option::of(Just(b',')),
            reverse: bool,
        ) {
            let text = text_of(&lines);
            let keys = vec![keys.1, keys.0];
            let order = LineOrder { keys, field_separator: separator, reverse, ..BYTES };
            let kind = Kind { order: &order, equal: Equal::Kept };
            lines.sort_by(|one, other| kind.compare(one.as_bytes(), other.as_bytes()));
            let wanted = text_of(&lines).into_bytes();
            prop_assert_eq!(sorted(&[text.into_bytes()], kind, 1 << 20).0, wanted);
        }

        #[test]
        fn lines_come_in_the_order_of_their_bytes(
            mut lines in prop::collection::vec("[a\\x00\\x7fé]{0,11}", 0..20),
            reverse: bool,
            cut in 1_usize..9,
        ) {
            let text: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
            let pieces: Vec<Vec<u8>> = text.chunks(cut).map(<[u8]>::to_vec).collect();
            let order = LineOrder { reverse, ..BYTES };
            let kind = |equal| Kind { order: &order, equal };
            lines.sort();
            if reverse {
                lines.reverse();
            }
            let all = text_of(&lines);
            prop_assert_eq!(sorted(&pieces, kind(Equal::Kept), 1 << 20).0, all.into_bytes());
            lines.dedup();
            let one = text_of(&lines);
            prop_assert_eq!(sorted(&pieces, kind(Equal::One), 1 << 20).0, one.into_bytes());
        }
    }
}
