//! The interfaces of a run: the machine, the processes of cases, and an observer.

use std::time::Duration;

use contend_record::lab::{Calibration, RunRecord, Step};
use contend_record::parameters::Parameters;
use contend_record::{Host, Warning, Writer};

use crate::engine::experiment::{Experiment, Facts};
use crate::engine::noise::Reading;
use crate::engine::plan::PlannedCase;
use crate::engine::protocol::Measurement;

/// A machine on which cases are measured.
pub trait World {
    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration;
    /// Returns whether a signal has asked the run to stop.
    fn interrupted(&self) -> bool;
    /// Reads the CPU accounting of the machine and of this run.
    fn reading(&mut self) -> Reading;
    /// Returns the number of CPUs that this process may use.
    fn cpus(&self) -> usize;
    /// Measures the cost of the clock and of the loop.
    ///
    /// # Errors
    /// Returns an error if that fails.
    fn calibrate(&mut self) -> Result<Calibration, SessionError>;
    /// Starts a process that measures the distance between two CPUs.
    ///
    /// # Errors
    /// Returns an error if it cannot be started.
    fn open_sentinel(&mut self) -> Result<Box<dyn Session>, SessionError>;
    /// Starts a process for a case. The process ends, and opening or sampling fails with
    /// [`SessionError::OutOfTime`], when the deadline comes first.
    ///
    /// # Errors
    /// Returns an error if no process can be started, or it cannot create its subject in time.
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

/// A process that takes samples of one case. Dropping it ends the process.
pub trait Session {
    /// Returns facts about the subject.
    fn facts(&self) -> Facts;
    /// Takes a sample of some iterations, and passes on the steps of a demonstration.
    ///
    /// # Errors
    /// Returns an error if the subject fails, its process ends, the deadline comes, or a signal
    /// asks to stop.
    fn sample(
        &mut self,
        iterations: u64,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Measurement, SessionError>;
}

/// The reason why there is no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A signal asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The deadline of the run passed before the sample was complete.
    #[error("the time limit was reached")]
    OutOfTime,
    /// The case failed.
    #[error("{0}")]
    Failed(String),
}

/// An observer of a run.
pub trait Observer {
    /// Called before each sample.
    fn measuring(&mut self, progress: &Progress<'_>);
    /// Called at each step of a demonstration.
    fn step(&mut self, case: &PlannedCase, step: &Step);
    /// Called regularly with the unfinished record.
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

/// Facts about a run that are known before it starts.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// Version of contend.
    pub writer: Option<Writer>,
    /// The machine.
    pub host: Host,
    /// Start of the run: UTC, RFC 3339.
    pub started_at: String,
    /// Circumstances that make figures less reliable.
    pub warnings: Vec<Warning>,
}
