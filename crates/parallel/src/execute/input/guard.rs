//! Checks the input against a guard, and remembers a rejection.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use memchr::memchr;

use super::super::cut;
use super::BLOCK_BYTES;
use super::files::Files;
use crate::plan::ir::{Guard, Records};

/// Length in bytes above which a record may make a command enlarge its buffer permanently.
const LONG_RECORD_BYTES: usize = 32 << 10;

/// A guard, and the results of its checks so far.
#[derive(Debug)]
pub(super) struct GuardState {
    guard: Guard,
    records: Records,
    /// The reason for the first rejection of input, as shown to users.
    refused: OnceLock<String>,
    /// Whether the bytes of the whole input satisfy the guard, or `None` until that has been
    /// checked.
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

    /// Returns the reason for the first rejection of input, or `None` if no input was rejected.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Records a rejection of the rest of the input for the given reason, unless input was rejected
    /// before.
    pub(super) fn refuse(&self, why: &str) {
        self.refused.get_or_init(|| why.to_owned());
    }

    /// Returns whether the guard accepts a chunk of the given bytes. If not, records the rejection.
    pub(super) fn accepts(&self, bytes: &[u8]) -> bool {
        self.accepts_by(&self.guard, bytes)
    }

    fn accepts_by(&self, guard: &Guard, bytes: &[u8]) -> bool {
        let fits = cut::holds(guard, self.records, bytes);
        if !fits {
            self.refused.get_or_init(|| cut::describe_violation(guard, bytes));
        }
        fits
    }

    /// Returns `false` and records a rejection if `range` ends with the last record of the input,
    /// and the guard requires this record to be terminated but it is not. Otherwise, returns
    /// `true`.
    pub(super) fn accepts_end(&self, files: &Files, range: &Range<u64>) -> io::Result<bool> {
        if !self.guard.terminated || range.end != files.size() {
            return Ok(true);
        }
        let last = files.read_range(range.end.saturating_sub(1)..range.end)?;
        let guard = Guard { terminated: true, ..Guard::NONE };
        Ok(self.accepts_by(&guard, &last))
    }

    /// Returns whether the guard accepts the files from offset `seen` to `place`. `seen` must be at
    /// the start of a character, and advances to the end of the checked range, which may lie beyond
    /// `place`. If a long record is found, checks the whole input. Once the whole input has been
    /// checked, returns the result of that check.
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

    /// Checks whether the bytes of all files satisfy the guard, and remembers the result. Does
    /// nothing if the result is known already, or if the guard has no conditions on bytes.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read.
    pub(super) fn check_files(&self, files: &Files) -> io::Result<()> {
        if !cut::checks_bytes(&self.guard) {
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
        while cut::checks_bytes(&self.guard) && *seen < place.min(size) {
            let end = size.min(*seen + BLOCK_BYTES as u64);
            let bytes = files.read_range(*seen..end)?;
            let is_last = end == size || bytes.len() < BLOCK_BYTES;
            let known = cut::holds_so_far(&self.guard, &bytes, is_last);
            if known.is_none() {
                self.refused.get_or_init(|| cut::describe_violation(&self.guard, &bytes));
            }
            let ends = |bytes: &[u8]| memchr(self.records.separator(), bytes).is_some();
            *has_long |= !bytes.chunks_exact(LONG_RECORD_BYTES).all(ends);
            files.recycle(bytes);
            match known {
                None => return Ok(false),
                Some(0) => break, // the files have been truncated
                Some(known) => *seen += known as u64,
            }
        }
        Ok(true)
    }
}
