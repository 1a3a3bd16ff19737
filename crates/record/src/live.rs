//! The progress of a run that is taking place, for `contend serve`.
//!
//! A file has one [`Line`] of JSON for each event: a [`Head`], then an [`Update`] for each moment, and an
//! [`End`]. The end is missing if the program was killed.

use serde::{Deserialize, Serialize};

/// Name and version of the format.
pub const FORMAT: &str = "contend.live/1";

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The first line: what is running.
    Head(Head),
    /// The figures at a moment.
    Update(Update),
    /// The last line: how the run ended.
    End(End),
}

/// What is running, and what its figures mean.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Name and version of the format: `contend.live/1`.
    pub format: String,
    /// The verb, such as `pipe`.
    pub verb: String,
    /// The pipeline, command or experiments.
    pub subject: String,
    /// Start of the run: UTC, RFC 3339.
    pub started_at: String,
    /// The charts of the figures.
    pub charts: Vec<Chart>,
}

/// A chart over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// Unit of the figures.
    pub unit: Unit,
    /// Names of the lines.
    pub series: Vec<String>,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number, such as that of CPUs or threads: a mean over the time since the last update.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes per second.
    BytesPerSecond,
    /// A share in percent.
    Percent,
}

/// The figures at a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// Time since the start of the run, in seconds.
    pub seconds: f64,
    /// The state of the run in a few words.
    pub note: String,
    /// A figure for each line of each chart; `None` if it is unknown.
    pub values: Vec<Vec<Option<f64>>>,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The end in a few words, such as `1.2 s, exit 1`.
    pub ending: String,
    /// Number of the saved run; `None` if it was not saved.
    pub run: Option<i64>,
}
