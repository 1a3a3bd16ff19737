//! What the engine asks of the world, and who follows it.

use std::time::Duration;

use contend_record::lab::{Calibration, RunRecord, Step};
use contend_record::parameters::Parameters;
use contend_record::{Host, Warning, Writer};

use crate::engine::experiment::{Experiment, Facts};
use crate::engine::noise::Reading;
use crate::engine::plan::PlannedCase;
use crate::engine::protocol::Taken;

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
    /// A fresh process for a case.
    ///
    /// # Errors
    /// When there is none or it cannot make its subject.
    fn open(
        &mut self,
        experiment: &'static Experiment,
        parameters: &Parameters,
    ) -> Result<Box<dyn Session>, SessionError>;
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
    ) -> Result<Taken, SessionError>;
}

/// Why there is no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A signal asked to stop.
    #[error("interrupted")]
    Interrupted,
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
    fn keep(&mut self, record: &RunRecord);
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Since its start.
    pub elapsed: Duration,
    /// Until its end.
    pub left: Left,
    /// Cases of which what they take is known, as they have been measured or need not be.
    pub begun: usize,
    /// All cases.
    pub cases: usize,
    /// The case at hand.
    pub case: &'a PlannedCase,
}

impl Progress<'_> {
    /// Which part of the run is over, from 0 to 1. While nothing is known of what some cases take, it is no
    /// more than the part of the cases that have begun.
    pub fn part(&self) -> f64 {
        let [elapsed, left] = [self.elapsed, self.left.time()].map(|time| time.as_secs_f64());
        let of_time = elapsed / (elapsed + left).max(1e-9);
        let of_cases = self.begun as f64 / self.cases.max(1) as f64;
        match self.left {
            Left::About(_) => of_time,
            Left::Partly { .. } => of_time.min(of_cases),
        }
    }
}

/// How long a run will go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// About this long.
    About(Duration),
    /// About this long for what is known, and besides it cases of which it is not known yet what they take.
    Partly {
        /// The time for what is known.
        time: Duration,
        /// How many cases are unknown.
        cases: usize,
    },
}

impl Left {
    /// The time for what is known.
    pub fn time(self) -> Duration {
        match self {
            Self::About(time) | Self::Partly { time, .. } => time,
        }
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
