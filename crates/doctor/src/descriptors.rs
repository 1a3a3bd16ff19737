//! How many file descriptors contend may keep open for a longer time.
//!
//! Files that stay open are cheaper to read, but a program may have more threads than contend has
//! descriptors. So a number of them remains free, for files that are opened for a moment: every thread
//! and process can be read with these alone.

use std::fs;
use std::io;

use rustix::process::{Resource, getrlimit};

/// Number of descriptors that remain free, for files and folders that are opened for a moment.
const RESERVE: usize = 8;
/// Largest number of descriptors in use at the same time.
const MAX: usize = 20_000;

/// The descriptors that may still be kept open.
#[derive(Debug)]
pub struct Budget {
    left: usize,
}

impl Budget {
    /// Returns the budget for the descriptors that are free now.
    pub fn new() -> Self {
        Self { left: free().saturating_sub(RESERVE).min(MAX) }
    }

    /// Takes `count` descriptors out of the budget. Returns `false`, and takes none, if fewer are left.
    pub fn take(&mut self, count: usize) -> bool {
        let is_enough = count <= self.left;
        if is_enough {
            self.left -= count;
        }
        is_enough
    }

    /// Returns how many descriptors may still be kept open.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Returns `count` descriptors, which have been closed, to the budget.
    pub fn give_back(&mut self, count: usize) {
        self.left += count;
    }
}

/// Returns an error if too few descriptors are free to observe anything.
///
/// # Errors
/// Returns that error.
pub fn check() -> io::Result<()> {
    if free() >= RESERVE {
        return Ok(());
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let message = format!(
        "{RESERVE} free file descriptors are needed, but the limit is {limit} (`ulimit -n`)"
    );
    Err(io::Error::new(io::ErrorKind::QuotaExceeded, message))
}

/// Returns the number of descriptors that this process may still open.
fn free() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    // The folder itself is one of those that are open. If it cannot be opened, none is free.
    let open = fs::read_dir("/proc/self/fd").map_or(limit, |entries| entries.count() - 1);
    limit.saturating_sub(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_budget_is_taken() {
        let mut budget = Budget { left: 5 };
        assert!(budget.take(2) && budget.take(2));
        assert!(!budget.take(2));
        budget.give_back(2);
        assert!(budget.take(3));
        assert!(!budget.take(1));
    }

    #[test]
    fn open_descriptors_are_not_free() {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let before = free();
        assert!((before as u64) < limit, "the standard streams are open");
        check().expect("enough for a test");
    }
}
