//! Leases of Worker numbers, which make keys unique across all runtimes of a process.
//!
//! # Protocol
//! A key has 16 bits for its Worker: enough for the Workers that are alive at the same time, but
//! not for all Workers that a long-lived process ever starts. So numbers are reused after a Worker
//! has ended, and generations keep keys distinct: together with its number, a Worker inherits the
//! generation that each page has reached under that number, and issues only higher ones
//! ([`Lease`]). A key of a dropped runtime therefore has a lower generation than any key issued
//! later for its slot, and a key of a live runtime has a number that no other live Worker has. No
//! counter wraps around.
//!
//! - A number is permanently bound to one Worker index, so that a key determines the index of its
//!   Worker even after that runtime has ended.
//! - Pages that have used up their generations are never used again. A number with such pages is
//!   leased only if the Worker index has no free number without them and every number has been
//!   leased before.

use std::sync::{Mutex, MutexGuard};

use crate::key::{LAST_GENERATION, MAX_WORKER_NUMBERS, WorkerNumber};
use crate::sync::lock_std;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new(MAX_WORKER_NUMBERS));

/// A Worker number that belongs to one Worker until the lease is dropped, and the generation that
/// each page has reached under it.
#[derive(Debug)]
pub(crate) struct Lease {
    worker_number: WorkerNumber,
    floors: Vec<u16>,
}

impl Lease {
    /// Leases a number to a Worker with the given index. Returns `None` if no number is left for
    /// this index.
    pub fn take(index: u8) -> Option<Self> {
        let Free { number, floors } = lock().take(index)?;
        Some(Self { worker_number: WorkerNumber::with_index(number, index), floors })
    }

    /// Returns the leased number.
    pub fn worker_number(&self) -> WorkerNumber {
        self.worker_number
    }

    /// Returns the generation from which a page continues, or 0 if the page has never been used.
    pub fn floor(&self, page: u32) -> u16 {
        self.floors.get(page as usize).copied().unwrap_or(0)
    }

    /// Records the generation from which each page continues. `floors` covers page 0 to the last
    /// one used; the recorded generations of later pages stay.
    pub fn record(&mut self, mut floors: Vec<u16>) {
        let rest = self.floors.get(floors.len()..).unwrap_or_default();
        floors.extend_from_slice(rest);
        self.floors = floors;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut floors = std::mem::take(&mut self.floors);
        floors.shrink_to_fit();
        lock().give_back(
            self.worker_number.index(),
            Free { number: self.worker_number.get(), floors },
        );
    }
}

fn lock() -> MutexGuard<'static, Registry> {
    lock_std(&REGISTRY)
}

/// A Worker number that no live Worker has, and the generation that each page has reached under it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Free {
    number: u16,
    floors: Vec<u16>,
}

impl Free {
    /// Returns the number of pages that have used up their generations.
    fn worn_out(&self) -> usize {
        self.floors.iter().filter(|&&floor| floor == LAST_GENERATION).count()
    }
}

/// The Worker numbers of the process.
#[derive(Debug)]
struct Registry {
    /// The lowest number that has never been leased.
    fresh: usize,
    /// The end of the range of numbers, exclusive.
    end: usize,
    /// Numbers given back, each with the Worker index that it is bound to.
    free: Vec<(u8, Free)>,
}

impl Registry {
    const fn new(end: usize) -> Self {
        Self { fresh: 0, end, free: Vec::new() }
    }

    fn take(&mut self, index: u8) -> Option<Free> {
        let candidates = self.free.iter().enumerate().filter(|(_, (of, _))| *of == index);
        let best = candidates.map(|(at, (_, free))| (free.worn_out(), at)).min();
        match best {
            Some((0, at)) => Some(self.free.swap_remove(at).1),
            Some((_, at)) => self.take_fresh().or_else(|| Some(self.free.swap_remove(at).1)),
            None => self.take_fresh(),
        }
    }

    fn take_fresh(&mut self) -> Option<Free> {
        let number = u16::try_from(self.fresh).ok().filter(|_| self.fresh < self.end)?;
        self.fresh += 1;
        Some(Free { number, floors: Vec::new() })
    }

    fn give_back(&mut self, index: u8, free: Free) {
        self.free.push((index, free));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_leased_to_one_worker_at_a_time() {
        let mut registry = Registry::new(MAX_WORKER_NUMBERS);
        let all: Vec<Free> = std::iter::from_fn(|| registry.take(0)).collect();
        let numbers: std::collections::HashSet<u16> = all.iter().map(|free| free.number).collect();
        assert_eq!((all.len(), numbers.len()), (MAX_WORKER_NUMBERS, MAX_WORKER_NUMBERS));
        assert_eq!(registry.take(0), None);
        registry.give_back(0, Free { number: 7, floors: vec![0, 3] });
        assert_eq!(registry.take(0), Some(Free { number: 7, floors: vec![0, 3] }));
        assert_eq!(registry.take(0), None);
    }

    #[test]
    fn a_number_is_reused_only_for_the_same_worker_index() {
        let mut registry = Registry::new(2);
        let numbers = [0, 1].map(|index| registry.take(index).expect("there are two").number);
        assert_eq!(numbers, [0, 1]);
        registry.give_back(0, Free { number: 0, floors: Vec::new() });
        assert_eq!(registry.take(1), None);
        assert_eq!(registry.take(0).map(|free| free.number), Some(0));
    }

    #[test]
    fn numbers_with_worn_out_pages_are_leased_last() {
        let mut registry = Registry::new(3);
        let used_up = |number, pages| Free { number, floors: vec![LAST_GENERATION; pages] };
        let numbers = |taken: Option<Free>| taken.map(|free| free.number);
        assert_eq!([0; 2].map(|index| numbers(registry.take(index))), [Some(0), Some(1)]);
        registry.give_back(0, used_up(0, 2));
        registry.give_back(0, used_up(1, 1));
        let taken = [0; 4].map(|index| numbers(registry.take(index)));
        assert_eq!(
            taken,
            [Some(2), Some(1), Some(0), None],
            "a fresh one, then the one used up least"
        );
    }
}
