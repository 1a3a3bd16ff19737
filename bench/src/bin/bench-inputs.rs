//! Makes the inputs of the pipelines in `bench/pipelines/`, lists the pipelines, and times them.

#![expect(clippy::print_stdout, reason = "the program prints its listing and the times")]

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Parser;
use contend_bench::awkward;
use contend_bench::inputs::folder;
use contend_bench::pipelines::{Entry, listing};
use contend_bench::{Timed, time_with};
use contend_record::stats::median;

/// Make the inputs of the listed pipelines.
#[derive(Debug, Parser)]
struct Args {
    /// Folder for the inputs: new, empty, or made by this program.
    #[arg(required_unless_present_any = ["list", "pairs"])]
    folder: Option<PathBuf>,
    /// Print the pipelines with their inputs, and make nothing.
    #[arg(long)]
    list: bool,
    /// Seed of the generated inputs: the same seed gives the same bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Make every input this many times as large.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Run each pipeline with bash, its output in a file, and print its time.
    #[arg(long)]
    run: bool,
    /// Number of runs of each pipeline.
    #[arg(long, default_value_t = 1, requires = "run")]
    rounds: usize,
    /// Print this many pairs of a pipeline and an awkward input, and make nothing.
    #[arg(long, value_name = "COUNT")]
    pairs: Option<usize>,
    /// Only pipelines whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
}

/// Time in seconds that a pipeline should take: long enough for start-up not to matter, short
/// enough for many runs.
const TARGET_SECONDS: RangeInclusive<f64> = 1.0..=5.0;

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.scale > 0.0, "--scale {} is not above 0: write as in --scale 0.1", args.scale);
    if let Some(count) = args.pairs {
        awkward::pairs(args.seed, count).for_each(|pair| show_pair(&pair));
        return Ok(());
    }
    let mut entries = listing()?;
    entries.retain(|entry| entry.name.contains(&args.only));
    ensure!(!entries.is_empty(), "no pipeline is named like {}: see --list", args.only);
    let Some(inputs) = args.folder.filter(|_| !args.list) else {
        entries.iter().for_each(show);
        return Ok(());
    };
    folder::claim(&inputs, &format!("seed {} scale {}\n", args.seed, args.scale))?;
    make(&inputs, &entries, args.seed, args.scale)?;
    if args.run { run(&inputs, &entries, args.rounds) } else { Ok(()) }
}

fn show(entry: &Entry) {
    let stdin = if entry.from_stdin { "<" } else { "" };
    let input = format!("{stdin}{} {}MB", entry.input.file, entry.megabytes);
    println!("{:<26} {input:<20} {}", entry.name, entry.text);
    if let Some(trap) = &entry.trap {
        println!("{:<26} {:<20} # {trap}", "", "");
    }
}

fn show_pair(pair: &awkward::Pair) {
    let shape = pair.shape.map_or(String::new(), |(name, form)| format!("{form:?} {name}"));
    let stdin = if pair.from_stdin { "<" } else { "" };
    let kind = format!("{stdin}{:?}", pair.kind);
    println!("{kind:<16} {:<7} {shape:<30} {}", pair.locale, pair.pipeline);
}

/// Makes the inputs that do not exist yet, and prints their sizes and paths.
fn make(folder: &Path, entries: &[Entry], seed: u64, scale: f64) -> Result<()> {
    for entry in entries {
        let path = entry.path(folder);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above 0")]
        let size = (entry.megabytes as f64 * 1e6 * scale) as u64;
        if let Some(written) = folder::make(&path, |out| entry.input.write(size, seed, out))? {
            println!("{written:>11} bytes {}", path.display());
        }
    }
    Ok(())
}

/// Runs each pipeline `rounds` times, and prints its median and minimum wall time and its median CPU
/// time. Then prints the median of the median wall times, and the number of pipelines whose minimum
/// wall time is outside [`TARGET_SECONDS`].
fn run(folder: &Path, entries: &[Entry], rounds: usize) -> Result<()> {
    println!("{:>7} {:>7} {:>7}  pipeline", "real", "min", "CPU");
    let (mut reals, mut outside) = (Vec::new(), 0);
    for entry in entries {
        let times: Vec<Timed> =
            (0..rounds.max(1)).map(|_| run_once(folder, entry)).collect::<Result<_>>()?;
        let walls: Vec<f64> = times.iter().map(|timed| timed.wall.as_secs_f64()).collect();
        let cpus: Vec<f64> = times.iter().map(|timed| timed.cpu().as_secs_f64()).collect();
        let of = |values: &[f64]| median(values).unwrap_or(f64::NAN);
        let least = walls.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{:>6.2}s {least:>6.2}s {:>6.2}s  {}", of(&walls), of(&cpus), entry.name);
        reals.push(of(&walls));
        outside += usize::from(!TARGET_SECONDS.contains(&least));
    }
    println!(
        "median {:.2} s; {outside} of {} took less than {} or more than {} s at the least",
        median(&reals).unwrap_or(f64::NAN),
        entries.len(),
        TARGET_SECONDS.start(),
        TARGET_SECONDS.end()
    );
    Ok(())
}

fn run_once(folder: &Path, entry: &Entry) -> Result<Timed> {
    let (mut command, stdin) = entry.command(folder)?;
    time_with(&mut command, stdin, tempfile::tempfile_in(folder)?.into())
}
