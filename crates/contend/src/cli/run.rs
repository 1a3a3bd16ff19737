//! Arguments of `contend run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, ValueEnum, ValueHint};
use contend_parallel::cluster::Capacity;

use super::ColorArg;
use super::export::ExportArgs;
use super::history::SaveArgs;

/// Run a pipeline in parallel, with byte-identical output.
///
/// contend takes the place of the shell: standard input, standard output, standard error and exit
/// status are the pipeline's own, and the output is identical to the byte, in the same order.
/// Stages that process each line independently run on chunks of the input on all CPUs; sorted
/// chunks are merged, and counts are summed. Anything that contend cannot prove equivalent, or does
/// not expect to speed up, runs unchanged. --explain shows the plan and its reasons.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{DETAILS}"))]
#[command(override_usage = "contend run [OPTIONS] <PIPELINE>\n       \
                            contend run [OPTIONS] -f <SCRIPT> [ARGUMENT]...")]
pub struct RunArgs {
    /// Pipeline to run, quoted as one argument.
    // Not `required`: the error would not mention --file.
    #[arg(value_name = "PIPELINE")]
    pub pipeline: Option<String>,

    /// Run a shell script, in parallel where possible.
    ///
    /// Further words are arguments of the script; write `--` before them if one is also an option
    /// of `contend run`. The shell is the one in the first line of the script, unless --shell names
    /// another. `-` is standard input.
    #[arg(short, long, value_name = "SCRIPT", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "pipeline", num_args = 1.., allow_hyphen_values = true)]
    pub file: Option<Vec<OsString>>,

    /// Print the plan with its reasons, and exit.
    #[arg(long)]
    pub explain: bool,

    /// Also run the original, and compare every byte.
    ///
    /// The shell runs the pipeline unchanged, with the same standard input, and contend compares
    /// standard output and exit status. The output appears once. If they differ, a message says
    /// where, and the exit status is 1. An input that can be read only once is kept in an unnamed
    /// file in TMPDIR; outputs are not kept. Pipelines with side effects are refused.
    #[arg(long, conflicts_with = "explain")]
    pub check: bool,

    /// Print which stages ran in parallel, with times and CPU use.
    #[arg(long)]
    pub stats: bool,

    /// Write the plan and its figures as JSON to FILE.
    ///
    /// The schema is contend.run/1; `contend generate schema run` prints it. With --explain, no
    /// FILE or `-` is standard output.
    #[arg(long, visible_alias = "export-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(num_args = 0..=1, default_missing_value = "-", require_equals = false)]
    pub json: Option<OsString>,

    /// Write the plan and its figures as a web page to FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub exports: ExportArgs,

    /// Write what each worker did over time to FILE, for a viewer of traces.
    ///
    /// The extension of FILE selects the format: .json or .json.gz for the Firefox Profiler
    /// (profiler.firefox.com), .pftrace or .perfetto-trace for Perfetto (ui.perfetto.dev). Only
    /// pipelines that contend runs without a shell have workers.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["explain", "file", "on"])]
    pub trace: Option<PathBuf>,

    /// Let `contend serve` show the run while it takes place.
    ///
    /// It shows pipelines whose stages run on chunks, but not those of scripts.
    #[arg(long, conflicts_with_all = ["explain", "file"])]
    pub publish: bool,

    #[command(flatten)]
    pub save: SaveArgs,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    #[command(flatten)]
    pub execution: ExecutionArgs,
}

/// Options for jobs on a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub struct ClusterArgs {
    #[command(flatten)]
    pub engine: EngineArgs,

    /// Measure the engine with two small jobs, and print settings for --on auto.
    ///
    /// Measures what a job and a part take besides their commands, and how fast the workers read a file that is in the work
    /// directory.
    #[arg(long, requires = "on")]
    #[arg(conflicts_with_all = ["pipeline", "file", "explain", "check", "trace", "stats", "json", "html", "publish"])]
    #[arg(conflicts_with_all = ["resume", "emit", "dry_run", "parts", "fan_in"])]
    #[arg(conflicts_with_all = ["memory", "map", "records", "part_size", "pipefail", "label", "store"])]
    pub probe: bool,

    /// Print the plan and the parts, and exit.
    #[arg(long, requires = "on")]
    #[arg(conflicts_with_all = ["file", "check", "trace", "publish", "resume", "emit"])]
    pub dry_run: bool,

    /// Continue the job in DIR, whose driver has died.
    ///
    /// DIR is a work directory that was left, or one that --emit has written. Parts that are complete do not run again. The job
    /// runs in its own environment, and with its own engine unless --on is given.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["pipeline", "file", "explain", "check", "trace", "parts", "fan_in", "work"])]
    pub resume: Option<PathBuf>,

    /// Write the job as files into the new directory DIR instead of running it.
    ///
    /// DIR/submit.sh starts its parts. --resume DIR then combines their outputs.
    #[arg(long, value_name = "DIR", requires = "on", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["file", "explain", "check", "stats", "json", "html", "resume"])]
    pub emit: Option<PathBuf>,
}

/// Options for a run over parts, perhaps on several machines.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Clusters")]
pub struct EngineArgs {
    /// Run the first stages over parts of their files on a cluster.
    ///
    /// All machines must have the same files, programs and locales. The rest of the pipeline runs on this machine. So do
    /// pipelines whose files have less than 64 MiB, or 2 MiB for local, unless --parts is given.
    #[arg(long, value_name = "ENGINE", value_enum, conflicts_with = "part_size")]
    pub on: Option<EngineArg>,

    /// URL of Spark's master [default: as Spark is configured].
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,

    /// Pass OPTION to spark-submit or sbatch (repeatable).
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub engine_option: Vec<String>,

    /// Divide the files into N parts.
    #[arg(long, value_name = "N", requires = "on")]
    #[arg(value_parser = super::whole_number::<u64>(1..=100_000))]
    pub parts: Option<u64>,

    /// Combine the outputs of at most N parts at once [default: 64].
    ///
    /// If there are more parts, workers combine their outputs first, in several steps. This concerns sorted outputs only, such
    /// as those of `sort` or `sort | uniq -c`. Without a reduction as by `sort -u`, the default is 128.
    #[arg(long, value_name = "N", requires = "on")]
    #[arg(value_parser = super::whole_number::<u64>(2..=512))]
    pub fan_in: Option<u64>,

    /// Create the work directory in DIR, which all machines can write [default: the current directory].
    ///
    /// With the feature object-store, DIR may be a place in a store, such as `s3://bucket/folder`. Then the machines need not share a
    /// file system.
    #[arg(long, value_name = "DIR", requires = "on", value_hint = ValueHint::DirPath)]
    pub work: Option<PathBuf>,
}

/// An engine that runs parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// Processes on this machine.
    Local,
    /// Apache Spark, by `spark-submit`.
    Spark,
    /// Slurm, by `sbatch`.
    Slurm,
    /// The engine with the most `slots` in `contend/run.toml`, if it is expected to be faster.
    Auto,
}

const EXAMPLES: &str = "\
Examples:
  contend run 'zcat log.gz | grep -v bot | cut -d\" \" -f1 | sort | uniq -c'
  contend run --explain 'cat words.txt | tr A-Z a-z | sed -n 2p'
  contend run --map ./my-filter --stats './my-filter <big.txt | sort -u'
  contend run -f nightly.sh";

const DETAILS: &str = "\
Configuration:
  contend/run.toml in $XDG_CONFIG_HOME, else in ~/.config, names commands as --map does:

    [[map]]
    command = \"./my-filter --fast\"
    records = \"lines\"

  There may be several of these tables. `records` is lines (the default), nul, csv or json, as for
  --records. --map takes precedence for the same command.

  The tables [spark] and [slurm] have `work`, the directory for --work, and `options`, a list of
  values for --engine-option; [spark] also has `master`. `slots`, the number of parts that the
  cluster runs at the same time, is for --on auto, and so are `start_seconds`, `part_seconds` and
  `bytes_per_second`: --probe measures them.

History:
  A run of at least half a second that used several CPUs is saved for `contend history`, and so is
  any run with --label or --store. Scripts are saved only with one of these or with --stats.

Exit status:
  The pipeline's own, as the shell reports it. 2 if the command line is wrong; 125 if contend
  itself fails; 126 or 127 if the shell or a command cannot be started. With --check, 1 if the
  outputs differ.

Environment:
  CONTEND_SHELL          Shell to use without --shell.
  XDG_CONFIG_HOME        Directory of the configuration, instead of ~/.config.
  TMPDIR                 Directory for data that does not fit into memory while sorting, and for
                         the input that --check keeps.";

/// The command line of `contend run` alone. Building the parsers of the other verbs would take most
/// of the start-up time.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct RunCommand {
    #[command(flatten)]
    args: RunArgs,

    /// Use colours: auto, always or never.
    #[arg(long, value_enum, default_value_t)]
    color: ColorArg,
}

/// Returns the name of the option of `contend run` in `word`, without a value: `--jobs` for
/// `--jobs=4`. Returns `None` for other words, and for a short option with its value attached, such
/// as `-j4`.
pub fn option_in(word: &str) -> Option<String> {
    let name = word.split('=').next().unwrap_or(word);
    let command = RunCommand::command();
    let is_option = command.get_arguments().any(|argument| {
        let mut longs = argument.get_long_and_visible_aliases().unwrap_or_default().into_iter();
        longs.any(|long| name.strip_prefix("--") == Some(long))
            || argument.get_short().is_some_and(|short| name == format!("-{short}"))
    });
    is_option.then(|| name.to_owned())
}

/// Parses a valid command line of `contend run` without the parsers of the other verbs. Returns
/// `None` for other verbs, help and errors, which need the complete parser.
pub fn parse_fast() -> Option<super::Args> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != "run" {
        return None;
    }
    let RunCommand { args, color } = RunCommand::try_parse_from(words).ok()?;
    Some(super::Args { color, verb: super::Verb::Run(args) })
}

/// Run one stage of shell text; started by the shell that runs the text.
///
/// contend puts a command with these options before the stage in the text.
#[derive(Debug, Args)]
pub struct StageArgs {
    #[command(flatten)]
    pub execution: ExecutionArgs,

    /// Name of the shell in messages.
    #[arg(long, default_value = "")]
    pub name: String,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Directory for the files of this machine, if --work is in a store.
    #[arg(long)]
    pub directory: Option<PathBuf>,

    /// What is known of the cluster, as JSON, if the prediction decides.
    #[arg(long, value_parser = |text: &str| serde_json::from_str::<Capacity>(text))]
    pub capacity: Option<Capacity>,

    /// Print which stages ran in parallel, with times and CPU use.
    #[arg(long)]
    pub stats: bool,

    /// File to append the record of the run to.
    #[arg(long)]
    pub records_to: Option<PathBuf>,
}

/// A command line that consists of the options of a stage, without program name and verb.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
pub struct StageOptions {
    #[command(flatten)]
    pub args: StageArgs,

    /// Use colours: auto, always or never.
    #[arg(long, value_enum, default_value_t)]
    pub color: ColorArg,
}

/// Options for the execution of a pipeline.
#[derive(Debug, Clone, Args)]
pub struct ExecutionArgs {
    /// Do not show progress.
    #[arg(long)]
    pub no_progress: bool,

    /// Chunks to process concurrently [default: available CPUs].
    #[arg(short, long, value_name = "N", help_heading = "Parallelism")]
    #[arg(value_parser = super::whole_number::<u16>(1..=1024))]
    pub jobs: Option<u16>,

    /// Memory for data [default: a quarter of all memory].
    ///
    /// Bytes, with suffix k, M or G for powers of 1024. By default a quarter of the machine's
    /// memory or of the cgroup's limit, whichever is less.
    #[arg(long, value_name = "SIZE", value_parser = super::bytes, help_heading = "Parallelism")]
    pub memory: Option<u64>,

    /// COMMAND processes each record independently (repeatable).
    ///
    /// Stages that begin with these words run on chunks of the input. A configuration file can name
    /// such commands, too: see below.
    #[arg(long, value_name = "COMMAND", help_heading = "Parallelism")]
    pub map: Vec<String>,

    /// Records of --map: lines, nul, csv, json.
    ///
    /// lines: lines. nul: records that end with a NUL byte. csv: lines, where quoted fields may
    /// contain line breaks. json: JSON values, each followed by a line break.
    #[arg(long, value_name = "KIND", value_enum, default_value_t, requires = "map")]
    #[arg(help_heading = "Parallelism", hide_possible_values = true)]
    pub records: RecordsArg,

    /// Split the input into chunks of SIZE.
    ///
    /// Also runs every eligible stage in parallel, even if that is not expected to be faster. For
    /// tests.
    #[arg(long, value_name = "SIZE", value_parser = super::bytes, hide_short_help = true)]
    #[arg(help_heading = "Parallelism")]
    pub part_size: Option<u64>,

    /// Shell for other stages [default: bash, else sh].
    ///
    /// bash, dash, busybox or another shell that starts every stage in a subshell.
    #[arg(long, value_name = "SHELL", env = "CONTEND_SHELL", value_hint = ValueHint::CommandName)]
    #[arg(help_heading = "Shell", hide_env = true)]
    pub shell: Option<String>,

    /// Fail if any stage fails, as with `set -o pipefail`.
    #[arg(long, help_heading = "Shell")]
    pub pipefail: bool,
}

/// A kind of record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RecordsArg {
    /// Lines; every line break ends a record.
    #[default]
    Lines,
    /// Records that end with a NUL byte.
    Nul,
    /// Lines of CSV; quoted fields may contain line breaks.
    Csv,
    /// JSON values, each followed by a line break.
    Json,
}
