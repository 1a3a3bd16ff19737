//! Arguments of `contend lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use contend_lab::engine::experiment::Cap;

use super::export::ExportArgs;

/// Measure the cost of processes, threads, tasks and messages.
///
/// Each case of an experiment runs in a process of its own. Cases take turns until the 95 %
/// interval of each median is narrower than 2 % or the time budget is used up. Every run is saved:
/// `contend history` lists them.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_value_name = "WHAT")]
pub struct LabArgs {
    /// The subcommand with its arguments.
    #[command(subcommand)]
    pub what: LabVerb,
}

/// A subcommand of `contend lab`. clap takes the help of `run` and `suite` from the types of their
/// arguments.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// List experiments and suites, and what this machine cannot run.
    List {
        /// Only experiments with this name or glob, such as 'server/*'.
        #[arg(value_name = "NAME|GLOB")]
        names: Vec<String>,
    },
    #[command(after_long_help = EXAMPLES)]
    Run(LabRunArgs),
    Suite(LabSuiteArgs),
}

const EXAMPLES: &str = "\
Examples:
  contend lab run units/create
  contend lab run 'sharing/*' --step-seconds 2
  contend lab run units/create --only kind=fork --only n=1 --budget 20
  contend lab run handoff/2 --set placement=same-cpu,two-cpus --set to_main=eventfd
  contend lab run units/limit --cap none
  contend lab run 'handoff/*' --on slurm --nodes 4";

/// Run experiments, selected by name or glob.
#[derive(Debug, Args)]
pub struct LabRunArgs {
    /// Experiments, by name or glob such as 'units/*'.
    #[arg(required = true, value_name = "NAME|GLOB")]
    pub names: Vec<String>,

    #[command(flatten)]
    pub measurement: MeasurementArgs,
}

/// Run a suite: related experiments, with conclusions.
///
/// Most suites repeat the experiments of a published study, and compare its figures and conclusions
/// with those of this machine.
#[derive(Debug, Args)]
pub struct LabSuiteArgs {
    /// Suite to run; `contend lab list` shows all.
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Print the table of every experiment too.
    #[arg(long)]
    pub full: bool,

    #[command(flatten)]
    pub measurement: MeasurementArgs,
}

/// Options for the measurement of experiments.
#[derive(Debug, Args)]
pub struct MeasurementArgs {
    /// Run a smaller, less precise version.
    #[arg(long)]
    pub quick: bool,

    /// Run the smallest version, only to check that everything works.
    #[arg(long, hide = true, conflicts_with = "quick")]
    pub smallest: bool,

    /// Time for measuring [default: 3 per case, at most 45].
    ///
    /// Experiments with a fixed number of samples take at least one sample of each case, even beyond
    /// this time. `--dry-run` shows how long the run is expected to take.
    #[arg(long, value_name = "SECONDS", value_parser = super::budget, allow_negative_numbers = true)]
    pub budget: Option<f64>,

    /// Print the plan without measuring.
    #[arg(long, conflicts_with_all = ["json", "html", "export_markdown", "export_csv"])]
    pub dry_run: bool,

    /// Do not show progress.
    #[arg(long)]
    pub no_progress: bool,

    /// Let `contend serve` show the progress.
    #[arg(long, conflicts_with = "dry_run")]
    pub publish: bool,

    /// Seed for the case order [default: random].
    ///
    /// It is also the seed for the bootstrap of intervals.
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64>(..))]
    pub seed: Option<u64>,

    /// Run only cases with these values (repeatable).
    ///
    /// Several values of one parameter, separated by commas or in several options, select cases
    /// with any of them. `NAME=` selects cases without the parameter. Experiments without this
    /// parameter run in full.
    #[arg(long, value_name = "NAME=VALUE,...", value_parser = only, help_heading = "Cases")]
    pub only: Vec<(String, String)>,

    /// Set a parameter (repeatable).
    ///
    /// With several values, separated by commas, each experiment runs a case for each value.
    /// `contend generate experiments` lists the parameters that can be set, with their values.
    #[arg(long, value_name = "NAME=VALUE,...", value_parser = only, help_heading = "Cases")]
    pub set: Vec<(String, String)>,

    /// Turns per sample of handoff/*.
    ///
    /// For handoff/0 to handoff/9; the same as --set turns=N. By default, the number falls with the
    /// length of a turn.
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64>(1..))]
    #[arg(help_heading = "Cases")]
    pub turns: Option<u64>,

    /// Pause after each step [default: 1].
    ///
    /// Applies to demonstrations. In a suite, and with --quick, the default is 0.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(help_heading = "Cases")]
    pub step_seconds: Option<f64>,

    /// Stop at N units when looking for a limit [default: 10000].
    ///
    /// With --quick, the default is 1000. `none` continues to the limit itself. WARNING: at the
    /// limit, nothing on this machine can start a process for a few seconds.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true, value_parser = cap)]
    #[arg(help_heading = "Limits")]
    pub cap: Option<Cap>,

    /// Maximum number of units in runtime/memory [default: 1000000].
    ///
    /// A million of the largest units takes 3 GB.
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64>(1..))]
    #[arg(help_heading = "Limits")]
    pub max_units: Option<u64>,

    /// Do not ask before exhausting a limit of the machine.
    #[arg(long, help_heading = "Limits")]
    pub yes: bool,

    /// Write the results as JSON to FILE, or `-` for stdout.
    ///
    /// The schema is contend.lab/1; `contend generate schema lab` prints it. `-` replaces the
    /// report.
    #[arg(long, visible_alias = "export-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the run as a web page to FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub exports: ExportArgs,

    #[command(flatten)]
    pub nodes: NodesArgs,

    #[command(flatten)]
    pub store: StoreArgs,

    /// Do not save this run.
    #[arg(long, conflicts_with = "store")]
    pub no_store: bool,

    /// Label of this run in the history.
    #[arg(long, value_name = "TEXT", conflicts_with = "no_store")]
    pub label: Option<String>,
}

/// Options for a run on nodes of a cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Clusters")]
pub struct NodesArgs {
    /// Run on nodes of a cluster, all at the same time.
    ///
    /// Each node is reserved for the run, which is saved with the name of the node's machine. The
    /// report compares the machines.
    #[arg(long, value_name = "ENGINE", value_enum)]
    #[arg(conflicts_with_all = ["json", "export_markdown", "export_csv", "publish", "dry_run"])]
    pub on: Option<NodesEngineArg>,

    /// Run on N nodes [default: 1, or all of the allocation].
    #[arg(long, value_name = "N", requires = "on", value_parser = super::whole_number::<u32>(1..))]
    pub nodes: Option<u32>,

    /// Pass OPTION to srun (repeatable).
    #[arg(long, value_name = "OPTION", requires = "on", allow_hyphen_values = true)]
    pub engine_option: Vec<String>,

    /// Create the work directory in DIR, which all nodes can write [default: the current directory].
    #[arg(long, value_name = "DIR", requires = "on", value_hint = ValueHint::DirPath)]
    pub work: Option<PathBuf>,
}

/// An engine that runs commands on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NodesEngineArg {
    /// Slurm, by `srun`.
    Slurm,
}

/// Option for the location of saved runs.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Database of saved runs.
    ///
    /// [default: contend/contend.db in the XDG data directory, ~/.local/share] The environment
    /// variable `CONTEND_STORE` changes the default.
    // The variable is read in `settings::store`: clap would count it as `--store`, which conflicts
    // with `--no-store`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub store: Option<PathBuf>,
}

fn cap(text: &str) -> Result<Cap, String> {
    match text.parse() {
        _ if text == "none" => Ok(Cap::None),
        Ok(0) | Err(_) => Err("expected a number from 1, or `none`".to_owned()),
        Ok(cap) => Ok(Cap::At(cap)),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 86400".to_owned()),
    }
}

fn only(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, such as kind=fork".to_owned()),
    }
}
