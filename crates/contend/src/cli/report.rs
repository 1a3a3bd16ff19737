//! Arguments of `contend report`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::lab::StoreArgs;

/// Write records as web pages, tables or metrics.
///
/// A page is one file with charts, tables and prose, which needs no network. It contains the record, so
/// that `contend compare` and `contend report` can read it from there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("form").args(["html", "format"]).required(true).multiple(true))]
pub struct ReportArgs {
    /// Saved runs by number or label, JSON files, or `-` for stdin.
    ///
    /// `contend history` lists numbers and labels; --json of the other verbs writes the files. A label
    /// must be that of only one saved run. A file takes precedence over a saved run with that number or
    /// label.
    #[arg(required = true, value_name = "FILE|RUN", value_hint = ValueHint::FilePath)]
    pub records: Vec<PathBuf>,

    /// Write a web page to FILE, or `-` for stdout.
    ///
    /// A page is of one record, or of several runs of the lab, such as those of different machines.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Open the page in the browser, with xdg-open.
    #[arg(long, requires = "html")]
    pub open: bool,

    /// Write the records in another format.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<FormatArg>,

    /// File for --format [default: standard output].
    ///
    /// The file is replaced in one step, so that a program that reads it meanwhile finds it complete.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "format")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub store: StoreArgs,
}

/// A format for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Tables for people, in a document or an issue.
    Markdown,
    /// One table of records of one kind, for spreadsheets and data frames.
    Csv,
    /// The whole of one record.
    Json,
    /// Whole records, one on each line.
    Jsonl,
    /// Gauges for Prometheus, such as through the textfile collector of `node_exporter`.
    Openmetrics,
}

const EXAMPLES: &str = "\
Examples:
  contend report 7 --html page.html --open
  contend doctor --json - 1234 | contend report - --html page.html
  contend report before after --format csv --output runs.csv
  contend report nightly --format openmetrics --output /var/lib/node_exporter/contend.prom";
