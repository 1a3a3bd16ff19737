//! The slab: memory for waiting units, in pages of slots. Slots are allocated and freed
//! individually.
//!
//! # Protocol
//! A slab belongs to one Worker, and only the thread that runs this Worker's callbacks uses it.
//! Other threads refer to a unit by its [`Key`], which only the Worker resolves:
//!
//! ```text
//!   Key { page, worker_number, slot, generation }
//!          │                     │      │
//!          ▼                     ▼      ▼ equal, and odd?
//!   page 0 (never used)          │  page n: header │ generations │ ticks │ turns │ payloads
//!   page 1  ...                  └────────▶ slot ──────────▶ Place ──▶ payload
//! ```
//!
//! - A page holds units of one *kind*: those inserted with the same vtable. So the vtable, and all
//!   other data that they share, is stored once per page. A unit that changes to another vtable
//!   stays in its slot, and the page records the other kind. The slab never calls vtables; it is
//!   generic over their type ([`Kind`]), so it does not import closures.
//! - `insert` fills one page of each kind, the *current* one, and then takes the fullest other page
//!   with a free slot, so that nearly empty pages become empty. An empty page is returned to the
//!   kernel; a few (the *hot* ones) stay populated for reuse until [`Slab::trim`].
//! - A key is valid as long as its slot has the same generation. The generation is incremented when
//!   a unit is inserted and when it ends: that of a unit is odd, that of a free slot even, so that
//!   one comparison also checks whether the slot is taken. Memory returned to the kernel reads as
//!   zeros, which represents a header without slots, so a key can be resolved without a lookup
//!   table. When the page is used again, for units of any size, its generations continue from where
//!   they were (`floors`), even in a later runtime (`lease.rs`). A slot that has used up its
//!   generations is never used again, nor is a page whose floor is the last generation.
//!
//! # Safety
//! - Addresses stay valid as long as the slab exists: returning a page to the kernel drops its
//!   content, not its address range.
//! - A payload is initialised exactly while its slot is taken and its closure has not been moved
//!   out to run; `vtable.drop` is called for it, or its value is moved out, exactly once. The slab
//!   never touches payloads; `core.rs` does, and states why this is sound.
//! - References to headers begin and end within methods of this module or of the core; no callback
//!   runs while one exists.

mod kinds;
mod page;
#[cfg(test)]
mod tests;
mod wheel;

use std::io;
use std::marker::PhantomData;

use contend_sys::reserve::{PAGE, Reserved};

use crate::error::NoRoom;
use crate::key::{Key, LAST_GENERATION, MAX_PAGES, WorkerNumber};
use crate::lease::Lease;
use kinds::Kinds;
pub(crate) use page::{Kind, NO_TICK, Page, Place};
use page::{class_for, is_unit_generation};
use wheel::Wheel;
pub(crate) use wheel::is_before;

/// Number of hot pages that remain after a release, which happens when there are more than twice as
/// many. The oldest ones are returned to the kernel.
const MAX_HOT_PAGES: usize = 16;
/// Generation 0, which no unit ever has. In `floors`, it marks a page in use.
const NO_GENERATION: u16 = 0;
/// Ratio of the number of pages used so far to the number of pages populated at a time.
const POPULATE_DIVISOR: u32 = 256;
/// The maximum number of pages populated at a time.
const MAX_POPULATE_PAGES: u32 = 64;

/// The memory of one Worker's units.
#[derive(Debug)]
pub(crate) struct Slab<K: Kind> {
    worker_number: WorkerNumber,
    lease: Lease,
    pages: Pages<K>,
    wheel: Wheel,
    /// The turn of the next timer. Turns order units due at the same tick.
    turn: u32,
    /// The number below which all pages have been populated.
    populated: u32,
    /// For each page number, the generation from which the unused page continues; [`NO_GENERATION`]
    /// for a page in use and for page 0.
    floors: Vec<u16>,
    /// Pages that have been used and can be used again, but are not in use.
    unused: Unused,
    kinds: Kinds<K>,
    units: u64,
    /// Number of pages whose generations are used up.
    worn_out: usize,
}

/// The reserved address range of the pages.
#[derive(Debug)]
struct Pages<K: 'static> {
    memory: Reserved,
    /// Number of the first page, except for page 0, that has never been used. No later page has
    /// been used either.
    fresh: u32,
    kind: PhantomData<&'static K>,
}

impl<K: Kind> Pages<K> {
    /// Returns the number of a page: its index in the address range.
    fn number(&self, page: Page<K>) -> u32 {
        let bytes = page.address() - self.memory.start().addr().get();
        u32::try_from(bytes / PAGE).expect("pages have numbers of 32 bits")
    }

    /// Returns the page with the given number, which must be at least 1 and less than `fresh`.
    #[inline]
    fn page(&self, number: u32) -> Page<K> {
        debug_assert!(number > 0 && number < self.fresh);
        // SAFETY: pages below `fresh` lie within the reservation.
        let start = unsafe { self.memory.start().add(number as usize * PAGE) };
        // SAFETY: the reservation stays until the slab is dropped, is a multiple of pages, and is
        // used by the slab's thread alone. Memory that was given back is zeros, which represents a
        // header without a vtable.
        unsafe { Page::at(start) }
    }
}

/// A unit whose timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// The tick of the unit's timer. The unit's slot has the same tick and turn as long as the
    /// timer is valid.
    pub tick: u32,
    /// The turn of the unit's timer, which orders timers of the same tick.
    pub turn: u32,
    pub key: Key,
}

impl<K: Kind> Slab<K> {
    /// Creates a slab that reserves `bytes` bytes of address space, but at least 16 pages and at
    /// most [`MAX_PAGES`]. Reserves less, down to 16 pages, where limits do not allow that. `now`
    /// is the current tick.
    ///
    /// # Errors
    /// `ENOMEM` if not even 16 pages of address space can be reserved.
    pub fn new(lease: Lease, bytes: usize, now: u32) -> io::Result<Self> {
        let bytes = bytes.clamp(16 * PAGE, MAX_PAGES as usize * PAGE) / PAGE * PAGE;
        Ok(Self {
            worker_number: lease.worker_number(),
            lease,
            pages: Pages {
                memory: Reserved::at_most(bytes, 16 * PAGE)?,
                fresh: 1,
                kind: PhantomData,
            },
            wheel: Wheel::new(now),
            turn: 0,
            populated: 1,
            floors: vec![NO_GENERATION],
            unused: Unused::default(),
            kinds: Kinds::default(),
            units: 0,
            worn_out: 0,
        })
    }

    /// Returns the number of taken slots.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Returns the size of the pages in use and of the hot ones, in bytes.
    pub fn bytes(&self) -> usize {
        let cold = self.unused.count - self.unused.hot.len();
        (self.pages.fresh as usize - 1 - cold - self.worn_out) * PAGE
    }

    /// Takes a slot with room for the payload of `vtable`, which must fit into the largest slots.
    /// Returns the unit's place and key. The caller must write the payload at once.
    ///
    /// # Errors
    /// [`NoRoom`] if memory is used up, or there are too many kinds of closures.
    pub fn insert(&mut self, vtable: &'static K) -> Result<(Place<K>, Key), NoRoom> {
        let kind = self.kinds.kind_for(vtable)?;
        let mut number = self.kinds.current(kind);
        if number == 0 {
            number = match self.kinds.fullest(kind) {
                0 => self.new_page(kind, vtable)?,
                fullest => {
                    self.unlist(fullest);
                    fullest
                }
            };
            self.kinds.set_current(kind, number);
        }
        let page = self.page(number);
        let slot = page.take().expect("a current page has room");
        if page.is_full() {
            self.kinds.set_current(kind, 0);
        }
        self.units += 1;
        let key = Key::new(self.worker_number, number, slot, page.generation(slot));
        Ok((Place::new(page, slot), key))
    }

    /// Returns the place of a unit, or `None` if `key` is that of no live unit of this slab.
    #[inline]
    pub fn find(&self, key: Key) -> Option<Place<K>> {
        let (number, slot) = (key.page(), key.slot());
        if number == 0 || number >= self.pages.fresh || key.worker_number() != self.worker_number {
            return None;
        }
        let page = self.page(number);
        // The key may be from a time when the page was of another kind and had more slots.
        let is_live = is_unit_generation(key.generation())
            && page.has_slot(slot)
            && page.generation(slot) == key.generation();
        is_live.then(|| Place::new(page, slot))
    }

    /// Returns the vtable of the closure that a unit runs next.
    #[inline]
    pub fn vtable(&self, place: Place<K>) -> &'static K {
        let page = place.page();
        match page.other_kind(place.slot()) {
            Some(kind) => self.kinds.vtable(kind),
            None => page.header().vtable.expect("a page in use has a vtable"),
        }
    }

    /// Sets the vtable of the closure that a unit runs next, whose payload must fit into the unit's
    /// slot. The caller must write that payload at once.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too many kinds of closures; nothing has changed then.
    pub fn set_vtable(&mut self, place: Place<K>, vtable: &'static K) -> Result<(), NoRoom> {
        let page = place.page();
        let is_own = page.header().vtable.is_some_and(|own| std::ptr::eq(own, vtable));
        let kind = if is_own { None } else { Some(self.kinds.kind_for(vtable)?) };
        page.set_other_kind(place.slot(), kind);
        Ok(())
    }

    /// Allows only `more` further kinds of closures.
    #[cfg(all(test, not(loom)))]
    pub fn limit_kinds(&mut self, more: usize) {
        self.kinds.limit(more);
    }

    /// Frees the slot of a unit without touching its payload. If this empties a page that is not a
    /// current one, retires the page. Returns whether it has retired the page, which must then not
    /// be used any more.
    pub fn remove(&mut self, place: Place<K>) -> bool {
        let page = place.page();
        let (number, kind, was_full) =
            (self.pages.number(page), page.header().kind, page.is_full());
        page.vacate(place.slot());
        self.units -= 1;
        let used = page.header().used;
        if number == self.kinds.current(kind) {
            return false; // stays current: its slots are used next
        }
        if used == 0 {
            if !was_full {
                let listed = level_of(1, page.slots());
                self.unlink(page.header().list, kind, listed);
            }
            self.retire(number);
            return true;
        }
        if !page.is_full() {
            self.relist(number, was_full);
        }
        false
    }

    /// Returns the page with the given number, which must be at least 1 and less than
    /// [`Pages::fresh`].
    #[inline]
    pub fn page(&self, number: u32) -> Page<K> {
        self.pages.page(number)
    }

    /// Returns the numbers of all pages in use.
    pub fn pages(&self) -> impl Iterator<Item = u32> + '_ {
        (1..self.pages.fresh).filter(|&number| self.floors[number as usize] == NO_GENERATION)
    }

    /// Frees memory kept for reuse: empty pages, and spare entries of the timer wheel.
    pub fn trim(&mut self) {
        let pages = &self.pages;
        for number in self.kinds.take_empty_currents(|number| pages.page(number).header().used) {
            self.retire(number);
        }
        self.release_hot_pages(0);
        self.wheel.trim();
    }

    /// Sets the timer of a unit to `tick`, or to the next tick if `tick` is [`NO_TICK`]. The timer
    /// fires after all timers that were set to the same tick earlier.
    pub fn set_due(&mut self, place: Place<K>, tick: u32) {
        let tick = if tick == NO_TICK { NO_TICK + 1 } else { tick };
        place.page().set_due(place.slot(), tick, self.turn);
        self.turn = self.turn.wrapping_add(1);
        self.wheel.note(self.pages.number(place.page()), tick);
    }

    /// Returns whether the timer wheel is empty: no timers are left, except those of units that
    /// [`add_due`](Self::add_due) has returned. If it is not empty, there may still be no timers.
    pub fn has_no_timers(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Advances the wheel, which must be empty, to the tick `now`.
    pub fn begin_at(&mut self, now: u32) {
        self.wheel.begin_at(now);
    }

    /// Returns a tick before which no timer is due, or `None` if the timer wheel is empty.
    pub fn next_tick(&self) -> Option<u32> {
        self.wheel.next()
    }

    /// Advances the wheel to the tick `now`, and adds units due by then to `all`, page by page,
    /// until `all` has at least `min_count` or none are left. Then sorts `all` by tick and turn.
    /// The added units stay due until their timers are cleared.
    pub fn add_due(&mut self, now: u32, all: &mut Vec<Due>, min_count: usize) {
        self.wheel.advance(now);
        while all.len() < min_count
            && let Some(number) = self.wheel.expired()
        {
            if let Some(next) = self.add_due_of(number, now, all) {
                self.wheel.note(number, next);
            }
        }
        let turn = self.turn;
        let order = move |due: &Due| {
            (due.tick.wrapping_sub(now).cast_signed(), due.turn.wrapping_sub(turn))
        };
        if !all.is_sorted_by_key(order) {
            all.sort_unstable_by_key(order);
        }
    }

    /// Adds the units of page `number` that are due by the tick `now` to `all`. Returns the tick of
    /// the next timer on that page, or `None` if there is none.
    fn add_due_of(&self, number: u32, now: u32, all: &mut Vec<Due>) -> Option<u32> {
        let page = self.pages.page(number);
        let mut next = None;
        for (slot, &tick) in (0..=u8::MAX).zip(page.ticks()).filter(|(_, tick)| **tick != NO_TICK) {
            if is_before(now, tick) {
                next =
                    Some(next.map_or(tick, |next| if is_before(tick, next) { tick } else { next }));
            } else {
                let generation = page.generation(slot);
                let turn = page.due(slot).1;
                let key = Key::new(self.worker_number, number, slot, generation);
                all.push(Due { tick, turn, key });
            }
        }
        next
    }

    fn new_page(&mut self, kind: u16, vtable: &'static K) -> Result<u32, NoRoom> {
        let class = class_for(vtable.bytes()).expect("larger closures are boxed");
        let number = match self.unused.take() {
            Some(number) => number,
            None => self.fresh_page()?,
        };
        let floor = std::mem::replace(&mut self.floors[number as usize], NO_GENERATION);
        self.page(number).prepare(class, kind, vtable, floor);
        Ok(number)
    }

    fn fresh_page(&mut self) -> Result<u32, NoRoom> {
        let Pages { memory, fresh, .. } = &mut self.pages;
        while self.lease.floor(*fresh) == LAST_GENERATION
            && (*fresh as usize + 1) * PAGE <= memory.length()
        {
            *fresh += 1;
            self.floors.push(LAST_GENERATION);
            self.worn_out += 1;
        }
        let number = *fresh;
        if (number as usize + 1) * PAGE > memory.length() {
            return Err(NoRoom);
        }
        if number >= self.populated {
            let pages = u32::try_from(memory.length() / PAGE).unwrap_or(u32::MAX);
            let ahead =
                (number / POPULATE_DIVISOR).clamp(1, MAX_POPULATE_PAGES).min(pages - number);
            memory.populate(number as usize * PAGE, ahead as usize * PAGE);
            self.populated = number + ahead;
        }
        *fresh += 1;
        self.floors.push(self.lease.floor(number));
        Ok(number)
    }

    /// Takes an empty page out of use. Its memory may stay populated for reuse, unless its
    /// generations are used up.
    fn retire(&mut self, number: u32) {
        self.wheel.forget(number);
        let floor = self.page(number).clear();
        self.floors[number as usize] = floor;
        if floor == LAST_GENERATION {
            self.worn_out += 1;
            self.give_back(number, 1);
            return;
        }
        self.unused.add(number);
        if self.unused.hot.len() > 2 * MAX_HOT_PAGES {
            self.release_hot_pages(MAX_HOT_PAGES);
        }
    }

    /// Returns the memory of hot pages to the kernel, oldest first, until `remaining` are left.
    fn release_hot_pages(&mut self, remaining: usize) {
        let hot = &mut self.unused.hot;
        let mut cold: Vec<u32> = hot.drain(..hot.len().saturating_sub(remaining)).collect();
        cold.sort_unstable();
        for run in cold.chunk_by(|one, next| one + 1 == *next) {
            self.give_back(run[0], run.len());
        }
    }

    fn give_back(&self, number: u32, pages: usize) {
        // SAFETY: these pages hold no units, and their headers no longer own anything.
        unsafe { self.pages.memory.release(number as usize * PAGE, pages * PAGE) };
    }

    /// Removes a page from the list for its fill level.
    fn unlist(&mut self, number: u32) {
        let page = self.page(number);
        let header = page.header();
        self.unlink(header.list, header.kind, level(page));
    }

    fn unlink(&mut self, links: page::Links, kind: u16, level: usize) {
        if links.before == 0 {
            self.kinds.set_first(kind, level, links.after);
        } else {
            self.page(links.before).header_mut().list.after = links.after;
        }
        if links.after != 0 {
            self.page(links.after).header_mut().list.before = links.before;
        }
    }

    /// Moves a page that has just lost a unit and is not full to the list for its fill level. If it
    /// was full before, it is in no list yet.
    fn relist(&mut self, number: u32, was_full: bool) {
        let mut page = self.page(number);
        let (links, kind, now) = (page.header().list, page.header().kind, level(page));
        if !was_full {
            let before = level_of(page.header().used + 1, page.slots());
            if before == now {
                return;
            }
            self.unlink(links, kind, before);
        }
        let first = self.kinds.first(kind, now);
        page.header_mut().list = page::Links { before: 0, after: first };
        if first != 0 {
            self.page(first).header_mut().list.before = number;
        }
        self.kinds.set_first(kind, now, number);
    }
}

impl<K: Kind> Drop for Slab<K> {
    fn drop(&mut self) {
        let numbers: Vec<u32> = self.pages().collect();
        for number in numbers {
            self.floors[number as usize] = self.page(number).clear();
        }
        self.lease.record(std::mem::take(&mut self.floors));
    }
}

/// Returns the fill level of a page, from 0 to `FILL_LEVEL_COUNT - 1`.
fn level<K: Kind>(page: Page<K>) -> usize {
    level_of(page.header().used, page.slots())
}

fn level_of(used: u8, slots: usize) -> usize {
    usize::from(used) * kinds::FILL_LEVEL_COUNT / (slots + 1)
}

/// The set of pages that have been used and can be used again, but are not in use.
#[derive(Debug, Default)]
struct Unused {
    /// A bitmap: the bit at a page's number is set if the page is in the set.
    words: Vec<u64>,
    /// Index of a word before which all words are zero.
    first: usize,
    count: usize,
    /// Unused pages that are still populated, in the order in which they became empty.
    hot: Vec<u32>,
}

impl Unused {
    fn add(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
        self.first = self.first.min(word);
        self.count += 1;
        self.hot.push(number);
    }

    /// Removes and returns the hot page that became empty last or, if no page is hot, the page with
    /// the lowest number. Returns `None` if the set is empty.
    fn take(&mut self) -> Option<u32> {
        let number = self.hot.pop().or_else(|| self.lowest())?;
        self.words[number as usize / 64] &= !(1 << (number % 64));
        self.count -= 1;
        Some(number)
    }

    fn lowest(&mut self) -> Option<u32> {
        let ahead = self.words.get(self.first..)?.iter().position(|&word| word != 0)?;
        self.first += ahead;
        let bit = self.words[self.first].trailing_zeros();
        u32::try_from(self.first * 64).ok().map(|word| word + bit)
    }
}
