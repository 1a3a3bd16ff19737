//! Chooses the sizes of chunks.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Context;
use super::input::ChunkSource;
use crate::plan::ir::Command;
use crate::plan::rates;

/// Intended processing time of a chunk. Starting its commands then takes about a hundredth of that,
/// and at most a twentieth for commands that are slow to start.
const CHUNK_TIME: Duration = Duration::from_millis(150);
/// Minimum processing time of a chunk, as a multiple of the time that its slowest command takes to
/// start.
const STARTS_PER_CHUNK: f64 = 20.0;
/// Intended size of chunks in bytes until the speed of the commands is known.
const FIRST_CHUNK_BYTES: u64 = 256 << 10;
/// Ratio of the intended size of a stream's chunks to the minimum size of its first ones.
const EARLY_DIVISOR: u64 = 8;
/// Maximum size in bytes of a chunk of a file.
const MAX_CHUNK_BYTES: u64 = 64 << 20;
/// Maximum size in bytes of a chunk that must be in memory.
const MAX_CHUNK_BYTES_IN_MEMORY: u64 = 16 << 20;
/// Ratio of the intended size of chunks of files to the minimum size of the last ones, unless the
/// input is small.
const LAST_DIVISOR: u64 = 4;
/// Minimum size of a chunk in bytes.
const MIN_CHUNK_BYTES: u64 = 512;

/// Limits on the size of chunks for workers that run one instance over many chunks, in bytes.
const PIECE_BYTES: RangeInclusive<u64> = (64 << 10)..=(1 << 20);
/// Intended number of chunks for each worker that runs one instance over many of them.
const PIECES_PER_WORKER: u64 = 4;

/// Returns the size of chunks for workers that run one instance over many chunks, in bytes.
pub(super) fn piece(context: &Context<'_>, chunks: &ChunkSource<'_>) -> usize {
    let share = |all: u64| all / (PIECES_PER_WORKER * context.jobs as u64);
    let piece = chunks
        .size()
        .map_or(FIRST_CHUNK_BYTES, share)
        .clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end());
    context.chunk_bytes.unwrap_or(usize::try_from(piece).unwrap_or(usize::MAX))
}

/// Adaptive chunk sizes, based on the processing time of earlier chunks.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Size of chunks in bytes, or `None` if the user has not set it.
    fixed: Option<usize>,
    jobs: u64,
    /// Size of the input in bytes, or `None` if it is a stream.
    total: Option<u64>,
    /// Maximum size of a chunk in bytes.
    most: u64,
    /// Intended processing time of a chunk in seconds.
    seconds: f64,
    /// Intended size of a chunk in bytes.
    wanted: AtomicU64,
    /// Total size in bytes of the chunks chosen so far.
    given: AtomicU64,
}

impl Sizes {
    /// Creates the sizes of chunks for workers that start `commands` once for each chunk.
    pub(super) fn new(
        context: &Context<'_>,
        chunks: &ChunkSource<'_>,
        commands: &[Command],
    ) -> Self {
        let jobs = context.jobs as u64;
        let starts = commands.iter().map(|command| rates::start_of(&command.program));
        let slowest = starts.fold(0.0, f64::max);
        let most =
            if chunks.reads_into_memory() { MAX_CHUNK_BYTES_IN_MEMORY } else { MAX_CHUNK_BYTES };
        let sizes = Self {
            fixed: context.chunk_bytes,
            jobs,
            total: chunks.size(),
            // The bytes of a chunk may be in memory twice, as the input and as the output of its
            // commands.
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

    /// Returns the size of the first chunk of files, or of most chunks of a stream, in bytes.
    pub(super) fn usual(&self) -> usize {
        self.fixed.unwrap_or_else(|| self.with(self.total.map_or(u64::MAX, |_| 0)))
    }

    /// Returns the size of the next chunk in bytes.
    pub(super) fn next(&self) -> usize {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let size = self.with(self.given.load(Ordering::Relaxed));
        self.given.fetch_add(size as u64, Ordering::Relaxed);
        size
    }

    /// Returns the size of the next chunk after `given` bytes have been handed out.
    fn with(&self, given: u64) -> usize {
        let wanted = self.wanted.load(Ordering::Relaxed);
        // A stream may end soon, so its first chunks are smaller.
        let soon =
            || wanted.min((given / self.jobs).max(wanted / EARLY_DIVISOR).max(MIN_CHUNK_BYTES));
        let size = self.total.map_or_else(soon, |total| {
            // Chunks become smaller towards the end, so that all workers finish together. Each
            // worker gets at least two.
            let least =
                (wanted / LAST_DIVISOR).min(total.div_ceil(2 * self.jobs)).max(MIN_CHUNK_BYTES);
            let left = total.saturating_sub(given);
            let size = wanted.min((left / (2 * self.jobs)).max(least));
            if left < size + least / 2 { left.max(MIN_CHUNK_BYTES) } else { size }
        });
        usize::try_from(size.min(self.most)).unwrap_or(usize::MAX)
    }

    /// Records that a chunk of `bytes` bytes took `time`.
    pub(super) fn took(&self, bytes: usize, time: Duration) {
        self.set_rate(bytes as f64 / time.as_secs_f64().max(1e-6));
    }

    /// Sets the speed of the commands in bytes per second.
    fn set_rate(&self, rate: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let wanted = (rate * self.seconds) as u64;
        self.wanted.store(wanted.max(MIN_CHUNK_BYTES), Ordering::Relaxed);
    }
}
