//! Messages between the engine and the process of a case: lines of JSON.
//!
//! ```text
//! engine                       process of the case
//!   Open ────────────────────►  creates the subject
//!        ◄──────────────────── Ready │ Failed
//!   Sample ──────────────────►  repeats the operation
//!        ◄──────────────────── Step … Sampled │ Failed
//!   (closes the pipe) ───────►  exits
//! ```

use std::time::Duration;

use contend_record::lab::Step;
use contend_record::parameters::Parameters;
use serde::{Deserialize, Serialize};

use crate::engine::experiment::{Facts, Sample};

/// A request of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Create a subject.
    Open {
        /// Name of the experiment.
        experiment: String,
        /// Parameters of the case.
        parameters: Parameters,
        /// Whether to leave out metrics that only waiting can measure.
        skip_slow_metrics: bool,
    },
    /// Take a sample.
    Sample {
        /// Number of iterations.
        iterations: u64,
    },
}

/// A reply of the process of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The subject exists; its facts.
    Ready(Facts),
    /// A step of a demonstration; the sample follows.
    Step(Step),
    /// The sample.
    Sampled(Box<Measurement>),
    /// The request failed.
    Failed(String),
}

/// A sample, and the time that it took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The sample.
    pub sample: Sample,
    /// Wall time that it took, whatever it measures.
    pub elapsed: Duration,
    /// CPU time of the process of the case and all its children so far.
    pub cpu: Duration,
}
