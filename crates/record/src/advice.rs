//! What could be changed in a pipeline, what a change should bring, and what it did bring.
//!
//! Part of the schema `contend.pipe/1`. Times are seconds of `CLOCK_MONOTONIC`, CPU times those
//! that the kernel charges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::Estimate;

/// Which rewrite a candidate comes from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RewriteId {
    /// A `cat` that only hands on what it reads is left out.
    DropCat,
    /// `sort | uniq` becomes `sort -u`.
    SortUnique,
    /// `grep | wc -l` becomes `grep -c`.
    CountInGrep,
    /// Two `sed` become one.
    FuseSed,
    /// Two `grep -v` become one.
    FuseGrep,
    /// Two `tr` become one.
    FuseTr,
    /// Two `cut` become one.
    FuseCut,
    /// Two `head` become one.
    FuseHead,
    /// A filter comes before what it does not depend on.
    FilterEarly,
    /// A stage comes after the one that reduces its input, or is left out if only lines count.
    ReduceEarly,
    /// Only the first lines of a sorted input are kept while sorting.
    TopLines,
    /// A command compares bytes, not letters of a language.
    ByteLocale,
    /// Another implementation of `awk`.
    AnotherAwk,
    /// `sort` with more memory, more threads, or compressed temporary files.
    SortResources,
    /// A pipe that holds more.
    LargerPipe,
    /// The stage that sets the pace becomes two.
    SplitStage,
    /// Several of these together.
    Combined,
}

/// What is known of a candidate's output before it has run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Safety {
    /// The same output always, by the definition of the commands.
    Always,
    /// The same output on some data: to be checked.
    ThisData,
    /// It changes the environment: the locale, or the memory that is used. To be checked.
    Environment,
}

/// What is to be said of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It has not been tried.
    NotTried,
    /// Its output is the same, and it is faster.
    Faster,
    /// Its output is the same, it is not slower, and it uses less CPU time.
    Cheaper,
    /// Its output is the same, and there is no difference that matters.
    NoDifference,
    /// Its output is the same, but it is slower.
    Slower,
    /// Its output or its status is another one.
    Wrong,
    /// It could not be told, most often because the budget was used up.
    Unclear,
}

impl Verdict {
    /// Whether the change is worth making.
    pub fn recommends(self) -> bool {
        matches!(self, Self::Faster | Self::Cheaper)
    }
}

/// A changed pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Where it comes from.
    pub rewrite: RewriteId,
    /// The stages of the original that it changes, from 1.
    pub stages: Vec<usize>,
    /// The whole pipeline, ready to paste.
    pub command: String,
    /// What is known of its output.
    pub safety: Safety,
    /// Why it may be better, in one line.
    pub reason: String,
    /// Predicted wall time on the whole input; null where there is nothing to predict from, and
    /// where others used much of the machine meanwhile.
    pub predicted_wall_seconds: Option<f64>,
    /// In which the wall time is expected in 95 of 100 cases.
    pub predicted_interval: Option<[f64; 2]>,
    /// Predicted user and system time of all stages.
    pub predicted_cpu_seconds: Option<f64>,
    /// What the prediction rests on.
    pub basis: Option<Basis>,
    /// Median wall time where it was tried.
    pub measured_wall_seconds: Option<f64>,
    /// Its 95 % interval.
    pub measured_interval: Option<[f64; 2]>,
    /// Median user and system time where it was tried.
    pub measured_cpu_seconds: Option<f64>,
    /// Its wall time by that of the original in the same round.
    pub wall_ratio: Option<Estimate>,
    /// Its CPU time by that of the original in the same round.
    pub cpu_ratio: Option<Estimate>,
    /// Whether every byte of its output, and its status, were those of the original.
    pub output_equal: Option<bool>,
    /// The first difference if they were not.
    pub difference: Option<String>,
    /// What is to be said of it.
    pub verdict: Verdict,
}

/// What a prediction rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The changed stages were run alone, on a small part of their own input.
    Pilot,
    /// The stages' measured service times, and what pipes and starting cost on this machine.
    Costs,
}

/// How the candidates were tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What the pipeline read.
    pub input: TrialInput,
    /// Rounds: in each, every pipeline that was still in question ran once, in random order.
    pub rounds: usize,
    /// Time that the trial took.
    pub seconds: f64,
    /// Time that it was allowed to take.
    pub budget_seconds: f64,
    /// Whether it ended because nothing was in question any more.
    pub settled: bool,
    /// Whether it ended because contend was asked to end.
    #[serde(default)]
    pub interrupted: bool,
    /// The original's wall time.
    pub original_wall_seconds: Option<Estimate>,
    /// The original's user and system time.
    pub original_cpu_seconds: Option<Estimate>,
    /// The best candidate: its place in `candidates`, from 0; null if the original is best.
    pub winner: Option<usize>,
    /// Whether original and winner were also compared on the whole input; null where the trial
    /// had used the whole input anyway, or there is no winner.
    pub confirmed_on_whole_input: Option<bool>,
    /// Wall times of the original and of the winner in that last comparison.
    pub whole_wall_seconds: Option<[f64; 2]>,
    /// With several copies at the same time (`--copies`, `--sweep-copies`).
    pub load: Vec<LoadPoint>,
}

impl Trial {
    /// A trial for which there was no candidate.
    pub fn of_nothing(input: TrialInput, budget_seconds: f64) -> Self {
        Self {
            input,
            rounds: 0,
            seconds: 0.0,
            budget_seconds,
            settled: true,
            interrupted: false,
            original_wall_seconds: None,
            original_cpu_seconds: None,
            winner: None,
            confirmed_on_whole_input: None,
            whole_wall_seconds: None,
            load: Vec::new(),
        }
    }
}

/// Original and candidates with so many copies of each at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// Copies that ran at the same time.
    pub copies: usize,
    /// The original, then the candidates that were tried.
    pub figures: Vec<LoadFigures>,
}

/// One pipeline under load: medians over the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFigures {
    /// Its place in `candidates`, from 0; null for the original.
    pub candidate: Option<usize>,
    /// From the start of the first copy to the end of the last one.
    pub wall_seconds: Estimate,
    /// Wall time of one copy.
    pub copy_wall_seconds: f64,
    /// User time of all copies.
    pub user_seconds: f64,
    /// System time of all copies.
    pub system_seconds: f64,
    /// Copies that end in a second.
    pub copies_per_second: f64,
}

/// What the tried pipelines read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrialInput {
    /// Whatever they read by themselves.
    Own,
    /// The whole of a file.
    Whole {
        /// Its size.
        bytes: u64,
    },
    /// Parts from the head, the middle and the tail of a file, cut at the ends of lines.
    Sample {
        /// The parts together.
        bytes: u64,
        /// The whole file.
        of_bytes: u64,
    },
    /// What came first through standard input.
    Beginning {
        /// How much of it was kept.
        bytes: u64,
        /// Whether it was all.
        complete: bool,
    },
}

/// What pipes and starting cost on this machine, in CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationRecord {
    /// For a byte to be written to a pipe and read from it in large pieces, in seconds.
    pub pipe_byte_seconds: f64,
    /// For a write and a read of one byte.
    pub pipe_call_seconds: f64,
    /// For starting and ending a program that does nothing.
    pub start_up_seconds: f64,
    /// The run of the lab that the start-up comes from; null where it was measured now.
    pub start_up_from_run: Option<i64>,
}

/// What the model expects of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Wall time; null where others used so much of the machine meanwhile that the profile says
    /// little about it.
    pub wall_seconds: Option<f64>,
    /// User and system time of all stages.
    pub cpu_seconds: f64,
}

/// A question of the kind "what if", answered from the profile without running anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The question as given.
    pub question: String,
    /// Predicted wall time on a machine that has nothing else to do; for several copies, until
    /// the last one ends.
    pub wall_seconds: f64,
    /// Predicted user and system time in all.
    pub cpu_seconds: f64,
    /// What sets the pace then.
    pub bottleneck: String,
}
