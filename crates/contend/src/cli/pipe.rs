//! `contend pipe`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Runs a pipeline and reports where each stage's time went.
///
/// The shell runs the pipeline as it always does: its standard input, output, error and
/// exit status are its own, and contend never touches its data. The report goes to
/// standard error when the pipeline has ended, as with `time`.
///
/// Every stage's life is divided into time on a CPU, in the run queue (ready, but no CPU
/// was free), starved (waiting for its input), blocked (waiting for room in its output)
/// and other waits, with what could not be explained as `?`. The verdict names the stage
/// that sets the pace, or says that the CPUs, the input or the output do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  contend pipe 'sort words.txt | uniq -c | sort -rn | head'
  contend pipe --discard --runs 7 'zcat log.gz | grep -v bot | cut -d\" \" -f1'
  contend pipe --setup 'f() { tr a-z A-Z; }' 'cat words.txt | f | wc -c'
  contend pipe --json profile.json --output report.txt 'seq 1000000 | rev | sort'
  contend pipe --try --discard 'cat words.txt | grep -v x | sort | uniq | wc -l'
  contend pipe --what-if 'stage 2 x2' --what-if 'cpus 8' 'cat words.txt | sort'")]
#[command(after_long_help = "Examples:
  contend pipe 'sort words.txt | uniq -c | sort -rn | head'
  contend pipe --discard --runs 7 'zcat log.gz | grep -v bot | cut -d\" \" -f1'
  contend pipe --setup 'f() { tr a-z A-Z; }' 'cat words.txt | f | wc -c'
  contend pipe --json profile.json --output report.txt 'seq 1000000 | rev | sort'
  contend pipe --try --discard 'cat words.txt | grep -v x | sort | uniq | wc -l'
  contend pipe --what-if 'stage 2 x2' --what-if 'cpus 8' 'cat words.txt | sort'

Columns:
  real, user, sys, cpu   Time from start to end, and CPU time, as `time` prints them. A
                         stage is a command with all its children and threads.
  on CPU                 Part of the real time that it ran.
  queue                  Was ready to run, but no CPU was free.
  starved                Waited for its input.
  blocked                Waited for room in its output: its reader was behind.
  other                  Waited for something else: sleep, lock, disk, child, poll, network,
                         another pipe, terminal; `stopped` by Ctrl-Z.
  ?                      What no look could explain.
  in, out                Bytes read and written; `~` marks what is not proved to be exact,
                         such as where standard error may be part of it.
  reads, writes          System calls for that; a dozen reads load the program.
  switches               How often it left a CPU, by itself or not.
  memory                 Peak of its resident set, without what it got from the shell.
  1st out                When its first output was seen.
  ended                  Exit status, or the signal that ended it.
  full                   Bytes in a pipe at the moments it was looked at, in percent of what
                         fits. Small writes take a page each, so a pipe may be full earlier.
  waits                  The side of a pipe that waited clearly longer.

Changes:
  Each one is shown ready to paste, with what it is expected to bring (in 95 of 100 cases
  within the brackets), compared with what is expected of the pipeline as it is, and what
  is known of its output: the same always, by the definition of its commands; the same on
  this data, which --try checks; or a changed environment (locale, memory). Where others
  kept the CPUs busy during the profile, only CPU times are predicted. Verdicts of --try: faster; cheaper (no slower, less CPU time); no
  difference; slower; WRONG OUTPUT, with the first difference; unclear (it could not be told).

Exit status:
  The pipeline's own, as the shell would give it. 2 when the command line or the
  pipeline's text is wrong; 125 when contend itself fails; 126 or 127 when the shell
  cannot be started. After SIGINT or SIGTERM the report is still printed, and contend
  then ends by that signal. A Ctrl-C that no stage dies of (a pager) changes nothing.

Environment:
  CONTEND_SHELL          The shell, if --shell does not say.
  NO_COLOR               No colours, if not empty.
  COLUMNS                Columns of the report where standard error is no terminal.

What an ordinary user cannot see:
  The waits of a stage that runs as another user (such as `sudo`) are guessed from its
  pipes or left unexplained. Bytes are exact for common filters; for shells, wrappers and
  unknown programs they are those of the last sample, completed by the neighbours' counts,
  and marked with `~`. Root sees them exactly.")]
pub struct PipeArgs {
    /// The pipeline, as one argument: quote it.
    #[arg(value_name = "PIPELINE", required_unless_present = "from")]
    pub pipeline: Option<String>,

    /// Run the pipeline with this shell: bash, dash, or another that starts every stage in
    /// a subshell.
    ///
    /// The default is bash if there is one, else sh. Shells that run the last stage
    /// themselves (zsh, ksh) cannot be used.
    #[arg(long, value_name = "SHELL", env = "CONTEND_SHELL", value_hint = ValueHint::CommandName)]
    pub shell: Option<String>,

    /// Have the shell execute this first: functions, variables, options.
    ///
    /// It is executed once, in the shell that then starts the stages, so everything that
    /// it defines holds in them. It is not part of the measurement.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub setup: Option<String>,

    /// Let the pipeline fail if any stage does, as with `set -o pipefail`.
    #[arg(long)]
    pub pipefail: bool,

    /// Feed the pipeline from this file instead of standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub stdin: Option<PathBuf>,

    /// Throw the pipeline's output away.
    ///
    /// It goes to /dev/zero, since GNU grep would stop at its first match if it saw /dev/null.
    #[arg(long)]
    pub discard: bool,

    /// Run it this many times and report medians with 95 % intervals (from 6 runs on).
    ///
    /// The tables are those of the run with the median wall time. Standard input must be
    /// something that can be read again: a file, a terminal or --stdin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// Report everything: all findings and rewrites, tables of times, data and pipes, and how they
    /// were measured.
    ///
    /// Without it the report fits on one screen.
    #[arg(long, short)]
    pub verbose: bool,

    /// Write the report to this file instead of standard error.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write everything as JSON (schema contend.pipe/1) to this file, `-` for standard output
    /// (with --discard, as the pipeline's output goes there too).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Do not show the stages on the terminal while they run.
    #[arg(long)]
    pub no_progress: bool,

    #[command(flatten)]
    pub advice: AdviceArgs,
}

/// What to make of a profile.
#[derive(Debug, Args)]
#[command(next_help_heading = "Changes")]
pub struct AdviceArgs {
    /// Try the suggested changes: run them and the original in turn on the same input, compare
    /// every byte, and print the one to use.
    ///
    /// The pipeline is run again and again, so it must not change anything: text that writes
    /// files (`>`, `tee`) is refused. Its output appears once, from the first run; those of the
    /// trial are only compared. A large input is replaced by parts from its head, its middle
    /// and its tail, and the winner is then compared once more on the whole. What comes through
    /// a pipe is kept up to 64 MiB; the rest is not read, and the report says so.
    #[arg(long = "try")]
    pub try_changes: bool,

    /// Use about this much time for trying; a round of runs that has begun is finished.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = super::budget)]
    #[arg(allow_negative_numbers = true)]
    pub budget: f64,

    /// Try on so much of a large input: bytes with k, M or G, or `all`.
    ///
    /// By default as much as lets everything run a dozen times within the budget.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "try_changes")]
    pub sample: Option<SampleSize>,

    /// Then run so many copies at the same time, original against changes.
    ///
    /// What is fastest alone because it uses idle CPUs may be slowest when there are none.
    #[arg(long, value_name = "N", requires = "try_changes")]
    #[arg(value_parser = copies, allow_negative_numbers = true)]
    pub copies: Option<u16>,

    /// The same for several numbers of copies, such as 1,2,4,8, instead of --copies.
    #[arg(long, value_name = "LIST", requires = "try_changes", conflicts_with = "copies")]
    #[arg(value_delimiter = ',', value_parser = copies, allow_negative_numbers = true)]
    pub sweep_copies: Vec<u16>,

    /// Predict, without running it, what a change would bring; may be given several times.
    ///
    /// 'stage 3 x2' (twice as fast), 'fuse 2,3', 'drop 1', 'cpus 8', 'copies 10', 'input x100';
    /// several joined by `;`, made one after the other: numbers are those of the stages left by
    /// then.
    #[arg(long, value_name = "CHANGE", allow_hyphen_values = true)]
    pub what_if: Vec<String>,

    /// Answer --what-if from a record that --json has written, without running anything.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "what_if")]
    #[arg(conflicts_with_all = ["pipeline", "try_changes", "runs", "setup", "stdin", "shell"])]
    pub from: Option<PathBuf>,

    /// Do not look for changes after the run.
    ///
    /// Looking takes up to two seconds, in which stages of known filters are run alone on a
    /// small part of the input.
    #[arg(long, conflicts_with = "try_changes")]
    pub no_advice: bool,

    /// The seed of the order of runs in a trial; drawn by default.
    #[arg(long, value_name = "N", requires = "try_changes")]
    pub seed: Option<u64>,
}

/// How much of an input a trial uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSize {
    /// All of it.
    All,
    /// About so many bytes.
    Bytes(u64),
}

fn size(text: &str) -> Result<SampleSize, String> {
    if text == "all" {
        return Ok(SampleSize::All);
    }
    match super::bytes(text) {
        Ok(bytes) if bytes >= 1024 => Ok(SampleSize::Bytes(bytes)),
        _ => Err("give at least 1k, such as 500k, 64M or 1G, or `all`".to_owned()),
    }
}

fn copies(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| "give whole numbers from 1 to 1000".to_owned())
}
