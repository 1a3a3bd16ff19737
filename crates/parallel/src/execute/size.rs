//! How large parts are.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Context;
use super::input::ChunkSource;
use crate::plan::ir::Command;
use crate::plan::rates;

/// What a part should take: starting commands for it takes a hundredth of that, and no more than a
/// twentieth where they are slow to start.
const CHUNK_TIME: Duration = Duration::from_millis(150);
const STARTS_PER_CHUNK: f64 = 20.0;
/// Until it is known what they take, parts are so large, in bytes.
const FIRST_CHUNK_BYTES: u64 = 256 << 10;
/// The first parts of a stream are this share of what is wanted.
const EARLY_DIVISOR: u64 = 8;
/// No part of files is meant to be larger, and none that has to be in memory.
const MAX_CHUNK_BYTES: u64 = 64 << 20;
const MAX_CHUNK_BYTES_IN_MEMORY: u64 = 16 << 20;
/// The last parts are not smaller than this share of what is wanted, and none than so much.
const LAST_DIVISOR: u64 = 4;
const MIN_CHUNK_BYTES: u64 = 512;

/// A worker whose commands read one piece after the other takes at least and at most so much at a
/// time, in bytes.
const PIECE_BYTES: RangeInclusive<u64> = (64 << 10)..=(1 << 20);
/// So many pieces are meant for each worker.
const PIECES_PER_WORKER: u64 = 4;

/// How much a worker takes at a time whose commands read one piece after the other, in bytes.
pub(super) fn piece(context: &Context<'_>, chunks: &ChunkSource<'_>) -> usize {
    let share = |all: u64| all / (PIECES_PER_WORKER * context.jobs as u64);
    let piece = chunks
        .size()
        .map_or(FIRST_CHUNK_BYTES, share)
        .clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end());
    context.part_bytes.unwrap_or(usize::try_from(piece).unwrap_or(usize::MAX))
}

/// Chooses sizes by what parts have taken so far.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Chosen by the user.
    fixed: Option<usize>,
    jobs: u64,
    /// Bytes in all, if that is known.
    total: Option<u64>,
    most: u64,
    /// What a part should take, in seconds.
    seconds: f64,
    wanted: AtomicU64,
    given: AtomicU64,
}

impl Sizes {
    /// Sizes of parts that these commands are started for.
    pub(super) fn new(
        context: &Context<'_>,
        chunks: &ChunkSource<'_>,
        commands: &[Command],
    ) -> Self {
        let jobs = context.jobs as u64;
        let starts = commands.iter().map(|command| rates::start_of(&command.program));
        let slowest = starts.fold(0.0, f64::max);
        let most = if chunks.are_read_here() { MAX_CHUNK_BYTES_IN_MEMORY } else { MAX_CHUNK_BYTES };
        let sizes = Self {
            fixed: context.part_bytes,
            jobs,
            total: chunks.size(),
            // A part may be there twice, before its commands and behind them.
            most: (context.memory / (4 * jobs)).clamp(MIN_CHUNK_BYTES, most),
            seconds: CHUNK_TIME.as_secs_f64().max(STARTS_PER_CHUNK * slowest),
            wanted: AtomicU64::new(FIRST_CHUNK_BYTES),
            given: AtomicU64::new(0),
        };
        if let Some(rate) = context.rate {
            sizes.set_rate(1e9 / rate);
        }
        sizes
    }

    /// The size of the first part of files, or of most parts of a stream, in bytes.
    pub(super) fn usual(&self) -> usize {
        self.fixed.unwrap_or_else(|| self.with(self.total.map_or(u64::MAX, |_| 0)))
    }

    /// The size of the next part in bytes.
    pub(super) fn next(&self) -> usize {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let size = self.with(self.given.load(Ordering::Relaxed));
        self.given.fetch_add(size as u64, Ordering::Relaxed);
        size
    }

    /// The size of the next part if so much has been given.
    fn with(&self, given: u64) -> usize {
        let wanted = self.wanted.load(Ordering::Relaxed);
        // A stream may soon be over: until much has come its parts are smaller.
        let soon =
            || wanted.min((given / self.jobs).max(wanted / EARLY_DIVISOR).max(MIN_CHUNK_BYTES));
        let size = self.total.map_or_else(soon, |total| {
            // Towards the end parts become smaller, so that all workers end together; but there
            // are at least two for each.
            let least =
                (wanted / LAST_DIVISOR).min(total.div_ceil(2 * self.jobs)).max(MIN_CHUNK_BYTES);
            let left = total.saturating_sub(given);
            let size = wanted.min((left / (2 * self.jobs)).max(least));
            if left < size + least / 2 { left.max(MIN_CHUNK_BYTES) } else { size }
        });
        usize::try_from(size.min(self.most)).unwrap_or(usize::MAX)
    }

    /// A part of so many bytes took so long.
    pub(super) fn took(&self, bytes: usize, time: Duration) {
        self.set_rate(bytes as f64 / time.as_secs_f64().max(1e-6));
    }

    /// Sets how much commands process, in bytes a second.
    fn set_rate(&self, rate: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let wanted = (rate * self.seconds) as u64;
        self.wanted.store(wanted.max(MIN_CHUNK_BYTES), Ordering::Relaxed);
    }
}
