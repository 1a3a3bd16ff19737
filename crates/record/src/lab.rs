//! The measurements of one run of the lab: schema `contend.lab/1`.
//!
//! A run measures cases; a case is one experiment with one set of parameters.
//!
//! ```text
//! RunRecord
//!  ├─ calibration           cost of the clock and of an empty loop
//!  ├─ cases                 samples, median, interval, outliers
//!  │   ├─ metrics           further figures of the same samples
//!  │   ├─ facts             properties of the measured subject
//!  │   └─ limit │ stages │ timeline   for some experiments
//!  └─ fits, scaling         lines and scaling laws through several cases
//! ```
//!
//! Wall times are from `CLOCK_MONOTONIC` unless stated otherwise; CPU times are those that the
//! kernel charges.

mod view;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameters::{Parameters, Value};
use crate::stats::{self, Line, Scaling};
use crate::{Host, Warning, Writer};

pub use view::{Chapter, View, family_and_name};

/// Name and version of the schema.
pub const SCHEMA: &str = "contend.lab/1";

/// One run of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Name and version of this schema: `contend.lab/1`.
    pub schema: String,
    /// The version of contend that wrote the record; null in records of older versions, which did
    /// not write it.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// Suite that was run; null if experiments were chosen by name.
    pub suite: Option<String>,
    /// Chapter of the report that shows the suite; absent if experiments were chosen by name, and
    /// in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chapter: Option<Chapter>,
    /// Start of the run: UTC, RFC 3339.
    pub started_at: String,
    /// Wall time from the start of the run to the end of its last sample, in seconds
    /// (`CLOCK_MONOTONIC`).
    pub wall_seconds: f64,
    /// Seed of the order of cases and of the intervals.
    pub seed: u64,
    /// Whether the run measured a smaller form of its cases (`--quick`).
    pub quick: bool,
    /// Wall time that the samples of the run may use, in seconds.
    pub budget_seconds: f64,
    /// How the run ended.
    pub ending: Ending,
    /// The machine on which the run was measured.
    pub host: Host,
    /// Cost of the clock and of an empty loop; null if it was not measured, because the measurement
    /// failed or the run ended before it.
    pub calibration: Option<Calibration>,
    /// The cases, in the order of the plan.
    pub cases: Vec<Case>,
    /// Straight lines through cases that differ in only one parameter, such as their number of
    /// units.
    pub fits: Vec<Fit>,
    /// Scaling laws, each fitted to cases that differ only in their number of workers; absent if
    /// there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ScalingFit>,
    /// Circumstances that make the figures of the run less reliable.
    pub warnings: Vec<Warning>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The run has not ended: it is still running, or was killed.
    Unfinished,
    /// A signal stopped the run before it was complete.
    Interrupted,
    /// The run ended by itself: no case needed another sample, or no time was left for one.
    Complete,
    /// The run completed, but could not measure any case.
    Empty,
}

/// The cost of measuring, as measured before the first sample. Processes that time operations in a
/// loop measure the cost of the clock and of the loop again, and subtract their own results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Time between two consecutive readings of the clock, in nanoseconds.
    pub clock_nanoseconds: f64,
    /// Smallest step between two different readings of the clock, in nanoseconds.
    pub clock_resolution_nanoseconds: f64,
    /// Time of one iteration of the loop around an empty operation, in nanoseconds.
    pub empty_loop_nanoseconds: f64,
    /// Round trip of a cache line to another CPU, in nanoseconds; null if contend may use only one
    /// CPU.
    pub cache_line_nanoseconds: Option<f64>,
}

/// One experiment with one set of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Name of the experiment, such as `units/create`.
    pub experiment: String,
    /// How a report presents the experiment; absent for the generic table, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "View::is_table")]
    pub view: View,
    /// Parameters of the case.
    pub parameters: Parameters,
    /// Unit of the samples and of the figures computed from them.
    pub unit: Unit,
    /// All samples in the order in which they were measured, including outliers but not samples that
    /// were replaced.
    pub samples: Vec<f64>,
    /// Median of the samples; null without samples.
    pub median: Option<f64>,
    /// 95 % interval of the median, lower and upper end, by percentile bootstrap; null with fewer
    /// than six samples.
    pub ci95: Option<[f64; 2]>,
    /// Smallest sample; null without samples.
    pub min: Option<f64>,
    /// Largest sample; null without samples.
    pub max: Option<f64>,
    /// Indexes of samples, from 0, that lie far from the others: a modified z-score above 3.5
    /// (Iglewicz & Hoaglin 1993).
    pub outliers: Vec<usize>,
    /// Indexes of samples, from 0, that were disturbed and not replaced: other programs or the
    /// hypervisor used more than a tolerated share of the CPUs, or the hypervisor moved a virtual
    /// CPU.
    pub disturbed: Vec<usize>,
    /// Number of disturbed samples that are not in `samples`, because undisturbed ones replaced
    /// them.
    pub retaken: usize,
    /// Number of iterations of the operation in one sample.
    pub iterations: u64,
    /// Why no more samples were taken; null if the case had not ended when the record was written,
    /// or was skipped before its start.
    pub stopped: Option<Stopped>,
    /// Further figures that were measured with each sample, such as CPU time, by name.
    pub metrics: BTreeMap<String, Metric>,
    /// Facts about the measured subject, such as the memory of its parent process, by name.
    pub facts: BTreeMap<String, Value>,
    /// The limit that the experiment found, and how it was identified; null for experiments that
    /// search for none, and without samples.
    pub limit: Option<LimitReport>,
    /// For pipelines: the times of each stage, in order; absent for other experiments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// For demonstrations, and for pipelines whose lines are followed: what happened, step by step;
    /// empty for other experiments.
    pub timeline: Vec<Step>,
    /// Circumstances that make the figures of the case less reliable.
    pub warnings: Vec<Warning>,
    /// Why the case was not measured; null if it was measured, or if the run has not reached it.
    pub skipped: Option<String>,
}

/// The unit of a figure, as a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Units of concurrency, such as processes or threads.
    #[serde(rename = "units")]
    Units,
    /// Events, such as context switches or page faults.
    #[serde(rename = "count")]
    Count,
}

/// The reason why no more samples of a case were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The interval of the median is narrow enough.
    Interval,
    /// The case has its fixed number of samples, or the maximum number.
    Count,
    /// The budget or the time limit of the run left too little time for another sample.
    Budget,
    /// A signal stopped the run.
    Interrupt,
    /// The measured operation, or its process, failed.
    Failure,
}

/// A figure that is measured along with the case's main one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Unit of the samples.
    pub unit: Unit,
    /// Median of the samples.
    pub median: f64,
    /// Values of the samples that have the metric, in the order of the samples.
    pub samples: Vec<f64>,
}

/// The times of one stage of a pipeline; if several copies run at once, the means over the copies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Name of the stage: its command, or its purpose.
    pub stage: String,
    /// Wall time from the start of the stage to its exit, in nanoseconds.
    pub real: Metric,
    /// CPU time in user mode, in nanoseconds, of the stage and of the children that it waited for.
    /// The kernel splits user and system time by ticks; their sum is exact.
    pub user: Metric,
    /// CPU time in the kernel, in nanoseconds, of the stage and of the children that it waited for.
    pub system: Metric,
}

/// A straight line through cases that differ in only one parameter. The slope is the cost of one
/// more unit of the parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Name of the experiment.
    pub experiment: String,
    /// Parameters that the cases have in common.
    pub parameters: Parameters,
    /// Name of the parameter in which the cases differ.
    pub over: String,
    /// Name of the metric that is fitted, or `value` for the case's main figure.
    pub metric: String,
    /// Unit of the ordinates of the line.
    pub unit: Unit,
    /// The line: the metric as a function of the parameter `over`.
    pub line: Line,
}

/// A scaling law through cases that differ only in their number of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingFit {
    /// Name of the experiment.
    pub experiment: String,
    /// Parameters that the cases have in common.
    pub parameters: Parameters,
    /// What the workers are: `threads` of one process, or `processes` with one thread each.
    pub over: String,
    /// The law, with its coefficients.
    pub law: Scaling,
    /// Number of disturbed samples among those used for the fit. A sample is disturbed if other
    /// programs or the hypervisor used more than a tolerated share of the CPUs, or the hypervisor
    /// moved a virtual CPU.
    #[serde(default)]
    pub disturbed: usize,
}

/// The number of units of concurrency that can be created at the same time: as predicted, and in an
/// attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    /// Every known limit that applies, the tightest first.
    pub limits: Vec<Limit>,
    /// Number of units at which the attempt stops at the latest; null without a given cap.
    pub cap: Option<u64>,
    /// Number of units that were created and existed at the same time.
    pub created: u64,
    /// Error that ended the attempt, such as `EAGAIN`; null if the cap or the memory guard ended
    /// it.
    pub errno: Option<String>,
    /// What ended the attempt.
    pub stopped_by: StoppedBy,
    /// Observations that identify what ended the attempt, each in a sentence.
    pub evidence: Vec<String>,
    /// Whether the attempt ended as predicted: the predicted limit stopped it at about the
    /// predicted number of units, or the cap stopped it at no more than that number. Null if there
    /// was no prediction, or if no unit could be created.
    pub prediction_held: Option<bool>,
}

/// What ended an attempt to create units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "limit")]
pub enum StoppedBy {
    /// The given cap on the number of units.
    Cap,
    /// The memory guard, before memory ran out.
    MemoryFloor,
    /// The limit with the given name.
    Limit(String),
    /// An error that no known, exhausted limit explains.
    Unknown,
}

/// A limit on the number of units of concurrency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Name of the limit, such as `RLIMIT_NPROC` or `vm.max_map_count`.
    pub name: String,
    /// Where the limit is set: a path, or a description.
    pub source: String,
    /// Value of the limit; its unit depends on the limit.
    pub value: u64,
    /// Amount in use before the attempt, in the unit of `value`.
    pub in_use: u64,
    /// Amount that one unit of concurrency takes, in the unit of `value`.
    pub per_unit: f64,
    /// Number of further units of concurrency that the limit allows.
    pub allows: u64,
}

/// One step of a demonstration, or an event in a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Time since the start of the demonstration or of the pipeline, in seconds
    /// (`CLOCK_MONOTONIC`).
    pub at_seconds: f64,
    /// The unit that acted: `parent`, `child`, `main` or `thread`; or, for a pipeline, the command
    /// of the stage whose lines are followed.
    pub who: String,
    /// What happened, in words.
    pub what: String,
    /// Address of the variable, in hexadecimal; null if the step does not concern a variable.
    pub address: Option<String>,
    /// Value of the variable as the acting unit saw it; null if the step does not concern a
    /// variable.
    pub value: Option<i64>,
    /// The tasks at the moment of the step, as the kernel reports them; empty if they were not
    /// observed.
    pub tasks: Vec<Task>,
}

/// A process or thread, as the kernel reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Process id of the task's process.
    pub pid: i32,
    /// Thread id of the task.
    pub tid: i32,
    /// Process id of the parent of the task's process.
    pub ppid: i32,
    /// State of the task, as in `/proc`: R, S, D, T, Z …
    pub state: String,
    /// Resident set size of the process, in bytes: shared pages count in full.
    pub rss_bytes: u64,
    /// Proportional set size of the process, in bytes: a page shared by two processes counts half.
    pub pss_bytes: u64,
    /// Memory of the process that is shared with other processes, in bytes.
    pub shared_bytes: u64,
    /// Memory of the process that is not shared, in bytes.
    pub private_bytes: u64,
    /// Page faults that needed no I/O, since the task started.
    pub minor_faults: u64,
}

impl RunRecord {
    /// Returns whether no case has a sample.
    pub fn is_empty(&self) -> bool {
        self.cases.iter().all(|case| case.samples.is_empty())
    }

    /// Returns the number of cases that have samples.
    pub fn measured(&self) -> usize {
        self.cases.iter().filter(|case| !case.samples.is_empty()).count()
    }

    /// Returns whether the budget or the time limit left no time for the first sample of a case.
    pub fn lacked_time(&self) -> bool {
        let is_cut = |case: &Case| case.samples.is_empty() && case.stopped == Some(Stopped::Budget);
        self.cases.iter().any(is_cut)
    }

    /// Returns the names of the cases' experiments, each once, in order of first appearance.
    pub fn experiments(&self) -> Vec<&str> {
        distinct(self.cases.iter().map(|case| case.experiment.as_str()))
    }

    /// Returns the cases of experiments with the given view.
    pub fn cases_of(&self, view: View) -> impl Iterator<Item = &Case> + Clone {
        self.cases.iter().filter(move |case| case.view == view)
    }

    /// Returns the lines through cases of experiments with the given view.
    pub fn fits_of(&self, view: View) -> impl Iterator<Item = &Fit> {
        let is_of_view =
            move |fit: &&Fit| self.cases_of(view).any(|case| case.experiment == fit.experiment);
        self.fits.iter().filter(is_of_view)
    }
}

/// Returns each of `names` once, in order of first appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

impl Metric {
    /// Creates a metric from its samples. Without samples, its median is 0.
    pub fn of(unit: Unit, samples: Vec<f64>) -> Self {
        Self { unit, median: stats::median(&samples).unwrap_or(0.0), samples }
    }
}

impl Stage {
    /// Returns median user time plus median system time, in nanoseconds.
    pub fn cpu(&self) -> f64 {
        self.user.median + self.system.median
    }

    /// Returns median CPU time in percent of median wall time, as `time` prints it: 200 is two
    /// fully used CPUs. Returns 0 if the wall time is 0.
    pub fn cpu_percent(&self) -> f64 {
        if self.real.median > 0.0 { 100.0 * self.cpu() / self.real.median } else { 0.0 }
    }
}

impl Case {
    /// Creates a case without samples, metrics and other results.
    pub fn new(experiment: &str, view: View, parameters: Parameters, unit: Unit) -> Self {
        Self {
            experiment: experiment.to_owned(),
            view,
            parameters,
            unit,
            samples: Vec::new(),
            median: None,
            ci95: None,
            min: None,
            max: None,
            outliers: Vec::new(),
            disturbed: Vec::new(),
            retaken: 0,
            iterations: 0,
            stopped: None,
            metrics: BTreeMap::new(),
            facts: BTreeMap::new(),
            limit: None,
            stages: Vec::new(),
            timeline: Vec::new(),
            warnings: Vec::new(),
            skipped: None,
        }
    }

    /// Returns the name of the experiment within its family: the part of its full name after the
    /// slash, or an empty string without a slash.
    pub fn name(&self) -> &str {
        family_and_name(&self.experiment).1
    }

    /// Returns the median of the metric `name`, or `None` if the case does not have it.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).map(|metric| metric.median)
    }
}

impl AsRef<Parameters> for Case {
    fn as_ref(&self) -> &Parameters {
        &self.parameters
    }
}
