//! What a part of the input must be like, and what was refused.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use memchr::memchr;

use super::super::cut;
use super::BLOCK_BYTES;
use super::files::Files;
use crate::plan::ir::{Guard, Records};

/// Where so many bytes hold no end of a record such a buffer may become larger, and stay so.
const LONG_RECORD_BYTES: usize = 32 << 10;

/// A guard, and what is known of the input.
#[derive(Debug)]
pub(super) struct GuardState {
    guard: Guard,
    records: Records,
    /// Why something was refused, for people.
    refused: OnceLock<String>,
    /// Whether the guard accepts everything, once that had to be known.
    throughout: Mutex<Option<bool>>,
}

impl GuardState {
    pub(super) fn new(guard: &Guard, records: Records) -> Self {
        Self {
            guard: guard.clone(),
            records,
            refused: OnceLock::new(),
            throughout: Mutex::default(),
        }
    }

    /// Why something was refused, if it was.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Refuses what is left, for this reason.
    pub(super) fn refuse(&self, why: &str) {
        self.refused.get_or_init(|| why.to_owned());
    }

    /// Whether the guard accepts these bytes.
    pub(super) fn accepts(&self, bytes: &[u8]) -> bool {
        self.accepts_by(&self.guard, bytes)
    }

    fn accepts_by(&self, guard: &Guard, bytes: &[u8]) -> bool {
        let fits = cut::holds(guard, self.records, bytes);
        if !fits {
            self.refused.get_or_init(|| cut::breach(guard, bytes));
        }
        fits
    }

    /// Whether the last record of everything has an end, if this part holds it and that matters.
    pub(super) fn accepts_end(&self, files: &Files, range: &Range<u64>) -> io::Result<bool> {
        if !self.guard.terminated || range.end != files.size() {
            return Ok(true);
        }
        let last = files.read_range(range.end.saturating_sub(1)..range.end)?;
        let guard = Guard { terminated: true, ..Guard::NONE };
        Ok(self.accepts_by(&guard, &last))
    }

    /// Whether the guard lets through what stands in the files from `seen`, which begins a
    /// character, up to a place; `seen` becomes how far that is known. Once there is a long record
    /// it has to let everything through.
    pub(super) fn accepts_until(
        &self,
        files: &Files,
        seen: &mut u64,
        place: u64,
    ) -> io::Result<bool> {
        let known = *self.throughout();
        if let Some(holds) = known {
            return Ok(holds);
        }
        let mut has_long = false;
        let holds = self.accepts_range(files, seen, place, &mut has_long)?;
        if !(holds && has_long) {
            return Ok(holds);
        }
        let mut throughout = self.throughout();
        if let Some(holds) = *throughout {
            return Ok(holds);
        }
        let holds = self.accepts_range(files, &mut 0, u64::MAX, &mut has_long)?;
        *throughout = Some(holds);
        Ok(holds)
    }

    /// Finds out whether the guard lets through all of the files, once.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn look_through(&self, files: &Files) -> io::Result<()> {
        if !cut::looks_within(&self.guard) {
            return Ok(());
        }
        let mut throughout = self.throughout();
        if throughout.is_none() {
            *throughout = Some(self.accepts_range(files, &mut 0, u64::MAX, &mut false)?);
        }
        Ok(())
    }

    fn throughout(&self) -> MutexGuard<'_, Option<bool>> {
        self.throughout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accepts_range(
        &self,
        files: &Files,
        seen: &mut u64,
        place: u64,
        has_long: &mut bool,
    ) -> io::Result<bool> {
        let size = files.size();
        while cut::looks_within(&self.guard) && *seen < place.min(size) {
            let end = size.min(*seen + BLOCK_BYTES as u64);
            let bytes = files.read_range(*seen..end)?;
            let is_last = end == size || bytes.len() < BLOCK_BYTES;
            let known = cut::holds_so_far(&self.guard, &bytes, is_last);
            if known.is_none() {
                self.refused.get_or_init(|| cut::breach(&self.guard, &bytes));
            }
            let ends = |bytes: &[u8]| memchr(self.records.separator(), bytes).is_some();
            *has_long |= !bytes.chunks_exact(LONG_RECORD_BYTES).all(ends);
            files.recycle(bytes);
            match known {
                None => return Ok(false),
                Some(0) => break, // the files have become shorter
                Some(known) => *seen += known as u64,
            }
        }
        Ok(true)
    }
}
