//! The types that define experiments, and those that their cases measure.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use contend_record::lab::{Limit, LimitReport, Step, Unit, View};
use contend_record::parameters::{Parameters, Value};
use contend_sys::cpu;
use contend_sys::topology::{self, Cpu};
use serde::{Deserialize, Serialize};

use crate::engine::cost::{Cost, CostModel};
use crate::engine::setting::{Choices, Setting};

/// One experiment: a row of a [`Registry`](super::registry::Registry).
#[derive(Debug)]
pub struct Experiment {
    /// `family/name`.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// How it measures, and how to read its figures.
    pub about: &'static str,
    /// How reports present its cases.
    pub view: View,
    /// The unit of its samples.
    pub unit: Unit,
    /// Number of samples of a case.
    pub sampling: Sampling,
    /// Law that is fitted to its cases.
    pub fit: Fit,
    /// Parameters that users can choose; `cases` has to apply them ([`Choices::applied`]).
    pub settings: &'static [&'static Setting],
    /// Returns the parameters of its cases, in the order of the report.
    pub cases: fn(&Scope) -> Vec<Parameters>,
    /// Returns why a case cannot be measured on this machine or by this user; none if it can.
    pub unavailable: fn(&Parameters) -> Option<String>,
    /// Returns whether two CPUs take turns in a case, so that their distance matters.
    pub hands_over: fn(&Parameters) -> bool,
    /// Its time, directory and limits, and parameters that it cannot combine.
    pub demands: Demands,
    /// Creates the subject, in the process of the case.
    pub subject: fn(&Parameters) -> Result<Box<dyn Subject>, SubjectError>,
}

impl Experiment {
    /// Returns the part of its name before the slash.
    pub fn family(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }
}

/// What an experiment needs: time, a directory, a limit that it exhausts, and parameters that can be
/// combined.
#[derive(Debug, Clone, Copy)]
pub struct Demands {
    /// Expected duration of its cases.
    pub cost: CostModel,
    /// Returns whether its cases share a scratch directory. Their processes find its path in the
    /// environment variable [`SCRATCH_VARIABLE`](super::isolate::SCRATCH_VARIABLE).
    pub scratch: fn() -> bool,
    /// Returns the limit, shared with other programs, that a case would exhaust. Users have to agree
    /// to such a case first.
    pub exhausts: fn(&Parameters) -> Option<Limit>,
    /// Returns why the parameters of a case cannot be combined on any machine, with allowed values;
    /// none if they can.
    pub conflict: fn(&Parameters) -> Option<String>,
}

impl Demands {
    /// The usual cost, no scratch directory, no limit, and no parameters that exclude each other.
    pub const NONE: Self = Self {
        cost: CostModel::DEFAULT,
        scratch: || false,
        exhausts: |_| None,
        conflict: |_| None,
    };

    /// Returns these demands with an expected setup time, and an expected time of one sample, in
    /// milliseconds.
    #[must_use]
    pub const fn lasting(self, setup_ms: u64, sample_ms: u64) -> Self {
        let base = Cost::of_millis(setup_ms, sample_ms);
        Self { cost: CostModel::Linear { base, per_ns: &[] }, ..self }
    }

    /// Returns these demands with samples that take longer by some nanoseconds for each unit of
    /// these parameters.
    #[must_use]
    pub const fn and_ns_per(self, per_ns: &'static [(&'static str, u64)]) -> Self {
        let base = match self.cost {
            CostModel::Linear { base, .. } => base,
            CostModel::ByCase(_) => Cost::DEFAULT,
        };
        Self { cost: CostModel::Linear { base, per_ns }, ..self }
    }

    /// Returns these demands with a function that finds parameters that cannot be combined.
    #[must_use]
    pub const fn refusing(self, conflict: fn(&Parameters) -> Option<String>) -> Self {
        Self { conflict, ..self }
    }

    /// Returns these demands with an expected duration that a function computes.
    #[must_use]
    pub const fn lasting_by(self, cost: fn(&Parameters) -> Cost) -> Self {
        Self { cost: CostModel::ByCase(cost), ..self }
    }
}

/// The law that is fitted to the cases of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Nothing.
    None,
    /// A straight line over this parameter.
    Line(&'static str),
    /// Scaling laws over the number of workers: `threads` of one process, and `processes` with one
    /// thread each.
    Scaling,
}

/// The number of samples of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Samples until the interval is narrow or the budget is used; each has many iterations.
    Adaptive,
    /// A number of samples of one iteration each, which takes long or counts something.
    Fixed(usize),
}

/// The size and the options of the cases of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// Size of the cases.
    pub size: Size,
    /// Where a search for a limit stops.
    pub cap: Cap,
    /// Pause after each step of a demonstration, in milliseconds.
    pub step_milliseconds: u64,
    /// Maximum number of units that exist at once while their memory is measured.
    pub max_units: u64,
    /// Values of parameters that the user has chosen.
    pub choices: Choices,
    /// CPUs that cases may use.
    pub cpus: Cpus,
}

/// The CPUs that cases may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs in the affinity mask of the process.
    pub allowed: Vec<Cpu>,
    /// Number of CPUs that can run at the same time. A quota may allow fewer than the mask; a part
    /// of a CPU counts as one.
    pub usable: u64,
}

impl Cpus {
    /// Returns the CPUs of this process.
    pub fn here() -> Self {
        let allowed = topology::allowed();
        let most = allowed.len() as f64;
        let usable = cpu::quota().map_or(most, |quota| quota.min(most)).ceil();
        // From 1 to a few thousand.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let usable = (usable as u64).max(1);
        Self { allowed, usable }
    }

    /// Returns the CPUs of an imaginary machine with this number of cores.
    pub fn of_cores(count: usize) -> Self {
        let core = |number| Cpu { number, core: number, ..Cpu::default() };
        Self { allowed: (0..count).map(core).collect(), usable: count as u64 }
    }
}

/// Default of the maximum number of units that exist at once.
pub const DEFAULT_MAX_UNITS: u64 = 1_000_000;

/// Where a search for a limit stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// At a number that depends on the size.
    Usual,
    /// The same, but far below every limit that is shared with other programs.
    Considerate,
    /// At this number.
    At(u64),
    /// At the limit.
    None,
}

/// The size of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// As in the source documents.
    Full,
    /// For a quick run.
    Quick,
    /// For a test that the experiment works.
    Smallest,
}

impl Scope {
    /// Creates a scope of this size with default options.
    pub fn of(size: Size) -> Self {
        Self {
            size,
            cap: Cap::Usual,
            step_milliseconds: 0,
            max_units: DEFAULT_MAX_UNITS,
            choices: Choices::default(),
            cpus: Cpus::here(),
        }
    }

    /// Returns one of three lists, by size.
    pub fn choose<'a, T>(&self, full: &'a [T], quick: &'a [T], smallest: &'a [T]) -> &'a [T] {
        match self.size {
            Size::Full => full,
            Size::Quick => quick,
            Size::Smallest => smallest,
        }
    }
}

/// An operation that is measured, in the process of its case.
pub trait Subject {
    /// Repeats the operation and returns the figures of one iteration. A demonstration passes its
    /// steps to `tell`.
    ///
    /// # Errors
    /// Returns an error if the operation fails; there is no sample then.
    fn sample(
        &mut self,
        iterations: u64,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError>;

    /// Leaves out metrics that only waiting can measure, as a quick run has no time to wait.
    /// Subjects without such metrics ignore it.
    fn skip_slow_metrics(&mut self) {}

    /// Returns facts for the record, such as the memory of the parent process.
    fn facts(&self) -> Facts {
        Facts::new()
    }

    /// Returns the CPU time of living children, which the kernel's totals do not include yet.
    fn living_children_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

/// Facts about a case, by name.
pub type Facts = BTreeMap<String, Value>;

/// One sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Figure of one operation, in the experiment's unit.
    pub value: f64,
    /// Further figures, by name.
    pub metrics: BTreeMap<String, (f64, Unit)>,
    /// Result of a search for a limit.
    pub limit: Option<LimitReport>,
    /// Facts that are known only after the sample.
    pub facts: Facts,
    /// Times of the stages of a pipeline.
    #[serde(default)]
    pub stages: Vec<StageSample>,
}

/// The times of a stage of a pipeline, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageSample {
    /// Name of the stage.
    pub stage: String,
    /// Wall time from its start to its end.
    pub real: f64,
    /// CPU time in user mode.
    pub user: f64,
    /// CPU time in the kernel.
    pub system: f64,
}

impl Sample {
    /// Creates a sample with this value.
    pub fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Returns the sample with one more metric.
    #[must_use]
    pub fn with(mut self, name: &str, unit: Unit, value: f64) -> Self {
        self.metrics.insert(name.to_owned(), (value, unit));
        self
    }
}

/// The reason why there is no subject or no sample.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Refused {
        /// The attempt, in words that follow "cannot".
        what: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The operation had an unexpected result.
    #[error("{0}")]
    Wrong(String),
}

impl SubjectError {
    /// Creates the error of an operation with an unexpected result.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }
}

/// Adds context to errors of system calls.
pub trait Attempt<T> {
    /// Describes the failed attempt, in words that follow "cannot".
    ///
    /// # Errors
    /// The same error, with context.
    fn attempt(self, what: &str) -> Result<T, SubjectError>;
}

impl<T, E: Into<io::Error>> Attempt<T> for Result<T, E> {
    fn attempt(self, what: &str) -> Result<T, SubjectError> {
        self.map_err(|source| SubjectError::Refused {
            what: what.to_owned(),
            source: source.into(),
        })
    }
}

/// Returns no reason, for experiments that work on every machine.
pub fn always_available(_: &Parameters) -> Option<String> {
    None
}

/// Returns false, for experiments in which CPUs do not take turns.
pub fn never_hands_over(_: &Parameters) -> bool {
    false
}
