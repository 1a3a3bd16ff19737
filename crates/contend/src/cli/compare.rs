//! Arguments of `contend compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::export::ExportArgs;
use super::lab::StoreArgs;

/// Compare runs of the lab, case by case, or runs of pipelines, stage by stage.
///
/// Runs of the lab may be from different machines or different days. Each experiment has a table
/// with a row for each case, a column for each run (A, B, C …), and the ratio of each run to the
/// first with its 95 % interval. The report also names differences between the machines, and lists
/// cases that are missing from some runs with the reason.
///
/// Runs of `contend pipe` and `contend run` have a row each, with the ratio of their times, and the
/// stages that make the difference. A comparison by `contend pipe --vs` has a row for each of its
/// pipelines. To compare pipelines at the same time, use `contend pipe --vs`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompareArgs {
    /// Saved runs by number or label, JSON files, or `-` for stdin.
    ///
    /// `contend history` lists numbers and labels; --json of the other verbs writes the files. The
    /// first run is the baseline of the ratios. A label must be that of only one saved run. A file
    /// takes precedence over a saved run with that number or label. Give at least two runs, or a page
    /// of several (`contend report --html`).
    #[arg(required = true, num_args = 1.., value_name = "FILE|RUN", value_hint = ValueHint::FilePath)]
    pub runs: Vec<PathBuf>,

    /// Write the comparison as JSON to FILE, or `-` for stdout.
    ///
    /// The schema is contend.compare/1, or contend.versus/1 for pipelines; `contend generate
    /// schema` prints it. `-` replaces the report.
    #[arg(long, visible_alias = "export-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the comparison as a web page to FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub exports: ExportArgs,

    #[command(flatten)]
    pub store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  contend compare laptop.json server.json board.json
  contend compare 3 7
  contend compare before after
  contend lab run units/create --json today.json && contend compare 7 today.json
  ssh server contend lab suite process-thread --json - | contend compare 7 -";
