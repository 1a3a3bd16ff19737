//! Sorts lines key by key, so that a key is located once per line rather than for each comparison.

use std::cmp::Ordering;
use std::ops::Range;

use super::entry::Entry;
use super::key;
use super::order::{self, Kind};

/// A line whose key has been located.
struct Keyed {
    /// A number that orders most keys without access to the text.
    prefix: u64,
    /// The offset of the key in the text, in bytes.
    start: u32,
    /// The length of the key in bytes.
    length: u32,
    entry: Entry,
}

/// Memory in bytes that sorting by keys needs for each line in addition to its entry. The second
/// term is for the ranges of lines with equal keys, which have at least two lines each.
pub(super) const BYTES_PER_ENTRY: usize = size_of::<Keyed>() + size_of::<Range<usize>>() / 2;

/// Sorts `entries`, whose lines in `text` are equal in all keys before index `from`, by the
/// remaining keys and then by their bytes.
pub(super) fn sort(kind: Kind<'_>, text: &[u8], entries: &mut [Entry], from: usize) {
    if entries.len() < 2 {
        return;
    }
    let Some(key) = kind.order.keys.get(from) else {
        let line = |entry: &Entry| entry.line(text);
        return entries.sort_unstable_by(|one, other| kind.by_bytes(line(one), line(other)));
    };
    let keyed = |entry: &Entry| {
        let (line, start) = (entry.line(text), entry.start());
        let range = key::range(key, kind.order.field_separator, line);
        // No line is longer than its text, whose offsets have 32 bits.
        #[expect(clippy::cast_possible_truncation, reason = "as the line says")]
        Keyed {
            prefix: match from {
                0 => entry.prefix(),
                _ => order::key_prefix(key, &line[range.clone()]),
            },
            start: (start + range.start) as u32,
            length: range.len() as u32,
            entry: *entry,
        }
    };
    let key_text = |it: &Keyed| &text[it.start as usize..][..it.length as usize];
    let compare = |one: &Keyed, other: &Keyed| match one.prefix.cmp(&other.prefix) {
        Ordering::Equal => {
            order::behind_key_prefix(key, Some(one.prefix), key_text(one), key_text(other))
        }
        order => order::reversed_if(key.reverse, order),
    };
    let mut lines: Vec<Keyed> = entries.iter().map(keyed).collect();
    lines.sort_unstable_by(compare);
    let runs = lines.chunk_by(|one, other| compare(one, other).is_eq()).scan(0, |end, same| {
        *end += same.len();
        Some(*end - same.len()..*end)
    });
    let same: Vec<Range<usize>> = runs.filter(|same| same.len() > 1).collect();
    for (entry, line) in entries.iter_mut().zip(&lines) {
        *entry = line.entry;
    }
    drop(lines);
    for same in same {
        sort(kind, text, &mut entries[same], from + 1);
    }
}
