//! Finds positions at which an input may be cut, and checks chunks against a guard.

use crate::plan::ir::{Cut, Guard, Key, Records};
use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

/// Returns whether the input may be cut at `place` of `data`. `place` must be directly after a
/// separator, and before the end of `data`. `data` must begin at the start of a record if `place`
/// is 1 or the cut compares keys.
fn is_cut(cut: &Cut, data: &[u8], place: usize) -> bool {
    // If nothing precedes the separator, the first record is empty.
    let before = place.checked_sub(2).map_or(cut.records.separator(), |at| data[at]);
    cut.before.contains(before)
        && cut.after.contains(data[place])
        && cut.differ.is_none_or(|key| differ(cut, key, data, place))
}

/// Returns whether the keys of the records before and after `place` differ, or are in ascending
/// order if the cut requires that. Returns `false` if the second record is incomplete: bytes that
/// have not arrived yet may make the keys equal.
fn differ(cut: &Cut, key: Key, data: &[u8], place: usize) -> bool {
    let separator = cut.records.separator();
    let first = memrchr(separator, &data[..place - 1]).map_or(0, |at| at + 1);
    let Some(end) = memchr(separator, &data[place..]) else { return false };
    let before = key_of(key, &data[first..place - 1]);
    let after = key_of(key, &data[place..place + end]);
    if cut.ascending { before < after } else { before != after }
}

fn key_of(key: Key, record: &[u8]) -> &[u8] {
    let blank = |byte: &u8| [b' ', b'\t'].contains(byte);
    match key {
        Key::Whole => record,
        Key::FirstField(separator) => &record[..memchr(separator, record).unwrap_or(record.len())],
        Key::FirstWord => {
            let start = record.iter().position(|byte| !blank(byte)).unwrap_or(record.len());
            let word = &record[start..];
            &word[..word.iter().position(blank).unwrap_or(word.len())]
        }
    }
}

/// Returns the first position from 2 on at which `data` may be cut, or `None` if there is none. If
/// the cut is not local, the position is only a guess, because it may depend on bytes before
/// `data`.
pub(super) fn first(cut: &Cut, data: &[u8]) -> Option<usize> {
    let mut places = memchr_iter(cut.records.separator(), data).map(|at| at + 1);
    // The byte before `data[0]` is unknown.
    places.find(|&place| place > 1 && place < data.len() && is_cut(cut, data, place))
}

/// A scanner for the last position at which an input may be cut. Formats that must be scanned from
/// the beginning are scanned only once: when more data has arrived, it resumes where it stopped.
#[derive(Debug)]
pub(super) struct Scanner {
    cut: Cut,
    nesting: Nesting,
    /// Number of bytes scanned so far, for formats that must be scanned from the beginning.
    scanned: usize,
    /// The last cut position found by scanning, if any.
    found: Option<usize>,
}

/// The scanner's state within quotes and brackets.
#[derive(Debug, Default, Clone, Copy)]
struct Nesting {
    quoted: bool,
    escaped: bool,
    depth: i64,
}

impl Scanner {
    pub(super) fn new(cut: &Cut) -> Self {
        Self { cut: cut.clone(), nesting: Nesting::default(), scanned: 0, found: None }
    }

    /// Returns the last position at which `data` may be cut, or `None` if there is none. `data`
    /// must begin at the start of a chunk. Bytes seen by earlier calls must not change; removals
    /// from the front must be reported with [`Self::note_removed`].
    pub(super) fn last(&mut self, data: &[u8]) -> Option<usize> {
        match self.cut.records {
            Records::Lines | Records::Nul => {
                let ends = memrchr_iter(self.cut.records.separator(), data);
                let mut places = ends.map(|at| at + 1);
                places.find(|&at| at < data.len() && is_cut(&self.cut, data, at))
            }
            Records::Csv | Records::Json => {
                self.scan(data);
                self.found
            }
        }
    }

    /// Records that the first `bytes` bytes of the data have been removed.
    pub(super) fn note_removed(&mut self, bytes: usize) {
        self.scanned -= bytes.min(self.scanned);
        self.found = None;
    }

    fn scan(&mut self, data: &[u8]) {
        let json = self.cut.records == Records::Json;
        // Whether a position is a cut depends on the byte after it.
        while self.scanned + 1 < data.len() {
            let nesting = &mut self.nesting;
            match data[self.scanned] {
                _ if nesting.escaped => nesting.escaped = false,
                b'\\' if json && nesting.quoted => nesting.escaped = true,
                b'"' => nesting.quoted = !nesting.quoted,
                b'{' | b'[' if json && !nesting.quoted => nesting.depth += 1,
                b'}' | b']' if json && !nesting.quoted => nesting.depth -= 1,
                b'\n'
                    if !nesting.quoted
                        && nesting.depth == 0
                        && is_cut(&self.cut, data, self.scanned + 1) =>
                {
                    self.found = Some(self.scanned + 1);
                }
                _ => {}
            }
            self.scanned += 1;
        }
    }
}

/// Returns whether `data`, a complete chunk, satisfies the guard.
pub(super) fn holds(guard: &Guard, records: Records, data: &[u8]) -> bool {
    (!guard.terminated || data.last() == Some(&records.separator()))
        && holds_so_far(guard, data, true).is_some()
}

/// Returns whether the guard has conditions on the bytes within a chunk.
pub(super) fn checks_bytes(guard: &Guard) -> bool {
    guard.utf8 || guard.without.iter().next().is_some()
}

/// Returns the number of leading bytes of `data` that satisfy the guard's conditions on bytes, or
/// `None` if a byte violates them. An incomplete UTF-8 character at the end of `data` is not
/// counted; if `is_last` is true, it violates the guard. `data` must begin at the start of a
/// character.
pub(super) fn holds_so_far(guard: &Guard, data: &[u8], is_last: bool) -> Option<usize> {
    let lacks = match guard.without.iter().take(4).collect::<Vec<_>>().as_slice() {
        [] => true,
        &[byte] => memchr(byte, data).is_none(),
        &[a, b] => memchr::memchr2(a, b, data).is_none(),
        &[a, b, c] => memchr::memchr3(a, b, c, data).is_none(),
        _ => !data.iter().any(|&byte| guard.without.contains(byte)),
    };
    if !lacks {
        return None;
    }
    if !guard.utf8 {
        return Some(data.len());
    }
    match std::str::from_utf8(data) {
        Ok(_) => Some(data.len()),
        Err(error) => {
            let goes_on = error.error_len().is_none() && !is_last;
            goes_on.then_some(error.valid_up_to())
        }
    }
}

/// Returns how `data` violates the guard, as a reason for users. `data` must violate it.
pub(super) fn describe_violation(guard: &Guard, data: &[u8]) -> String {
    if let Some(byte) = data.iter().find(|&&byte| guard.without.contains(byte)) {
        return format!(
            "its input contains the byte {byte:#04x}, which a command treats specially"
        );
    }
    if guard.utf8 && std::str::from_utf8(data).is_err() {
        return "its input is not valid UTF-8".to_owned();
    }
    "the last record of its input has no end".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ir::ByteSet;

    fn last(cut: &Cut, data: &str) -> Option<usize> {
        Scanner::new(cut).last(data.as_bytes())
    }

    #[test]
    fn lines_are_cut_behind_their_ends_if_something_follows() {
        let lines = Cut::between(Records::Lines);
        assert_eq!(last(&lines, "a\nb\nc"), Some(4));
        assert_eq!(last(&lines, "a\nb\n"), Some(2));
        assert_eq!(last(&lines, "\nb"), Some(1));
        assert_eq!(last(&lines, "ab"), None);
        assert_eq!(first(&lines, b"ab\ncd\ne"), Some(3));
        assert_eq!(first(&lines, b"\ncd\ne"), Some(4), "what was before is not known");
    }

    #[test]
    fn chunks_begin_and_end_with_permitted_bytes() {
        let after =
            Cut { after: ByteSet::of(|b| b.is_ascii_alphabetic()), ..Cut::between(Records::Lines) };
        assert_eq!(last(&after, "a\nb\n\n1\n"), Some(2));
        let before = Cut { before: ByteSet::of(|b| b != b' '), ..Cut::between(Records::Lines) };
        assert_eq!(last(&before, "a\nb \nc"), Some(2));
    }

    #[test]
    fn equal_records_stay_together() {
        let whole = Cut { differ: Some(Key::Whole), ..Cut::between(Records::Lines) };
        assert_eq!(last(&whole, "a\nb\nb\nb\n"), Some(2));
        assert_eq!(last(&whole, "a\nb\nb"), Some(2), "the last one may go on");
        assert_eq!(last(&whole, "a\na\n"), None);
        let word = Cut { differ: Some(Key::FirstWord), ..Cut::between(Records::Lines) };
        assert_eq!(last(&word, "a 1\n a 2\nb\n"), Some(9));
        let field = Cut { differ: Some(Key::FirstField(b':')), ..Cut::between(Records::Lines) };
        assert_eq!(last(&field, "a:1\na:2\nb\n"), Some(8));
    }

    #[test]
    fn quotes_and_brackets_hold_records_together() {
        let csv = Cut::between(Records::Csv);
        assert_eq!(last(&csv, "a,\"b\nc\"\nd,\"e\nf"), Some(8));
        let json = Cut::between(Records::Json);
        assert_eq!(last(&json, "{\"a\": \"}\\\"\n\"\n}\n[1,\n2]"), Some(15));
        let mut scanner = Scanner::new(&json);
        assert_eq!(scanner.last(b"{}\n{"), Some(3));
        scanner.note_removed(3);
        assert_eq!(scanner.last(b"{\n"), None);
        assert_eq!(scanner.last(b"{\n}\n1"), Some(4));
    }

    #[test]
    fn guards_look_at_every_byte() {
        let guard = |without: &[u8], utf8| Guard {
            without: without.iter().copied().collect(),
            utf8,
            terminated: false,
        };
        assert!(holds(&Guard::NONE, Records::Lines, b"\xff\0"));
        assert!(!holds(&guard(b"\0", false), Records::Lines, b"a\0"));
        assert!(!holds(&guard(b"abcde", false), Records::Lines, b"xxe"));
        assert!(holds(&guard(b"abcde", true), Records::Lines, "x\u{e9}".as_bytes()));
        assert!(!holds(&guard(b"", true), Records::Lines, b"\xff"));
        let utf8 = guard(b"", true);
        assert_eq!(holds_so_far(&utf8, b"a\xc3", false), Some(1), "the rest is to come");
        assert_eq!(holds_so_far(&utf8, b"a\xc3", true), None);
        assert_eq!(holds_so_far(&utf8, b"\xc3a", false), None);
        assert_eq!(holds_so_far(&guard(b"\0", true), b"a\xc3\0", false), None);
        assert!(checks_bytes(&utf8) && checks_bytes(&guard(b"\0", false)));
        let terminated = Guard { terminated: true, ..Guard::NONE };
        assert!(!checks_bytes(&terminated));
        assert!(!holds(&terminated, Records::Lines, b"a\nb"));
        assert!(holds(&terminated, Records::Lines, b"a\nb\n"));
    }
}
