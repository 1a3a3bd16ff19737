//! What the program did over the time of the observation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, ThreadState};

/// What the program did over time, in intervals of equal length. The first one begins with the
/// observation, the last one ends with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSeries {
    /// Length of an interval, in seconds (`CLOCK_MONOTONIC`).
    pub interval_seconds: f64,
    /// For each cause that occurred, its share of each interval, from 0 to 1.
    pub causes: BTreeMap<Cause, Vec<f64>>,
    /// The threads with the most CPU time, and those that findings name; at most 24. Absent unless a
    /// trace or a page was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadSeries>,
}

/// What a thread did over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSeries {
    /// PID of its process.
    pub pid: i32,
    /// ID of the thread.
    pub tid: i32,
    /// Its name, as it calls itself (`comm`).
    pub name: String,
    /// For each state in which it was, the state's share of each interval, from 0 to 1. The shares of an
    /// interval add up to less than 1 if the thread did not exist all the time.
    pub states: BTreeMap<ThreadState, Vec<f64>>,
}
