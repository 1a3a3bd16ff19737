//! What one run of the lab measured: schema `contend.lab/1`.
//!
//! A run measures cases; a case is one experiment with one set of parameters. Times are of
//! `CLOCK_MONOTONIC` unless said; CPU times are the scheduler's.

mod view;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameters::{Parameters, Value};
use crate::stats::{self, Line, Scaling};
use crate::{Host, Warning, Writer};

pub use view::{Chapter, View, family_and_name};

/// The schema's name and version.
pub const SCHEMA: &str = "contend.lab/1";

/// One run of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// `contend.lab/1`.
    pub schema: String,
    /// The contend that wrote it; null in records of versions that did not tell.
    #[serde(default)]
    pub contend: Option<Writer>,
    /// The suite that was run; null where experiments were chosen by name.
    pub suite: Option<String>,
    /// The chapter that shows its suite; absent where experiments were chosen by name, and in
    /// records of versions that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chapter: Option<Chapter>,
    /// When it started: UTC, RFC 3339.
    pub started_at: String,
    /// From the start to the end of the last sample, in seconds.
    pub wall_seconds: f64,
    /// The seed of the order of cases and of the intervals.
    pub seed: u64,
    /// The smaller form was asked for.
    pub quick: bool,
    /// Time that was to be used for measuring, in seconds.
    pub budget_seconds: f64,
    /// How it came to its end.
    pub ending: Ending,
    /// The machine.
    pub host: Host,
    /// What the clock and the loops themselves cost; null where nothing was timed.
    pub calibration: Option<Calibration>,
    /// What was measured, in the order of the plan.
    pub cases: Vec<Case>,
    /// Lines through the cases of one kind that differ in their number of units.
    pub fits: Vec<Fit>,
    /// How work scales with the number of its workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ScalingFit>,
    /// What makes the figures of this run worth less.
    pub warnings: Vec<Warning>,
}

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It has not: it is still at work, or was killed.
    Unfinished,
    /// A signal asked it to stop.
    Interrupted,
    /// Every case has what it needs, or the budget was used.
    Complete,
    /// It went to its end, and no case could be measured.
    Empty,
}

/// What measuring itself costs, as measured before the first sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Two readings of the clock, one after the other, in nanoseconds; a sample is made long
    /// enough for this not to matter, and it is subtracted.
    pub clock_nanoseconds: f64,
    /// The smallest step between two different readings, in nanoseconds.
    pub clock_resolution_nanoseconds: f64,
    /// One iteration of the loop around an empty operation, in nanoseconds; it is subtracted.
    pub empty_loop_nanoseconds: f64,
    /// A cache line to another CPU and back, in nanoseconds; null with one CPU.
    pub cache_line_nanoseconds: Option<f64>,
}

/// One experiment with one set of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The experiment, such as `units/create`.
    pub experiment: String,
    /// How a report presents it; absent for the generic table, and in records of versions that did
    /// not write it.
    #[serde(default, skip_serializing_if = "View::is_table")]
    pub view: View,
    /// What it was done with.
    pub parameters: Parameters,
    /// The unit of the samples.
    pub unit: Unit,
    /// Every sample, in the order measured, outliers too.
    pub samples: Vec<f64>,
    /// Their median; null when there are none.
    pub median: Option<f64>,
    /// Percentile-bootstrap interval of the median; null with fewer than six samples.
    pub ci95: Option<[f64; 2]>,
    /// The least.
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
    /// Which samples, from 0, lie far from the others: a modified z-score above 3.5 (Iglewicz
    /// & Hoaglin 1993).
    pub outliers: Vec<usize>,
    /// Which samples, from 0, were taken while others used the CPUs and could not be retaken.
    pub disturbed: Vec<usize>,
    /// How many samples were taken anew because others used the CPUs.
    pub retaken: usize,
    /// How often the operation was done for one sample.
    pub iterations: u64,
    /// Why no more samples were taken.
    pub stopped: Option<Stopped>,
    /// What else was measured with each sample, such as CPU time.
    pub metrics: BTreeMap<String, Metric>,
    /// What is worth knowing about the subject, such as its parent's memory.
    pub facts: BTreeMap<String, Value>,
    /// For experiments that look for a limit: which, and how it was recognised.
    pub limit: Option<LimitReport>,
    /// For pipelines: what each stage took, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// For demonstrations: what happened, step by step.
    pub timeline: Vec<Step>,
    /// What makes this case's figures worth less.
    pub warnings: Vec<Warning>,
    /// Why it was not measured; null if it was.
    pub skipped: Option<String>,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Units of concurrency: processes, threads.
    #[serde(rename = "units")]
    Units,
    /// Events: switches, page faults.
    #[serde(rename = "count")]
    Count,
}

/// Why no more samples of a case were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The interval of its median is narrow enough.
    Interval,
    /// It has as many samples as it is meant to have.
    Count,
    /// The run's time was used.
    Budget,
    /// A signal asked the run to stop.
    Interrupt,
    /// Its subject failed.
    Failure,
}

/// A figure that is measured beside the case's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// What it counts.
    pub unit: Unit,
    /// The median of its samples.
    pub median: f64,
    /// One for each sample of the case, in the same order.
    pub samples: Vec<f64>,
}

/// A stage of a pipeline. Of several copies that run at once these are the means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// What it is called: its command, or what it is there for.
    pub stage: String,
    /// From its start to its end, in nanoseconds.
    pub real: Metric,
    /// CPU time in user mode, in nanoseconds, of it and the children that it waited for. The
    /// kernel splits user and system time by ticks, their sum is exact.
    pub user: Metric,
    /// CPU time in the kernel, in nanoseconds.
    pub system: Metric,
}

/// A line through cases that differ in one parameter alone: what one unit more takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// The experiment.
    pub experiment: String,
    /// The parameters that the cases have in common.
    pub parameters: Parameters,
    /// The parameter in which they differ.
    pub over: String,
    /// Which figure: the name of a metric, or `value` for the case's own.
    pub metric: String,
    /// The unit of the figure.
    pub unit: Unit,
    /// The line.
    pub line: Line,
}

/// A law of scaling through cases that differ in their number of workers alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingFit {
    /// The experiment.
    pub experiment: String,
    /// The parameters that the cases have in common.
    pub parameters: Parameters,
    /// What the workers are: `threads` of one process, or `processes` with one thread each.
    pub over: String,
    /// The law.
    pub law: Scaling,
    /// How many of the samples behind it were taken while others used the CPUs.
    #[serde(default)]
    pub disturbed: usize,
}

/// How far creation can go, by prediction and by trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    /// Every limit that applies, the tightest first.
    pub limits: Vec<Limit>,
    /// The number at which the trial was to stop by itself; null for none.
    pub cap: Option<u64>,
    /// How many could be created at once.
    pub created: u64,
    /// The error that ended it, such as `EAGAIN`; null when the cap or the guard did.
    pub errno: Option<String>,
    /// What ended it.
    pub stopped_by: StoppedBy,
    /// How that was found out.
    pub evidence: Vec<String>,
    /// Whether the limit predicted was the one that stopped it, at about this number.
    pub prediction_held: Option<bool>,
}

/// What ended a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "limit")]
pub enum StoppedBy {
    /// The cap that was given.
    Cap,
    /// The guard, before the memory ran out.
    MemoryFloor,
    /// This limit.
    Limit(String),
    /// An error for which no limit was found at its end.
    Unknown,
}

/// A limit that stands in the way of creating more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Its name, such as `RLIMIT_NPROC` or `vm.max_map_count`.
    pub name: String,
    /// Where it is set.
    pub source: String,
    /// Its value.
    pub value: u64,
    /// How much of it was in use before the trial.
    pub in_use: u64,
    /// How much of it one unit takes.
    pub per_unit: f64,
    /// How many more units it allows.
    pub allows: u64,
}

/// One step of a demonstration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Since the demonstration began, in seconds.
    pub at_seconds: f64,
    /// Which unit did it: `parent`, `child`, `main`, `thread`.
    pub who: String,
    /// What it did.
    pub what: String,
    /// The address of the variable, in hexadecimal.
    pub address: Option<String>,
    /// The variable's value as this unit saw it.
    pub value: Option<i64>,
    /// What the kernel shows of each task at this moment.
    pub tasks: Vec<Task>,
}

/// A process or thread as the kernel shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its process.
    pub pid: i32,
    /// Its thread.
    pub tid: i32,
    /// Its process's parent.
    pub ppid: i32,
    /// R, S, D, T, Z …
    pub state: String,
    /// Its process's resident set in bytes: shared pages count in full.
    pub rss_bytes: u64,
    /// Its process's proportional set in bytes: a page shared by two counts half.
    pub pss_bytes: u64,
    /// Bytes that are shared with other processes.
    pub shared_bytes: u64,
    /// Bytes that only this process has.
    pub private_bytes: u64,
    /// Page faults without input or output since it started.
    pub minor_faults: u64,
}

impl RunRecord {
    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.cases.iter().all(|case| case.samples.is_empty())
    }

    /// The experiments that it has cases of, in the order in which they appear.
    pub fn experiments(&self) -> Vec<&str> {
        distinct(self.cases.iter().map(|case| case.experiment.as_str()))
    }

    /// The cases of experiments with this view.
    pub fn cases_of(&self, view: View) -> impl Iterator<Item = &Case> + Clone {
        self.cases.iter().filter(move |case| case.view == view)
    }

    /// The lines through cases of experiments with this view.
    pub fn fits_of(&self, view: View) -> impl Iterator<Item = &Fit> {
        let is_of_view =
            move |fit: &&Fit| self.cases_of(view).any(|case| case.experiment == fit.experiment);
        self.fits.iter().filter(is_of_view)
    }
}

/// Each name once, where it appears first.
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
    /// Of these samples.
    pub fn of(unit: Unit, samples: Vec<f64>) -> Self {
        Self { unit, median: stats::median(&samples).unwrap_or(0.0), samples }
    }
}

impl Stage {
    /// CPU time, in nanoseconds.
    pub fn cpu(&self) -> f64 {
        self.user.median + self.system.median
    }

    /// CPU time by real time, in percent, as `time` prints it: 200 is two CPUs all the time.
    pub fn cpu_percent(&self) -> f64 {
        if self.real.median > 0.0 { 100.0 * self.cpu() / self.real.median } else { 0.0 }
    }
}

impl Case {
    /// A case without samples yet.
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

    /// The name of its experiment within the family.
    pub fn name(&self) -> &str {
        family_and_name(&self.experiment).1
    }

    /// The median of the metric with this name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).map(|metric| metric.median)
    }
}

impl AsRef<Parameters> for Case {
    fn as_ref(&self) -> &Parameters {
        &self.parameters
    }
}
