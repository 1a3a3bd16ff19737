//! Types that define experiments, and types of the samples that their cases take.

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

/// An experiment: one row of a [`Registry`](super::registry::Registry).
#[derive(Debug)]
pub struct Experiment {
    /// Name in the form `family/name`.
    pub name: &'static str,
    /// One-line description for lists.
    pub summary: &'static str,
    /// Description of the method, and of how to read the results.
    pub about: &'static str,
    /// Presentation of the cases in reports.
    pub view: View,
    /// Unit of the samples' values.
    pub unit: Unit,
    /// Rule for the number of samples of a case.
    pub sampling: Sampling,
    /// Law to fit to the results of the cases.
    pub fit: Fit,
    /// Parameters that users can choose; `cases` has to apply them ([`Choices::applied`]).
    pub settings: &'static [&'static Setting],
    /// Returns the parameters of each case, in the order of the report.
    pub cases: fn(&Scope) -> Vec<Parameters>,
    /// Returns why a case cannot be measured on this machine or by this user, or `None` if it can.
    pub unavailable: fn(&Parameters) -> Option<String>,
    /// Returns whether two CPUs alternate in a case, so that the distance between these CPUs
    /// matters.
    pub alternates_cpus: fn(&Parameters) -> bool,
    /// Requirements of the cases, such as time, and conflicts between parameters.
    pub demands: Demands,
    /// Creates the subject of a case. Called in the process of that case.
    pub subject: fn(&Parameters) -> Result<Box<dyn Subject>, SubjectError>,
}

impl Experiment {
    /// Returns the part of the name before the slash, or the whole name if it has none.
    pub fn family(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }
}

/// Requirements of an experiment: time, a scratch directory, permission to exhaust limits, and
/// rules for combining parameters.
#[derive(Debug, Clone, Copy)]
pub struct Demands {
    /// Model of the expected durations of the cases.
    pub cost: CostModel,
    /// Returns whether the cases share a scratch directory. Their processes find its path in the
    /// environment variable [`SCRATCH_VARIABLE`](super::isolate::SCRATCH_VARIABLE), which is not
    /// set if the directory cannot be created.
    pub scratch: fn() -> bool,
    /// Returns the limit, shared with other programs, that a case would exhaust or nearly exhaust,
    /// or `None` if there is none. A user has to allow such a case explicitly.
    pub exhausts: fn(&Parameters) -> Option<Limit>,
    /// Returns why the parameters of a case cannot be combined on any machine, and which values are
    /// allowed, or `None` if they can be combined.
    pub conflict: fn(&Parameters) -> Option<String>,
}

impl Demands {
    /// The default cost, no scratch directory, no exhausted limit, and no conflicts between
    /// parameters.
    pub const NONE: Self = Self {
        cost: CostModel::DEFAULT,
        scratch: || false,
        exhausts: |_| None,
        conflict: |_| None,
    };

    /// Returns these demands with the given expected times of setup and of one sample, in
    /// milliseconds, for all cases. They replace the whole cost model.
    #[must_use]
    pub const fn with_cost_ms(self, setup_ms: u64, sample_ms: u64) -> Self {
        let base = Cost::of_millis(setup_ms, sample_ms);
        Self { cost: CostModel::Linear { base, per_ns: &[] }, ..self }
    }

    /// Returns these demands with a sample time that grows linearly with the parameters in
    /// `per_ns`: each unit of a parameter adds the given number of nanoseconds. The base is the
    /// cost set by [`Self::with_cost_ms`], or else [`Cost::DEFAULT`].
    #[must_use]
    pub const fn with_ns_per(self, per_ns: &'static [(&'static str, u64)]) -> Self {
        let base = match self.cost {
            CostModel::Linear { base, .. } => base,
            CostModel::ByCase(_) => Cost::DEFAULT,
        };
        Self { cost: CostModel::Linear { base, per_ns }, ..self }
    }

    /// Returns these demands with a function that detects conflicts between parameters.
    #[must_use]
    pub const fn with_conflict(self, conflict: fn(&Parameters) -> Option<String>) -> Self {
        Self { conflict, ..self }
    }

    /// Returns these demands with a function that computes the cost of a case. It replaces the
    /// whole cost model.
    #[must_use]
    pub const fn with_cost(self, cost: fn(&Parameters) -> Cost) -> Self {
        Self { cost: CostModel::ByCase(cost), ..self }
    }
}

/// The law to fit to the results of an experiment's cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// No law.
    None,
    /// A straight line over the named parameter.
    Line(&'static str),
    /// Scaling laws over the number of workers: `threads` of one process, and `processes` with one
    /// thread each.
    Scaling,
}

/// The rule for the number of samples of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Samples of one or more iterations each, enough to take a given time, until the confidence
    /// interval is narrow, the maximum number of samples is reached, or the budget is used.
    Adaptive,
    /// The given number of samples, or fewer if the budget is used up. Each sample is a single
    /// iteration, which takes long or counts something.
    Fixed(usize),
}

/// The size and options of a run, from which experiments derive their cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// Size of the run's cases.
    pub size: Size,
    /// Number of units (processes or threads) at which a search for a limit stops.
    pub cap: Cap,
    /// Pause after each step of a demonstration, in milliseconds.
    pub step_milliseconds: u64,
    /// Maximum number of units that exist at once in experiments on the memory of runtimes.
    pub max_units: u64,
    /// Parameter values chosen by the user.
    pub choices: Choices,
    /// CPUs that cases may use.
    pub cpus: Cpus,
}

/// The CPUs that cases may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs in the affinity mask; empty if the mask cannot be read.
    pub allowed: Vec<Cpu>,
    /// Number of CPUs that can run this process at the same time: those in the mask or, if it is
    /// lower, the CPU quota rounded up.
    pub usable: u64,
}

impl Cpus {
    /// Returns the CPUs that this process may use. At least one counts as usable, even if the
    /// affinity mask cannot be read.
    pub fn here() -> Self {
        let allowed = topology::allowed();
        let cpu_count = allowed.len() as f64;
        let usable = cpu::quota().map_or(cpu_count, |quota| quota.min(cpu_count)).ceil();
        // Not negative, and at most the number of CPUs.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let usable = (usable as u64).max(1);
        Self { allowed, usable }
    }

    /// Returns the CPUs of an imaginary machine with `count` cores of one hardware thread each.
    pub fn of_cores(count: usize) -> Self {
        let core = |number| Cpu { number, core: number, ..Cpu::default() };
        Self { allowed: (0..count).map(core).collect(), usable: count as u64 }
    }
}

/// Default of `Scope::max_units`.
pub const DEFAULT_MAX_UNITS: u64 = 1_000_000;

/// The number of units at which a search for a limit stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// A number that depends on the size of the run.
    Default,
    /// As `Default`, but at most half of the units that the tightest limit shared with other
    /// programs allows, and at least one.
    Considerate,
    /// The given number.
    At(u64),
    /// No number: the search continues until the limit is reached.
    None,
}

/// The size of a run's cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The sizes in the source documents that reports compare with the results.
    Full,
    /// Smaller sizes for a quick run.
    Quick,
    /// Smallest sizes, to test that the experiments work.
    Smallest,
}

impl Scope {
    /// Creates a scope of the given size with default options and the CPUs of this process.
    pub fn of(size: Size) -> Self {
        Self {
            size,
            cap: Cap::Default,
            step_milliseconds: 0,
            max_units: DEFAULT_MAX_UNITS,
            choices: Choices::default(),
            cpus: Cpus::here(),
        }
    }

    /// Returns one of the three lists, according to the size of this scope.
    pub fn choose<'a, T>(&self, full: &'a [T], quick: &'a [T], smallest: &'a [T]) -> &'a [T] {
        match self.size {
            Size::Full => full,
            Size::Quick => quick,
            Size::Smallest => smallest,
        }
    }
}

/// The operation that a case measures. It is created and sampled in the process of the case.
pub trait Subject {
    /// Runs the operation `iterations` times and returns measurements of one iteration, or of one
    /// unit of work if an iteration does several. A demonstration, or a pipeline whose lines are
    /// followed, passes its steps to `tell`.
    ///
    /// # Errors
    /// Returns an error if the operation fails.
    fn sample(
        &mut self,
        iterations: u64,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError>;

    /// Disables metrics that require a long wait, for which a quick run has no time. Does nothing
    /// by default, for subjects without such metrics.
    fn skip_slow_metrics(&mut self) {}

    /// Returns facts for the record, such as the memory of the parent process. Empty by default.
    fn facts(&self) -> Facts {
        Facts::new()
    }

    /// Returns the CPU time of living children, which the kernel does not yet include in its totals
    /// for this process. Zero by default, for subjects without such children.
    fn living_children_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

/// Facts about a case for the record, by name.
pub type Facts = BTreeMap<String, Value>;

/// The result of one sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Measurement of one operation, in the experiment's unit.
    pub value: f64,
    /// Further measurements of one operation with their units, by name.
    pub metrics: BTreeMap<String, (f64, Unit)>,
    /// Result of the search if the subject searches for a limit, and otherwise `None`.
    pub limit: Option<LimitReport>,
    /// Facts about the case that are known only after the sample.
    pub facts: Facts,
    /// Times of the stages if the subject is a pipeline, and otherwise empty.
    #[serde(default)]
    pub stages: Vec<StageSample>,
}

/// The times of a stage of a pipeline, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageSample {
    /// Name of the stage, as in reports.
    pub stage: String,
    /// Wall time from start to exit.
    pub real: f64,
    /// CPU time in user mode.
    pub user: f64,
    /// CPU time in kernel mode.
    pub system: f64,
}

impl Sample {
    /// Creates a sample with the given value and no further measurements.
    pub fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Adds the metric `name`, or replaces it, and returns the sample.
    #[must_use]
    pub fn with(mut self, name: &str, unit: Unit, value: f64) -> Self {
        self.metrics.insert(name.to_owned(), (value, unit));
        self
    }
}

/// The error of a subject that cannot be created or sampled.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Syscall {
        /// Failed action, as a phrase that follows "cannot".
        what: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The operation had an unexpected result, or failed in another way, as the message says.
    #[error("{0}")]
    Unexpected(String),
}

impl SubjectError {
    /// Creates the error of an operation with an unexpected result.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::Unexpected(message.into())
    }
}

/// Adds context to the errors of system calls.
pub trait ErrorContext<T> {
    /// Adds context to an error: `what` is the failed action, as a phrase that follows "cannot".
    ///
    /// # Errors
    /// Returns the error as [`SubjectError::Syscall`] with `what`.
    fn context(self, what: &str) -> Result<T, SubjectError>;
}

impl<T, E: Into<io::Error>> ErrorContext<T> for Result<T, E> {
    fn context(self, what: &str) -> Result<T, SubjectError> {
        self.map_err(|source| SubjectError::Syscall {
            what: what.to_owned(),
            source: source.into(),
        })
    }
}

/// Returns `None`. Serves as `Experiment::unavailable` where every machine can run all cases.
pub fn always_available(_: &Parameters) -> Option<String> {
    None
}

/// Returns `false`. Serves as `Experiment::alternates_cpus` where no two CPUs alternate.
pub fn never_alternates_cpus(_: &Parameters) -> bool {
    false
}
