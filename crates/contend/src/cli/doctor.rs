//! Arguments of `contend doctor`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::export::ExportArgs;
use super::history::SaveArgs;
use super::remedies::TryArgs;

/// Find out why a program does not use the CPUs, and what would help.
///
/// Observes processes that are already running, or a command, with all their threads and children and
/// the processes at their pipes. Nothing is traced or stopped. The report says where the time of the
/// threads went and why CPUs were idle, and names symptoms such as a contended lock, with the
/// estimated gain of a remedy. It goes to standard error, at the latest when the program has ended.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "contend doctor [OPTIONS] <PID>...\n       contend doctor [OPTIONS] -- <COMMAND>..."
)]
pub struct DoctorArgs {
    /// Processes to observe.
    #[arg(value_name = "PID", required_unless_present = "command", conflicts_with = "command")]
    #[arg(value_parser = super::whole_number::<i32>(1..))]
    pub pids: Vec<i32>,

    /// Command to start and to observe.
    ///
    /// Its standard streams and its exit status are its own.
    #[arg(value_name = "COMMAND", last = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

    /// Stop observing after TIME, such as 10s, 500ms or 2m [default: 10s for a running process].
    ///
    /// A command that contend has started continues; contend waits for its end. With `--watch`, there
    /// is no default.
    #[arg(long = "for", value_name = "TIME", value_parser = super::duration)]
    pub limit: Option<Duration>,

    /// Show a live view on the whole screen until the program ends or `q` is pressed.
    ///
    /// The view is drawn on standard error, which must be a terminal, and updated once a second. The
    /// report follows as usual. A COMMAND reads nothing from this terminal, and what it would write
    /// there is shown only in part: the last lines. To give it input or keep all of its output, redirect
    /// its standard streams.
    #[arg(long, conflicts_with = "remedies")]
    pub watch: bool,

    /// Let `contend serve` show the threads while they are observed.
    #[arg(long)]
    pub publish: bool,

    /// Show all findings, the threads, and how they were observed.
    #[arg(long, short)]
    pub verbose: bool,

    /// Write the report to FILE instead of standard error.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the diagnosis as JSON to FILE, or `-` for stdout.
    ///
    /// The schema is contend.doctor/1; `contend generate schema doctor` prints it.
    #[arg(long, visible_alias = "export-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the diagnosis as a web page to FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write what each thread did over time to FILE, for a viewer of traces.
    ///
    /// The extension of FILE selects the format: .json or .json.gz for the Firefox Profiler
    /// (profiler.firefox.com), .pftrace or .perfetto-trace for Perfetto (ui.perfetto.dev).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,

    #[command(flatten)]
    pub exports: ExportArgs,

    /// Write the stacks of busy threads to FILE, or `-` for stdout, for flame graphs.
    ///
    /// Folded stacks: a line for each, with functions from the outermost to the innermost, and an
    /// estimate of the CPU time in microseconds. flamegraph.pl, inferno and speedscope read them.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Exports")]
    pub export_folded: Option<PathBuf>,

    #[command(flatten)]
    pub remedies: TryArgs,

    #[command(flatten)]
    pub save: SaveArgs,
}

const EXAMPLES: &str = "\
Examples:
  contend doctor 1234                     Observe a process for 10 seconds
  contend doctor --for 30s $(pgrep java)  Observe several processes
  contend doctor -- python3 job.py        Observe a command until it ends
  contend doctor --watch 1234             Show a live view until `q` is pressed
  contend doctor --trace t.pftrace 1234   Show the threads over time in Perfetto
  contend doctor --try -- python3 job.py  Then measure whether remedies help";
