//! Which lines were there before, found by their hashes.
//!
//! To look for a line among many others takes longer than to sort one more. So where few were there
//! before, only a sample is looked for, until more of that were: always the same lines, those with
//! certain bits in their hashes, so that it shows what there would be among all.

use std::hash::BuildHasher as _;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// The bits of a hash that the sample has none of: one line in 16. The table itself uses the lowest
/// and the highest ones.
const OTHERS: u64 = 15 << 40;
/// After so many lines of the sample it is decided anew.
const WINDOW_LINES: u32 = 1024;
/// Of these, so many have to have been there for all lines to be looked for.
const MANY_REPEATS: u32 = WINDOW_LINES / 4;
/// With fewer than these, only the sample is looked for.
const FEW_REPEATS: u32 = WINDOW_LINES / 8;

/// Places of lines.
#[derive(Debug)]
pub(super) struct Seen {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    looks_for_all: bool,
    /// It did not always look for all.
    has_missed: bool,
    /// Lines of the sample since the last decision.
    sampled: u32,
    /// Those that had been there.
    found: u32,
}

impl Seen {
    /// Nothing was there.
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

    /// Where the line is, if that is known; otherwise it is to be kept at the next place. `at` gives
    /// the line at a place.
    pub(super) fn place<'t>(
        &mut self,
        line: &[u8],
        next: u32,
        at: impl Fn(u32) -> &'t [u8],
    ) -> Option<u32> {
        let hash = self.hasher.hash_one(line);
        let is_sampled = hash & OTHERS == 0;
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
            self.looks_for_all =
                self.found >= if self.looks_for_all { FEW_REPEATS } else { MANY_REPEATS };
            (self.sampled, self.found) = (0, 0);
        }
    }

    /// Whether a line may be kept several times.
    pub(super) fn has_missed(&self) -> bool {
        self.has_missed
    }

    /// Forgets all places. What is looked for stays the same.
    pub(super) fn clear(&mut self) {
        self.table = HashTable::new();
        self.has_missed = false;
    }

    /// Forgets all places, of lines that are still there: they may come again.
    pub(super) fn forget_places(&mut self) {
        self.clear();
        self.has_missed = true;
    }

    /// Memory in use, in bytes: a place has a byte of the hash beside it.
    pub(super) fn used(&self) -> usize {
        self.table.capacity() * (size_of::<u32>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these lines are kept, and whether all are looked for at the end.
    fn kept(lines: impl Iterator<Item = u32>) -> (usize, bool) {
        let mut seen = Seen::new();
        let mut kept: Vec<String> = Vec::new();
        for line in lines {
            let line = line.to_string();
            let next = u32::try_from(kept.len()).expect("few");
            match seen.place(line.as_bytes(), next, |place| kept[place as usize].as_bytes()) {
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
    fn where_all_differ_a_sample_is_looked_for() {
        assert_eq!(kept(0..200_000), (200_000, false));
    }

    #[test]
    fn all_are_looked_for_again_once_the_sample_comes_again() {
        let lines = (0..10).flat_map(|_| 0..200_000);
        let (kept, looks_for_all) = kept(lines);
        assert!(looks_for_all);
        // Some were missed the first time, and some of these the second time, too.
        assert!((200_000..600_000).contains(&kept), "{kept}");
    }
}
