//! Kinds of units, and for each kind the pages with free slots.

use std::collections::HashMap;

use super::page::{Kind, PAGE_KIND};
use crate::error::NoRoom;

/// Number of fill levels of pages. Each kind has a list of pages for each level.
pub(super) const FILL_LEVEL_COUNT: usize = 8;

/// A kind: its vtable and its pages with free slots.
#[derive(Debug)]
struct Entry<K: 'static> {
    vtable: &'static K,
    /// The page from which slots are taken; 0 for none.
    current: u32,
    /// For each fill level, the first page in the list of other pages with free slots; 0 for none.
    partial: [u32; FILL_LEVEL_COUNT],
}

/// All kinds of a slab. Vtables are constants of the program, which bounds their number.
#[derive(Debug)]
pub(super) struct Kinds<K: 'static> {
    all: Vec<Entry<K>>,
    /// The maximum number of kinds, at most [`PAGE_KIND`], which is not a kind itself.
    limit: u16,
    /// The kind of each vtable, by the vtable's address.
    known: HashMap<usize, u16>,
    /// A direct-mapped cache of `known`, indexed by a few bits of the vtable's address. An entry
    /// may be the kind of another vtable.
    recent: [u16; 16],
}

impl<K> Default for Kinds<K> {
    fn default() -> Self {
        Self { all: Vec::new(), limit: PAGE_KIND, known: HashMap::new(), recent: [0; 16] }
    }
}

impl<K: Kind> Kinds<K> {
    /// Allows only `more` further kinds.
    #[cfg(all(test, not(loom)))]
    pub fn limit(&mut self, more: usize) {
        self.limit = u16::try_from(self.all.len() + more).expect("few kinds");
    }

    /// Returns the kind of a vtable, and adds it if it is new.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too many kinds; nothing has changed then.
    pub fn kind_for(&mut self, vtable: &'static K) -> Result<u16, NoRoom> {
        let address = std::ptr::from_ref(vtable).addr();
        let bits = (address >> 4) % self.recent.len();
        let recent = self.recent[bits];
        if self.all.get(usize::from(recent)).is_some_and(|kind| std::ptr::eq(kind.vtable, vtable)) {
            return Ok(recent);
        }
        let kind = match self.known.get(&address) {
            Some(&kind) => kind,
            None => self.add(address, vtable)?,
        };
        self.recent[bits] = kind;
        Ok(kind)
    }

    fn add(&mut self, address: usize, vtable: &'static K) -> Result<u16, NoRoom> {
        let next = u16::try_from(self.all.len()).ok().filter(|&next| next < self.limit);
        let kind = next.ok_or(NoRoom)?;
        self.all.push(Entry { vtable, current: 0, partial: [0; FILL_LEVEL_COUNT] });
        self.known.insert(address, kind);
        Ok(kind)
    }

    #[inline]
    pub fn vtable(&self, kind: u16) -> &'static K {
        self.all[usize::from(kind)].vtable
    }

    pub fn current(&self, kind: u16) -> u32 {
        self.all[usize::from(kind)].current
    }

    pub fn set_current(&mut self, kind: u16, page: u32) {
        self.all[usize::from(kind)].current = page;
    }

    pub fn first(&self, kind: u16, level: usize) -> u32 {
        self.all[usize::from(kind)].partial[level]
    }

    pub fn set_first(&mut self, kind: u16, level: usize, page: u32) {
        self.all[usize::from(kind)].partial[level] = page;
    }

    /// Returns a page from the non-empty list of the highest fill level; 0 if all lists of the kind
    /// are empty.
    pub fn fullest(&self, kind: u16) -> u32 {
        let partial = &self.all[usize::from(kind)].partial;
        partial.iter().rev().copied().find(|&page| page != 0).unwrap_or(0)
    }

    /// Removes and returns the current pages without units, of all kinds. `used` returns the number
    /// of units on a page.
    pub fn take_empty_currents(&mut self, used: impl Fn(u32) -> u8) -> Vec<u32> {
        let empty = |kind: &&mut Entry<K>| kind.current != 0 && used(kind.current) == 0;
        self.all.iter_mut().filter(empty).map(|kind| std::mem::take(&mut kind.current)).collect()
    }
}
