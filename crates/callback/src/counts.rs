//! [`Counts`]: counters of a runtime.

/// Counters of a runtime since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of callbacks run, including those that panicked.
    pub callbacks: u64,
    /// Number of panics on Workers, whether in callbacks, in closures passed to
    /// [`Context::monitor`](crate::Context::monitor), or in destructors. A panic in a callback ends its
    /// callback thread. Returning an invalid [`Next`](crate::Next) counts as a panic.
    pub panics: u64,
    /// Number of messages dropped because their receiver had ended before they arrived.
    pub undeliverable: u64,
    /// Number of messages dropped because their receiver already had the maximum number of stashed
    /// messages.
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
