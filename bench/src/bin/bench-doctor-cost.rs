//! Measures what `contend doctor` costs: the CPU time that it takes to observe threads that mostly
//! wait, the change of an observed program's speed, and the memory for a program with many threads.
//!
//! A program runs alternately with and without an observer, which is attached to it. So the start and
//! the report of contend are not part of the program's time.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::{Timed, built_program};
use contend_record::doctor::DoctorRecord;
use contend_record::stats::{Estimate, median};
use contend_sys::Pid;
use contend_sys::child;

/// Measure the cost of `contend doctor`.
#[derive(Debug, Parser)]
struct Args {
    /// Pairs of runs for each program whose speed is measured.
    #[arg(long, default_value_t = 9)]
    pairs: usize,
    /// Observations of the programs whose threads wait.
    #[arg(long, default_value_t = 5)]
    observations: usize,
    /// Length of such an observation, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

const SEED: u64 = 1;
/// Seconds for which a program with waiting threads lives longer than it is observed.
const MARGIN_SECONDS: u64 = 20;
/// Threads and time between two wake-ups of each, in milliseconds, of a program that mostly waits.
const WAITING: (u64, u64) = (100, 100);
/// The same of a program with many threads.
const MANY: [(u64, u64); 2] = [(10_000, 3_600_000), (10_000, 10_000)];

/// A program whose speed is measured: its name, its source in `doctor/`, and its arguments.
struct Program {
    name: &'static str,
    source: &'static str,
    arguments: &'static [&'static str],
}

const PROGRAMS: [Program; 3] = [
    Program { name: "two threads compute", source: "cost/compute.c", arguments: &[] },
    Program { name: "8 clients and a server", source: "cost/requests.c", arguments: &[] },
    Program {
        name: "ping-pong over pipes",
        source: "c/pipe_ping_pong.c",
        arguments: &["sick", "1"],
    },
];

fn main() -> Result<()> {
    let args = Args::parse();
    let folder = tempfile::tempdir().context("cannot create a folder")?;
    let contend = built_program("contend")?;
    let waiting = build("cost/waiting.c", folder.path())?;

    let mut shares = Vec::new();
    for _ in 0..args.observations {
        let (record, _) = observe_waiting(&contend, &waiting, WAITING, args.seconds)?;
        shares.push(100.0 * record.observation.own_cpu_seconds / record.observed_seconds);
    }
    let (threads, period) = WAITING;
    println!(
        "{threads} threads that wait, and wake every {period} ms: {} % of a CPU",
        show(&estimate(shares))
    );

    println!(
        "{:>24} {:>7} {:>24} {:>24}  contend",
        "observed program", "alone", "ratio of wall time", "ratio of CPU time"
    );
    for program in &PROGRAMS {
        compare(&args, &contend, program, folder.path())?;
    }

    for (threads, period) in MANY {
        let mut peaks = Vec::new();
        let mut shares = Vec::new();
        for _ in 0..args.observations {
            let (record, timed) =
                observe_waiting(&contend, &waiting, (threads, period), args.seconds)?;
            ensure!(record.observation.threads > threads, "not all threads were observed");
            peaks.push(timed.usage.max_rss as f64 / 1e6);
            shares.push(100.0 * record.observation.own_cpu_seconds / record.observed_seconds);
        }
        println!(
            "{threads} threads that wake every {:.0} s: at most {:.1} MB of memory, {} % of a CPU",
            period as f64 / 1e3,
            median(&peaks).unwrap_or(f64::NAN),
            show(&estimate(shares))
        );
    }
    Ok(())
}

/// Runs a program alternately alone and observed, and prints how much slower it is observed.
fn compare(args: &Args, contend: &Path, program: &Program, folder: &Path) -> Result<()> {
    let path = build(program.source, folder)?;
    let run = |is_observed: bool| -> Result<(Timed, f64)> {
        let begun = Instant::now();
        let child = start(Command::new(&path).args(program.arguments), Stdio::null())?;
        let json = tempfile::NamedTempFile::new()?;
        let observer =
            is_observed.then(|| attach(contend, &child, 600, json.path())).transpose()?;
        let reaped = child::reap(Pid::from_child(&child))?;
        let timed = Timed { wall: begun.elapsed(), usage: reaped.usage };
        let Some(observer) = observer else { return Ok((timed, 0.0)) };
        child::reap(Pid::from_child(&observer))?;
        let record = read(json.path())?;
        Ok((timed, record.observation.own_cpu_seconds / record.observed_seconds))
    };
    run(false)?; // a warm-up
    let (mut alone, mut walls, mut cpus, mut shares) = (vec![], vec![], vec![], vec![]);
    for number in 0..args.pairs {
        let first = run(number % 2 == 1)?;
        let second = run(number % 2 == 0)?;
        let (plain, observed) = if number % 2 == 1 { (second, first) } else { (first, second) };
        alone.push(plain.0.wall.as_secs_f64());
        walls.push(observed.0.wall.as_secs_f64() / plain.0.wall.as_secs_f64());
        cpus.push(observed.0.cpu().as_secs_f64() / plain.0.cpu().as_secs_f64());
        shares.push(100.0 * observed.1);
    }
    println!(
        "{:>24} {:>6.2}s {:>24} {:>24}  {:.1} %",
        program.name,
        median(&alone).unwrap_or(f64::NAN),
        show(&estimate(walls)),
        show(&estimate(cpus)),
        median(&shares).unwrap_or(f64::NAN)
    );
    Ok(())
}

/// Observes a program with waiting threads for some seconds. Returns the record, and the resources that
/// contend used.
fn observe_waiting(
    contend: &Path,
    program: &Path,
    (threads, period): (u64, u64),
    seconds: u64,
) -> Result<(DoctorRecord, Timed)> {
    let words = [threads, period, seconds + MARGIN_SECONDS].map(|number| number.to_string());
    let mut child = start(Command::new(program).args(words), Stdio::piped())?;
    let json = tempfile::NamedTempFile::new()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut line)?;
    // Its threads have begun to wait.
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    let observer = attach(contend, &child, seconds, json.path())?;
    let reaped = child::reap(Pid::from_child(&observer))?;
    let timed = Timed { wall: begun.elapsed(), usage: reaped.usage };
    child.kill().and_then(|()| child.wait()).context("cannot end the program")?;
    ensure!(line == "ready\n", "the program could not start its threads");
    Ok((read(json.path())?, timed))
}

fn start(command: &mut Command, stdout: Stdio) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(stdout).spawn().context("cannot start a program")
}

/// Starts to observe a program for at most some seconds.
fn attach(contend: &Path, program: &Child, seconds: u64, json: &Path) -> Result<Child> {
    let mut command = Command::new(contend);
    command.args(["doctor", "--output", "/dev/null", "--for", &format!("{seconds}s"), "--json"]);
    start(command.arg(json).arg(program.id().to_string()), Stdio::null())
}

fn read(json: &Path) -> Result<DoctorRecord> {
    serde_json::from_str(&std::fs::read_to_string(json)?).context("contend wrote no record")
}

/// Builds a program in C from its source in `doctor/`.
fn build(source: &str, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(source.replace(['/', '.'], "-"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("doctor").join(source);
    let mut command = Command::new("gcc");
    command.args(["-O2", "-std=gnu11", "-pthread", "-o"]).arg(&path).arg(&source);
    let status = command.status().context("cannot start gcc")?;
    ensure!(status.success(), "cannot build {}", source.display());
    Ok(path)
}

fn estimate(samples: Vec<f64>) -> Estimate {
    Estimate::from_samples(samples, SEED).unwrap_or(Estimate {
        median: f64::NAN,
        ci95: [f64::NAN; 2],
        samples: Vec::new(),
    })
}

fn show(estimate: &Estimate) -> String {
    let [low, high] = estimate.ci95;
    format!("{:.3} [{low:.3}, {high:.3}]", estimate.median)
}
