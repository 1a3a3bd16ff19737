//! `contend compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::lab::StoreArgs;

/// Sets the same cases of several runs of the lab beside each other, with ratios.
///
/// The runs may be of several machines or several days. For each experiment there is a table with a
/// row for each case and a column for each run, which are called A, B, C and so on, and the ratio of
/// each run to the first, with its 95 % interval. What differs between the machines is said, and
/// cases that not all runs have are listed with the reason.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompareArgs {
    /// Files that `contend lab run --json` wrote, `-` for standard input, or numbers of runs that
    /// are kept, as `contend history` lists them.
    ///
    /// The first one is the baseline of the ratios. A file whose name is a number wins over the
    /// run of this number.
    #[arg(required = true, num_args = 2.., value_name = "FILE|RUN", value_hint = ValueHint::FilePath)]
    pub runs: Vec<PathBuf>,

    /// Write everything as JSON (schema contend.compare/1) to this file, `-` for standard output
    /// instead of the report.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  contend compare laptop.json server.json board.json
  contend compare 3 7
  contend lab run units/create --json today.json && contend compare 7 today.json
  ssh server contend lab suite process-thread --json - | contend compare 7 -";
