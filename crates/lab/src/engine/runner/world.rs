//! What the engine asks of the world, and who follows it.

use std::time::Duration;

use contend_record::lab::{Calibration, RunRecord, Step};
use contend_record::parameters::Parameters;
use contend_record::{Host, Warning, Writer};

use crate::engine::experiment::{Experiment, Facts};
use crate::engine::noise::Reading;
use crate::engine::plan::PlannedCase;
use crate::engine::protocol::Measurement;

/// What the engine asks of the world.
pub trait World {
    /// Time since some moment that stays the same.
    fn now(&self) -> Duration;
    /// Whether a signal has asked to stop.
    fn interrupted(&self) -> bool;
    /// What the CPUs do.
    fn reading(&mut self) -> Reading;
    /// CPUs that this process may use.
    fn cpus(&self) -> usize;
    /// What measuring itself costs here.
    ///
    /// # Errors
    /// When it cannot be measured.
    fn calibrate(&mut self) -> Result<Calibration, SessionError>;
    /// A fresh process that tells how far apart two CPUs are.
    ///
    /// # Errors
    /// When there is none.
    fn open_sentinel(&mut self) -> Result<Box<dyn Session>, SessionError>;
    /// Starts a process for a case. The process ends, and opening or sampling fails with
    /// [`SessionError::OutOfTime`], when the deadline comes first.
    ///
    /// # Errors
    /// If no process can be started, or it cannot create its subject in time.
    fn open(
        &mut self,
        experiment: &'static Experiment,
        parameters: &Parameters,
        terms: Terms,
    ) -> Result<Box<dyn Session>, SessionError>;
}

/// How a case is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Time of [`World::now`] at which the run has to end, if it has a time limit.
    pub deadline: Option<Duration>,
    /// Whether to leave out metrics that only waiting can measure.
    pub skip_slow_metrics: bool,
}

/// A process that takes samples of one case.
pub trait Session {
    /// What is worth knowing of the subject.
    fn facts(&self) -> Facts;
    /// Takes a sample.
    ///
    /// # Errors
    /// When the subject fails, its process ends, or a signal asks to stop.
    fn sample(
        &mut self,
        iterations: u64,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Measurement, SessionError>;
}

/// Why there is no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A signal asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The deadline of the run came first.
    #[error("the time limit was reached")]
    OutOfTime,
    /// It did not work.
    #[error("{0}")]
    Failed(String),
}

/// Who follows a run.
pub trait Observer {
    /// This case is being measured now.
    fn measuring(&mut self, progress: &Progress<'_>);
    /// A demonstration has come a step further.
    fn step(&mut self, case: &PlannedCase, step: &Step);
    /// This is what there is so far, should nothing follow.
    fn save(&mut self, record: &RunRecord);
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Expected time until its end.
    pub remaining: Duration,
    /// The case that is being measured.
    pub case: &'a PlannedCase,
}

impl Progress<'_> {
    /// Returns the part of the run that is over, from 0 to 1.
    pub fn part(&self) -> f64 {
        let [elapsed, remaining] = [self.elapsed, self.remaining].map(|time| time.as_secs_f64());
        elapsed / (elapsed + remaining).max(1e-9)
    }
}

/// What is known before the run.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// The contend that measures.
    pub writer: Option<Writer>,
    /// The machine.
    pub host: Host,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// What is known to be unfavourable.
    pub warnings: Vec<Warning>,
}
