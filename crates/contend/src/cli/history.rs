//! Arguments of `contend history`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::lab::StoreArgs;

/// List saved lab runs, show one again, or remove some.
///
/// Only runs of `contend lab` are saved; `contend pipe` and `contend run` save nothing.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The subcommand, or `None` to list the runs.
    #[command(subcommand)]
    pub what: Option<HistoryVerb>,

    /// List at most N runs, newest first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = super::whole_number::<u32>(1..))]
    pub last: u32,

    #[command(flatten)]
    pub store: StoreArgs,
}

/// A subcommand of `contend history`.
#[derive(Debug, Subcommand)]
pub enum HistoryVerb {
    /// Show the report of a saved run.
    Show {
        /// Number of the run, as listed by `contend history`.
        #[arg(value_parser = super::whole_number::<i64>(1..), allow_negative_numbers = true)]
        number: i64,

        /// Include the tables of every experiment of a suite.
        #[arg(long, conflicts_with = "json")]
        full: bool,

        /// Write the run as JSON to FILE, or `-` for stdout.
        ///
        /// `-` replaces the report.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        json: Option<PathBuf>,

        #[command(flatten)]
        store: StoreArgs,
    },
    /// Remove saved runs permanently, without asking.
    ///
    /// If one of the runs does not exist, none is removed. Numbers are not reused.
    Rm {
        /// Numbers of the runs, as listed by `contend history`.
        #[arg(required = true, value_name = "NUMBER")]
        #[arg(value_parser = super::whole_number::<i64>(1..), allow_negative_numbers = true)]
        numbers: Vec<i64>,

        #[command(flatten)]
        store: StoreArgs,
    },
}
