//! `contend lab --on`: runs experiments on nodes of a cluster, saves a run for each, and compares them.
//!
//! ```text
//!               ┌─ n1: DIR/node.sh ─ contend lab run … ─▶ DIR/n1.json ─┐
//! contend ─ srun┤                                                      ├─▶ history, report
//!               └─ n2: DIR/node.sh ─ contend lab run … ─▶ DIR/n2.json ─┘
//! ```
//!
//! The work directory `DIR` is shared by all nodes.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use contend_record::compare::Origin;
use contend_record::lab::RunRecord;
use contend_record::shell::quote;
use contend_report::render;
use contend_report::render::html::{self, MAX_RUNS};
use contend_report::render::units::counted;
use contend_shell::environment::in_path;
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, Signal, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::kill_process;
use tempfile::TempDir;

use crate::commands::import::{self, NewRun};
use crate::commands::{compare, now};
use crate::exit::{Exit, UsageError};
use crate::output::ReportFile;
use crate::progress::CLEAR_LINE;
use crate::settings::LabOnNodes;
use crate::{output, records};

/// The program that runs commands on nodes.
const RUN: &str = "srun";
/// The program that sends signals to them.
const SIGNAL: &str = "scancel";
/// Variables of an allocation that determine how many tasks a node runs, and the CPUs of each.
const OF_ALLOCATION: &[&str] = &[
    "SLURM_CPUS_PER_TASK",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
    "SLURM_TRES_PER_TASK",
];
/// What each node runs.
const SCRIPT: &str = include_str!("node.sh");
/// Time between two looks at the work directory.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Time that nodes have to write their records after a signal has interrupted contend.
const GRACE: Duration = Duration::from_secs(10);
/// Time that `srun` has to end after it was asked to, before it is killed.
const GRACE_OF_RUN: Duration = Duration::from_mins(1);
/// Longest time until files that nodes have written can be read, once `srun` has ended.
const DELAY_OF_FILES: Duration = Duration::from_secs(5);

/// Runs the experiments, saves the runs, and reports on them.
///
/// # Errors
/// Returns an error if the store or the work directory cannot be used, `srun` cannot be started, or no node has measured
/// anything.
pub(super) fn run(settings: LabOnNodes) -> Result<Exit> {
    if in_path(RUN).is_none() {
        return Err(UsageError(format!("--on slurm: {RUN} is not in PATH")).into());
    }
    if let Some(path) = &settings.store {
        super::saver_in(path, &settings.title, &settings.label, &now())?;
    }
    let signals = Signals::block().context("cannot block signals")?;
    let work = Work::create(&settings.work)
        .with_context(|| format!("cannot use {} as a work directory", settings.work.display()))?;
    let status = measure(&settings, &work, &signals)?;
    work.wait_for_records(settings.nodes);
    let nodes = work.nodes();
    let (mut measured, mut missing) = (Vec::new(), 0);
    for node in &nodes {
        match work.record(node) {
            Ok(found) => measured.push((node.clone(), found)),
            Err(why) => {
                missing += 1;
                output::error(&format!("no results of {node}: {why}"));
            }
        }
    }
    let interrupted = signals.interrupted();
    let expected = work.expected(settings.nodes);
    if interrupted.is_none() && nodes.len() < expected {
        missing += expected - nodes.len();
        output::error(&format!("{} of {expected} nodes have begun", nodes.len()));
    }
    if measured.is_empty() {
        return match interrupted {
            Some(signal) => Ok(Exit::Signal(signal)),
            None if nodes.is_empty() => bail!("{RUN} ended without running on a node"),
            None => {
                let kept = work.keep();
                bail!(
                    "no node has measured anything; the files of the nodes are in {}",
                    kept.display()
                )
            }
        };
    }
    if missing == 0 && interrupted.is_none() && !status.success() {
        output::error(&format!("{RUN} failed after all nodes were complete: {status}"));
    }
    let origins = match saved(&settings, &measured) {
        Ok(origins) => origins,
        Err(error) => {
            let import = import_command(&settings, &work.keep());
            let what =
                format!("cannot save the runs; to save them without title and label: {import}");
            return Err(error.context(what));
        }
    };
    if missing > 0 && interrupted.is_none() {
        // The logs show the cause, and a record may still appear on a slow file system.
        output::error(&format!("the files of the nodes are in {}", work.keep().display()));
    }
    report(settings, origins, measured)?;
    Ok(match interrupted {
        Some(signal) => Exit::Signal(signal),
        None if missing > 0 || !status.success() => Exit::Failure,
        None => Exit::Success,
    })
}

/// Returns a command that saves the runs of a work directory.
fn import_command(settings: &LabOnNodes, work: &Path) -> String {
    format!(
        "contend import {}{}",
        quote(&work.to_string_lossy()),
        elsewhere(settings.given_store.as_deref())
    )
}

/// Returns the option for a store that the user has given, after a space.
fn elsewhere(store: Option<&Path>) -> String {
    store.map_or_else(String::new, |path| format!(" --store {}", quote(&path.to_string_lossy())))
}

/// The record of a node: as JSON, and parsed.
type Found = (serde_json::Value, RunRecord);

/// The directory that the nodes share.
struct Work(TempDir);

impl Work {
    fn create(parent: &Path) -> Result<Self> {
        let work = Self(
            tempfile::Builder::new().prefix(".contend-lab-").tempdir_in(parent.canonicalize()?)?,
        );
        fs::copy(std::env::current_exe()?, work.path("contend"))?;
        fs::write(work.path("node.sh"), SCRIPT)?;
        Ok(work)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the names of the nodes that have begun, sorted.
    fn nodes(&self) -> Vec<String> {
        self.with_extension("log")
    }

    /// Returns the names of the nodes that have written a record.
    fn complete(&self) -> Vec<String> {
        self.with_extension("json")
    }

    fn with_extension(&self, extension: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(extension)?.strip_suffix('.')?.to_owned())
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort_unstable();
        names
    }

    /// Waits until the records of all nodes can be read, but not for long: some may have none.
    fn wait_for_records(&self, nodes: Option<u32>) {
        let begun = Instant::now();
        while self.complete().len() < self.nodes().len().max(self.expected(nodes))
            && begun.elapsed() < DELAY_OF_FILES
        {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the number of nodes of the run: as requested, or as Slurm has told the nodes.
    fn expected(&self, requested: Option<u32>) -> usize {
        let told = || fs::read_to_string(self.path("count")).ok()?.trim().parse().ok();
        requested.or_else(told).unwrap_or(1) as usize
    }

    /// Returns the record of a node.
    ///
    /// # Errors
    /// Returns the reason if there is none.
    fn record(&self, node: &str) -> Result<Found, String> {
        let read = |extension: &str| fs::read_to_string(self.path(&format!("{node}.{extension}")));
        let text = read("json").unwrap_or_default();
        if text.is_empty() {
            let log = read("log").unwrap_or_default();
            let last = log.lines().rev().find(|line| !line.trim().is_empty());
            return Err(last.unwrap_or("it has ended without a message").to_owned());
        }
        let record = records::of_lab(&text, "contend lab --json")?;
        let value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if record.is_empty() {
            Err("no case could be measured".to_owned())
        } else {
            Ok((value, record))
        }
    }

    /// Keeps the directory, and returns its path.
    fn keep(self) -> PathBuf {
        self.0.keep()
    }
}

/// Runs the experiments on all nodes, and returns how `srun` has ended.
fn measure(settings: &LabOnNodes, work: &Work, signals: &Signals) -> Result<ExitStatus> {
    let mut command = Command::new(RUN);
    command.args(["--job-name=contend-lab", "--ntasks-per-node=1", "--mem=0"]);
    // Without binding to a CPU, and although other nodes have failed.
    command.args([
        "--cpu-bind=none",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--no-kill",
        "--input=none",
    ]);
    // In an allocation, this would mean that a task gets only the CPUs that it asks for.
    let is_in_allocation = std::env::var_os("SLURM_JOB_ID").is_some();
    command.args((!is_in_allocation).then_some("--exclusive"));
    command.args(settings.nodes.map(|nodes| format!("--nodes={nodes}")));
    // The allocation may be for more tasks, or for tasks with few CPUs.
    for name in OF_ALLOCATION {
        command.env_remove(name);
    }
    command.args(&settings.options).arg("sh").arg(work.path("node.sh")).args(&settings.words);
    // The terminal's signals reach contend alone.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    let started = spawn::spawn(&mut command, &[0, 1], signals.mask_before(), Signal::TERM);
    let mut child = started.with_context(|| format!("cannot start {RUN}"))?;
    let mut progress = Progress::new(settings);
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for srun")? {
            progress.clear();
            return Ok(status);
        }
        if signals.interrupted().is_some() {
            progress.clear();
            return interrupt(&mut child, work, signals);
        }
        progress.show(work);
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&INTERVAL)); // see above
    }
}

/// Ends the run: sends SIGINT to the tasks, which then write their records, and then ends `srun`.
fn interrupt(child: &mut Child, work: &Work, signals: &Signals) -> Result<ExitStatus> {
    if let Ok(step) = fs::read_to_string(work.path("step")) {
        let mut command = Command::new(SIGNAL);
        command.args(["--quiet", "--signal=INT", &step]).stdin(Stdio::null());
        // If that fails, `srun` ends them.
        if let Ok(mut sender) =
            spawn::spawn(&mut command, &[0], signals.mask_before(), Signal::TERM)
        {
            if wait(&mut sender, GRACE)?.is_none() {
                sender.kill()?;
                sender.wait()?;
            }
            if let Some(status) = wait(child, GRACE)? {
                return Ok(status);
            }
        }
    }
    let _ = kill_process(Pid::from_child(child), Signal::TERM); // it has not been reaped
    if let Some(status) = wait(child, GRACE_OF_RUN)? {
        return Ok(status);
    }
    child.kill()?;
    Ok(child.wait()?)
}

/// Waits for the end of a child, for a limited time.
fn wait(child: &mut Child, most: Duration) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    while begun.elapsed() < most {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}

/// The progress line.
struct Progress {
    /// Whether there is one.
    draws: bool,
    /// The expected length of a run.
    expected: Duration,
    line: String,
}

impl Progress {
    fn new(settings: &LabOnNodes) -> Self {
        Self { draws: settings.progress, expected: settings.expected, line: String::new() }
    }

    fn show(&mut self, work: &Work) {
        if !self.draws {
            return;
        }
        let (begun, complete) = (work.nodes().len() as u64, work.complete().len());
        let line = if begun == 0 {
            "Slurm has not started the run yet".to_owned()
        } else {
            let seconds = self.expected.as_secs_f64().ceil();
            format!(
                "{}, {complete} complete; a run takes about {seconds:.0} s",
                counted(begun, "node")
            )
        };
        if line != self.line {
            self.clear();
            let room = output::width().saturating_sub(4);
            output::terminal(&line.chars().take(room).collect::<String>());
            self.line = line;
        }
    }

    fn clear(&mut self) {
        if !std::mem::take(&mut self.line).is_empty() {
            output::terminal(CLEAR_LINE);
        }
    }
}

/// Saves the runs, if they are to be saved, and returns where each of them is.
fn saved(settings: &LabOnNodes, measured: &[(String, Found)]) -> Result<Vec<Origin>> {
    let Some(store) = &settings.store else {
        let origin = |(node, _): &(String, Found)| Origin::File { path: node.clone() };
        return Ok(measured.iter().map(origin).collect());
    };
    let run = |(_, (value, _)): &(String, Found)| {
        let run = NewRun::of_record(value.clone(), settings.label.clone());
        run.map(|run| run.with_title(&settings.title)).map_err(anyhow::Error::msg)
    };
    let runs: Vec<_> = measured.iter().map(run).collect::<Result<_>>()?;
    let numbers = import::add(store, &runs)?.numbers.into_iter().flatten();
    Ok(numbers.map(|number| Origin::Kept { number, label: settings.label.clone() }).collect())
}

/// Writes the page, prints the report of a run, or compares the first ones of several, and says where the runs are. A page on
/// standard output replaces the report.
fn report(
    settings: LabOnNodes,
    origins: Vec<Origin>,
    measured: Vec<(String, Found)>,
) -> Result<()> {
    let (nodes, records): (Vec<_>, Vec<_>) =
        measured.into_iter().map(|(node, (_, record))| (node, record)).unzip();
    let runs: Vec<_> = origins.into_iter().zip(records).collect();
    let shown = &runs[..runs.len().min(MAX_RUNS)];
    let to_stdout = settings.html.as_ref().is_some_and(ReportFile::is_stdout);
    let page = settings.html.map_or(Ok(()), |file| match shown {
        [(_, record)] => file.write(&html::lab(record)?),
        several => {
            let named = nodes.into_iter().zip(several.iter().map(|(_, record)| record));
            file.write(&html::lab_runs(&named.collect::<Vec<_>>())?)
        }
    });
    let text = match shown {
        [(_, record)] => render::lab::report(record, settings.detail, output::width()),
        several => render::compare::report(&compare::of_lab(several), output::width()),
    };
    let printed = if to_stdout { Ok(()) } else { output::stdout(&text) };
    output::stderr(&where_saved(&runs, &elsewhere(settings.given_store.as_deref())))?;
    page.and(printed)
}

/// Says where the runs are saved; returns an empty string if they are not.
fn where_saved(runs: &[(Origin, RunRecord)], elsewhere: &str) -> String {
    let number = |(origin, _): &(Origin, RunRecord)| match origin {
        Origin::Kept { number, .. } => Some(number.to_string()),
        _ => None,
    };
    let numbers: Vec<String> = runs.iter().filter_map(number).collect();
    match numbers.as_slice() {
        [] => String::new(),
        [one] => {
            format!("saved as run {one}; show it again: contend history show {one}{elsewhere}\n")
        }
        [first, .., last] => {
            let compared = numbers[..numbers.len().min(MAX_RUNS)].join(" ");
            format!(
                "saved as runs {first} to {last}; compare them:\n  contend compare {compared}{elsewhere}\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_a_record_has_a_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = Work::create(folder.path()).expect("room");
        let write = |name: &str, text: &str| fs::write(work.path(name), text).expect("room");
        write("n2.log", "contend: first\ncontend: no room\n\n");
        write("n1.log", "");
        write("n3.log", "");
        write("n3.json", "{\"schema\": \"contend.run/1\"}");
        assert_eq!(work.nodes(), ["n1", "n2", "n3"]);
        assert_eq!(work.complete(), ["n3"]);
        let why = |node: &str| work.record(node).expect_err("no record");
        assert_eq!(why("n1"), "it has ended without a message");
        assert_eq!(why("n2"), "contend: no room");
        assert_eq!(why("n3"), "the schema is contend.run/1, expected contend.lab/1");
    }
}
