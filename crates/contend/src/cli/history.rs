//! Arguments of `contend history`, and the options of other verbs for saving a run.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::export::ExportArgs;
use super::lab::StoreArgs;

/// List saved runs, show one again, or label, remove, export and import some.
///
/// `contend lab`, `contend pipe` and `contend run` save their runs. `contend run` saves only runs
/// of at least half a second that use several CPUs, and those with --label or --store.
///
/// Command lines may hold secrets. What looks like a password, a token or an authorization header
/// is replaced by `[redacted]` before a pipeline is saved. --no-store saves nothing; the
/// configuration file below adds patterns, or turns saving off.
#[derive(Debug, Args)]
#[command(after_long_help = CONFIGURATION)]
pub struct HistoryArgs {
    /// The subcommand, or `None` to list the runs.
    #[command(subcommand)]
    pub what: Option<HistoryVerb>,

    /// List at most N runs, newest first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = super::whole_number::<u32>(1..))]
    pub last: u32,

    #[command(flatten)]
    pub filter: FilterArgs,

    /// Write the list as JSON to FILE, or `-` for stdout.
    ///
    /// An array with an object for each run. `-` replaces the list. `contend history export` writes the
    /// runs themselves.
    #[arg(long, visible_alias = "export-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub exports: ExportArgs,

    #[command(flatten)]
    pub store: StoreArgs,
}

const CONFIGURATION: &str = "\
Configuration:
  contend/config.toml in $XDG_CONFIG_HOME, else in ~/.config:

    [history]
    pipe = true              # false: contend pipe saves nothing
    run = true               # false: contend run saves nothing
    doctor = true            # false: contend doctor saves nothing
    max_runs = 1000          # of each kind; older ones without a label are removed
    redact = ['key-[0-9]+', 'pin (?P<secret>[0-9]+)']

  Each `redact` is a regular expression. Of a match, the group `secret` is replaced, or all of it.";

/// Conditions on saved runs.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only runs of this kind.
    #[arg(long, value_enum)]
    pub kind: Option<KindArg>,

    /// Only runs whose command, suite or experiments contain TEXT.
    #[arg(long, value_name = "TEXT")]
    pub command: Option<String>,

    /// Only runs on the machine NAME.
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,

    /// Only runs whose label contains TEXT.
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,

    /// Only runs since DATE, in UTC.
    ///
    /// A date such as 2026-01-31, or its beginning, or with a time: 2026-01-31T14.
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub since: Option<String>,

    /// Only runs up to and including DATE, in UTC.
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub until: Option<String>,
}

/// A kind of saved run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KindArg {
    /// A pipeline that `contend pipe` profiled.
    Pipe,
    /// Pipelines that `contend pipe` compared.
    Versus,
    /// A pipeline that `contend run` ran.
    Run,
    /// A program that `contend doctor` observed.
    Doctor,
    /// Experiments of the lab.
    Lab,
}

/// Options for saving a run.
#[derive(Debug, Clone, Default, Args)]
pub struct SaveArgs {
    /// Do not save this run.
    #[arg(long, conflicts_with_all = ["store", "label"], help_heading = "History")]
    pub no_store: bool,

    /// Label of this run in the history.
    #[arg(long, value_name = "TEXT", help_heading = "History")]
    pub label: Option<String>,

    /// Database of saved runs.
    ///
    /// [default: contend/contend.db in the XDG data directory, ~/.local/share] The environment
    /// variable `CONTEND_STORE` changes the default.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "History")]
    pub store: Option<PathBuf>,
}

/// A subcommand of `contend history`.
#[derive(Debug, Subcommand)]
pub enum HistoryVerb {
    /// Show the report of a saved run.
    Show {
        /// Number of the run, as listed by `contend history`.
        #[arg(value_parser = super::whole_number::<i64>(1..), allow_negative_numbers = true)]
        number: i64,

        /// Show everything: all tables of a suite, or all figures of a pipeline.
        #[arg(long, conflicts_with = "json")]
        full: bool,

        /// Write the run as JSON to FILE, or `-` for stdout.
        ///
        /// `-` replaces the report.
        #[arg(long, visible_alias = "export-json", value_name = "FILE")]
        #[arg(value_hint = ValueHint::FilePath)]
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
    /// Set the label of saved runs.
    ///
    /// Runs with a label are never removed automatically.
    Label {
        /// The label; '' removes it.
        #[arg(value_name = "TEXT")]
        label: String,

        /// Numbers of the runs, as listed by `contend history`.
        #[arg(required = true, value_name = "NUMBER")]
        #[arg(value_parser = super::whole_number::<i64>(1..), allow_negative_numbers = true)]
        numbers: Vec<i64>,

        #[command(flatten)]
        store: StoreArgs,
    },
    /// Write saved runs to a file, for another machine or store.
    ///
    /// Each line is a run in JSON.
    Export {
        /// The file, or `-` for stdout.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// Numbers of the runs [default: all, or those that the options select].
        #[arg(value_name = "NUMBER")]
        #[arg(value_parser = super::whole_number::<i64>(1..), allow_negative_numbers = true)]
        numbers: Vec<i64>,

        #[command(flatten)]
        filter: FilterArgs,

        #[command(flatten)]
        store: StoreArgs,
    },
    Import(ImportArgs),
}

/// Add runs from files to the saved runs, such as those of other machines.
///
/// The files are those that `contend history export` and --json write. Of a directory, all files
/// *.json and *.jsonl are read. If one has something else, no run is added. A run that is already
/// saved is not added again. Imported runs get new numbers.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files or directories, or `-` for stdin.
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub store: StoreArgs,
}

/// Checks a date, which may be cut short or have a time: `2026`, `2026-01-31`, `2026-01-31T14:05`.
/// Returns it with each space replaced by `T`.
fn date(text: &str) -> Result<String, String> {
    const FORM: &str = "0000-00-00T00:00:00Z";
    let text = text.replace(' ', "T");
    let fits = text.len() >= 4
        && text.len() <= FORM.len()
        && text.chars().zip(FORM.chars()).all(|(found, form)| match form {
            '0' => found.is_ascii_digit(),
            other => found == other,
        });
    if fits {
        Ok(text)
    } else {
        Err("expected a date such as 2026-01-31 or 2026-01-31T14:05".to_owned())
    }
}
