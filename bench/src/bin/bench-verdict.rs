//! Checks whether the verdict is right: makes random pipelines of stages with known costs, and
//! compares the bottleneck that `contend pipe` names with the one that the costs imply.
//!
//! If D is the time of a stage for the whole input and C its CPU time, stages that work at the same
//! time take max(max D, sum C / CPUs). Times add up in two cases:
//!
//! - A barrier writes nothing until its input has ended. It then works alone, and afterwards at the
//!   same time as the stages after it.
//! - A stage that reads batches larger than a pipe works on one while the stages before it wait, and
//!   writes one while the stages after it work.
//!
//! The bottleneck is the stage that shortens the pipeline most if it is twice as fast, or the CPUs,
//! if twice as many of them shorten it more. Pipelines are drawn so that one of these savings
//! exceeds all others by a factor of at least 1.5, and is at least 15 % of the run; for a stage, the
//! time that is lost if it is 20 % slower must dominate, too. If a stage is the bottleneck, an
//! experiment confirms this for some of the pipelines: each stage in turn is made 20 % slower, and
//! the one that slows the pipeline most is the bottleneck.

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
    #[arg(long, default_value_t = 60)]
    confirm: u32,
    /// Target time of a pipeline, in seconds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seed of the pipelines.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Smallest factor by which the largest effect, a saving or a slowdown, must exceed all others.
const MIN_DOMINANCE_RATIO: f64 = 1.5;
/// Factor by which the costs of a stage are multiplied to make it slower.
const SLOWDOWN: f64 = 1.2;
/// Smallest saving by the bottleneck, as a share of the run.
const MIN_SAVING_SHARE: f64 = 0.15;
/// Share of the CPUs with which the pipeline must still be as fast if a stage is the bottleneck.
const MAX_CPU_USE: f64 = 0.8;
const CHUNK_BYTES: f64 = 8192.0;
/// Size of the batches of a stage that works in batches, in bytes: much more than a pipe holds.
const BATCH_BYTES: u64 = 1 << 20;
/// Number of experiments for each stage; their median counts.
const EXPERIMENTS_PER_STAGE: usize = 3;

/// Share of a stage's lifetime above which unexplained time is printed.
const MAX_UNEXPLAINED_SHARE: f64 = 0.05;

/// Time for the whole input, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    cpu: f64,
    sleep: f64,
}

impl Work {
    fn total(self) -> f64 {
        self.cpu + self.sleep
    }

    fn scaled(self, factor: f64) -> Self {
        Self { cpu: self.cpu * factor, sleep: self.sleep * factor }
    }
}

/// A stage with its cost.
#[derive(Debug, Clone)]
struct Cost {
    /// Work while it reads its input or, as the first stage, makes data.
    reading: Work,
    kind: StageKind,
}

#[derive(Debug, Clone, Copy)]
enum StageKind {
    Streaming,
    /// Reads a batch, then works, then writes.
    Batches,
    /// Also works after the end of its input: alone, and while it writes.
    Barrier {
        alone: Work,
        writing: Work,
    },
}

impl Cost {
    fn scaled(&self, factor: f64) -> Self {
        let kind = match self.kind {
            StageKind::Barrier { alone, writing } => {
                StageKind::Barrier { alone: alone.scaled(factor), writing: writing.scaled(factor) }
            }
            other => other,
        };
        Self { reading: self.reading.scaled(factor), kind }
    }
}

/// Which kinds of stages a pipeline has besides streaming ones.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Streaming,
    /// One or two barriers.
    Barriers,
    /// A stage that works in batches.
    Batches,
}

/// The bottleneck that the costs imply, or that contend names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// The stage with this number, from 1.
    Stage(usize),
    /// The CPUs of the machine.
    Machine,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let programs =
        Programs { contend: built_program("contend")?, stage: built_program("bench-stage")? };
    let cpus = contend_sys::cpu::allowed() as f64;
    let mut random = fastrand::Rng::with_seed(args.seed);
    let (mut right, mut unexplained, mut explained) = (0, Vec::new(), Vec::new());
    let mut confirmed = (0, 0);
    println!("{cpus} CPUs, {} pipelines, seed {}", args.count, args.seed);
    for number in 1..=args.count {
        let shape = [Shape::Streaming, Shape::Barriers, Shape::Batches][number as usize % 3];
        let (stages, truth) = draw(&mut random, shape, cpus, args.seconds);
        let text = programs.pipeline(&stages, args.seconds);
        let record = profile(&programs.contend, &text)?;
        let (worst, part) = worst_unexplained(&record);
        unexplained.push(part);
        explained.push(record.explained_share.unwrap_or(0.0));
        if part > MAX_UNEXPLAINED_SHARE {
            println!("{number}: {:.1} % of a lifetime unexplained: {worst:.4?}", 100.0 * part);
        }
        let named = named(&record);
        if named == Some(truth) {
            right += 1;
        } else {
            println!("{number}: truth {truth:?}, named {named:?}, {shape:?}: {text}");
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
    explained.sort_by(f64::total_cmp);
    println!(
        "explained share of the runs: median {:.0} %, 5th percentile {:.0} %, least {:.0} %",
        100.0 * median(&explained).unwrap_or(0.0),
        100.0 * explained.get(explained.len() / 20).copied().unwrap_or(0.0),
        100.0 * explained.first().copied().unwrap_or(0.0),
    );
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
    /// the run. With batches, it has 2000 per second, which make about 16 batches per second.
    fn pipeline(&self, stages: &[Cost], seconds: f64) -> String {
        let in_batches = stages.iter().any(|stage| matches!(stage.kind, StageKind::Batches));
        let chunks = if in_batches { 2000.0 } else { 1000.0 };
        let bytes = CHUNK_BYTES * (chunks * seconds).max(200.0);
        let stage = |(index, stage): (usize, &Cost)| {
            let per_byte = |seconds: f64| seconds * 1e9 / bytes;
            let Work { cpu, sleep } = stage.reading;
            let program = show(&self.stage);
            let mut text =
                format!("{program} --cpu {:.3} --sleep {:.3}", per_byte(cpu), per_byte(sleep));
            if index == 0 {
                text += &format!(" --source {bytes:.0}");
            }
            match stage.kind {
                StageKind::Streaming => {}
                StageKind::Batches => text += &format!(" --chunk {BATCH_BYTES}"),
                StageKind::Barrier { alone, writing } => {
                    text += &format!(
                        " --barrier --alone-cpu {:.4} --alone-sleep {:.4} --emit-cpu {:.3} \
                         --emit-sleep {:.3}",
                        alone.cpu,
                        alone.sleep,
                        per_byte(writing.cpu),
                        per_byte(writing.sleep)
                    );
                }
            }
            text
        };
        stages.iter().enumerate().map(stage).collect::<Vec<_>>().join(" | ")
    }
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// Draws stages until the costs imply a bottleneck. With a probability of one half, that has to be
/// the CPUs, if all stages are streaming; otherwise, a stage. Returns the stages, with costs scaled
/// so that the pipeline takes `seconds`, and the bottleneck.
fn draw(random: &mut fastrand::Rng, shape: Shape, cpus: f64, seconds: f64) -> (Vec<Cost>, Truth) {
    let machine = random.bool() && matches!(shape, Shape::Streaming);
    loop {
        let count = random.usize(2..=8);
        let mut stages: Vec<Cost> = (0..count)
            .map(|_| Cost { reading: draw_work(random), kind: StageKind::Streaming })
            .collect();
        match shape {
            Shape::Streaming => {}
            Shape::Barriers => {
                for _ in 0..random.usize(1..=2) {
                    let [alone, writing] = [draw_work(random), draw_work(random)];
                    stages[random.usize(0..count)].kind = StageKind::Barrier { alone, writing };
                }
            }
            Shape::Batches => stages[random.usize(0..count)].kind = StageKind::Batches,
        }
        let Some((total, truth)) = law(&stages, cpus) else { continue };
        if machine == (truth == Truth::Machine) {
            return (stages.iter().map(|stage| stage.scaled(seconds / total)).collect(), truth);
        }
    }
}

/// Draws a cost, log-uniform over a factor of 30, so that one stage often stands out.
fn draw_work(random: &mut fastrand::Rng) -> Work {
    let cost = 30_f64.powf(random.f64());
    let cpu_share = match random.u8(0..3) {
        0 => 1.0,
        1 => 0.02,
        _ => random.f64(),
    };
    Work { cpu: cost * cpu_share, sleep: cost * (1.0 - cpu_share) }
}

/// Returns the time of the pipeline, in the unit of the costs, and its bottleneck as defined at the
/// top of this file. Returns `None` if the bottleneck is not clear.
fn law(stages: &[Cost], cpus: f64) -> Option<(f64, Truth)> {
    let total = seconds(stages, cpus);
    let with = |index: usize, factor: f64| {
        let mut changed = stages.to_vec();
        changed[index] = changed[index].scaled(factor);
        seconds(&changed, cpus)
    };
    let of_stages = |effect: &dyn Fn(usize) -> f64| -> Vec<(f64, Truth)> {
        (0..stages.len()).map(|index| (effect(index), Truth::Stage(index + 1))).collect()
    };
    let mut savings = of_stages(&|index| total - with(index, 0.5));
    savings.push((total - seconds(stages, 2.0 * cpus), Truth::Machine));
    let (saving, truth) = dominant(savings)?;
    // Neither contend nor an experiment can distinguish two stages that limit the pipeline almost
    // equally.
    let slowed = dominant(of_stages(&|index| with(index, SLOWDOWN) - total));
    let is_same = truth == Truth::Machine || slowed.is_some_and(|(_, slowed)| slowed == truth);
    // If a phase needs all CPUs for almost as long as its slowest stage takes, stages are queued
    // for a time that the law does not predict.
    let scarce = seconds(stages, MAX_CPU_USE * cpus) > total;
    let is_clear = is_same && (truth == Truth::Machine || !scarce);
    (saving >= MIN_SAVING_SHARE * total && is_clear).then_some((total, truth))
}

/// Returns the largest of the effects, or `None` if there are fewer than two or it does not exceed
/// the others by at least the factor [`MIN_DOMINANCE_RATIO`].
fn dominant(mut effects: Vec<(f64, Truth)>) -> Option<(f64, Truth)> {
    effects.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (first, second) = (effects.first()?, effects.get(1)?);
    (first.0 >= MIN_DOMINANCE_RATIO * second.0).then_some(*first)
}

/// Returns the time that a pipeline takes, in the unit of the costs.
fn seconds(stages: &[Cost], cpus: f64) -> f64 {
    let mut total = 0.0;
    // The work of the stages in the current phase, and whether a stage works in batches.
    let mut phase: Vec<(Work, bool)> = Vec::new();
    for stage in stages {
        phase.push((stage.reading, matches!(stage.kind, StageKind::Batches)));
        if let StageKind::Barrier { alone, writing } = stage.kind {
            total += phase_seconds(&phase, cpus) + alone.total();
            phase = vec![(writing, false)];
        }
    }
    total + phase_seconds(&phase, cpus)
}

fn phase_seconds(stages: &[(Work, bool)], cpus: f64) -> f64 {
    let slowest = stages
        .split_inclusive(|(_, batches)| *batches)
        .map(|part| {
            // The slowest stage before the one that works in batches, then that one.
            let (batches, others): (Vec<_>, Vec<_>) =
                part.iter().partition(|(_, batches)| *batches);
            let longest = others.iter().map(|(work, _)| work.total()).fold(0.0, f64::max);
            longest + batches.iter().map(|(work, _)| work.total()).sum::<f64>()
        })
        .sum::<f64>();
    let machine = stages.iter().map(|(work, _)| work.cpu).sum::<f64>() / cpus;
    slowest.max(machine)
}

fn named(record: &PipeRecord) -> Option<Truth> {
    match (record.bottleneck.kind, record.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) => Some(Truth::Stage(index)),
        (BottleneckKind::Machine, _) => Some(Truth::Machine),
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
        slowed[index] = slowed[index].scaled(SLOWDOWN);
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
