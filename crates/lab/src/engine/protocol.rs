//! Messages between the engine and the process of a case, each a line of JSON.
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

/// A request from the engine to the process of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// A request to create the subject.
    Open {
        /// Name of the experiment.
        experiment: String,
        /// Parameters of the case.
        parameters: Parameters,
        /// Whether to leave out metrics that require a long wait.
        skip_slow_metrics: bool,
    },
    /// A request for one sample.
    Sample {
        /// Number of iterations of the operation.
        iterations: u64,
    },
}

/// A reply from the process of a case to the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The subject exists and has these facts.
    Ready(Facts),
    /// A step that the subject reports, such as one of a demonstration. The sample follows later.
    Step(Step),
    /// The requested sample.
    Sampled(Box<Measurement>),
    /// The request failed for the given reason.
    Failed(String),
}

/// A sample, its duration, and the CPU time of the process that took it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Result of the sample.
    pub sample: Sample,
    /// Wall time of the sample, whatever its value measures.
    pub elapsed: Duration,
    /// CPU time so far of the case's process, its reaped children, and those living children that
    /// the subject reports.
    pub cpu: Duration,
}
