//! Checks whether predictions are accurate and recommendations can be trusted.
//!
//! Runs `contend pipe --try` on the pipelines of `bench/pipelines/`, or on random ones with awkward
//! inputs, and verifies the advice with runs of its own.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use contend_bench::awkward::{self, Pair};
use contend_bench::pipelines::{Entry, listing};
use contend_bench::{bash_command, built_program, record_of, time_with, with_own_contend};
use contend_record::advice::{Safety, Verdict};
use contend_record::pipe::PipeRecord;
use contend_record::stats::{Estimate, median};

/// Check predictions and recommendations.
#[derive(Debug, Parser)]
struct Args {
    /// Folder with inputs that `bench-inputs` has made.
    #[arg(required_unless_present = "pairs")]
    inputs: Option<PathBuf>,
    /// Only pipelines whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Only every Nth of the chosen pipelines.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Seconds to try the changes to one listed pipeline.
    #[arg(long, default_value_t = 25.0)]
    budget: f64,
    /// Pairs of runs to check a recommendation with.
    #[arg(long, default_value_t = 6)]
    checks: usize,
    /// Use this many random pipelines with awkward inputs instead.
    #[arg(long, value_name = "COUNT")]
    pairs: Option<usize>,
    /// Threads that keep a CPU busy each.
    #[arg(long, default_value_t = 0)]
    load: usize,
    /// Seed of the random pipelines and of the trials.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Relative slowdown that the whole confidence interval of a recommended change must exceed for the
/// change to count as slower.
const MIN_DIFFERENCE: f64 = 0.01;
/// Relative slowdown above which a first suggestion counts as slower.
const MAX_SLOWDOWN: f64 = 0.03;

fn main() -> Result<()> {
    let args = Args::parse();
    match (args.pairs, &args.inputs) {
        (Some(count), _) => awkward_pairs(&args, count),
        (None, Some(inputs)) => predictions(&args, inputs),
        (None, None) => bail!("give the folder of the inputs"),
    }
}

/// The predicted and the measured change of one candidate: the ratio of its time to that of the
/// unchanged pipeline. The time is wall time or, if that is not predicted because the machine was
/// busy, CPU time.
struct Applied {
    rewrite: String,
    is_wall: bool,
    predicted: f64,
    interval: [f64; 2],
    measured: f64,
    /// Interval of the measured change; its range if there are too few runs.
    measured_interval: [f64; 2],
}

impl Applied {
    /// Returns the error of the predicted ratio, relative to the measured one.
    fn error(&self) -> f64 {
        (self.predicted / self.measured - 1.0).abs()
    }

    fn is_within(&self) -> bool {
        self.interval[0] <= self.measured && self.measured <= self.interval[1]
    }
}

/// Threads that keep CPUs busy until they are dropped.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(threads: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..threads).map(spin).collect();
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // it cannot panic
        }
    }
}

fn predictions(args: &Args, inputs: &Path) -> Result<()> {
    let contend = built_program("contend")?;
    let entries = listing()?;
    let chosen = entries.iter().filter(|entry| entry.name.contains(&args.only));
    let mut applied = Vec::new();
    let (mut pipelines, mut recommended, mut wrong, mut slower) = (0, 0, 0, 0);
    let (mut first, mut first_slower, mut first_certain) = (0, 0, 0);
    let _load = Load::start(args.load);
    for entry in chosen.step_by(args.every.max(1)) {
        let record = advised(&contend, entry, inputs, args)?;
        pipelines += 1;
        println!("{} ({:.2} s): {}", entry.name, record.wall_seconds, entry.text);
        let found = of_record(&record);
        found.iter().for_each(show);
        // The record has the candidates in the order in which they are suggested.
        if let Some(best) = found.iter().find(|one| one.predicted < 1.0 - MIN_DIFFERENCE) {
            first += 1;
            let is_slower = best.measured > 1.0 + MAX_SLOWDOWN;
            let is_certain = is_slower && best.measured_interval[0] > 1.0;
            first_slower += usize::from(is_slower);
            first_certain += usize::from(is_certain);
            if is_slower {
                let certainly = if is_certain { "certainly " } else { "" };
                println!("  !! the first suggestion, {}, is {certainly}slower", best.rewrite);
            }
        }
        applied.extend(found);
        for candidate in record.candidates.iter().filter(|one| one.measured.verdict.recommends()) {
            recommended += 1;
            let command = with_own_contend(&contend, &candidate.command);
            let (same, ratio) = checked(entry, inputs, &command, args.checks)?;
            wrong += usize::from(!same);
            let is_slower = ratio.ci95[0] > 1.0 + MIN_DIFFERENCE;
            slower += usize::from(is_slower);
            if !same || is_slower {
                println!("  !! {} {same} {ratio:?}", candidate.command);
            }
        }
        std::io::stdout().flush()?;
    }
    summary(&applied);
    println!(
        "{pipelines} pipelines, {recommended} recommended changes: {wrong} wrong, {slower} slower"
    );
    println!(
        "first suggestions more than {:.0} % slower than the original: {first_slower} of {first}, \
         {first_certain} of them with their whole interval above 1",
        100.0 * MAX_SLOWDOWN
    );
    ensure!(wrong == 0 && slower == 0, "a recommendation cannot be trusted");
    Ok(())
}

fn show(one: &Applied) {
    let change = |ratio: f64| format!("{:+.0} %", 100.0 * (ratio - 1.0));
    println!(
        "  {:<14} {} predicted {} [{}, {}], measured {}: error {:.0} %{}",
        one.rewrite,
        if one.is_wall { "wall" } else { "CPU" },
        change(one.predicted),
        change(one.interval[0]),
        change(one.interval[1]),
        change(one.measured),
        100.0 * one.error(),
        if one.is_within() { "" } else { ", outside" },
    );
}

fn summary(applied: &[Applied]) {
    println!();
    for is_wall in [true, false] {
        let of_kind: Vec<&Applied> = applied.iter().filter(|one| one.is_wall == is_wall).collect();
        if of_kind.is_empty() {
            continue;
        }
        let within = of_kind.iter().filter(|one| one.is_within()).count();
        println!(
            "{} changes of {} time, {within} ({:.0} %) within the predicted interval",
            of_kind.len(),
            if is_wall { "wall" } else { "CPU" },
            100.0 * within as f64 / of_kind.len() as f64,
        );
        errors("all", &of_kind);
        let mut rewrites: Vec<&str> = of_kind.iter().map(|one| one.rewrite.as_str()).collect();
        rewrites.sort_unstable();
        rewrites.dedup();
        for rewrite in rewrites {
            let of_it: Vec<_> =
                of_kind.iter().copied().filter(|one| one.rewrite == rewrite).collect();
            errors(rewrite, &of_it);
        }
    }
}

fn errors(what: &str, applied: &[&Applied]) {
    let mut errors: Vec<f64> = applied.iter().map(|one| one.error()).collect();
    errors.sort_by(f64::total_cmp);
    let Some(middle) = median(&errors) else { return };
    let ninetieth = errors[(errors.len() * 9 / 10).min(errors.len() - 1)];
    println!(
        "  {what}: median error {:.1} %, 90th percentile {:.1} %",
        100.0 * middle,
        100.0 * ninetieth
    );
}

fn of_record(record: &PipeRecord) -> Vec<Applied> {
    let Some(unchanged) = &record.predicted_unchanged else { return Vec::new() };
    let applied = record.candidates.iter().filter_map(|candidate| {
        let (is_wall, new, interval, old, measured) =
            match (candidate.predicted_wall_seconds, unchanged.wall_seconds) {
                (Some(new), Some(old)) => (
                    true,
                    new,
                    candidate.predicted_interval?,
                    old,
                    candidate.measured.wall_ratio.as_ref()?,
                ),
                _ => (
                    false,
                    candidate.predicted_cpu_seconds?,
                    candidate.predicted_cpu_interval?,
                    unchanged.cpu_seconds,
                    candidate.measured.cpu_ratio.as_ref()?,
                ),
            };
        Some(Applied {
            rewrite: format!("{:?}", candidate.rewrite),
            is_wall,
            predicted: new / old,
            interval: interval.map(|end| end / old),
            measured: measured.median,
            measured_interval: measured.ci95,
        })
    });
    applied.collect()
}

/// Runs `contend pipe --try` on a listed pipeline with its whole input, and returns the record.
fn advised(contend: &Path, entry: &Entry, inputs: &Path, args: &Args) -> Result<PipeRecord> {
    let (budget, seed) = (args.budget.to_string(), args.seed.to_string());
    let options = ["--try", "--sample", "all", "--budget", &budget, "--seed", &seed];
    entry.profile(contend, inputs, &options)
}

/// Runs the original and a recommended command alternately, `times` times each, but at least once.
/// Returns whether all outputs are the same, and the ratio of the command's wall time to the
/// original's.
fn checked(
    entry: &Entry,
    inputs: &Path,
    recommended: &str,
    times: usize,
) -> Result<(bool, Estimate)> {
    let (ours, theirs) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
    let run = |text: &str, to: &Path| -> Result<f64> {
        let mut command = bash_command(text);
        command.current_dir(entry.folder(inputs)).env("LC_ALL", &entry.locale);
        let stdin: Stdio =
            if entry.from_stdin { File::open(entry.path(inputs))?.into() } else { Stdio::null() };
        Ok(time_with(&mut command, stdin, File::create(to)?.into())?.wall.as_secs_f64())
    };
    let mut ratios = Vec::new();
    let mut same = true;
    for _ in 0..times.max(1) {
        let own = run(&entry.text, ours.path())?;
        let changed = run(recommended, theirs.path())?;
        ratios.push(changed / own);
        same &= std::fs::read(ours.path())? == std::fs::read(theirs.path())?;
    }
    let ratio = Estimate::from_samples(ratios, 1).context("no runs")?;
    Ok((same, ratio))
}

/// Checks the changes to `count` random pipelines: those that promise to keep the output, and those
/// that are recommended, must keep both output and exit status.
fn awkward_pairs(args: &Args, count: usize) -> Result<()> {
    let contend = built_program("contend")?;
    let folder = tempfile::tempdir()?;
    let (mut candidates, mut always, mut recommended, mut lies, mut refused) = (0, 0, 0, 0, 0);
    for (number, pair) in awkward::pairs(args.seed, count).enumerate() {
        let (mut command, stdin) = pair.command(folder.path())?;
        let output = command.stdin(stdin).stderr(Stdio::null()).output()?;
        let Ok(record) = advised_on(&contend, &pair, folder.path(), args) else {
            refused += 1;
            println!("{number}: no record: {}", pair.pipeline);
            continue;
        };
        for candidate in &record.candidates {
            candidates += 1;
            let promised = candidate.safety == Safety::Always;
            always += usize::from(promised);
            recommended += usize::from(candidate.measured.verdict.recommends());
            if !promised && !candidate.measured.verdict.recommends() {
                continue;
            }
            let command = with_own_contend(&contend, &candidate.command);
            let changed = pair.changed(&command, folder.path())?;
            let same = changed.stdout == output.stdout && changed.status == output.status;
            if !same || promised && candidate.measured.verdict == Verdict::Wrong {
                lies += 1;
                println!(
                    "{number} ({:?}, {}): {}\n  {:?}: {}\n  {:?}, {:?} and {:?}",
                    pair.kind,
                    pair.locale,
                    pair.pipeline,
                    candidate.rewrite,
                    candidate.command,
                    candidate.measured.difference,
                    output.status,
                    changed.status,
                );
            }
        }
    }
    println!(
        "{count} pipelines with awkward inputs, {refused} without a record: {candidates} changes, \
         {always} said to be the same always, {recommended} recommended; {lies} of these wrong"
    );
    ensure!(lies == 0, "a recommendation cannot be trusted");
    Ok(())
}

fn advised_on(contend: &Path, pair: &Pair, folder: &Path, args: &Args) -> Result<PipeRecord> {
    let mut command = Command::new(contend);
    command.args([
        "pipe",
        "--no-store",
        "--try",
        "--budget",
        "0.5",
        "--seed",
        &args.seed.to_string(),
    ]);
    if pair.from_stdin {
        command.args(["--stdin", awkward::FILE]);
    }
    command.current_dir(folder).env("LC_ALL", pair.locale);
    record_of(command, &pair.pipeline)
}
