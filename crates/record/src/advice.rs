//! Changes to a pipeline, with their predicted and measured times.
//!
//! Part of the schema `contend.pipe/1`. Wall times are in seconds (`CLOCK_MONOTONIC`); CPU times are
//! seconds that the kernel charges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::Estimate;

/// The rewrite that a candidate comes from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RewriteId {
    /// A `cat` that only forwards its input is removed.
    DropCat,
    /// `sort | uniq` is replaced by `sort -u`.
    SortUnique,
    /// `grep | wc -l` is replaced by `grep -c`.
    CountInGrep,
    /// Two `sed` commands are merged into one.
    FuseSed,
    /// Two `grep -v` commands are merged into one.
    FuseGrep,
    /// Two `tr` commands are merged into one.
    FuseTr,
    /// Two `cut` commands are merged into one.
    FuseCut,
    /// Two `head` commands are merged into one.
    FuseHead,
    /// A filter is moved before stages that it does not depend on.
    FilterEarly,
    /// A stage is moved after a `tail`, so that it processes fewer lines, or is removed because
    /// only the number of lines counts.
    ReduceEarly,
    /// Only the first or last lines are kept while sorting, because no others are used.
    TopLines,
    /// A command works on bytes instead of the characters of a locale (`LC_ALL=C`).
    ByteLocale,
    /// `awk` is replaced by another implementation.
    AnotherAwk,
    /// `sort` is given more memory, more threads, or compressed temporary files.
    SortResources,
    /// A pipe is given a larger capacity.
    LargerPipe,
    /// The bottleneck stage is split into two.
    SplitStage,
    /// Several of the other rewrites are applied together.
    Combined,
    /// `contend run` runs the unchanged pipeline over chunks of its input.
    ParallelRun,
}

/// How certain it is, before a candidate has run, that its output is that of the original.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Safety {
    /// Always the same output, by the specification of the commands.
    Always,
    /// The same output on some data, so it must be checked on the data at hand.
    ThisData,
    /// The environment changes, such as the locale or the available memory, so the output must be
    /// checked.
    Environment,
}

/// The result of the trial for a candidate, compared with the original.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate was not tried, or no run of it has ended.
    #[default]
    NotTried,
    /// The same output, and faster.
    Faster,
    /// The same output, not slower, and less CPU time.
    Cheaper,
    /// The same output, and no relevant difference in time.
    NoDifference,
    /// The same output, but slower; or a run took so much longer than the original that it was
    /// ended, and its output was not compared.
    Slower,
    /// A different output or a different exit status.
    Wrong,
    /// Inconclusive, most often because the time budget was used up.
    Unclear,
}

impl Verdict {
    /// Returns whether the trial recommends the candidate: the candidate is faster, or uses less
    /// CPU time without being slower.
    pub fn recommends(self) -> bool {
        matches!(self, Self::Faster | Self::Cheaper)
    }
}

/// A changed form of the pipeline, with its predictions and measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The rewrite that the candidate comes from.
    pub rewrite: RewriteId,
    /// The rewrites that are applied together; empty unless `rewrite` is `combined`.
    #[serde(default)]
    pub rewrites: Vec<RewriteId>,
    /// What distinguishes the candidate from others of the same rewrite, such as the name of another
    /// awk; null if nothing does.
    #[serde(default)]
    pub variant: Option<String>,
    /// Positions of the stages of the original that the candidate changes, from 1.
    pub stages: Vec<usize>,
    /// Text of the whole changed pipeline, ready to paste.
    pub command: String,
    /// How certain it is, before a run, that the candidate's output is that of the original.
    pub safety: Safety,
    /// Why the candidate may be better, in one line.
    pub reason: String,
    /// Predicted wall time on the whole input, in seconds; null if there is no basis for a
    /// prediction, or if other processes used much of the machine during the profile.
    pub predicted_wall_seconds: Option<f64>,
    /// 95 % interval of the predicted wall time, lower and upper end, in seconds; null if
    /// `predicted_wall_seconds` is null.
    pub predicted_interval: Option<[f64; 2]>,
    /// Predicted user and system time of all stages on the whole input, in seconds; null if there
    /// is no basis for a prediction.
    pub predicted_cpu_seconds: Option<f64>,
    /// 95 % interval of the predicted CPU time, lower and upper end, in seconds; null if
    /// `predicted_cpu_seconds` is null.
    #[serde(default)]
    pub predicted_cpu_interval: Option<[f64; 2]>,
    /// Basis of the prediction; null if there is none.
    pub basis: Option<Basis>,
    /// What the trial has measured.
    #[serde(flatten)]
    pub measured: Measurement,
}

/// What a trial has measured of a candidate, compared with the original in the same rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Median wall time in the trial, in seconds; null if the candidate was not timed.
    pub measured_wall_seconds: Option<f64>,
    /// 95 % interval of the measured wall time, lower and upper end, in seconds, or the range of
    /// fewer than six samples; null if the candidate was not timed.
    pub measured_interval: Option<[f64; 2]>,
    /// Median user and system time in the trial, in seconds; null if the candidate was not timed.
    pub measured_cpu_seconds: Option<f64>,
    /// Wall time of the candidate divided by that of the original in the same round; null if the
    /// candidate was not timed. With fewer than six samples, `ci95` is their range.
    pub wall_ratio: Option<Estimate>,
    /// CPU time of the candidate divided by that of the original in the same round; null if the
    /// candidate was not timed. With fewer than six samples, `ci95` is their range.
    pub cpu_ratio: Option<Estimate>,
    /// Whether every byte of the output and the exit status were those of the original; null if
    /// they were not compared, or if the comparison was inconclusive.
    pub output_equal: Option<bool>,
    /// The first difference from the original's output or exit status, or the time after which a
    /// run that took too long was ended, in words; null if neither applies.
    pub difference: Option<String>,
    /// Result of the trial for the candidate.
    pub verdict: Verdict,
}

/// What a prediction for a candidate is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The changed stages were run alone, on a small sample of their own input; or, for
    /// [`RewriteId::ParallelRun`], the whole pipeline was run on its input or a part of it.
    Pilot,
    /// Measured service times of the stages, and the costs of pipes and of starting programs on the
    /// machine.
    Costs,
}

/// How the candidates were tried: in each round, they and the original ran one after another, and
/// their outputs were compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What the pipelines read in the trial.
    pub input: TrialInput,
    /// Number of complete rounds. In each round, the original and every candidate that was still
    /// undecided ran once, in random order.
    pub rounds: usize,
    /// Wall time of the trial, in seconds (`CLOCK_MONOTONIC`), without the comparison on the whole
    /// input.
    pub seconds: f64,
    /// Wall time after which no further round began, in seconds.
    pub budget_seconds: f64,
    /// Whether the trial ended because every candidate was decided.
    pub settled: bool,
    /// Whether a signal ended the trial.
    #[serde(default)]
    pub interrupted: bool,
    /// Wall time of the original, in seconds; null if it was not timed.
    pub original_wall_seconds: Option<Estimate>,
    /// User and system time of the original, in seconds; null if it was not timed.
    pub original_cpu_seconds: Option<Estimate>,
    /// The best candidate, as an index in `candidates`, from 0; null if no candidate has been shown
    /// to be better than the original.
    pub winner: Option<usize>,
    /// Whether the winner's output was also that of the original on the whole input; null if the
    /// trial used the whole input anyway, if there is no winner, or if a signal ended the
    /// comparison.
    pub confirmed_on_whole_input: Option<bool>,
    /// Median wall times of the original and of the winner on the whole input, in seconds, from one
    /// or three runs of each; null if `confirmed_on_whole_input` is null.
    pub whole_wall_seconds: Option<[f64; 2]>,
    /// Results with several copies at the same time (`--copies`, `--sweep-copies`), for each number
    /// of copies that was measured; empty if none was.
    pub load: Vec<LoadPoint>,
}

impl Trial {
    /// Creates the record of a trial without candidates, in which nothing ran. `budget_seconds` is
    /// the wall time that the rounds were allowed to take.
    pub fn without_candidates(input: TrialInput, budget_seconds: f64) -> Self {
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

/// Measurements of the original and of the best candidates under load: a given number of copies of
/// one pipeline run at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// Number of copies of one pipeline that ran at the same time.
    pub copies: usize,
    /// Figures of the original, then of at most three candidates with the same output.
    pub figures: Vec<LoadFigures>,
}

/// One pipeline under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFigures {
    /// The pipeline, as an index in `candidates`, from 0; null for the original.
    pub candidate: Option<usize>,
    /// Wall time from the start of the first copy to the end of the last one, in seconds; one
    /// sample for each round.
    pub wall_seconds: Estimate,
    /// Median wall time of a single copy, over all copies in all rounds, in seconds.
    pub copy_wall_seconds: f64,
    /// User time of all copies, in seconds: that of the median copy, times the number of copies.
    pub user_seconds: f64,
    /// System time of all copies, in seconds: that of the median copy, times the number of copies.
    pub system_seconds: f64,
    /// Throughput: the number of copies divided by the median of `wall_seconds`.
    pub copies_per_second: f64,
}

/// What the pipelines read in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrialInput {
    /// Files that the pipelines open themselves, if any.
    Own,
    /// A whole file, as the input of the first stage.
    Whole {
        /// Size of the file, in bytes.
        bytes: u64,
    },
    /// Ranges from the head, the middle and the tail of a file, cut at line ends.
    Sample {
        /// Size of all ranges together, in bytes.
        bytes: u64,
        /// Size of the whole file, in bytes.
        of_bytes: u64,
    },
    /// The beginning of standard input.
    Beginning {
        /// Size of the saved beginning, in bytes.
        bytes: u64,
        /// Whether the saved beginning is all of standard input.
        complete: bool,
    },
}

/// Costs of pipes and of starting programs on the machine, in CPU time. Costs that were measured
/// for the record itself are wall times, which approximate CPU times on an idle machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationRecord {
    /// CPU time to move one byte through a pipe by large writes and reads, in seconds, without the
    /// cost of the calls.
    pub pipe_byte_seconds: f64,
    /// CPU time of a write and a read of one byte, in seconds.
    pub pipe_call_seconds: f64,
    /// CPU time to start and end a program that does nothing, in seconds.
    pub start_up_seconds: f64,
    /// Number of the run of the lab that `start_up_seconds` is from; null if `start_up_seconds` was
    /// measured for the record itself.
    pub start_up_from_run: Option<i64>,
}

/// Times that the model predicts for a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Wall time, in seconds; null if the load of other processes during the profile was too high
    /// for a prediction.
    pub wall_seconds: Option<f64>,
    /// User and system time of all stages, in seconds.
    pub cpu_seconds: f64,
}

/// The answer to a `--what-if` question, predicted from the profile without running anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The question, as given.
    pub question: String,
    /// Predicted wall time on an otherwise idle machine, in seconds; for several copies, until the
    /// last one ends.
    pub wall_seconds: f64,
    /// Predicted user and system time in total, in seconds.
    pub cpu_seconds: f64,
    /// The predicted bottleneck, in words.
    pub bottleneck: String,
}
