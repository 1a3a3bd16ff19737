//! The work of a run over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work of one worker: a stretch of time in which it did the same. If there was too much work to record
/// in full, neighbouring stretches are combined, with the time between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkSpan {
    /// Number of the worker, from 1.
    pub worker: usize,
    /// What it did.
    pub kind: WorkKind,
    /// Position of the first stage whose work it was, from 1.
    pub first_stage: usize,
    /// Position of the last stage whose work it was, from 1.
    pub last_stage: usize,
    /// Begin, in seconds since the start of the run (`CLOCK_MONOTONIC`).
    pub begin_seconds: f64,
    /// End, in seconds since the start of the run (`CLOCK_MONOTONIC`).
    pub end_seconds: f64,
    /// Part of that time in which the worker did it, in seconds: less only if stretches were combined.
    pub busy_seconds: f64,
    /// Number of chunks, ranges or outputs that it worked on.
    pub count: u64,
    /// Bytes of the input that it worked on; 0 if they are not counted.
    pub bytes: u64,
}

/// What a worker does.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    /// It runs the commands over a chunk: in contend, or by feeding processes.
    #[default]
    Chunk,
    /// It waits for processes to work off their input after the last chunk.
    Finish,
    /// It sorts the lines that it has gathered.
    Sort,
    /// It merges a range of sorted lines.
    Merge,
    /// It combines the outputs of the workers.
    Combine,
    /// It runs the commands once, over their whole input.
    Whole,
}

impl WorkKind {
    /// All kinds, in the order in which they usually occur.
    pub const ALL: [Self; 6] =
        [Self::Chunk, Self::Finish, Self::Sort, Self::Merge, Self::Combine, Self::Whole];
}
