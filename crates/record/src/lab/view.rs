//! How reports present a record: the view of each experiment, and the chapter of a suite.
//!
//! The lab writes both into its records, from its tables of experiments and suites. Reports select
//! what they show by the view and the chapter, never by the name of an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the cases of an experiment show, which decides how a report presents them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The generic table: a row for each case, with its parameters and figures.
    #[default]
    Table,
    /// A cache line that moves back and forth between two CPUs.
    CacheLine,
    /// A futex that two partners pass to each other.
    Futex,
    /// Memory that one CPU copies after another one has written it.
    HandedCopy,
    /// A variable of a process and its child, step by step.
    ProcessSharing,
    /// A variable that two threads share, step by step.
    ThreadSharing,
    /// Cost of creating units of concurrency.
    Creation,
    /// Memory of waiting units.
    UnitMemory,
    /// Maximum number of simultaneous units, and the limit that determines it.
    UnitLimit,
    /// Cost of starting programs.
    Startup,
    /// Memory of a unit in every runtime.
    RuntimeMemory,
    /// Round trip of a message to a unit in every runtime.
    RuntimeRoundTrip,
    /// Variants of the evaluation that the suite of runtimes follows.
    RuntimeDocument,
    /// Turns handed to a partner, by mechanism and placement.
    HandoffMechanisms,
    /// Turns handed to a partner, as in a case of the test report. The part of the experiment's
    /// name after the slash is the number of the case in the test report.
    HandoffPreset,
    /// Many messages of one byte.
    OneByte,
    /// Messages in one direction, by mechanism, length and placement.
    OneWay,
    /// Messages and their answers, by mechanism, length and placement.
    RoundTrip,
    /// Messages sent at a fixed rate.
    MessageRate,
    /// Methods to copy a file.
    FileCopy,
    /// Hand-offs between any two CPUs.
    CpuPairs,
    /// Processes and threads whose work needs only CPUs.
    Computing,
    /// Processes and threads whose work also competes for other resources.
    Saturation,
    /// Servers under load.
    Requests,
    /// Idle connections of servers.
    IdleConnections,
    /// A JSON parser as a pipeline of `awk` commands.
    PipelineJson,
    /// Four `sed` commands, as a pipeline or as one.
    PipelineSed,
    /// Filters, early and late in a pipeline.
    PipelineFilter,
    /// Stages that hold back lines.
    PipelineHold,
    /// Cost of starting the programs of a pipeline.
    PipelineStartup,
}

impl View {
    /// Returns whether the view is the generic table, which records omit.
    pub fn is_table(&self) -> bool {
        *self == Self::Table
    }
}

/// The chapter of a report that shows a suite's experiments together and compares them with a
/// source document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chapter {
    /// Processes and threads (a workshop).
    ProcessThread,
    /// Pipelines in the shell (a study).
    Pipeline,
    /// Synchronisation between processes (a test report).
    Synchronisation,
    /// Units of concurrency in every runtime (an evaluation).
    Runtimes,
    /// Pipes and shared memory (an article).
    SharedMemory,
}

/// Splits an experiment's full name at the slash into its family and its name within the family.
/// Without a slash, the family is the full name, and the name within it is empty.
pub fn family_and_name(experiment: &str) -> (&str, &str) {
    experiment.split_once('/').unwrap_or((experiment, ""))
}
