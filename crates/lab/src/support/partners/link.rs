//! Memory that two partners share: the state of the link, and the results of sub.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{array, io};

use contend_sys::shared::{Line, Shared};

use crate::engine::experiment::SubjectError;

/// State while both partners run.
const BEGUN: u64 = 0;
/// State after sub has finished its part.
const DONE: u64 = 1;
/// State after sub has ended, or main has failed, before sub finished.
const BROKEN: u64 = 2;

/// Maximum number of values that sub can pass to main.
pub const MAX_VALUES: usize = 48;
/// Maximum length of an explanation, in words of 8 bytes.
const MAX_EXPLANATION_WORDS: usize = 24;

/// The connection between two partners, in memory that both share.
///
/// ```text
/// BEGUN ── sub calls finish ──────────────────► DONE     values are set
///   └───── sub ends, or main fails ───────────► BROKEN   the explanation may be set
/// ```
#[derive(Debug)]
pub struct Link {
    state: Shared<Line<AtomicU64>>,
    values: Shared<[AtomicU64; MAX_VALUES]>,
    /// Message about why sub ended early, padded with zeros; all zeros without one.
    why: Shared<[AtomicU64; MAX_EXPLANATION_WORDS]>,
}

impl Link {
    /// Creates a link for one run of two partners.
    ///
    /// # Errors
    /// Returns `ENOMEM` if the shared memory cannot be mapped.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            state: Shared::new(Line(AtomicU64::new(BEGUN)))?,
            values: Shared::new([const { AtomicU64::new(0) }; MAX_VALUES])?,
            why: Shared::new([const { AtomicU64::new(0) }; MAX_EXPLANATION_WORDS])?,
        })
    }

    /// Marks the link as broken unless sub has finished. Returns whether this call marked it.
    pub(super) fn mark_broken(&self) -> bool {
        self.state.compare_exchange(BEGUN, BROKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns whether sub has ended, or main has failed, before sub finished.
    pub fn is_broken(&self) -> bool {
        self.state.load(Ordering::Relaxed) == BROKEN
    }

    /// Marks sub as finished unless the link is broken, and passes the first [`MAX_VALUES`] of the
    /// given values to main.
    pub fn finish(&self, values: &[u64]) {
        for (to, &value) in self.values.iter().zip(values) {
            to.store(value, Ordering::Relaxed);
        }
        let _ = self.state.compare_exchange(BEGUN, DONE, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns the values that sub passed to [`Link::finish`], padded with zeros.
    ///
    /// # Errors
    /// Returns an error if sub has not finished.
    pub fn values(&self) -> Result<[u64; MAX_VALUES], SubjectError> {
        if self.state.load(Ordering::Acquire) != DONE {
            return Err(self.broken());
        }
        Ok(array::from_fn(|index| self.values[index].load(Ordering::Relaxed)))
    }

    /// Stores the message of the error that ends sub early, truncated to 192 bytes.
    pub(super) fn explain(&self, why: &io::Error) {
        let text = why.to_string();
        for (to, bytes) in self.why.iter().zip(text.as_bytes().chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// Returns the error of a broken link, including sub's explanation if there is one.
    pub fn broken(&self) -> SubjectError {
        const MESSAGE: &str = "the partner has ended before it was done";
        let words = self.why.each_ref().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let text = String::from_utf8_lossy(words.as_flattened());
        SubjectError::Unexpected(match text.trim_end_matches('\0') {
            "" => MESSAGE.to_owned(),
            why => format!("{MESSAGE}: {why}"),
        })
    }
}
