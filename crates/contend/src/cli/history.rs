//! `contend history`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::lab::StoreArgs;

/// Lists the runs that are kept, or shows one of them again.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// What to show; a list if nothing is said.
    #[command(subcommand)]
    pub what: Option<HistoryVerb>,

    /// List so many at most, the newest first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub last: u32,

    #[command(flatten)]
    pub store: StoreArgs,
}

/// What to show, or to remove.
#[derive(Debug, Subcommand)]
pub enum HistoryVerb {
    /// Shows a run as it was shown when it was made.
    Show {
        /// The run's number, as in the list.
        number: i64,

        /// Print the table of every experiment of a suite too.
        #[arg(long, conflicts_with = "json")]
        full: bool,

        /// Write its record as JSON to this file, `-` for standard output instead of the report.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        json: Option<PathBuf>,

        #[command(flatten)]
        store: StoreArgs,
    },
    /// Remove runs for good; nothing is asked.
    ///
    /// If there is no run with one of the numbers, none is removed. The numbers are not used again.
    Rm {
        /// The runs' numbers, as in the list.
        #[arg(required = true, value_name = "NUMBER")]
        numbers: Vec<i64>,

        #[command(flatten)]
        store: StoreArgs,
    },
}
