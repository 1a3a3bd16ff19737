//! What two that work together know of each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{array, io};

use contend_sys::shared::{Line, Shared};

use crate::engine::experiment::SubjectError;

/// Sub is on its way, …
const BEGUN: u64 = 0;
/// … has done all that it has to, …
const DONE: u64 = 1;
/// … or one of the two has ended before.
const GONE: u64 = 2;

/// Numbers that sub can tell at its end.
pub const FIGURES: usize = 48;
/// Words of an explanation.
const WORDS: usize = 24;

/// What both of them have, and what sub has to tell.
#[derive(Debug)]
pub struct Link {
    state: Shared<Line<AtomicU64>>,
    figures: Shared<[AtomicU64; FIGURES]>,
    /// Why sub has ended too early, as text, with zeros behind it.
    why: Shared<[AtomicU64; WORDS]>,
}

impl Link {
    /// One for a single run.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            state: Shared::new(Line(AtomicU64::new(BEGUN)))?,
            figures: Shared::new([const { AtomicU64::new(0) }; FIGURES])?,
            why: Shared::new([const { AtomicU64::new(0) }; WORDS])?,
        })
    }

    /// Says that one of them has ended, unless sub was done before. Whether it was not, and nobody
    /// has said so yet.
    pub(super) fn gone(&self) -> bool {
        self.state.compare_exchange(BEGUN, GONE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether one of them has ended too early.
    pub fn is_broken(&self) -> bool {
        self.state.load(Ordering::Relaxed) == GONE
    }

    /// Says that sub is done, and these figures, as many as there can be.
    pub fn finish(&self, figures: &[u64]) {
        for (to, &figure) in self.figures.iter().zip(figures) {
            to.store(figure, Ordering::Relaxed);
        }
        let _ = self.state.compare_exchange(BEGUN, DONE, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// What sub has told at its end.
    ///
    /// # Errors
    /// When it ended without.
    pub fn figures(&self) -> Result<[u64; FIGURES], SubjectError> {
        if self.state.load(Ordering::Acquire) != DONE {
            return Err(self.broken());
        }
        Ok(array::from_fn(|place| self.figures[place].load(Ordering::Relaxed)))
    }

    /// Says why sub ends too early.
    pub(super) fn explain(&self, why: &io::Error) {
        let text = why.to_string();
        for (to, bytes) in self.why.iter().zip(text.as_bytes().chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// What it means that it is broken, and what sub has said of it, if it still could.
    pub fn broken(&self) -> SubjectError {
        const BROKEN: &str = "the partner has ended before it was done";
        let words = self.why.each_ref().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let text = String::from_utf8_lossy(words.as_flattened());
        SubjectError::Wrong(match text.trim_end_matches('\0') {
            "" => BROKEN.to_owned(),
            why => format!("{BROKEN}: {why}"),
        })
    }
}
