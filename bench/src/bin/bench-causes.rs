//! Checks by experiment, with real pipelines, whether the bottleneck that `contend pipe` names is
//! the stage that limits the pipeline: makes each stage in turn slower, and measures which one
//! lengthens the run most.
//!
//! `bench-slow` makes a stage slower: for every 10 ms of CPU time that the stage uses, it stops the
//! stage and uses a share of that time itself. The unchanged pipeline is measured with the same
//! program around the same stage, but without delays.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Result, bail};
use clap::Parser;
use contend_bench::pipelines::{Entry, Selection, program, stages};
use contend_bench::{bash_command, built_program, time_with};
use contend_record::stats::median;

/// Slow each stage of real pipelines in turn, and compare the stage that matters most with the
/// bottleneck that contend names.
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Share of a stage's CPU time by which the stage is made slower.
    #[arg(long, default_value_t = 0.25)]
    by: f64,
    /// Pairs of runs for each stage; their median counts.
    #[arg(long, default_value_t = 3)]
    pairs: usize,
}

/// Effect of the named stage, relative to the largest effect, from which the two count as equal.
const MIN_EQUAL_EFFECT: f64 = 0.8;

fn main() -> Result<()> {
    let args = Args::parse();
    let programs =
        Programs { contend: built_program("contend")?, slow: built_program("bench-slow")? };
    let (mut count, mut first, mut equal) = (0, 0, 0);
    println!("each stage in turn {:.0} % slower, {} pairs of runs", 100.0 * args.by, args.pairs);
    for entry in &args.selection.entries()? {
        let record = entry.profile(&programs.contend, &args.selection.inputs, &["--no-advice"])?;
        let effects = programs.effects(entry, &args)?;
        let named = record.bottleneck.stage.unwrap_or(0);
        let largest = effects.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let effect = named.checked_sub(1).and_then(|index| effects.get(index)).copied();
        let effect = effect.unwrap_or(f64::NEG_INFINITY);
        count += 1;
        let is_first = effect >= largest;
        let is_equal = effect >= MIN_EQUAL_EFFECT * largest;
        first += usize::from(is_first);
        equal += usize::from(is_equal);
        let shown: Vec<_> =
            effects.iter().map(|effect| format!("{:+.1}", 100.0 * effect)).collect();
        println!(
            "{} {:<24} {:?} {named}, explained {:.0} %: {} % | {}",
            if is_first {
                " "
            } else if is_equal {
                "~"
            } else {
                "!"
            },
            entry.name,
            record.bottleneck.kind,
            100.0 * record.explained_share.unwrap_or(0.0),
            shown.join(" "),
            entry.text
        );
    }
    println!(
        "{count} pipelines: the named stage has the largest effect in {first}, and at least {:.0} % \
         of it in {equal}",
        100.0 * MIN_EQUAL_EFFECT
    );
    Ok(())
}

struct Programs {
    contend: PathBuf,
    slow: PathBuf,
}

impl Programs {
    /// Returns, for each stage, the median increase in wall time if that stage is made slower, as a
    /// share of the wall time.
    fn effects(&self, entry: &Entry, args: &Args) -> Result<Vec<f64>> {
        let count = stages(&entry.text).len();
        let mut ratios = vec![Vec::new(); count];
        for _ in 0..args.pairs.max(1) {
            for (index, ratios) in ratios.iter_mut().enumerate() {
                let plain = self.run(entry, args, index, 0.0)?;
                let slowed = self.run(entry, args, index, args.by)?;
                ratios.push(slowed / plain - 1.0);
            }
        }
        Ok(ratios.iter().map(|ratios| median(ratios).unwrap_or(0.0)).collect())
    }

    /// Runs the pipeline with the stage `index`, from 0, slowed by the share `by` of its CPU time.
    /// Returns the wall time in seconds.
    fn run(&self, entry: &Entry, args: &Args, index: usize, by: f64) -> Result<f64> {
        let mut texts: Vec<String> = stages(&entry.text).into_iter().map(str::to_owned).collect();
        let stage = &texts[index];
        let name = program(stage);
        let Some(place) = stage.find(name).filter(|_| !name.is_empty()) else {
            bail!("{}: `{stage}` has no program", entry.name);
        };
        let (before, rest) = stage.split_at(place);
        texts[index] = format!("{before}{} --by {by} -- {rest}", self.slow.display());
        let mut command = bash_command(&texts.join(" | "));
        command.current_dir(entry.folder(&args.selection.inputs)).env("LC_ALL", &entry.locale);
        let stdin = if entry.from_stdin {
            File::open(entry.path(&args.selection.inputs))?.into()
        } else {
            Stdio::null()
        };
        let output = tempfile::tempfile()?; // with /dev/null, grep would stop at the first match
        Ok(time_with(&mut command, stdin, output.into())?.wall.as_secs_f64())
    }
}
