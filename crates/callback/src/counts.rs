//! Figures of what has happened.

/// What has happened in a runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Callbacks that were run.
    pub callbacks: u64,
    /// Panics of callbacks, each of which has ended its callback thread, and of what was dropped.
    pub panics: u64,
    /// Messages to callback threads that had ended.
    pub undeliverable: u64,
    /// Messages to callback threads that kept too many for later already.
    pub refused: u64,
}

impl Counts {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            callbacks: self.callbacks + other.callbacks,
            panics: self.panics + other.panics,
            undeliverable: self.undeliverable + other.undeliverable,
            refused: self.refused + other.refused,
        }
    }
}
