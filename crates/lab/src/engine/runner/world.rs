//! Interfaces through which a run reaches the machine, the processes of cases, and an observer.

use std::time::Duration;

use contend_record::lab::{Calibration, RunRecord, Step};
use contend_record::parameters::Parameters;
use contend_record::{Host, Warning, Writer};

use crate::engine::experiment::{Experiment, Facts};
use crate::engine::noise::Reading;
use crate::engine::plan::PlannedCase;
use crate::engine::protocol::Measurement;

/// A machine that measures cases.
pub trait World {
    /// Returns the time since a fixed moment, less the time for which the run was stopped (Ctrl-Z).
    fn now(&self) -> Duration;
    /// Returns whether a signal has asked the run to stop.
    fn interrupted(&self) -> bool;
    /// Reads the kernel's accounting of the CPUs, and of the CPU time of this run.
    fn reading(&mut self) -> Reading;
    /// Returns the number of CPUs that this process may use.
    fn cpus(&self) -> usize;
    /// Measures the cost and the resolution of the clock, the cost of an iteration of the timed
    /// loop, and the distance between two CPUs if this process may use two.
    ///
    /// # Errors
    /// Returns an error if the calibration fails or is interrupted.
    fn calibrate(&mut self) -> Result<Calibration, SessionError>;
    /// Starts a process that measures the distance between two CPUs.
    ///
    /// # Errors
    /// Returns an error if the process cannot be started or cannot create its subject, or if a
    /// signal asks to stop.
    fn open_sentinel(&mut self) -> Result<Box<dyn Session>, SessionError>;
    /// Starts a process for a case. If the deadline of `conditions` passes while the case is opened
    /// or sampled, the process is killed and the call fails with [`SessionError::OutOfTime`].
    ///
    /// # Errors
    /// Returns an error if the process cannot be started, if it cannot create its subject in time,
    /// or if a signal asks to stop.
    fn open(
        &mut self,
        experiment: &'static Experiment,
        parameters: &Parameters,
        conditions: MeasuringConditions,
    ) -> Result<Box<dyn Session>, SessionError>;
}

/// Conditions under which a case is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasuringConditions {
    /// Time by which the last sample of the run has to end, on the clock of [`World::now`], or
    /// `None` without a time limit.
    pub deadline: Option<Duration>,
    /// Whether to leave out metrics that require a long wait.
    pub skip_slow_metrics: bool,
}

/// A process that takes samples of one case. Dropping it ends the process.
pub trait Session {
    /// Returns the subject's facts for the record.
    fn facts(&self) -> Facts;
    /// Takes a sample of `iterations` iterations. Passes the steps that the subject reports, such
    /// as those of a demonstration, to `tell`.
    ///
    /// # Errors
    /// Returns an error if the subject fails or takes too long, its process ends, the deadline
    /// passes, or a signal asks to stop.
    fn sample(
        &mut self,
        iterations: u64,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Measurement, SessionError>;
}

/// The error of a session that cannot be opened or sampled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A signal asked the run to stop.
    #[error("interrupted")]
    Interrupted,
    /// The deadline of the run passed before the case was open or the sample complete.
    #[error("the time limit was reached")]
    OutOfTime,
    /// The case failed for the given reason.
    #[error("{0}")]
    Failed(String),
}

/// A receiver of a run's progress, steps and unfinished records.
pub trait Observer {
    /// Called before each sample.
    fn measuring(&mut self, progress: &Progress<'_>);
    /// Called with each step that a subject reports, such as those of a demonstration.
    fn step(&mut self, case: &PlannedCase, step: &Step);
    /// Called with the unfinished record: first once there is a sample, then at intervals of a few
    /// seconds or more.
    fn save(&mut self, record: &RunRecord);
}

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Expected time until the end of the run, at most the time until its deadline.
    pub remaining: Duration,
    /// Case of the next sample.
    pub case: &'a PlannedCase,
}

impl Progress<'_> {
    /// Returns the completed share of the expected duration, from 0 to 1.
    pub fn completed_share(&self) -> f64 {
        let [elapsed, remaining] = [self.elapsed, self.remaining].map(|time| time.as_secs_f64());
        elapsed / (elapsed + remaining).max(1e-9)
    }
}

/// Facts about a run that are known before it starts.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// Version of contend, or `None` to leave it out of the record.
    pub writer: Option<Writer>,
    /// Machine on which the run takes place.
    pub host: Host,
    /// Start of the run in UTC, formatted as in RFC 3339.
    pub started_at: String,
    /// Warnings about conditions that make measurements less reliable.
    pub warnings: Vec<Warning>,
}
