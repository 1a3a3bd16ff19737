//! Arguments of `contend report`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::lab::StoreArgs;

/// Make a web page from a record: charts, tables and prose in one file.
///
/// The page needs no network and no other file. It contains the record, so that `contend compare` and
/// `contend report` can read it from there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// A saved run by number or label, a JSON file, or `-` for stdin.
    ///
    /// `contend history` lists numbers and labels; --json of the other verbs writes the files. A label
    /// must be that of only one saved run. A file takes precedence over a saved run with that number or
    /// label.
    #[arg(value_name = "FILE|RUN", value_hint = ValueHint::FilePath)]
    pub record: PathBuf,

    /// Write the page to FILE, or `-` for stdout.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: PathBuf,

    #[command(flatten)]
    pub store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  contend report 7 --html page.html
  contend doctor --json - 1234 | contend report - --html page.html";
