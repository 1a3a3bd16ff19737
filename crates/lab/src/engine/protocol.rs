//! What the engine and the process of a case say to each other: a line of JSON each.

use std::time::Duration;

use contend_record::lab::Step;
use contend_record::parameters::Parameters;
use serde::{Deserialize, Serialize};

use crate::engine::experiment::{Facts, Sample};

/// What the engine asks for. When it has no more to ask, it closes the pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Make this subject.
    Open {
        /// The experiment's name.
        experiment: String,
        /// What it is done with.
        parameters: Parameters,
        /// Whether to leave out metrics that only waiting can measure.
        skip_slow_metrics: bool,
    },
    /// Take a sample.
    Sample {
        /// Of so many iterations.
        iterations: u64,
    },
}

/// What the process of a case answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The subject is there.
    Ready(Facts),
    /// Something happened that is to be shown at once; the sample is still to come.
    Step(Step),
    /// The sample that was asked for.
    Sampled(Box<Measurement>),
    /// It did not work.
    Failed(String),
}

/// A sample and what taking it used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The sample.
    pub sample: Sample,
    /// How long it took in all, whatever it measures.
    pub elapsed: Duration,
    /// CPU time so far of the process of the case and all its children.
    pub cpu: Duration,
}
