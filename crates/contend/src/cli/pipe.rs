//! Arguments of `contend pipe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::export::ExportArgs;
use super::history::SaveArgs;

/// Run a pipeline and show which stage limits it.
///
/// The shell runs the pipeline unchanged: standard input, standard output, standard error and exit
/// status are the pipeline's own, and contend never touches its data. The report goes to standard
/// error after the pipeline has ended, as that of `time` does.
///
/// The lifetime of each stage is divided into time running on a CPU, queued (ready, but no CPU was
/// free), starved (waiting for input), blocked (waiting for room in its output pipe) and waiting
/// for something else. `?` is time that no sample explains. The verdict names the bottleneck: a
/// stage, the CPUs, the input or the output.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{DETAILS}"))]
pub struct PipeArgs {
    /// Pipeline to run, quoted as one argument.
    #[arg(value_name = "PIPELINE", required_unless_present_any = ["from", "pid", "pgid", "job"])]
    pub pipeline: Option<String>,

    /// Run the pipeline N times and report medians.
    ///
    /// From 6 runs on, medians have 95 % intervals. The tables are those of the run with the median
    /// wall time. Standard input must be readable more than once: a file, a terminal, or --stdin
    /// FILE.
    ///
    /// With --vs, --scan or --fail-if: the number of rounds, by default 10.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = super::whole_number::<u32>(1..=10_000))]
    pub runs: Option<u32>,

    /// Read standard input from FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub stdin: Option<PathBuf>,

    /// Discard the pipeline's output.
    ///
    /// It goes to /dev/zero, because GNU grep stops at its first match if it sees /dev/null.
    #[arg(long)]
    pub discard: bool,

    /// Show all figures, findings and rewrites, and how they were measured.
    ///
    /// Without it the report fits on one screen.
    #[arg(long, short)]
    pub verbose: bool,

    /// Write the report to FILE instead of standard error.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the profile as JSON to FILE, or `-` for stdout.
    ///
    /// The schema is contend.pipe/1; `contend generate schema pipe` prints it. `-` requires
    /// --discard, because the pipeline's output goes to standard output too.
    #[arg(long, visible_alias = "export-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the profile as a web page to FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write what each stage did over time to FILE, for a viewer of traces.
    ///
    /// The extension of FILE selects the format: .json or .json.gz for the Firefox Profiler
    /// (profiler.firefox.com), .pftrace or .perfetto-trace for Perfetto (ui.perfetto.dev).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["runs", "vs", "scan", "fail_if", "from"])]
    pub trace: Option<PathBuf>,

    /// Do not show the stages while they run.
    #[arg(long)]
    pub no_progress: bool,

    /// Let `contend serve` show the run while it takes place.
    #[arg(long, conflicts_with = "from")]
    pub publish: bool,

    /// Shell that runs the pipeline [default: bash, else sh].
    ///
    /// Use bash, dash, busybox or another shell that starts every stage in a subshell. zsh and ksh
    /// run the last stage themselves and are refused.
    #[arg(long, value_name = "SHELL", env = "CONTEND_SHELL", value_hint = ValueHint::CommandName)]
    #[arg(help_heading = "Shell", hide_env = true)]
    pub shell: Option<String>,

    /// Run shell text before the pipeline.
    ///
    /// It runs before every run, in the shell that then starts the stages, which see its functions,
    /// variables and options. Its time is not measured.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Shell")]
    pub setup: Option<String>,

    /// Fail if any stage fails, as with `set -o pipefail`.
    #[arg(long, help_heading = "Shell")]
    pub pipefail: bool,

    #[command(flatten)]
    pub exports: ExportArgs,

    #[command(flatten)]
    pub save: SaveArgs,

    #[command(flatten)]
    pub attach: AttachArgs,

    #[command(flatten)]
    pub versus: VersusArgs,

    #[command(flatten)]
    pub advice: AdviceArgs,
}

/// Options for observing a pipeline that is already running.
#[derive(Debug, Args)]
#[group(id = "attachment", multiple = true)]
pub struct AttachArgs {
    /// Observe the running pipeline of process PID.
    ///
    /// Its stages are found by the pipes at their standard input and output. Nothing is stopped,
    /// traced or started, and a pipe is opened only for microseconds, to read its fill. The
    /// observation ends with the pipeline, after --for, or with Ctrl-C, which a pipeline in another
    /// terminal or job does not notice. What happened before it, and the exit statuses, stay
    /// unknown.
    #[arg(long, value_name = "PID", help_heading = "Running pipelines")]
    #[arg(value_parser = super::whole_number::<i32>(1..), conflicts_with_all = NOT_ATTACHED)]
    #[arg(group = TARGET)]
    pub pid: Option<i32>,

    /// Observe the running pipeline in process group PGID.
    #[arg(long, value_name = "PGID", help_heading = "Running pipelines")]
    #[arg(value_parser = super::whole_number::<i32>(1..), conflicts_with_all = NOT_ATTACHED)]
    #[arg(group = TARGET)]
    pub pgid: Option<i32>,

    /// Observe the job that the shell has started last.
    ///
    /// The shell must have job control, as an interactive one has: `zcat log.gz | gzip >new.gz &`,
    /// then `contend pipe --job`.
    #[arg(long, help_heading = "Running pipelines", conflicts_with_all = NOT_ATTACHED)]
    #[arg(group = TARGET)]
    pub job: bool,

    /// Stop observing after TIME, such as 10s, 500ms or 2m.
    #[arg(long = "for", value_name = "TIME", value_parser = super::duration)]
    #[arg(help_heading = "Running pipelines", conflicts_with_all = NOT_ATTACHED)]
    #[arg(requires = TARGET)]
    pub limit: Option<Duration>,
}

/// Name of the group of options that each name a running pipeline, of which at most one is given.
const TARGET: &str = "target";

/// Arguments that make no sense for a pipeline that is already running. `--shell` is not among them,
/// because an environment variable may set it.
const NOT_ATTACHED: [&str; 16] = [
    "pipeline",
    "runs",
    "stdin",
    "discard",
    "setup",
    "pipefail",
    "vs",
    "scan",
    "warmup",
    "prepare",
    "fail_if",
    "try_changes",
    "what_if",
    "from",
    "seed",
    "no_advice",
];

impl AttachArgs {
    /// Returns whether a running pipeline is to be observed.
    pub fn is_given(&self) -> bool {
        self.pid.is_some() || self.pgid.is_some() || self.job
    }
}

/// Options for comparing pipelines.
#[derive(Debug, Args)]
pub struct VersusArgs {
    /// Compare with another pipeline (repeatable).
    ///
    /// The pipelines run in turn, in random order in every round. Every byte of their outputs is
    /// compared, and none of it is shown. The report has the ratio of the times with its interval,
    /// and the stages that make the difference. Pipelines run many times, with all their side
    /// effects: reset them with --prepare.
    #[arg(long, value_name = "PIPELINE", help_heading = "Comparison")]
    pub vs: Vec<String>,

    /// Compare several values of a parameter (repeatable).
    ///
    /// Every `{NAME}` in the pipelines, --setup and --prepare is replaced by the values in turn,
    /// except after `$`: `${NAME}` is a variable of the shell.
    /// With several parameters, all combinations are compared. The first one is the baseline.
    #[arg(long, value_name = "NAME=V1,V2", help_heading = "Comparison")]
    pub scan: Vec<String>,

    /// Run N rounds before those that count.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Comparison")]
    #[arg(value_parser = super::whole_number::<u32>(0..=1000))]
    pub warmup: u32,

    /// Run shell text before each run, untimed.
    ///
    /// If it fails, the comparison ends.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Comparison")]
    pub prepare: Option<String>,

    /// Exit with status 1 if a condition holds (repeatable).
    ///
    /// CONDITION is 'wall > 1.05x' (relative to the first pipeline), 'wall > 2s', 'cpu > 1.1x',
    /// 'memory > 500M' or 'output differs', also with `<`. A condition on a figure holds if its
    /// whole 95 % interval is beyond the limit.
    #[arg(long, value_name = "CONDITION", help_heading = "Comparison")]
    pub fail_if: Vec<String>,
}

impl VersusArgs {
    /// Returns whether pipelines are compared, rather than one profiled.
    pub fn is_given(&self) -> bool {
        !self.vs.is_empty() || !self.scan.is_empty() || !self.fail_if.is_empty()
    }
}

/// Options for suggested changes.
#[derive(Debug, Args)]
pub struct AdviceArgs {
    /// Measure whether the suggested changes help.
    ///
    /// Runs the original and the changed pipelines in turn on the same input, compares every byte
    /// of their outputs, and prints the one to use.
    ///
    /// The pipeline runs many times, so it must not have side effects: pipelines that write files
    /// (`>`, `tee`) are refused. Its output appears once, from the first run. A large input is
    /// replaced by samples from its beginning, middle and end, and the winner is then compared with
    /// the original on the whole input. Of an input that comes through a pipe, the first 64 MiB are
    /// kept and the rest is not read; the report says so.
    #[arg(long = "try", help_heading = "Suggested changes")]
    pub try_changes: bool,

    /// Time limit for --try.
    ///
    /// A round of runs that has started is completed.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = super::budget)]
    #[arg(allow_negative_numbers = true, requires = "try_changes")]
    #[arg(help_heading = "Suggested changes")]
    pub budget: f64,

    /// Use only SIZE of a large input for --try.
    ///
    /// A number of bytes, with suffix k, M or G for powers of 1024, or `all`. [default: as large
    /// as about a dozen runs of every candidate within the budget permit]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "try_changes")]
    #[arg(help_heading = "Suggested changes")]
    pub sample: Option<SampleSize>,

    /// After --try, also run N copies at the same time.
    ///
    /// A pipeline that is fast alone because it uses idle CPUs may be slow when there are none.
    #[arg(long, value_name = "N", requires = "try_changes")]
    #[arg(value_parser = copies, allow_negative_numbers = true)]
    #[arg(help_heading = "Suggested changes")]
    pub copies: Option<u16>,

    /// Like --copies, for several numbers such as 1,2,4,8.
    #[arg(long, value_name = "LIST", requires = "try_changes", conflicts_with = "copies")]
    #[arg(value_delimiter = ',', value_parser = copies, allow_negative_numbers = true)]
    #[arg(help_heading = "Suggested changes")]
    pub sweep_copies: Vec<u16>,

    /// Seed for the run order of --try and comparisons [default: random].
    #[arg(long, value_name = "N", help_heading = "Suggested changes")]
    #[arg(value_parser = super::whole_number::<u64>(..))]
    pub seed: Option<u64>,

    /// Do not look for changes after the run.
    ///
    /// The search takes up to two seconds, during which it runs single stages on a small sample of
    /// the input.
    #[arg(long, conflicts_with = "try_changes", help_heading = "Suggested changes")]
    pub no_advice: bool,

    /// Predict the effect of a change (repeatable).
    ///
    /// CHANGE is 'stage 3 x2' (twice as fast), 'fuse 2,3', 'drop 1', 'cpus 8', 'copies 10' or
    /// 'input x100'. Several changes separated by `;` apply in order; each numbers the stages that
    /// the changes before it have left. Nothing is run for it.
    #[arg(long, value_name = "CHANGE", allow_hyphen_values = true, help_heading = "Predictions")]
    pub what_if: Vec<String>,

    /// Answer --what-if from a profile that --json wrote.
    ///
    /// Runs nothing.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "what_if")]
    #[arg(conflicts_with_all = ["pipeline", "try_changes", "runs", "setup", "stdin"])]
    #[arg(help_heading = "Predictions")]
    pub from: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  contend pipe 'sort words.txt | uniq -c | sort -rn | head'
  contend pipe --discard --runs 7 'zcat log.gz | grep -v bot | cut -d\" \" -f1'
  contend pipe --setup 'f() { tr a-z A-Z; }' 'cat words.txt | f | wc -c'
  contend pipe --json profile.json --output report.txt 'seq 100000 | sort'
  contend pipe --try --discard 'cat words.txt | grep -v x | sort | uniq | wc -l'
  contend pipe --vs 'sort -u words.txt | wc -l' 'sort words.txt | uniq | wc -l'
  contend pipe --scan jobs=1,2,4 --fail-if 'wall > 1.05x' 'sort --parallel={jobs} words.txt'
  contend pipe --pid 4711 --for 10s
  contend pipe --what-if 'stage 2 x2' --what-if 'cpus 8' 'cat words.txt | sort'";

const DETAILS: &str = "\
Report:
  wall, CPU, exit        Wall time, CPU time of all stages, and the exit status.
  CPU                    CPU time of a stage with its children and threads.
  time spent             A bar as long as the run: `#` running on a CPU, `=` queued for one, `.`
                         starved of input, `:` blocked because the next stage is slower, `o`
                         waiting for something else (sleep, lock, disk, child, poll, network,
                         another pipe, terminal; `stopped` by Ctrl-Z), `?` unknown. The word next
                         to it names what took longest, in percent of the run.
  in, out                Bytes read and written; `~` marks an estimate, such as one that may
                         include standard error.
  exit                   Exit status or signal of a stage, if one failed.
  >                      The bottleneck.

With --verbose, in percent of the stage's lifetime where it says so:
  wall, user, sys, cpu   Wall time from start to end, and CPU time, as `time` prints them.
  running, queued, …     As above.
  reads, writes          System calls for the data (about 12 reads are the dynamic loader).
  switches               Context switches, voluntary and involuntary.
  memory                 Peak RSS, not counting pages inherited from the shell.
  1st out                Time of the first observed output.
  ended                  Exit status, or the signal that killed the stage.
  full                   Fill level of a pipe, in percent of its capacity, over all samples. A
                         small write takes a whole page, so a pipe may be full earlier.
  waits                  The side of a pipe that waited clearly longer.

Suggested changes:
  Each change is ready to paste, with its predicted gain over the prediction for the unchanged
  pipeline, a 95 % interval in brackets, and whether its output changes: always identical, by
  the definition of its commands; identical on this data, which --try verifies; or a changed
  environment (locale, memory). If other programs kept the CPUs busy during the profile, only
  CPU times are predicted. Verdicts of --try: faster; cheaper (no slower, less CPU time); no
  difference; slower; WRONG OUTPUT, with the first difference; inconclusive.

Exit status:
  The pipeline's own, as the shell reports it. 2 if the command line or the pipeline's text is
  wrong; 125 if contend itself fails; 126 or 127 if the shell cannot be started. After SIGINT
  or SIGTERM, contend prints the report and then dies of the same signal. A Ctrl-C that kills
  no stage (a pager handles it) changes nothing. With --pid, --pgid or --job, the status is 0,
  also after Ctrl-C, and 2 if there is no such pipeline. With --fail-if, it is 1 if a condition
  holds.

Environment:
  CONTEND_SHELL          Shell to use without --shell.
  NO_COLOR               No colours, if set and not empty (unless --color is given).
  COLUMNS                Width of the report if standard error is not a terminal.

Limits for an ordinary user:
  Waits of a stage that runs as another user (such as `sudo`) are estimated from its pipes or
  left unexplained. Byte counts are exact for common filters. For shells, wrappers and unknown
  programs they are those of the last sample, completed by the counts of neighbouring stages,
  and marked with `~`. Root sees exact counts.";

/// The amount of input that a trial uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSize {
    /// The whole input.
    All,
    /// Approximately the given number of bytes.
    Bytes(u64),
}

fn size(text: &str) -> Result<SampleSize, String> {
    if text == "all" {
        return Ok(SampleSize::All);
    }
    match super::bytes(text) {
        Ok(bytes) if bytes >= 1024 => Ok(SampleSize::Bytes(bytes)),
        _ => Err("expected a size of at least 1k, such as 500k, 64M or 1G, or `all`".to_owned()),
    }
}

fn copies(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 1000".to_owned())
}
