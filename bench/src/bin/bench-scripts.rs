//! Checks whether `contend run` does the same as bash with random scripts that use the shell's
//! features. `bench/run/README.md` describes how scripts are generated and compared.

#![expect(clippy::print_stdout, reason = "the program prints its findings")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::built_program;
use contend_bench::scripts::check::Checker;
use contend_bench::scripts::generate::Script;
use contend_bench::scripts::report::{Summary, row};
use contend_bench::scripts::run::{Runner, adopt_orphans, limit_resources};
use serde_json::Value;

/// Compare contend run with bash on random scripts.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// Number of scripts, each of which runs in four variants.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Seed of the scripts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first script, to continue an earlier run.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only print these scripts.
    #[arg(long)]
    print: bool,
    /// Number of scripts that run at a time, each in a process of its own.
    #[arg(long, default_value_t = 2)]
    workers: u64,
    /// Seconds after which a run counts as hanging.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Seconds to shrink a script that differs.
    #[arg(long, default_value_t = 20)]
    shrink: u64,
    /// Folder for the findings, with a file for each.
    #[arg(long, value_name = "FOLDER", default_value = "bench/results/scripts")]
    results: PathBuf,
    /// Use another contend than the one built with this program.
    #[arg(long, value_name = "PROGRAM")]
    contend: Option<PathBuf>,
    /// The share of this process: the scripts whose number modulo `workers` is this one.
    #[arg(long, hide = true)]
    share: Option<u64>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.workers > 0, "there have to be workers");
    let locales = locales()?;
    if args.print {
        for number in args.from..args.from + args.count {
            let script = Script::new(args.seed, number, &locales);
            println!("# {number}: {:?}\n{}", script.setting, script.text());
        }
        return Ok(());
    }
    let contend = args.contend.clone().map_or_else(|| built_program("contend"), Ok)?;
    let contend = contend.canonicalize().context("cannot find contend")?;
    match args.share {
        Some(share) => work(&args, share, &contend, &locales),
        None => supervise(&args),
    }
}

/// Returns the sorted names of the installed locales and of one that is not installed.
fn locales() -> Result<Vec<String>> {
    let done = Command::new("locale").arg("-a").output().context("cannot list locales")?;
    let listed = String::from_utf8_lossy(&done.stdout);
    let mut names: Vec<String> = listed.lines().map(str::to_owned).collect();
    if let Some(folder) = std::env::var_os("LOCPATH") {
        for entry in fs::read_dir(folder).context("cannot list LOCPATH")? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
    }
    names.push("xx_XX.UTF-8".to_owned());
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Checks a worker's scripts, and prints a line of JSON for each.
fn work(args: &Args, share: u64, contend: &Path, locales: &[String]) -> Result<()> {
    adopt_orphans()?;
    limit_resources()?;
    let checker = Checker {
        contend,
        runner: Runner::new(Duration::from_secs(args.limit))?,
        shrink_time: Duration::from_secs(args.shrink),
    };
    for number in (args.from..args.from + args.count).filter(|n| n % args.workers == share) {
        let script = Script::new(args.seed, number, locales);
        let verdicts = checker.check(&script).with_context(|| format!("script {number}"))?;
        println!("{}", row(&script, &verdicts));
    }
    Ok(())
}

fn supervise(args: &Args) -> Result<()> {
    fs::create_dir_all(&args.results).context("cannot make the folder of results")?;
    let (send, rows) = mpsc::channel();
    let mut workers = Vec::new();
    for share in 0..args.workers {
        let mut child = start(share)?;
        let out = child.stdout.take().context("it is piped")?;
        let send = send.clone();
        thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        workers.push(child);
    }
    drop(send);
    let mut summary = Summary::default();
    for line in rows {
        let row: Value = serde_json::from_str(&line).context("a worker prints something else")?;
        summary.add(&row);
        save(args, &row)?;
        fs::write(args.results.join("summary.txt"), summary.table())?;
    }
    for mut worker in workers {
        ensure!(worker.wait()?.success(), "a worker failed");
    }
    println!("{}", summary.table());
    println!("{} scripts of seed {} from {} on", summary.scripts, args.seed, args.from);
    ensure!(summary.all.differ == 0, "contend run differs from bash");
    Ok(())
}

fn start(share: u64) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg("--share").arg(share.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start a worker")
}

/// Writes the findings about a script to files, and prints a line for each difference from bash.
fn save(args: &Args, row: &Value) -> Result<()> {
    let number = row["number"].as_u64().unwrap_or(0);
    for (place, finding) in row["findings"].as_array().into_iter().flatten().enumerate() {
        let verdict = finding["verdict"].as_str().unwrap_or("").replace(' ', "-");
        let name = format!("{number:06}-{place}-{verdict}.txt");
        let text = finding["text"].as_str().unwrap_or("");
        fs::write(args.results.join(name), text).context("cannot write a finding")?;
        if verdict == "differs" {
            println!(
                "{number} {} {} ({}): {}",
                finding["form"].as_str().unwrap_or(""),
                finding["kinds"],
                finding["again"],
                finding["small"].as_str().unwrap_or(""),
            );
        }
    }
    Ok(())
}
