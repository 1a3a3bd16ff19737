//! A hierarchical timer wheel whose entries are pages: it finds the pages that have due units.
//!
//! There are six levels of 64 buckets, of 1, 64, 64² … ticks each, and a bitmap of used buckets for
//! each level (Varghese and Lauck 1987, scheme 7). A bucket lists pages by the earliest tick of
//! their units; a page is searched at that tick. So a timer needs no list node, cancelling one only
//! clears its tick, and only a few pages move from one level to the next, never a million units at
//! once. The wheel's data about a page is in an array here rather than on the page, so that moving
//! thousands of pages touches little memory.
//!
//! Ticks have 32 bits and wrap around. Any two ticks compared are less than 2³¹ apart.

#![expect(
    clippy::cast_possible_truncation,
    reason = "buckets and levels are small numbers, as their constants say"
)]

use super::page::NO_TICK;

const LEVEL_COUNT: usize = 6;
const BUCKET_BITS: u32 = 6;
const BUCKET_COUNT: usize = 1 << BUCKET_BITS;
/// The bucket that lists due pages.
const EXPIRED_BUCKET: u16 = (LEVEL_COUNT * BUCKET_COUNT) as u16;

/// Returns whether tick `a` comes before tick `b`; see the module documentation on their distance.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// The wheel's data about a page.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The earliest tick at which a unit of the page may be due; [`NO_TICK`] for none. It may be
    /// too early, if that timer was cancelled, but never too late.
    due: u32,
    /// Number of the previous page in the bucket; 0 for none.
    before: u32,
    /// Number of the next page in the bucket; 0 for none.
    after: u32,
    bucket: u16,
}

/// The timer wheel of one slab.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Entries by page number. Pages beyond the end have no timers.
    entries: Vec<Entry>,
    /// The tick to which the wheel has advanced.
    at: u32,
    /// For each level, a bitmap of the buckets that list pages.
    used: [u64; LEVEL_COUNT],
    /// First and last page of each bucket, and finally of [`EXPIRED_BUCKET`]; 0 for none.
    buckets: Box<[(u32, u32); LEVEL_COUNT * BUCKET_COUNT + 1]>,
}

impl Wheel {
    pub fn new(now: u32) -> Self {
        let buckets = Box::new([(0, 0); LEVEL_COUNT * BUCKET_COUNT + 1]);
        Self { entries: Vec::new(), at: now, used: [0; LEVEL_COUNT], buckets }
    }

    /// Returns whether no page is in the wheel.
    pub fn is_empty(&self) -> bool {
        self.used == [0; LEVEL_COUNT] && self.buckets[usize::from(EXPIRED_BUCKET)].0 == 0
    }

    /// Advances to a tick. The wheel must be empty.
    pub fn begin_at(&mut self, now: u32) {
        debug_assert!(self.is_empty());
        self.at = now;
    }

    /// Records that a unit on page `number` is due at `tick`, which must not be [`NO_TICK`].
    pub fn note(&mut self, number: u32, tick: u32) {
        if number as usize >= self.entries.len() {
            self.entries.resize(number as usize + 1, Entry::default());
        }
        let Entry { due, bucket, .. } = self.entries[number as usize];
        if due != NO_TICK {
            if !is_before(tick, due) || bucket == EXPIRED_BUCKET {
                return; // the page is searched no later than that anyway
            }
            self.forget(number);
        }
        self.append(number, tick, self.bucket_for(tick));
    }

    /// Removes a page. Does nothing if it is not in the wheel.
    pub fn forget(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize) else { return };
        let Entry { due, before, after, bucket } = std::mem::take(entry);
        if due == NO_TICK {
            return;
        }
        let bucket = usize::from(bucket);
        if before == 0 {
            self.buckets[bucket].0 = after;
        } else {
            self.entries[before as usize].after = after;
        }
        if after == 0 {
            self.buckets[bucket].1 = before;
        } else {
            self.entries[after as usize].before = before;
        }
        if self.buckets[bucket].0 == 0 && bucket != usize::from(EXPIRED_BUCKET) {
            self.used[bucket / BUCKET_COUNT] &= !(1 << (bucket % BUCKET_COUNT));
        }
    }

    /// Frees the memory of entries beyond the last page in the wheel.
    pub fn trim(&mut self) {
        let used = self.entries.iter().rposition(|entry| entry.due != NO_TICK);
        self.entries.truncate(used.map_or(0, |last| last + 1));
        self.entries.shrink_to_fit();
    }

    /// Advances to `now`. [`Wheel::expired`] then returns the due pages one by one.
    pub fn advance(&mut self, now: u32) {
        while let Some((bucket, start)) = self.next_bucket()
            && !is_before(now, start)
        {
            if is_before(self.at, start) {
                self.at = start;
            }
            let (mut number, _) = std::mem::take(&mut self.buckets[usize::from(bucket)]);
            self.used[usize::from(bucket) / BUCKET_COUNT] &=
                !(1 << (usize::from(bucket) % BUCKET_COUNT));
            while number != 0 {
                let Entry { due, after, .. } = self.entries[number as usize];
                let to = if is_before(now, due) { self.bucket_for(due) } else { EXPIRED_BUCKET };
                self.append(number, due, to);
                number = after;
            }
        }
        if is_before(self.at, now) {
            self.at = now;
        }
    }

    /// Removes and returns a page that was due at the last [`advance`](Self::advance), or `None` if
    /// none is left.
    pub fn expired(&mut self) -> Option<u32> {
        let number = self.buckets[usize::from(EXPIRED_BUCKET)].0;
        (number != 0).then(|| {
            self.forget(number);
            number
        })
    }

    /// Returns a tick before which no page is due, or `None` if the wheel is empty. The tick is
    /// exact for pages in the first level of buckets.
    pub fn next(&self) -> Option<u32> {
        if self.buckets[usize::from(EXPIRED_BUCKET)].0 != 0 {
            return Some(self.at);
        }
        self.next_bucket().map(|(_, start)| start)
    }

    /// Returns the earliest bucket of all levels that lists pages, and the tick at which it begins,
    /// or the current tick if that is later. Returns `None` if no level has such a bucket.
    fn next_bucket(&self) -> Option<(u16, u32)> {
        let level = self.used.iter().position(|&used| used != 0)?;
        let shift = BUCKET_BITS * level as u32;
        let current = (self.at >> shift) % BUCKET_COUNT as u32;
        // The last level wraps around; on other levels, no earlier bucket is in use.
        let ahead = self.used[level].rotate_right(current).trailing_zeros();
        let index = (current + ahead) % BUCKET_COUNT as u32;
        let begun = self.at >> shift << shift;
        let start = begun.wrapping_add((ahead % (1 << (32 - shift).min(BUCKET_BITS))) << shift);
        let start = if is_before(start, self.at) { self.at } else { start };
        Some(((level * BUCKET_COUNT) as u16 + index as u16, start))
    }

    fn bucket_for(&self, tick: u32) -> u16 {
        if !is_before(self.at, tick) {
            return (self.at % BUCKET_COUNT as u32) as u16;
        }
        let level = (self.at ^ tick).ilog2() / BUCKET_BITS;
        let index = (tick >> (BUCKET_BITS * level)) % BUCKET_COUNT as u32;
        (level * BUCKET_COUNT as u32 + index) as u16
    }

    fn append(&mut self, number: u32, due: u32, bucket: u16) {
        let (first, last) = &mut self.buckets[usize::from(bucket)];
        let before = std::mem::replace(last, number);
        if before == 0 {
            *first = number;
        } else {
            self.entries[before as usize].after = number;
        }
        self.entries[number as usize] = Entry { due, before, after: 0, bucket };
        if bucket != EXPIRED_BUCKET {
            self.used[usize::from(bucket) / BUCKET_COUNT] |=
                1 << (usize::from(bucket) % BUCKET_COUNT);
        }
    }
}
