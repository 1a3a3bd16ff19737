//! Checks whether the lab's measurements are right and reproducible.
//!
//! `pairs` runs the same experiments twice, many times, and counts how often their intervals
//! overlap. `others` runs the same operations in C, and any other commands that print a time, in
//! alternation with the lab. `memory` compares the lab's figure for the memory of a unit with a
//! measurement from outside.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use contend_bench::built_program;
use contend_record::lab::{Case, RunRecord};
use contend_record::stats::{Estimate, median};

/// Compare the lab with itself and with other programs.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Run the same experiments twice, many times.
    Pairs {
        /// Number of pairs.
        #[arg(long, default_value_t = 40)]
        count: u32,
        /// Budget for each case, in seconds.
        #[arg(long, default_value_t = 2.0)]
        budget: f64,
    },
    /// Run the same operations in C, in alternation with the lab.
    Others {
        /// Number of rounds.
        #[arg(long, default_value_t = 15)]
        rounds: u32,
        /// Another command to run in each round, `NAME=COMMAND`. The second word of NAME is the
        /// kind of unit to compare it with: fork, fork+exec or thread. The last number that the
        /// command prints is its time in microseconds.
        #[arg(long)]
        also: Vec<String>,
    },
    /// Compare the memory that the lab reports for a waiting process or thread with that measured
    /// from outside.
    Memory,
}

/// Short and long experiments to run in pairs: the arguments that select them, and the number of
/// their cases, by which the budget of one case is multiplied.
const PAIRED: [(&[&str], f64); 3] = [
    (&["engine/empty", "engine/clock"], 2.0),
    (
        &[
            "units/create",
            "--only=n=1",
            "--only=parent_mib=",
            "--only=kind=fork",
            "--only=kind=thread",
        ],
        2.0,
    ),
    (&["units/startup", "--only=command=true"], 1.0),
];

fn main() -> Result<()> {
    match Args::parse().what {
        What::Pairs { count, budget } => pairs(count, budget),
        What::Others { rounds, also } => others(rounds, &also),
        What::Memory => memory(),
    }
}

/// Runs the lab with `arguments` and returns its record.
fn lab(arguments: &[&str]) -> Result<RunRecord> {
    let output = Command::new(built_program("contend")?)
        .args(["lab", "run", "--no-store", "--json", "-"])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "contend lab run {} failed", arguments.join(" "));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn name(case: &Case) -> String {
    format!("{} {}", case.experiment, case.parameters).trim_end().to_owned()
}

fn pairs(count: u32, budget: f64) -> Result<()> {
    let mut met: BTreeMap<String, (u32, u32, Vec<f64>)> = BTreeMap::new();
    let mut without = 0;
    let (mut halves, mut halves_met) = (0, 0);
    for _ in 0..count {
        for (arguments, cases) in PAIRED {
            let seconds = (cases * budget).to_string();
            let run = || lab(&[arguments, &["--budget", &seconds]].concat());
            let (first, second) = (run()?, run()?);
            for case in
                first.cases.iter().chain(&second.cases).filter(|case| case.samples.len() >= 24)
            {
                halves += 1;
                halves_met += u32::from(halves_meet(&case.samples));
            }
            for (a, b) in first.cases.iter().zip(&second.cases) {
                let (Some(one), Some(other)) = (a.ci95, b.ci95) else {
                    without += 1;
                    continue;
                };
                let entry = met.entry(name(a)).or_default();
                entry.1 += 1;
                entry.0 += u32::from(one[0] <= other[1] && other[0] <= one[1]);
                entry.2.push(b.median.unwrap_or(0.0) / a.median.unwrap_or(1.0));
            }
        }
    }
    let (mut all, mut pairs) = (0, 0);
    println!("{:<44} {:>12}  second / first: median, least, most", "intervals meet in", "pairs");
    for (name, (agree, of, ratios)) in met {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let middle = median(&ratios).unwrap_or(0.0);
        println!("{name:<44} {agree:>5} of {of:>3}  {middle:>8.3} {least:>8.3} {most:>8.3}");
        all += agree;
        pairs += of;
    }
    let share = 100.0 * f64::from(all) / f64::from(pairs.max(1));
    println!("all: {all} of {pairs} ({share:.1} %); pairs without an interval: {without}");
    let share = 100.0 * f64::from(halves_met) / f64::from(halves.max(1));
    println!("even against odd samples of a run: {halves_met} of {halves} ({share:.1} %)");
    Ok(())
}

/// Returns whether the interval of the even-numbered samples overlaps that of the odd-numbered
/// ones. The two halves are like runs that alternate sample by sample, so changes in the state of
/// the machine affect both alike.
fn halves_meet(samples: &[f64]) -> bool {
    let half = |first: usize| {
        let samples = samples.iter().copied().skip(first).step_by(2).collect();
        Estimate::from_samples(samples, 1).map_or([0.0; 2], |estimate| estimate.ci95)
    };
    let (a, b) = (half(0), half(1));
    a[0] <= b[1] && b[0] <= a[1]
}

const KINDS: [&str; 3] = ["fork", "fork+exec", "thread"];

fn others(rounds: u32, also: &[String]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (units, tiny) = compile(folder.path())?;
    let mut ours: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut theirs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for kind in KINDS {
            let only = format!("kind={kind}");
            let record = lab(&[
                "units/create",
                "--only",
                &only,
                "--only",
                "n=1",
                "--only",
                "parent_mib=",
                "--budget",
                "0.5",
            ])?;
            let case = record.cases.first().context("no case")?;
            ours.entry(kind).or_default().push(case.median.context("no median")?);
            let output = Command::new(&units).args([kind, "300"]).arg(&tiny).output()?;
            ensure!(output.status.success(), "the C program failed");
            let nanoseconds = String::from_utf8_lossy(&output.stdout).trim().parse()?;
            theirs.entry(format!("C {kind}")).or_default().push(nanoseconds);
        }
        for command in also {
            let (name, command) = command.split_once('=').context("give NAME=COMMAND")?;
            let nanoseconds = 1000.0 * last_number(command)?;
            theirs.entry(name.to_owned()).or_default().push(nanoseconds);
        }
    }
    println!("{:<24} {:>10}   ratio to contend, of the same round", "", "µs");
    for kind in KINDS {
        let own = &ours[kind];
        println!("contend {kind:<16} {:>10.2}", median(own).unwrap_or(0.0) / 1000.0);
        for (name, values) in theirs.iter().filter(|(name, _)| name.split(' ').nth(1) == Some(kind))
        {
            let ratios: Vec<f64> = values.iter().zip(own).map(|(v, o)| v / o).collect();
            let estimate = Estimate::from_samples(ratios, 1).context("no rounds")?;
            println!(
                "  {name:<22} {:>10.2}   {:.3} [{:.3}, {:.3}]",
                median(values).unwrap_or(0.0) / 1000.0,
                estimate.median,
                estimate.ci95[0],
                estimate.ci95[1]
            );
        }
    }
    Ok(())
}

/// Compiles the C programs `units` and `tiny` into `folder`, and returns their paths.
fn compile(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
    let (units, tiny) = (folder.join("units"), folder.join("tiny"));
    let cc = |arguments: &[&str], from: &str, to: &Path| -> Result<()> {
        let mut command = Command::new("cc");
        command.args(arguments).arg("-o").arg(to).arg(source.join(from));
        let status = command.status().context("cannot run cc")?;
        ensure!(status.success(), "cc failed on {from}");
        Ok(())
    };
    cc(&["-O2", "-pthread"], "units.c", &units)?;
    cc(&["-O2", "-static", "-nostdlib"], "tiny.c", &tiny)?;
    Ok((units, tiny))
}

fn last_number(command: &str) -> Result<f64> {
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut numbers = text.split_whitespace().rev().filter_map(|word| word.parse().ok());
    numbers.next().with_context(|| format!("{command} printed no number"))
}

/// Number of units whose memory is observed from outside.
const OBSERVED_UNITS: usize = 5000;

fn memory() -> Result<()> {
    println!("{:<8} {:<16} {:>12} {:>12} {:>7}", "unit", "of it", "contend", "outside", "apart");
    for kind in ["process", "thread"] {
        let (case, outside) = measure_from_outside(kind)?;
        let ours = |metric: &str| case.metric(metric).unwrap_or(0.0) / OBSERVED_UNITS as f64;
        let total: f64 = outside.iter().map(|(_, bytes)| bytes).sum();
        let own_total = case.median.unwrap_or(0.0) / OBSERVED_UNITS as f64;
        let rows = outside.iter().map(|&(name, bytes)| (name, ours(name), bytes));
        for (name, ours, theirs) in rows.chain([("all", own_total, total)]) {
            let apart = 100.0 * (ours / theirs - 1.0);
            println!("{kind:<8} {name:<16} {ours:>12.0} {theirs:>12.0} {apart:>6.1}%");
        }
    }
    Ok(())
}

/// Memory in use at one moment, in bytes; 0 for parts that were not measured.
struct Outside {
    pss: f64,
    page_tables: f64,
    kernel_stacks: f64,
    kernel_objects: f64,
}

/// Lets the lab create units, stops their creator while they wait, and measures their memory from
/// outside, without the lab's code. Returns the lab's case, and the measured memory of one unit in
/// bytes, divided into parts.
fn measure_from_outside(kind: &str) -> Result<(Case, Vec<(&'static str, f64)>)> {
    let json = tempfile::NamedTempFile::new()?;
    let before = machine();
    let mut contend = Command::new(built_program("contend")?)
        .args(["lab", "run", "units/memory", "--no-store", "--budget", "0"])
        .args(["--only", "parent_mib=", "--only", &format!("kind={kind}")])
        .args(["--only", &format!("n={OBSERVED_UNITS}"), "--json"])
        .arg(json.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let mut creators: BTreeMap<u32, Outside> = BTreeMap::new();
    let found = 'seen: loop {
        ensure!(contend.try_wait()?.is_none(), "the run was over before its units were seen");
        for creator in children(contend.id()) {
            let units = if kind == "process" { children(creator) } else { Vec::new() };
            let count = if kind == "process" { units.len() } else { tasks(creator) - 1 };
            if count == 0 {
                creators.insert(creator, of_processes(&[creator]));
            }
            if count == OBSERVED_UNITS {
                signal(creator, "-STOP")?;
                let all = [vec![creator], units].concat();
                let now = (machine(), of_processes(&all));
                signal(creator, "-CONT")?;
                ensure!(creators.contains_key(&creator), "it was not seen without units");
                break 'seen (creator, now);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    ensure!(contend.wait()?.success(), "contend lab run failed");
    let record: RunRecord = serde_json::from_reader(std::fs::File::open(json.path())?)?;
    let case = record.cases.into_iter().next().context("no case")?;
    let (creator, (machine, processes)) = found;
    let alone = &creators[&creator];
    let each = |now: f64, then: f64| (now - then) / OBSERVED_UNITS as f64;
    Ok((
        case,
        vec![
            ("user", each(processes.pss, alone.pss)),
            ("page_tables", each(processes.page_tables, alone.page_tables)),
            ("kernel_stacks", each(machine.kernel_stacks, before.kernel_stacks)),
            ("kernel_objects", each(machine.kernel_objects, before.kernel_objects)),
        ],
    ))
}

fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").args([name, &pid.to_string()]).status()?;
    ensure!(status.success(), "cannot signal {pid}");
    Ok(())
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn tasks(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(1, Iterator::count).max(1)
}

/// Returns the value in the line that begins with `name`, converted from kB to bytes; 0 if there is
/// none.
fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    value.unwrap_or(0.0) * 1024.0
}

fn machine() -> Outside {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Outside {
        pss: 0.0,
        page_tables: 0.0,
        kernel_stacks: field(&text, "KernelStack:"),
        kernel_objects: field(&text, "SUnreclaim:"),
    }
}

fn of_processes(pids: &[u32]) -> Outside {
    let sum = |file: &str, name: &str| {
        let read = |pid| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        pids.iter().map(|&pid| field(&read(pid), name)).sum::<f64>()
    };
    Outside {
        pss: sum("smaps_rollup", "Pss:"),
        page_tables: sum("status", "VmPTE:"),
        kernel_stacks: 0.0,
        kernel_objects: 0.0,
    }
}
