//! Checks whether `contend run -f` does the same as bash with published benchmark scripts.
//!
//! The scripts come from a checkout of another project; `bench/run/README.md` names the
//! repositories.

#![expect(clippy::print_stdout, reason = "the program prints its table")]

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::built_program;
use contend_bench::scripts::generate::Stdin;
use contend_bench::scripts::published::{Bench, Verdict, ensure_any, make_inputs, scripts};
use contend_bench::scripts::run::{Runner, adopt_orphans};

/// Run published scripts with bash and with contend run.
#[derive(Debug, Parser)]
struct Args {
    /// A checkout of <https://github.com/binpash/pash> or <https://github.com/kbensh/koala>.
    checkout: PathBuf,
    /// Folder for the inputs, with a folder for each size; existing inputs are used again.
    #[arg(long, value_name = "FOLDER")]
    inputs: PathBuf,
    /// Size of each script's input, in millions of bytes.
    #[arg(long, default_value_t = 1)]
    megabytes: u64,
    /// Seed of the generated inputs: the same seed gives the same bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only scripts whose path contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Skip scripts whose path contains this text.
    #[arg(long)]
    without: Option<String>,
    /// `LC_ALL` of the scripts.
    #[arg(long, default_value = "C.UTF-8")]
    locale: String,
    /// Seconds after which a run counts as hanging.
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Use another contend than the one built with this program.
    #[arg(long, value_name = "PROGRAM")]
    contend: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    adopt_orphans()?;
    let contend = args.contend.clone().map_or_else(|| built_program("contend"), Ok)?;
    let contend = contend.canonicalize().context("cannot find contend")?;
    let checkout = args.checkout.canonicalize().context("cannot find the checkout")?;
    let mut found = scripts(&checkout)?;
    ensure_any(&found, &checkout)?;
    found.retain(|script| script.name.contains(&args.only));
    found.retain(|script| args.without.as_ref().is_none_or(|text| !script.name.contains(text)));
    let inputs = args.inputs.join(format!("{}MB", args.megabytes));
    make_inputs(&inputs, args.megabytes * 1_000_000, args.seed)?;
    let bench = Bench {
        contend: &contend,
        checkout: &checkout,
        inputs: &inputs.canonicalize()?,
        runner: Runner::new(Duration::from_secs(args.limit))?,
        locale: args.locale,
    };
    let (mut same, mut differ, mut skipped) = (0, 0, 0);
    for script in &found {
        for (stdin, state) in [(Stdin::File, "open"), (Stdin::Closed, "closed")] {
            let what = match bench.compare(script, stdin)? {
                Verdict::Same { bash, contend, messages } => {
                    same += 1;
                    let remark = if messages { "" } else { ", other messages" };
                    format!("same      {bash:8.3} s {contend:8.3} s{remark}")
                }
                Verdict::Differs(kinds) => {
                    differ += 1;
                    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
                    format!("DIFFERS   {}", kinds.join(", "))
                }
                Verdict::Skipped(reason) => {
                    skipped += 1;
                    format!("skipped   {reason}")
                }
            };
            println!("{:<55} stdin {state:<6} {what}", script.name);
            std::io::stdout().flush()?;
        }
    }
    println!(
        "{} scripts, stdin open and closed: {same} same, {differ} differ, {skipped} skipped",
        found.len()
    );
    ensure!(differ == 0, "contend run differs from bash");
    Ok(())
}
