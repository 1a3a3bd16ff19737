//! `contend run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum, ValueHint};

/// Runs a pipeline over parts of its input at the same time: the same bytes, sooner.
///
/// It behaves as the shell would: standard input, output, error and exit status are the
/// pipeline's own, and the output is the same to the byte, in the same order. Stages that treat
/// every line for itself run over parts of the input on all CPUs; sorted parts are merged, counts
/// added up. What is not proved to be the same runs as it is, and what would not be faster runs
/// plain. --explain says which, and why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  contend run 'zcat access.log.gz | grep -v bot | cut -d\" \" -f1 | sort | uniq -c | sort -rn'
  contend run --explain 'cat words.txt | tr A-Z a-z | sed -n 2p'
  contend run --map ./my-filter --stats './my-filter <big.txt | sort -u'
  contend run -f nightly.sh")]
#[command(after_long_help = "Examples:
  contend run 'zcat access.log.gz | grep -v bot | cut -d\" \" -f1 | sort | uniq -c | sort -rn'
  contend run --explain 'cat words.txt | tr A-Z a-z | sed -n 2p'
  contend run --map ./my-filter --stats './my-filter <big.txt | sort -u'
  contend run -f nightly.sh

Configuration:
  The file contend/run.toml in $XDG_CONFIG_HOME, else in ~/.config, names commands as --map does:

    [[map]]
    command = \"./my-filter --fast\"
    records = \"lines\"

  There may be several of these. Records are lines (if nothing is said), nul, csv or json, as for
  --records. What --map says of the same command comes first.

Exit status:
  The pipeline's own, as the shell would give it. 2 when the command line is wrong; 125 when
  contend itself fails. --check ends with 1 if the outputs differ.

Environment:
  CONTEND_SHELL          The shell, if --shell does not say.
  XDG_CONFIG_HOME        Where the configuration is, if not in ~/.config.
  TMPDIR                 Where sorting keeps what does not fit into memory, and --check its
                         input.")]
pub struct RunArgs {
    /// The pipeline, as one argument: quote it.
    #[arg(value_name = "PIPELINE", required_unless_present_any = ["file", "json"])]
    pub pipeline: Option<String>,

    /// Run this script with the shell, its pipelines parallel where they can be.
    ///
    /// What stands behind it are the script's own arguments. The shell is the one that the first
    /// line of the script names, unless --shell says another.
    #[arg(short, long, value_name = "SCRIPT", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "pipeline", num_args = 1.., allow_hyphen_values = true)]
    pub file: Option<Vec<OsString>>,

    #[command(flatten)]
    pub how: HowArgs,

    /// Only print the plan, and for every stage why it is parallel or not.
    #[arg(long)]
    pub explain: bool,

    /// Also run the original, and compare every byte of the outputs.
    ///
    /// The shell runs the pipeline as it stands, with the same standard input, and what it writes
    /// to standard output and its exit status are compared; the output is printed once. If they
    /// differ, a message says where, and the exit status is 1. An input that can be read only once
    /// is kept in a file without a name in TMPDIR meanwhile; outputs are not kept. What changes
    /// more than its output is refused.
    #[arg(long, conflicts_with_all = ["explain", "file"])]
    pub check: bool,

    /// Print what was done, and what it took, to standard error at the end.
    #[arg(long)]
    pub stats: bool,

    /// Write the plan and the figures as JSON (schema contend.run/1) to this file; with --explain
    /// no file, or `-`, is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(num_args = 0..=1, default_missing_value = "-", require_equals = false)]
    pub json: Option<OsString>,
}

/// The verb `run` alone, which takes a fraction of the time that all verbs take to be set up.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Alone {
    #[command(flatten)]
    args: RunArgs,
}

/// Reads a command line of the verb `run`; `None` if it is another one's, or if there is something
/// to say about it, in which the other verbs have to be known.
pub fn quickly() -> Option<super::Verb> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != "run" {
        return None;
    }
    Alone::try_parse_from(words).ok().map(|alone| super::Verb::Run(alone.args))
}

/// Options that the prefix of a stage in shell text hands on.
#[derive(Debug, Args)]
pub struct StageArgs {
    #[command(flatten)]
    pub how: HowArgs,

    /// What the shell calls itself in messages.
    #[arg(long, default_value = "")]
    pub name: String,

    /// Print what was done.
    #[arg(long)]
    pub stats: bool,

    /// A file to which records of what was done are appended.
    #[arg(long)]
    pub records_to: Option<PathBuf>,
}

/// The same, without the verb.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
pub struct StageOptions {
    #[command(flatten)]
    pub args: StageArgs,
}

/// How a pipeline is run.
#[derive(Debug, Clone, Args)]
pub struct HowArgs {
    /// Work on so many parts at the same time; by default as many as there are CPUs to use.
    #[arg(short, long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Use no more memory than this for data: bytes with k, M or G.
    ///
    /// By default a quarter of the machine's memory, or of what the cgroup may use.
    #[arg(long, value_name = "SIZE", value_parser = super::bytes)]
    pub memory: Option<u64>,

    /// This command treats every record for itself; may be given several times.
    ///
    /// Stages that begin with these words are then run over parts. More such commands can be
    /// named in a configuration file: see the end of --help.
    #[arg(long, value_name = "COMMAND")]
    pub map: Vec<String>,

    /// What the records of --map commands are.
    #[arg(long, value_name = "KIND", value_enum, default_value_t, requires = "map")]
    pub records: RecordsArg,

    /// The shell for what is not parallel: bash, dash, or another like these.
    #[arg(long, value_name = "SHELL", env = "CONTEND_SHELL", value_hint = ValueHint::CommandName)]
    pub shell: Option<String>,

    /// Let the pipeline fail if any stage does, as with `set -o pipefail`.
    #[arg(long)]
    pub pipefail: bool,

    /// Do not show on the terminal how far it is.
    #[arg(long)]
    pub no_progress: bool,

    /// Make parts of this size, whatever they take, and run everything over parts.
    #[arg(long, value_name = "SIZE", value_parser = super::bytes, hide_short_help = true)]
    pub part_size: Option<u64>,
}

/// What a record is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RecordsArg {
    /// A line.
    #[default]
    Lines,
    /// What ends with a NUL byte.
    Nul,
    /// A line of CSV: fields in double quotes may hold line breaks.
    Csv,
    /// A JSON value with the line break after it.
    Json,
}
