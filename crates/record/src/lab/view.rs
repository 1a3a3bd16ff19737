//! Which tables and which chapter of a report a record is shown in.
//!
//! The lab writes these into its records, from the row of the experiment or suite. Reports choose
//! by them, never by the name of an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the cases of an experiment show, and so how a report presents them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// Nothing that needs a table of its own: a row for each case, with its parameters and figures.
    #[default]
    Table,
    /// A cache line that bounces between two CPUs.
    CacheLine,
    /// A futex that two partners hand over.
    Futex,
    /// Memory that one CPU copies after another one has written it.
    HandedCopy,
    /// A variable of a process and its child, step by step.
    ProcessSharing,
    /// A variable of two threads, step by step.
    ThreadSharing,
    /// What creating units of concurrency takes.
    Creation,
    /// The memory of units that wait.
    UnitMemory,
    /// How many units can exist at once, and what stops more.
    UnitLimit,
    /// What starting programs takes.
    Startup,
    /// The memory of a unit in every runtime.
    RuntimeMemory,
    /// A message to a unit and back in every runtime.
    RuntimeRoundTrip,
    /// The forms of the evaluation that the runtimes follow.
    RuntimeDocument,
    /// Turns handed to a partner, by mechanism and placement.
    HandoffMechanisms,
    /// Turns handed to a partner, as in a case of the test report. What stands behind the slash of
    /// the experiment's name is the report's number.
    HandoffPreset,
    /// Many messages of one byte.
    OneByte,
    /// Messages in one direction, by mechanism, length and placement.
    OneWay,
    /// Messages and their answers, by mechanism, length and placement.
    RoundTrip,
    /// Messages that are sent at a rate.
    MessageRate,
    /// Ways to copy a file.
    FileCopy,
    /// Hand-offs between any two CPUs.
    CpuPairs,
    /// Processes and threads that compute: work that needs nothing but CPUs.
    Computing,
    /// Processes and threads at work that competes for more than CPUs.
    Saturation,
    /// Servers under load.
    Requests,
    /// Connections on which nothing happens.
    IdleConnections,
    /// A JSON parser as a pipeline of awks.
    PipelineJson,
    /// Four seds, as a pipeline or as one.
    PipelineSed,
    /// Filters, early and late in a pipeline.
    PipelineFilter,
    /// Stages that hold lines back.
    PipelineHold,
    /// What starting the programs of a pipeline takes.
    PipelineStartup,
}

impl View {
    /// Whether this is the generic table, which records do not name.
    pub fn is_table(&self) -> bool {
        *self == Self::Table
    }
}

/// The chapter that shows the experiments of a suite together, beside the document it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chapter {
    /// Processes and threads: a workshop.
    ProcessThread,
    /// Pipelines in the shell: a study.
    Pipeline,
    /// Synchronisation between processes: a test report.
    Synchronisation,
    /// Units of concurrency in every runtime: an evaluation.
    Runtimes,
    /// Pipes and shared memory: an article.
    SharedMemory,
}

/// The family of an experiment, and its name within it: what stands before and behind the slash.
pub fn family_and_name(experiment: &str) -> (&str, &str) {
    experiment.split_once('/').unwrap_or((experiment, ""))
}
