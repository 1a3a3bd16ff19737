//! `contend lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use contend_lab::engine::experiment::Cap;

/// Measures what processes, threads and other units of concurrency cost on this machine.
///
/// Every experiment is measured in processes of its own, case by case in turn, until the 95 %
/// interval of each median is narrower than 2 % or the time is used. Every run of the lab that has
/// measured something is kept: `contend history` lists them.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_value_name = "WHAT")]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: LabVerb,
}

/// What to do in the lab.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Lists the experiments and suites, and what cannot be measured here.
    List,
    /// Runs experiments by name or pattern.
    #[command(after_long_help = EXAMPLES)]
    Run(RunArgs),
    /// Runs the experiments of a suite and shows them together, with an explanation.
    Suite(SuiteArgs),
}

const EXAMPLES: &str = "\
Examples:
  contend lab run units/create
  contend lab run 'sharing/*' --step-seconds 2
  contend lab run units/create --only kind=fork --only n=1 --budget 20
  contend lab run handoff/2 --set placement=same-cpu,two-cpus --set to_main=eventfd
  contend lab run units/limit --cap none";

/// `contend lab run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Names of experiments, or patterns in which `*` stands for anything.
    #[arg(required = true, value_name = "NAME|GLOB")]
    pub names: Vec<String>,

    #[command(flatten)]
    pub how: HowArgs,
}

/// `contend lab suite`.
#[derive(Debug, Args)]
pub struct SuiteArgs {
    /// The suite.
    #[arg(value_name = "NAME")]
    pub name: String,

    #[command(flatten)]
    pub how: HowArgs,
}

/// How experiments are run.
#[derive(Debug, Args)]
pub struct HowArgs {
    /// Measure a smaller form, for a first look.
    #[arg(long)]
    pub quick: bool,

    /// Measure the smallest form, only to see that it works.
    #[arg(long, hide = true, conflicts_with = "quick")]
    pub smallest: bool,

    /// Use about this much time for measuring; 3 s a case by default, 45 s at most.
    ///
    /// Experiments with a set number of samples are always done once, whatever they take.
    #[arg(long, value_name = "SECONDS", value_parser = super::budget, allow_negative_numbers = true)]
    pub budget: Option<f64>,

    /// Only cases that have this parameter with this value; may be given several times.
    ///
    /// With nothing after `=`, those that do not have it. Several values of one parameter are
    /// all allowed. Experiments that know no such parameter are not touched.
    #[arg(long, value_name = "PARAMETER=VALUE", value_parser = only)]
    pub only: Vec<(String, String)>,

    /// Do it with this value of a parameter; several values with commas between them are several
    /// cases.
    ///
    /// Which parameters can be set is in docs/reference/experiments.md; a wrong name or value tells the right
    /// ones.
    #[arg(long, value_name = "PARAMETER=VALUE,...", value_parser = only)]
    pub set: Vec<(String, String)>,

    /// Take so many turns in each sample of handoff/0 to handoff/9, which otherwise take fewer of
    /// them the longer they last; the same as --set turns=N.
    #[arg(long, value_name = "N")]
    pub turns: Option<u64>,

    /// The seed of the order of cases and of the intervals; drawn by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Stop looking for a limit after so many units, 10,000 by default; `none` to go to the end.
    ///
    /// At the end nothing on this machine can start a process for a second or two. With --quick
    /// the default is 1,000.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true, value_parser = cap)]
    pub cap: Option<Cap>,

    /// Make at most so many units at once in runtime/memory; 1,000,000 by default.
    ///
    /// A million of the largest takes 3 GB.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_units: Option<u64>,

    /// Do not ask before going to the end.
    #[arg(long)]
    pub yes: bool,

    /// Pause so long after each step of a demonstration; 1 by default, 0 in a suite.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub step_seconds: Option<f64>,

    /// Print what would be measured, and measure nothing.
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,

    /// Write everything as JSON (schema contend.lab/1) to this file, `-` for standard output
    /// instead of the report.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub store: StoreArgs,

    /// Do not keep this run.
    #[arg(long, conflicts_with = "store")]
    pub no_store: bool,

    /// Do not show on the terminal how far the run is.
    #[arg(long)]
    pub no_progress: bool,
}

/// Where runs are kept.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Keep runs in this file instead of contend/contend.db in the XDG data directory.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, env = "CONTEND_STORE")]
    #[arg(hide_env_values = true)]
    pub store: Option<PathBuf>,
}

fn cap(text: &str) -> Result<Cap, String> {
    match text.parse() {
        _ if text == "none" => Ok(Cap::None),
        Ok(0) | Err(_) => Err("give a number from 1, or none".to_owned()),
        Ok(cap) => Ok(Cap::At(cap)),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0 to 86400".to_owned()),
    }
}

fn only(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give PARAMETER=VALUE, such as kind=fork".to_owned()),
    }
}
