//! What an experiment is, and what it is asked for.

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
    /// How it is measured, and what to keep in mind when reading its figures.
    pub about: &'static str,
    /// How reports present its cases.
    pub view: View,
    /// The unit of its samples.
    pub unit: Unit,
    /// How many samples it takes.
    pub sampling: Sampling,
    /// What is laid through its cases.
    pub fit: Fit,
    /// The parameters that can be chosen; `cases` has to heed them ([`Choices::applied`]).
    pub settings: &'static [&'static Setting],
    /// What it can be done with, in the order in which it is shown.
    pub cases: fn(&Scope) -> Vec<Parameters>,
    /// Why a case cannot be measured on this machine or by this user, if so.
    pub unavailable: fn(&Parameters) -> Option<String>,
    /// Whether two CPUs work on a case by turns, so that their distance matters.
    pub hands_over: fn(&Parameters) -> bool,
    /// What it needs of the machine, or uses up, that is worth knowing before it runs.
    pub demands: Demands,
    /// What is measured, made in a process of its own.
    pub subject: fn(&Parameters) -> Result<Box<dyn Subject>, SubjectError>,
}

impl Experiment {
    /// What stands before the slash.
    pub fn family(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }
}

/// What an experiment needs of the machine: time, a directory, a limit that it exhausts.
#[derive(Debug, Clone, Copy)]
pub struct Demands {
    /// Expected duration of its cases.
    pub cost: CostModel,
    /// Whether its cases need a scratch directory that they share. Their processes find its path in
    /// the environment variable [`SCRATCH`](super::isolate::SCRATCH).
    pub scratch: fn() -> bool,
    /// The limit, of those that other programs share, that a case would exhaust. The user has to
    /// agree to such a case first.
    pub exhausts: fn(&Parameters) -> Option<Limit>,
}

impl Demands {
    /// The usual cost, no scratch directory, and no limit.
    pub const NONE: Self = Self { cost: CostModel::DEFAULT, scratch: || false, exhausts: |_| None };

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

    /// Returns these demands with an expected duration that a function computes.
    #[must_use]
    pub const fn lasting_by(self, cost: fn(&Parameters) -> Cost) -> Self {
        Self { cost: CostModel::ByCase(cost), ..self }
    }
}

/// What is laid through the cases of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Nothing.
    None,
    /// Lines over this parameter.
    Line(&'static str),
    /// The laws of scaling over numbers of workers: of `threads` in one process, and of `processes`
    /// with one thread each.
    Scaling,
}

/// How many samples an experiment takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// As many as the interval needs and the budget allows, each of many iterations.
    Adaptive,
    /// So many, of one iteration: it is long, or counts rather than times.
    Fixed(usize),
}

/// How much of an experiment is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// How large.
    pub size: Size,
    /// Where a search for a limit stops by itself.
    pub cap: Cap,
    /// The pause between two steps of a demonstration, in milliseconds.
    pub step_milliseconds: u64,
    /// The most units of a kind that are made at once, where their memory is wanted.
    pub max_units: u64,
    /// Parameters that were chosen.
    pub choices: Choices,
    /// The CPUs that cases may name or count.
    pub cpus: Cpus,
}

/// The CPUs that cases may name or count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// Those that may be used.
    pub allowed: Vec<Cpu>,
    /// How many can work at the same time: a quota may allow for less, a part of one rounded up.
    pub usable: u64,
}

impl Cpus {
    /// Those of this process.
    pub fn here() -> Self {
        let allowed = topology::allowed();
        let most = allowed.len() as f64;
        let usable = cpu::quota().map_or(most, |quota| quota.min(most)).ceil();
        // From 1 to some thousands.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let usable = (usable as u64).max(1);
        Self { allowed, usable }
    }

    /// Those of a machine with so many cores, whatever machine this is.
    pub fn of_cores(count: usize) -> Self {
        let core = |number| Cpu { number, core: number, ..Cpu::default() };
        Self { allowed: (0..count).map(core).collect(), usable: count as u64 }
    }
}

/// The most units that are made at once unless more are asked for.
pub const USUAL_MAX_UNITS: u64 = 1_000_000;

/// Where a search for a limit stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// At a number that suits the size.
    Usual,
    /// The same, but far below every limit that other programs share.
    Considerate,
    /// At this number.
    At(u64),
    /// Nowhere.
    None,
}

/// How large the cases are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// As in the documents.
    Full,
    /// For a first look.
    Quick,
    /// Only to see that it works.
    Smallest,
}

impl Scope {
    /// As large as this, and otherwise as it is by itself.
    pub fn of(size: Size) -> Self {
        Self {
            size,
            cap: Cap::Usual,
            step_milliseconds: 0,
            max_units: USUAL_MAX_UNITS,
            choices: Choices::default(),
            cpus: Cpus::here(),
        }
    }

    /// One of three lists, by size.
    pub fn choose<'a, T>(&self, full: &'a [T], quick: &'a [T], smallest: &'a [T]) -> &'a [T] {
        match self.size {
            Size::Full => full,
            Size::Quick => quick,
            Size::Smallest => smallest,
        }
    }
}

/// What is measured.
pub trait Subject {
    /// Does the operation so many times and says what one took. What happens on the way
    /// can be told step by step.
    ///
    /// # Errors
    /// When the operation fails: there is then no sample.
    fn sample(
        &mut self,
        iterations: u64,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError>;

    /// Leaves out metrics that only waiting can measure, as a quick run has no time to wait.
    /// Subjects without such metrics ignore it.
    fn skip_slow_metrics(&mut self) {}

    /// What is worth knowing about it, such as its parent's memory.
    fn facts(&self) -> Facts {
        Facts::new()
    }

    /// CPU time so far of children that are still there, which the kernel's totals lack.
    fn living_children_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

/// What is worth knowing, by name.
pub type Facts = BTreeMap<String, Value>;

/// One sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What one operation took, in the experiment's unit.
    pub value: f64,
    /// What else was measured with it, by name.
    pub metrics: BTreeMap<String, (f64, Unit)>,
    /// What was found out about a limit.
    pub limit: Option<LimitReport>,
    /// What is known only now.
    pub facts: Facts,
    /// What each stage of a pipeline took.
    #[serde(default)]
    pub stages: Vec<StageSample>,
}

/// What a stage of a pipeline took, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageSample {
    /// What it is called.
    pub stage: String,
    /// From its start to its end.
    pub real: f64,
    /// CPU time in user mode.
    pub user: f64,
    /// CPU time in the kernel.
    pub system: f64,
}

impl Sample {
    /// A sample of this value.
    pub fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// This and one more metric.
    #[must_use]
    pub fn with(mut self, name: &str, unit: Unit, value: f64) -> Self {
        self.metrics.insert(name.to_owned(), (value, unit));
        self
    }
}

/// Why there is no subject or no sample.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The kernel refused something.
    #[error("cannot {what}: {source}")]
    Refused {
        /// What was to be done.
        what: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// The operation did not do what it should have.
    #[error("{0}")]
    Wrong(String),
}

impl SubjectError {
    /// The operation did not do what it should have, as this says.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }
}

/// Says what was to be done when the kernel refuses it.
pub trait Attempt<T> {
    /// Adds what was to be done to the kernel's error.
    ///
    /// # Errors
    /// The same as before.
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

/// For experiments that always work.
pub fn always_available(_: &Parameters) -> Option<String> {
    None
}

/// For experiments in which CPUs do not take turns.
pub fn never_hands_over(_: &Parameters) -> bool {
    false
}
