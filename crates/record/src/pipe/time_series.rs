//! What the stages did over the time of a run, and the fill of the pipes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The activities of the stages and the fill of the pipes over time, in intervals of equal length. The
/// first interval begins when all stages start, the last one ends with the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSeries {
    /// Length of an interval, in seconds (`CLOCK_MONOTONIC`).
    pub interval_seconds: f64,
    /// The stages, first to last.
    pub stages: Vec<StageSeries>,
    /// The pipes between the stages, in the order of the stages.
    pub pipes: Vec<PipeSeries>,
}

/// The activities of a stage over time: for each interval, the time spent on the activity as a share of
/// the interval, from 0 to 1. The shares of an interval add up to less than 1 if the stage has ended,
/// or if samples do not explain all of its time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSeries {
    /// Running on a CPU: at least one task of the stage.
    pub running: Vec<f64>,
    /// Runnable, but queued for a CPU.
    pub queued: Vec<f64>,
    /// Waiting for input.
    pub starved: Vec<f64>,
    /// Blocked on output.
    pub blocked: Vec<f64>,
    /// All other waits.
    pub other: Vec<f64>,
}

/// The fill of a pipe over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeSeries {
    /// For each interval, the mean number of bytes found in the pipe; null if it was not inspected in
    /// the interval.
    pub mean_fill_bytes: Vec<Option<u64>>,
}
