//! Checks whether the verdict is right: makes random pipelines of stages with known costs, and
//! compares the bottleneck that `contend pipe` names with the one that the costs imply.
//!
//! If D is the time of a stage for each byte and C its CPU time for each byte, a pipeline handles
//! at most min(1 / max D, CPUs / sum C) bytes a second. Pipelines are drawn so that one term, that
//! of the CPUs or that of a stage, exceeds all others by a factor of at least 1.3. If a stage is
//! the bottleneck, an experiment confirms this for some of the pipelines: each stage in turn is
//! made 20 % slower, and the one that slows the pipeline most is the bottleneck.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use contend_bench::{bash_command, built_program, profile, time};
use contend_record::pipe::{BottleneckKind, PipeRecord, Stage};
use contend_record::stats::median;

/// Compare the bottlenecks that contend names with those that known costs imply, for random
/// pipelines.
#[derive(Debug, Parser)]
struct Args {
    /// Number of pipelines.
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// Number of pipelines to confirm by experiment.
    #[arg(long, default_value_t = 20)]
    confirm: u32,
    /// Target time of a pipeline, in seconds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seed of the pipelines.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Smallest factor by which the term of the bottleneck must exceed those of all stages and of the
/// CPUs.
const MIN_DOMINANCE_RATIO: f64 = 1.3;
const CHUNK_BYTES: f64 = 8192.0;
/// Number of experiments for each stage; their median counts.
const EXPERIMENTS_PER_STAGE: usize = 3;

/// Share of a stage's lifetime above which unexplained time is printed.
const MAX_UNEXPLAINED_SHARE: f64 = 0.05;

/// Cost of a stage.
#[derive(Debug, Clone)]
struct Cost {
    /// CPU time for the whole input, in seconds.
    cpu: f64,
    /// Sleep for the whole input, in seconds.
    sleep: f64,
}

/// The bottleneck that the costs imply, or that contend names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// The stage with this number, from 1.
    Stage(usize),
    /// The CPUs of the machine, with the number, from 1, of the stage that uses them most.
    Machine(usize),
}

fn main() -> Result<()> {
    let args = Args::parse();
    let programs =
        Programs { contend: built_program("contend")?, stage: built_program("bench-stage")? };
    let cpus = contend_sys::cpu::allowed() as f64;
    let mut random = fastrand::Rng::with_seed(args.seed);
    let (mut right, mut unexplained) = (0, Vec::new());
    let mut confirmed = (0, 0);
    println!("{cpus} CPUs, {} pipelines, seed {}", args.count, args.seed);
    for number in 1..=args.count {
        let (stages, truth) = draw(&mut random, cpus, args.seconds);
        let text = programs.pipeline(&stages, args.seconds);
        let record = profile(&programs.contend, &text)?;
        let (worst, part) = worst_unexplained(&record);
        unexplained.push(part);
        if part > MAX_UNEXPLAINED_SHARE {
            println!("{number}: {:.1} % of a lifetime unexplained: {worst:.4?}", 100.0 * part);
        }
        let named = named(&record);
        if named == Some(truth) {
            right += 1;
        } else {
            println!("{number}: truth {truth:?}, named {named:?}, {stages:.2?}");
            println!("    {}", record.bottleneck.evidence);
        }
        if let (true, Truth::Stage(index)) = (confirmed.1 < args.confirm, truth) {
            let felt = bottleneck_by_experiment(&programs, &stages, args.seconds)?;
            confirmed.1 += 1;
            confirmed.0 += u32::from(felt == index);
            if felt != index {
                println!("{number}: by experiment stage {felt} binds, not {index}");
            }
        }
    }
    let share = 100.0 * f64::from(right) / f64::from(args.count);
    println!("right: {right} of {} ({share:.1} %)", args.count);
    if args.confirm > 0 {
        println!("confirmed by experiment: {} of {}", confirmed.0, confirmed.1);
    }
    let most = unexplained.iter().copied().fold(0.0, f64::max);
    let over = unexplained.iter().filter(|&&part| part > MAX_UNEXPLAINED_SHARE).count();
    println!(
        "unexplained, the worst stage of each pipeline: median {:.2} %, most {:.2} %, over 5 %: {over}",
        100.0 * median(&unexplained).unwrap_or(0.0),
        100.0 * most
    );
    Ok(())
}

struct Programs {
    contend: PathBuf,
    stage: PathBuf,
}

impl Programs {
    /// Returns the text of a pipeline of `stages` that should take `seconds`. Its input has 1000
    /// chunks per second, but at least 200, so that the costs of the stages are spread evenly over
    /// the run.
    fn pipeline(&self, stages: &[Cost], seconds: f64) -> String {
        let bytes = CHUNK_BYTES * (1000.0 * seconds).max(200.0);
        let stage = |(index, stage): (usize, &Cost)| {
            let source = if index == 0 { format!(" --source {bytes:.0}") } else { String::new() };
            format!(
                "{} --cpu {:.3} --sleep {:.3}{source}",
                show(&self.stage),
                stage.cpu * 1e9 / bytes,
                stage.sleep * 1e9 / bytes
            )
        };
        stages.iter().enumerate().map(stage).collect::<Vec<_>>().join(" | ")
    }
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// Draws stages until one term exceeds the others by `MIN_DOMINANCE_RATIO`. With a probability of
/// one half, that has to be the term of the CPUs; otherwise, that of a stage. Returns the stages,
/// with costs scaled so that the pipeline takes `seconds`, and the bottleneck.
fn draw(random: &mut fastrand::Rng, cpus: f64, seconds: f64) -> (Vec<Cost>, Truth) {
    let machine = random.bool();
    loop {
        let count = random.usize(2..=8);
        let stages: Vec<Cost> = (0..count)
            .map(|_| {
                // Log-uniform over a factor of 30, so that one stage often stands out.
                let cost = 30_f64.powf(random.f64());
                let cpu_share = match random.u8(0..3) {
                    0 => 1.0,
                    1 => 0.02,
                    _ => random.f64(),
                };
                Cost { cpu: cost * cpu_share, sleep: cost * (1.0 - cpu_share) }
            })
            .collect();
        let Some((binding, truth)) = law(&stages, cpus) else { continue };
        if machine == matches!(truth, Truth::Machine(_)) {
            let scale = seconds / binding;
            let scaled = |s: &Cost| Cost { cpu: s.cpu * scale, sleep: s.sleep * scale };
            return (stages.iter().map(scaled).collect(), truth);
        }
    }
}

/// Returns the time that the largest term implies, and the bottleneck. Returns `None` if the
/// largest term does not exceed the others by `MIN_DOMINANCE_RATIO`, or if it is that of the CPUs
/// and no stage uses at least 10 % more CPU time than every other.
fn law(stages: &[Cost], cpus: f64) -> Option<(f64, Truth)> {
    let (slowest, second) = two_largest(stages, |stage| stage.cpu + stage.sleep)?;
    let (largest, next_largest) = two_largest(stages, |stage| stage.cpu)?;
    let machine = stages.iter().map(|stage| stage.cpu).sum::<f64>() / cpus;
    if slowest.1 >= MIN_DOMINANCE_RATIO * second.max(machine) {
        Some((slowest.1, Truth::Stage(slowest.0)))
    } else if machine >= MIN_DOMINANCE_RATIO * slowest.1 && largest.1 >= 1.1 * next_largest {
        Some((machine, Truth::Machine(largest.0)))
    } else {
        None
    }
}

/// Returns the number, from 1, of the stage with the largest value, with that value, and the second
/// largest value. Returns `None` if there are fewer than two stages.
fn two_largest(stages: &[Cost], value: fn(&Cost) -> f64) -> Option<((usize, f64), f64)> {
    let mut values: Vec<_> =
        stages.iter().enumerate().map(|(index, stage)| (index + 1, value(stage))).collect();
    values.sort_by(|a, b| b.1.total_cmp(&a.1));
    Some((*values.first()?, values.get(1)?.1))
}

fn named(record: &PipeRecord) -> Option<Truth> {
    match (record.bottleneck.kind, record.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) => Some(Truth::Stage(index)),
        (BottleneckKind::Machine, Some(index)) => Some(Truth::Machine(index)),
        _ => None,
    }
}

/// Returns the stage with the largest unexplained share of its lifetime, and that share; `None` and
/// 0 if there are no stages.
fn worst_unexplained(record: &PipeRecord) -> (Option<&Stage>, f64) {
    let part = |stage: &Stage| stage.unexplained_seconds / stage.wall_seconds;
    let worst = record.stages.iter().max_by(|a, b| part(a).total_cmp(&part(b)));
    (worst, worst.map_or(0.0, part))
}

/// Returns the number, from 1, of the stage that slows the pipeline most when it is made 20 %
/// slower.
fn bottleneck_by_experiment(programs: &Programs, stages: &[Cost], seconds: f64) -> Result<usize> {
    let mut felt = Vec::new();
    for index in 0..stages.len() {
        let mut slowed = stages.to_vec();
        slowed[index].cpu *= 1.2;
        slowed[index].sleep *= 1.2;
        let mut ratios = Vec::new();
        for _ in 0..EXPERIMENTS_PER_STAGE {
            let before = run(programs, stages, seconds)?;
            let after = run(programs, &slowed, seconds)?;
            ratios.push(after.as_secs_f64() / before.as_secs_f64());
        }
        felt.push((index + 1, median(&ratios).unwrap_or(0.0)));
    }
    felt.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(felt.first().map_or(0, |most| most.0))
}

fn run(programs: &Programs, stages: &[Cost], seconds: f64) -> Result<Duration> {
    Ok(time(&mut bash_command(&programs.pipeline(stages, seconds)))?.wall)
}
