//! Where units wait: pages of slots, which come and go one by one.
//!
//! # Protocol
//! A slab belongs to one Worker, and only the thread that runs this Worker's callbacks uses it.
//! What other threads know of a unit is its [`Key`]; only the Worker resolves it.
//!
//! - A page holds units of one *kind*: those that were given the same vtable first. So the vtable and
//!   all else that does not differ is said once a page. The slab never calls vtable; it is generic over its type
//!   ([`Kind`]) and so does not import that of closures.
//! - `insert` takes a slot of the fullest page that has one, so that pages that are nearly empty
//!   become empty. An empty page is given back to the kernel: a few are kept, which are hot, until
//!   [`Slab::trim`].
//! - A key is valid while the generation in its slot is its own. It is raised when a unit comes and when the unit
//!   ends: that of a unit is odd, that of a free slot even, so that one comparison finds out whether the slot is
//!   taken, too. Memory that was given back reads as zeros, which is a header without slots, so that a key need not be
//!   looked up anywhere; when the page is used again, by units of any size, its generations go on
//!   where they were (`floors`), also in a later runtime (`lease.rs`). A slot that has used up its generations is
//!   never used again, nor is a page whose floor is the last one.
//!
//! # Safety
//! - Addresses stay valid as long as the slab: pages are given back to the kernel by content only,
//!   never by address.
//! - A payload is initialised exactly while its slot is taken and its unit is not running by
//!   value; `vtable.drop` is called for it, or its value moved out, once. The slab never touches
//!   payloads; `core.rs` does, and says why.
//! - References to headers are made and ended within methods of this module; no callback runs
//!   meanwhile.

mod kinds;
mod page;
#[cfg(test)]
mod tests;
mod wheel;

use std::io;
use std::marker::PhantomData;

use contend_sys::reserve::{PAGE, Reserved};

use crate::error::NoRoom;
use crate::key::{Home, Key, LAST_GENERATION, MAX_PAGES};
use crate::lease::Lease;
use kinds::Kinds;
pub(crate) use page::{Kind, NEVER, Page, Place};
use page::{class_for, is_of_unit};
use wheel::Wheel;
pub(crate) use wheel::is_before;

/// Empty pages that are kept for the next ones.
const MAX_HOT_PAGES: usize = 16;
/// A generation of no unit, below the first one.
const NO_GENERATION: u16 = 0;
/// Of the pages in use, this part is asked of the kernel at once, and at most that many.
const POPULATE_DIVISOR: u32 = 256;
const MAX_POPULATE_PAGES: u32 = 64;

/// The memory of one Worker's units.
#[derive(Debug)]
pub(crate) struct Slab<K: Kind> {
    home: Home,
    lease: Lease,
    pages: Pages<K>,
    wheel: Wheel,
    /// The next turn among units that are due at the same tick.
    turn: u32,
    /// Pages below this number have memory.
    populated: u32,
    /// Of each page that is not in use the generation it goes on from; [`NO_GENERATION`] if it is.
    floors: Vec<u16>,
    /// Pages that are not in use and have been.
    unused: Unused,
    kinds: Kinds<K>,
    units: u64,
    /// Pages that are never used again.
    worn_out: usize,
}

/// Memory in which there are pages.
#[derive(Debug)]
struct Pages<K: 'static> {
    memory: Reserved,
    /// Pages from this number on have never been used. Number 0 is nobody's.
    fresh: u32,
    kind: PhantomData<&'static K>,
}

impl<K: Kind> Pages<K> {
    /// The number of a page.
    fn number(&self, page: Page<K>) -> u32 {
        let bytes = page.address() - self.memory.start().addr().get();
        u32::try_from(bytes / PAGE).expect("pages have numbers of 32 bits")
    }

    /// The page of this number, which is in use or has been.
    #[inline]
    fn page(&self, number: u32) -> Page<K> {
        debug_assert!(number > 0 && number < self.fresh);
        // SAFETY: pages below `fresh` lie within the reservation.
        let start = unsafe { self.memory.start().add(number as usize * PAGE) };
        // SAFETY: the reservation stays until the slab is dropped, is a multiple of pages, and is
        // used by the slab's thread alone. Memory that was given back is zeros, which is a header
        // of no vtable.
        unsafe { Page::at(start) }
    }
}

/// Somebody whose tick has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// When and in which turn, as it stands in the slot for as long as it waits.
    pub tick: u32,
    pub turn: u32,
    pub key: Key,
}

impl<K: Kind> Slab<K> {
    /// With room for at most so many bytes.
    ///
    /// # Errors
    /// `ENOMEM` where not even a little address space is to be had.
    pub fn new(lease: Lease, bytes: usize, now: u32) -> io::Result<Self> {
        let bytes = bytes.clamp(16 * PAGE, MAX_PAGES as usize * PAGE) / PAGE * PAGE;
        Ok(Self {
            home: lease.home(),
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

    /// Units that are kept.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Bytes of the pages in use and of those kept hot.
    pub fn bytes(&self) -> usize {
        let cold = self.unused.count - self.unused.hot.len();
        (self.pages.fresh as usize - 1 - cold - self.worn_out) * PAGE
    }

    /// Takes a slot with room for the payload of `vtable`. The caller writes the payload at once.
    pub fn insert(&mut self, vtable: &'static K) -> Result<(Place<K>, Key), NoRoom> {
        let kind = self.kinds.of(vtable)?;
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
        let key = Key::new(self.home, number, slot, page.generation(slot));
        Ok((Place::new(page, slot), key))
    }

    /// Where the unit is, if it lives.
    #[inline]
    pub fn find(&self, key: Key) -> Option<Place<K>> {
        let (number, slot) = (key.page(), key.slot());
        if number == 0 || number >= self.pages.fresh || key.home() != self.home {
            return None;
        }
        let page = self.page(number);
        // A key may be from a time when the page was of another kind, which had more slots.
        let lives = is_of_unit(key.generation())
            && page.has(slot)
            && page.generation(slot) == key.generation();
        lives.then(|| Place::new(page, slot))
    }

    /// What a unit runs next.
    #[inline]
    pub fn vtable(&self, place: Place<K>) -> &'static K {
        let page = place.page();
        match page.other_kind(place.slot()) {
            Some(kind) => self.kinds.vtable(kind),
            None => page.header().vtable.expect("a page in use has a vtable"),
        }
    }

    /// Says what a unit runs next. The caller writes that payload at once.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too many kinds of closures. Nothing has changed then.
    pub fn set_vtable(&mut self, place: Place<K>, vtable: &'static K) -> Result<(), NoRoom> {
        let page = place.page();
        let is_own = page.header().vtable.is_some_and(|own| std::ptr::eq(own, vtable));
        let kind = if is_own { None } else { Some(self.kinds.of(vtable)?) };
        page.set_other_kind(place.slot(), kind);
        Ok(())
    }

    /// Takes no more kinds of closures than are known now and so many.
    #[cfg(all(test, not(loom)))]
    pub fn limit_kinds(&mut self, more: usize) {
        self.kinds.limit(more);
    }

    /// Ends what lives in a place; its payload is not touched. Gives the page back if nobody is
    /// left in it, and says so: it is no page any more then.
    pub fn remove(&mut self, place: Place<K>) -> bool {
        let page = place.page();
        let (number, kind, was_full) =
            (self.pages.number(page), page.header().kind, page.is_full());
        page.vacate(place.slot());
        self.units -= 1;
        let used = page.header().used;
        if number == self.kinds.current(kind) {
            return false; // a few slots at most would be asked for again at once
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

    /// The page of this number, which is in use.
    #[inline]
    pub fn page(&self, number: u32) -> Page<K> {
        self.pages.page(number)
    }

    /// Numbers of all pages in use.
    pub fn pages(&self) -> impl Iterator<Item = u32> + '_ {
        (1..self.pages.fresh).filter(|&number| self.floors[number as usize] == NO_GENERATION)
    }

    /// Gives memory back that is only kept for the next units: pages without any, and what lists
    /// have room for.
    pub fn trim(&mut self) {
        let pages = &self.pages;
        for number in self.kinds.take_empty_currents(|number| pages.page(number).header().used) {
            self.retire(number);
        }
        self.cool(0);
        self.wheel.trim();
    }

    /// Makes a unit due at a tick, behind all that were made due at the same one before.
    pub fn set_due(&mut self, place: Place<K>, tick: u32) {
        let tick = if tick == NEVER { NEVER + 1 } else { tick };
        place.page().set_due(place.slot(), tick, self.turn);
        self.turn = self.turn.wrapping_add(1);
        self.wheel.note(self.pages.number(place.page()), tick);
    }

    /// Whether nobody waits for a time, as far as is known without looking.
    pub fn has_no_timers(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Comes to a tick while nobody is due.
    pub fn begin_at(&mut self, now: u32) {
        self.wheel.begin_at(now);
    }

    /// A tick before which nobody is due.
    pub fn next_tick(&self) -> Option<u32> {
        self.wheel.next()
    }

    /// Adds those whose tick has come, page by page, until there are `enough`, and puts all in
    /// order. Whoever is added waits on until he is given something else to do.
    pub fn add_due(&mut self, now: u32, all: &mut Vec<Due>, enough: usize) {
        self.wheel.advance(now);
        while all.len() < enough
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

    /// Adds those of one page, and returns when the next one of it is due.
    fn add_due_of(&self, number: u32, now: u32, all: &mut Vec<Due>) -> Option<u32> {
        let page = self.pages.page(number);
        let mut next = None;
        for (slot, &tick) in (0..=u8::MAX).zip(page.ticks()).filter(|(_, tick)| **tick != NEVER) {
            if is_before(now, tick) {
                next =
                    Some(next.map_or(tick, |next| if is_before(tick, next) { tick } else { next }));
            } else {
                let generation = page.generation(slot);
                let turn = page.due(slot).1;
                let key = Key::new(self.home, number, slot, generation);
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

    /// Takes a page out of use.
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
            self.cool(MAX_HOT_PAGES);
        }
    }

    /// Gives back the memory of hot pages until so many are left: those that were emptied first.
    fn cool(&mut self, left: usize) {
        let hot = &mut self.unused.hot;
        let mut cold: Vec<u32> = hot.drain(..hot.len().saturating_sub(left)).collect();
        cold.sort_unstable();
        for run in cold.chunk_by(|one, next| one + 1 == *next) {
            self.give_back(run[0], run.len());
        }
    }

    fn give_back(&self, number: u32, pages: usize) {
        // SAFETY: nobody lives in these pages, and their headers own nothing any more.
        unsafe { self.pages.memory.give_back(number as usize * PAGE, pages * PAGE) };
    }

    /// Takes a page out of the list in which it stands.
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

    /// Puts a page that has one unit less among those that are as full.
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

/// How full a page is, from 0 on.
fn level<K: Kind>(page: Page<K>) -> usize {
    level_of(page.header().used, page.slots())
}

fn level_of(used: u8, slots: usize) -> usize {
    usize::from(used) * kinds::LEVELS / (slots + 1)
}

/// Pages that are not in use.
#[derive(Debug, Default)]
struct Unused {
    /// A bit for each number.
    words: Vec<u64>,
    /// No word before this one has a bit.
    first: usize,
    count: usize,
    /// Those of them that still have their memory, the one emptied last in the end.
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

    /// Takes one that has its memory, or else the lowest one.
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
