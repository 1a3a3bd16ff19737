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
  contend pipe --json profile.json --output report.txt 'seq 1000000 | rev | sort'")]
#[command(after_long_help = "Examples:
  contend pipe 'sort words.txt | uniq -c | sort -rn | head'
  contend pipe --discard --runs 7 'zcat log.gz | grep -v bot | cut -d\" \" -f1'
  contend pipe --setup 'f() { tr a-z A-Z; }' 'cat words.txt | f | wc -c'
  contend pipe --json profile.json --output report.txt 'seq 1000000 | rev | sort'

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
  in, out                Bytes read and written; `~` marks what is not exact.
  reads, writes          System calls for that.
  switches               How often it left a CPU, by itself or not.
  memory                 Peak of its resident set, without what it got from the shell.
  1st out                When its first output was seen.
  ended                  Exit status, or the signal that ended it.
  full                   Bytes in a pipe at the moments it was looked at, in percent of what
                         fits. Small writes take a page each, so a pipe may be full earlier.
  waits                  The side of a pipe that waited clearly longer.

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
  unknown programs they are those of the last look, completed by the neighbours' counts,
  and marked with `~`. Root sees them exactly.")]
pub struct PipeArgs {
    /// The pipeline, as one argument: quote it.
    #[arg(value_name = "PIPELINE")]
    pub pipeline: String,

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

    /// Send the pipeline's output to /dev/null.
    #[arg(long)]
    pub discard: bool,

    /// Run it this many times and report medians with 95 % intervals (from 6 runs on).
    ///
    /// The tables are those of the run with the median wall time. Standard input must be
    /// something that can be read again: a file, a terminal or --stdin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// Write the report to this file instead of standard error.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write everything as JSON (schema contend.pipe/1) to this file, `-` for standard
    /// output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Do not show the stages on the terminal while they run.
    #[arg(long)]
    pub no_progress: bool,
}
