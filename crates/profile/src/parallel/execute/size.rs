//! How large parts are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Context;
use super::input::Parts;

/// What a part should take: starting commands for it takes a hundredth of that.
const WANTED: Duration = Duration::from_millis(150);
/// The first parts are so large, to learn from.
const FIRST: u64 = 256 << 10;
/// No part is meant to be larger.
const MOST: u64 = 16 << 20;
/// The last parts are not smaller.
const LEAST: u64 = 64 << 10;

/// Chooses sizes by what parts have taken so far.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Chosen by the user.
    fixed: Option<usize>,
    jobs: u64,
    /// Bytes in all, if that is known.
    total: Option<u64>,
    most: u64,
    wanted: AtomicU64,
    given: AtomicU64,
}

impl Sizes {
    pub(super) fn new(context: &Context<'_>, parts: &Parts<'_>) -> Self {
        let jobs = context.jobs as u64;
        // A part is there twice, before its commands and behind them.
        let most = (context.memory / (4 * jobs)).clamp(LEAST, MOST);
        Self {
            fixed: context.part_bytes,
            jobs,
            total: parts.size(),
            most,
            wanted: AtomicU64::new(FIRST.min(most)),
            given: AtomicU64::new(0),
        }
    }

    /// The size of the next part in bytes.
    pub(super) fn next(&self) -> usize {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let given = self.given.load(Ordering::Relaxed);
        let wanted = self.wanted.load(Ordering::Relaxed);
        // Towards the end parts become smaller, so that all workers end together.
        let left = self.total.map(|total| total.saturating_sub(given) / (2 * self.jobs));
        let size = left.map_or(wanted, |left| wanted.min(left.max(LEAST)));
        self.given.fetch_add(size, Ordering::Relaxed);
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// A part of so many bytes took so long.
    pub(super) fn took(&self, bytes: usize, time: Duration) {
        let rate = bytes as f64 / time.as_secs_f64().max(1e-6);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let wanted = (rate * WANTED.as_secs_f64()) as u64;
        self.wanted.store(wanted.clamp(LEAST, self.most), Ordering::Relaxed);
    }
}
