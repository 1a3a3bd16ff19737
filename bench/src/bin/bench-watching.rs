//! Measures the overhead of observing: runs pipelines with and without `contend pipe` alternately,
//! and compares wall time and CPU time in pairs.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use anyhow::Result;
use clap::Parser;
use contend_bench::{Timed, bash_command, built_program, contend_command, profile, time};
use contend_record::stats::Estimate;

/// Compare pipelines under `contend pipe --discard` with the shell.
#[derive(Debug, Parser)]
struct Args {
    /// Pairs of runs for each pipeline.
    #[arg(long, default_value_t = 9)]
    pairs: usize,
    /// Pairs for the pipeline that does nothing.
    #[arg(long, default_value_t = 101)]
    short_pairs: usize,
}

const SEED: u64 = 1;
/// Pipelines that take 1 to 5 s on the machine that the documentation describes.
const PIPELINES: [&str; 12] = [
    "seq 16000000 | sed 's/1/2/'",
    "seq 9000000 | sort -n | tail -n 1",
    "seq 2500000 | rev | sort | uniq | wc -l",
    "seq 14000000 | awk '{ s += $1 } END { print s }'",
    "head -c 900000000 /dev/zero | tr '\\0' a | cat | cat | wc -c",
    "seq 15000000 | grep 7 | cut -c 2- | sort -u | head",
    "seq 5000000 | sed 's/[13579]//g' | sed 's/0/o/g' | sed 's/2/t/g'",
    "head -c 400000000 /dev/zero | gzip -1 | gzip -dc | wc -c",
    "seq 300000 | while read -r n; do echo \"$n\"; done | wc -l",
    "yes contend | head -n 200000000 | cat >/dev/null",
    "seq 1600 | while read -r n; do date +%s; done | sort -u",
    "head -c 500000000 /dev/zero | base64 | fold -w 60 | wc -l",
];

fn main() -> Result<()> {
    let args = Args::parse();
    let contend = built_program("contend")?;
    println!("{:>6} {:>24} {:>24} {:>9}  pipeline", "plain", "wall ratio", "CPU ratio", "memory");
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for pipeline in PIPELINES {
        let pairs = pairs(
            args.pairs,
            || time(&mut bash_command(pipeline)),
            || time(&mut contend_command(&contend, pipeline)),
        )?;
        let wall = estimate(&pairs, |run| run.wall.as_secs_f64());
        let cpu = estimate(&pairs, |run| run.cpu().as_secs_f64());
        let plain_wall =
            median(&pairs.iter().map(|(a, _)| a.wall.as_secs_f64()).collect::<Vec<_>>());
        let memory = profile(&contend, pipeline)?.observation.own_max_rss_bytes;
        println!(
            "{plain_wall:>5.2}s {:>24} {:>24} {:>7.1}MB  {pipeline}",
            show(&wall),
            show(&cpu),
            memory as f64 / 1e6
        );
        walls.push(wall.median);
        cpus.push(cpu.median);
    }
    println!("median over the pipelines: wall {:.3}, CPU {:.3}", median(&walls), median(&cpus));

    let short = pairs(
        args.short_pairs,
        || time(&mut bash_command("true | true")),
        || time(&mut contend_command(&contend, "true | true")),
    )?;
    let added: Vec<f64> =
        short.iter().map(|(a, b)| (b.wall.as_secs_f64() - a.wall.as_secs_f64()) * 1e3).collect();
    let added = Estimate::from_samples(added, SEED);
    if let Some(added) = added {
        println!("true | true: {} ms added", show(&added));
    }
    Ok(())
}

/// Runs both commands `count` times, alternately, after a warm-up run of `plain`. Each of them is
/// first in every other pair. Returns the runs in pairs, `plain` first.
fn pairs(
    count: usize,
    plain: impl Fn() -> Result<Timed>,
    watched: impl Fn() -> Result<Timed>,
) -> Result<Vec<(Timed, Timed)>> {
    plain()?; // a warm-up
    (0..count)
        .map(|number| {
            if number % 2 == 0 {
                let first = plain()?;
                Ok((first, watched()?))
            } else {
                let first = watched()?;
                Ok((plain()?, first))
            }
        })
        .collect()
}

fn estimate(pairs: &[(Timed, Timed)], value: fn(&Timed) -> f64) -> Estimate {
    let ratios = pairs.iter().map(|(plain, watched)| value(watched) / value(plain)).collect();
    Estimate::from_samples(ratios, SEED).unwrap_or(Estimate {
        median: f64::NAN,
        ci95: [f64::NAN; 2],
        samples: Vec::new(),
    })
}

fn median(values: &[f64]) -> f64 {
    contend_record::stats::median(values).unwrap_or(f64::NAN)
}

fn show(estimate: &Estimate) -> String {
    let [low, high] = estimate.ci95;
    format!("{:.3} [{low:.3}, {high:.3}]", estimate.median)
}
