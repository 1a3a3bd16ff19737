//! Finds repeated lines by their hashes.
//!
//! Looking a line up among many takes longer than sorting one more line. So if few lines repeat,
//! only a sample of the lines is looked up, until more of them repeat. The sample consists of the
//! lines whose hashes have certain bits clear. It contains either all occurrences of a line or
//! none, so its share of repeated lines estimates the share among all lines.

use std::hash::BuildHasher as _;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Hash bits that are zero for lines of the sample, which therefore contains about a sixteenth of
/// all distinct lines. These bits are in the middle of the hash, because the table uses the lowest
/// and the highest ones.
const SAMPLE_MASK: u64 = 15 << 40;
/// The number of lines of the sample between two decisions on which lines to look up.
const WINDOW_LINES: u32 = 1024;
/// Minimum number of repeated lines in a window at which a table that looked up only the sample
/// looks up all lines from then on.
const MIN_REPEATS_FOR_ALL: u32 = WINDOW_LINES / 4;
/// Minimum number of repeated lines in a window at which a table that looked up all lines continues
/// to do so.
const MIN_REPEATS_TO_STAY: u32 = WINDOW_LINES / 8;

/// The indices of lines, by hash.
#[derive(Debug)]
pub(super) struct Seen {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    looks_for_all: bool,
    /// Whether some lines were not looked up, so that equal lines may have been stored more than
    /// once.
    has_missed: bool,
    /// Number of lines of the sample since the last decision.
    sampled: u32,
    /// Number of repeated lines of the sample since the last decision.
    found: u32,
}

impl Seen {
    /// Creates an empty table, which looks up all lines at first.
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            looks_for_all: true,
            has_missed: false,
            sampled: 0,
            found: 0,
        }
    }

    /// Returns the index of a stored line that equals `line`, or `None` if there is none or `line`
    /// is not looked up. If the result is `None`, the caller must store the line at index `next`.
    /// `at` returns the stored line at an index.
    pub(super) fn find_or_insert<'t>(
        &mut self,
        line: &[u8],
        next: u32,
        at: impl Fn(u32) -> &'t [u8],
    ) -> Option<u32> {
        let hash = self.hasher.hash_one(line);
        let is_sampled = hash & SAMPLE_MASK == 0;
        if !is_sampled && !self.looks_for_all {
            self.has_missed = true;
            return None;
        }
        let again = |&place: &u32| self.hasher.hash_one(at(place));
        let found = match self.table.entry(hash, |&place| at(place) == line, again) {
            Entry::Occupied(found) => Some(*found.get()),
            Entry::Vacant(vacant) => {
                vacant.insert(next);
                None
            }
        };
        if is_sampled {
            self.count(found.is_some());
        }
        found
    }

    fn count(&mut self, is_found: bool) {
        self.sampled += 1;
        self.found += u32::from(is_found);
        if self.sampled == WINDOW_LINES {
            self.looks_for_all = self.found
                >= if self.looks_for_all { MIN_REPEATS_TO_STAY } else { MIN_REPEATS_FOR_ALL };
            (self.sampled, self.found) = (0, 0);
        }
    }

    /// Returns whether equal lines may have been stored more than once.
    pub(super) fn has_missed(&self) -> bool {
        self.has_missed
    }

    /// Forgets all lines, but keeps the decision on which lines to look up.
    pub(super) fn clear(&mut self) {
        self.table = HashTable::new();
        self.has_missed = false;
    }

    /// Forgets the indices of lines that remain stored, so that equal lines may be stored again.
    pub(super) fn forget_places(&mut self) {
        self.clear();
        self.has_missed = true;
    }

    /// Returns the memory in use, in bytes: an index and one byte of the hash for each line that
    /// fits into the table.
    pub(super) fn used(&self) -> usize {
        self.table.capacity() * (size_of::<u32>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks up the given numbers as lines. Returns how many lines are stored, and whether all
    /// lines are looked up in the end.
    fn kept(lines: impl Iterator<Item = u32>) -> (usize, bool) {
        let mut seen = Seen::new();
        let mut kept: Vec<String> = Vec::new();
        for line in lines {
            let line = line.to_string();
            let next = u32::try_from(kept.len()).expect("few");
            match seen
                .find_or_insert(line.as_bytes(), next, |place| kept[place as usize].as_bytes())
            {
                Some(place) => assert_eq!(kept[place as usize], line),
                None => kept.push(line),
            }
        }
        (kept.len(), seen.looks_for_all)
    }

    #[test]
    fn lines_that_come_again_are_kept_once() {
        assert_eq!(kept((0..300_000).map(|n| n % 1000)), (1000, true));
    }

    #[test]
    fn distinct_lines_are_only_sampled() {
        assert_eq!(kept(0..200_000), (200_000, false));
    }

    #[test]
    fn all_lines_are_looked_up_once_the_sample_repeats() {
        let lines = (0..10).flat_map(|_| 0..200_000);
        let (kept, looks_for_all) = kept(lines);
        assert!(looks_for_all);
        // Some lines were missed the first time, and some of these the second time, too.
        assert!((200_000..600_000).contains(&kept), "{kept}");
    }
}
