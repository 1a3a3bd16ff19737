//! Measures which share of real pipelines' wall time the verdict of `contend pipe` explains.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::Parser;
use contend_bench::built_program;
use contend_bench::pipelines::Selection;
use contend_record::pipe::{PipeRecord, Rest, Stage};
use contend_record::stats::median;

/// Profile the pipelines of `bench/pipelines/`, and print the explained shares of their wall times.
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Print all pipelines, not only those below the goal.
    #[arg(long)]
    all: bool,
}

/// Explained share that 95 % of the pipelines should reach.
const GOAL: f64 = 0.9;
/// Share of the wall time below which a cause is not printed.
const MIN_CAUSE_SHARE: f64 = 0.01;

fn main() -> Result<()> {
    let args = Args::parse();
    let contend = built_program("contend")?;
    let (mut shares, mut strict) = (Vec::new(), Vec::new());
    for entry in args.selection.entries()? {
        let record = entry.profile(&contend, &args.selection.inputs, &["--no-advice"])?;
        let share = record.explained_share.context("contend analysed no phases")?;
        shares.push(share);
        strict.push(strict_bound(&record) / record.wall_seconds);
        if args.all || share < GOAL {
            println!(
                "{:<24} {:5.2} s, {} phases, explained {:3.0} %, others use {:2.0} % of the CPUs; {}",
                entry.name,
                record.wall_seconds,
                record.phases.len(),
                100.0 * share,
                100.0 * record.observation.others_cpu_share.unwrap_or(0.0),
                causes(&record),
            );
            std::io::stdout().flush()?;
        }
    }
    let reached = shares.iter().filter(|&&share| share >= GOAL).count();
    println!("{} pipelines, {reached} explained to at least {:.0} %", shares.len(), 100.0 * GOAL);
    summary("explained share", &mut shares);
    summary("slowest stage or CPUs, without phases", &mut strict);
    Ok(())
}

/// Returns a lower bound on the wall time of the run as a whole, in seconds: the longest service
/// time of a stage, or the CPU time of all stages divided by the number of CPUs, whichever is
/// longer.
fn strict_bound(record: &PipeRecord) -> f64 {
    let cpu: f64 = record.stages.iter().map(Stage::cpu_seconds).sum();
    let services = record.stages.iter().map(Stage::service_seconds);
    services.fold(cpu / record.host.usable_cpus(), f64::max)
}

/// Formats the causes of the unexplained time with their shares of the wall time, largest first.
/// Omits causes below [`MIN_CAUSE_SHARE`].
fn causes(record: &PipeRecord) -> String {
    let names = Rest::default().named().map(|(name, _)| name);
    let mut causes = names.map(|name| (name, 0.0));
    for phase in &record.phases {
        for (cause, (_, seconds)) in causes.iter_mut().zip(phase.rest.named()) {
            cause.1 += seconds / record.wall_seconds;
        }
    }
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = causes.iter().filter(|(_, share)| *share >= MIN_CAUSE_SHARE);
    let shown: Vec<_> =
        shown.map(|(name, share)| format!("{name} {:.0} %", 100.0 * share)).collect();
    shown.join(", ")
}

fn summary(what: &str, shares: &mut [f64]) {
    shares.sort_by(f64::total_cmp);
    let (Some(middle), Some(least)) = (median(shares), shares.first()) else { return };
    let fifth = shares[shares.len() / 20];
    println!(
        "{what}: median {:.0} %, 5th percentile {:.0} %, least {:.0} %",
        100.0 * middle,
        100.0 * fifth,
        100.0 * least
    );
}
