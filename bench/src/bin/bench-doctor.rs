//! Checks whether `contend doctor` finds the fault of a program, is silent about a healthy one, and
//! estimates the gain of a remedy.
//!
//! Each program in `bench/doctor/` has three variants: `sick` has one planted fault, `fixed` does the
//! same work without it, and `twin` is a healthy program that looks alike. A seed varies their sizes.
//! The real programs in `bench/doctor/real/` are examined instead with `--real`.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::{built_program, time_with};
use contend_record::doctor::{DoctorRecord, Symptom};

/// Check the findings of `contend doctor` on programs with a planted fault and on healthy ones.
#[derive(Debug, Parser)]
struct Args {
    /// Only programs whose file name contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Whether to examine the real programs instead, and to print a table of what was found.
    #[arg(long)]
    real: bool,
    /// Number of runs of `sick` and of `fixed` for a measured gain, which is that of the medians.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Number of seeds for each program.
    #[arg(long, default_value_t = 1)]
    seeds: u32,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Whether to leave out the healthy programs.
    #[arg(long)]
    no_twins: bool,
    /// Whether to leave out the measured gains.
    #[arg(long)]
    no_gains: bool,
    /// Write all records as JSON into this folder.
    #[arg(long)]
    records: Option<PathBuf>,
}

/// A program with the symptom of its fault.
struct Program {
    /// File in `bench/doctor/`.
    file: &'static str,
    /// Symptom of the variant `sick`; without one, the program has only the variant `twin`.
    symptom: Option<Symptom>,
    /// What a real program does, and what is different in its variant `fixed`.
    real: Option<(&'static str, &'static str)>,
}

impl Program {
    fn has_twin(&self) -> bool {
        self.real.is_none() || self.symptom.is_none()
    }
}

const fn row(file: &'static str, symptom: Symptom) -> Program {
    Program { file, symptom: Some(symptom), real: None }
}

const fn real(
    file: &'static str,
    symptom: Symptom,
    job: &'static str,
    remedy: &'static str,
) -> Program {
    Program { file, symptom: Some(symptom), real: Some((job, remedy)) }
}

const fn healthy(file: &'static str, job: &'static str) -> Program {
    Program { file, symptom: None, real: Some((job, "none")) }
}

const TABLE: &[Program] = &[
    row("c/flag_poll.c", Symptom::SleepPolling),
    row("c/shared_poll.c", Symptom::SleepPolling),
    row("c/condvar_ping_pong.c", Symptom::LockStep),
    row("c/pipe_ping_pong.c", Symptom::LockStep),
    row("c/one_mutex.c", Symptom::LockContention),
    row("c/reader_writer_lock.c", Symptom::LockContention),
    row("c/serial_setup.c", Symptom::SerialSection),
    row("c/straggler.c", Symptom::UnevenWork),
    row("c/barrier_crowd.c", Symptom::Oversubscription),
    row("c/spin_crowd.c", Symptom::Oversubscription),
    row("c/pinned.c", Symptom::CpuLimit),
    row("c/byte_writes.c", Symptom::TinyIo),
    row("c/fork_exec.c", Symptom::ForkStorm),
    row("c/lock_retry.c", Symptom::LockPolling),
    row("c/poll_zero.c", Symptom::LockPolling),
    row("c/spin_flag.c", Symptom::Spinning),
    row("c/page_faults.c", Symptom::NotConcurrency),
    row("rust/sleep_queue.rs", Symptom::SleepPolling),
    row("rust/channel_ping_pong.rs", Symptom::LockStep),
    row("rust/one_lock.rs", Symptom::LockContention),
    row("rust/slow_producer.rs", Symptom::SerialSection),
    row("rust/uneven_chunks.rs", Symptom::UnevenWork),
    row("rust/thread_per_item.rs", Symptom::ForkStorm),
    row("rust/unbuffered.rs", Symptom::TinyIo),
    row("rust/spin_loop.rs", Symptom::Spinning),
    row("go/mutex.go", Symptom::LockContention),
    row("go/unbuffered_channel.go", Symptom::LockStep),
    row("go/sleep_poll.go", Symptom::SleepPolling),
    row("go/one_producer.go", Symptom::SerialSection),
    row("go/straggler.go", Symptom::UnevenWork),
    row("go/one_proc.go", Symptom::CpuLimit),
    row("go/tiny_reads.go", Symptom::TinyIo),
    row("go/exec_per_item.go", Symptom::ForkStorm),
    row("python/gil_threads.py", Symptom::InterpreterLock),
    row("python/gil_io.py", Symptom::InterpreterLock),
    row("python/sleep_poll.py", Symptom::SleepPolling),
    row("python/pool_chunksize.py", Symptom::LockStep),
    row("python/one_lock.py", Symptom::LockContention),
    row("python/straggler.py", Symptom::UnevenWork),
    row("python/subprocess_per_item.py", Symptom::ForkStorm),
    row("python/unbuffered.py", Symptom::TinyIo),
    row("python/file_lock_retry.py", Symptom::LockPolling),
    row("node/event_loop.mjs", Symptom::SerialSection),
    row("node/set_timeout_poll.mjs", Symptom::SleepPolling),
    row("node/atomics_ping_pong.mjs", Symptom::LockStep),
    row("node/spawn_per_item.mjs", Symptom::ForkStorm),
    row("node/pbkdf2_pool.cjs", Symptom::UnevenWork),
    row("shell/loop_of_commands.sh", Symptom::ForkStorm),
    row("shell/sleep_wait.sh", Symptom::SleepPolling),
    row("shell/slow_stage.sh", Symptom::Pipeline),
    row("shell/line_by_line.sh", Symptom::TinyIo),
    row("shell/flock_retry.sh", Symptom::LockPolling),
    row("shell/one_job.sh", Symptom::UnevenWork),
    row("shell/too_many_jobs.sh", Symptom::Oversubscription),
    row("java/OneMonitor.java", Symptom::LockContention),
    row("java/ReentrantConvoy.java", Symptom::LockContention),
    row("java/SynchronousPingPong.java", Symptom::LockStep),
    row("java/SleepPoll.java", Symptom::SleepPolling),
    row("java/OneProducer.java", Symptom::SerialSection),
    row("java/StaticSplit.java", Symptom::UnevenWork),
    row("java/SpinWait.java", Symptom::Spinning),
    row("java/ManyThreads.java", Symptom::Oversubscription),
    row("java/UnbufferedStream.java", Symptom::TinyIo),
];

/// Real programs. Those without a symptom are healthy.
const REAL: &[Program] = &[
    real(
        "real/python_threads.sh",
        Symptom::InterpreterLock,
        "Python: `tokenize` in a `ThreadPoolExecutor(4)`",
        "`ProcessPoolExecutor(2)`",
    ),
    real(
        "real/musl_words.sh",
        Symptom::LockContention,
        "C with musl: word count, an allocation for each word",
        "glibc",
    ),
    real(
        "real/openmp_threads.sh",
        Symptom::Oversubscription,
        "OpenMP: Jacobi method, `OMP_NUM_THREADS=8`",
        "`OMP_NUM_THREADS=2`",
    ),
    real(
        "real/sqlite_writers.sh",
        Symptom::NotConcurrency,
        "SQLite: 4 `sqlite3`, a transaction on disk for each row",
        "a transaction for 100 rows",
    ),
    real(
        "real/sqlite_busy.sh",
        Symptom::LockPolling,
        "SQLite from Python: 2 writers that compute in their transactions",
        "computing before, a transaction for 50 rows",
    ),
    real(
        "real/python_chunks.sh",
        Symptom::LockStep,
        "Python: `Pool.map(…, chunksize=1)` over lines of a log",
        "the default chunk size",
    ),
    real(
        "real/shell_loop.sh",
        Symptom::ForkStorm,
        "bash: `cut`, `sed` and `basename` for each line of a log",
        "one `awk`",
    ),
    real(
        "real/parallel_jobs.sh",
        Symptom::ForkStorm,
        "GNU parallel: `sha256sum` for each of 1,200 files",
        "`parallel -X`",
    ),
    real(
        "real/java_lock.sh",
        Symptom::LockContention,
        "Java: word count in a `Collections.synchronizedMap`",
        "`ConcurrentHashMap`",
    ),
    real(
        "real/go_quota.sh",
        Symptom::CpuLimit,
        "Go: `GOMAXPROCS=8`, CPU quota of 1",
        "a quota of 2",
    ),
    real("real/make_jobs.sh", Symptom::UnevenWork, "`make` of 20 files in C", "`make -j2`"),
    real(
        "real/node_logins.sh",
        Symptom::SerialSection,
        "Node.js: HTTP server with `pbkdf2Sync`",
        "`pbkdf2`",
    ),
    real("real/xargs_jobs.sh", Symptom::UnevenWork, "`xargs -n1 xz` of 12 files", "`xargs -P2`"),
    real("real/gzip_stage.sh", Symptom::Pipeline, "`tar \\| gzip -9`", "`pigz -p2`"),
    real("real/bash_read.sh", Symptom::TinyIo, "`grep \\| while read`", "`grep \\| awk`"),
    healthy("real/make_jobs.sh", "`make -j2` of 20 files in C"),
    healthy("real/gzip_stage.sh", "`gzip -9` of a file"),
    healthy("real/healthy_sort.sh", "`sort --parallel=2` of a file"),
    healthy("real/healthy_xz.sh", "`xz -T2` of a file"),
    healthy("real/healthy_pigz.sh", "`pigz -p16` of a file"),
    healthy("real/healthy_redis.sh", "`redis-server` with a request now and then"),
];

/// Exit status of a real program that cannot run here.
const SKIPPED: i32 = 3;

/// Factor within which an estimated gain must be of the measured one.
const MAX_FACTOR: f64 = 1.5;

/// Counts over all programs.
#[derive(Default)]
struct Totals {
    sick: u32,
    right: u32,
    twins: u32,
    silent: u32,
    estimates: u32,
    within: u32,
    skipped: Vec<String>,
    /// Programs that ended with an error, with the seed.
    failed: Vec<String>,
    /// Rows of the table of real programs.
    rows: Vec<String>,
    /// Number of sick programs by planted symptom and first finding.
    confusion: BTreeMap<(Symptom, Option<Symptom>), u32>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let built = tempfile::tempdir().context("cannot create a folder")?;
    let mut totals = Totals::default();
    let table = if args.real { REAL } else { TABLE };
    for program in table.iter().filter(|program| program.file.contains(&args.only)) {
        let Some(command) = build(program, built.path())? else {
            totals.skipped.push(format!("{}: a tool is missing", program.file));
            continue;
        };
        if let Some(reason) = prepare(program, &command)? {
            totals.skipped.push(reason);
            continue;
        }
        for seed in args.seed..args.seed + args.seeds {
            // On a slow machine, a program may reach its time limit. The others still count.
            if let Err(error) = check(&args, program, &command, seed, &mut totals) {
                println!("FAILED {} {seed}: {error:#}", program.file);
                totals.failed.push(format!("{} {seed}", program.file));
            }
        }
    }
    print(&totals);
    ensure!(totals.failed.is_empty(), "some programs failed");
    Ok(())
}

/// Examines the sick and the healthy variant of a program, as far as it has them.
fn check(
    args: &Args,
    program: &Program,
    command: &[String],
    seed: u32,
    totals: &mut Totals,
) -> Result<()> {
    if let Some(symptom) = program.symptom {
        check_sick(args, program, symptom, command, seed, totals)?;
    }
    if program.has_twin() && !args.no_twins {
        check_twin(args, program, command, seed, totals)?;
    }
    Ok(())
}

/// Examines the variant with the fault, and measures what `fixed` gains.
fn check_sick(
    args: &Args,
    program: &Program,
    symptom: Symptom,
    command: &[String],
    seed: u32,
    totals: &mut Totals,
) -> Result<()> {
    let sick = examine(args, program, command, "sick", seed)?;
    let first = sick.findings.first();
    let found = first.map(|finding| finding.symptom);
    totals.sick += 1;
    *totals.confusion.entry((symptom, found)).or_default() += 1;
    let is_right = found == Some(symptom);
    totals.right += u32::from(is_right);
    let estimated = first.and_then(|finding| finding.gain_share);
    let measured = if args.no_gains { None } else { Some(gain(command, seed, args.runs)?) };
    let mut gains = String::new();
    if let (Some(estimated), Some(measured), true) = (estimated, measured, is_right) {
        let ratio = estimated / measured.max(1e-9);
        let is_within = (1.0 / MAX_FACTOR..=MAX_FACTOR).contains(&ratio);
        totals.estimates += 1;
        totals.within += u32::from(is_within);
        let mark = if is_within { "" } else { ", outside" };
        gains = format!("; gain {}, measured {}{mark}", percent(estimated), percent(measured));
    } else if let Some(measured) = measured {
        gains = format!("; measured gain {}", percent(measured));
    }
    let mark = if is_right { "right" } else { "WRONG" };
    let found = found_name(found);
    println!("{mark}  {} {seed} ({}): {found}{gains}", program.file, name(symptom));
    totals.add_row(program, &found, estimated, measured);
    Ok(())
}

/// Examines the healthy variant.
fn check_twin(
    args: &Args,
    program: &Program,
    command: &[String],
    seed: u32,
    totals: &mut Totals,
) -> Result<()> {
    let twin = examine(args, program, command, "twin", seed)?;
    let first = twin.findings.first();
    totals.twins += 1;
    totals.silent += u32::from(first.is_none());
    let found = found_name(first.map(|finding| finding.symptom));
    if first.is_some() {
        println!("ALARM  {} {seed} twin: {found}", program.file);
    }
    if program.symptom.is_none() {
        totals.add_row(program, &found, first.and_then(|finding| finding.gain_share), None);
    }
    Ok(())
}

impl Totals {
    /// Adds a row to the table of real programs.
    fn add_row(
        &mut self,
        program: &Program,
        found: &str,
        estimated: Option<f64>,
        measured: Option<f64>,
    ) {
        if let Some((job, remedy)) = program.real {
            let [estimated, measured] =
                [estimated, measured].map(|gain| gain.map_or("–".to_owned(), percent));
            self.rows.push(format!("| {job} | {found} | {estimated} | {remedy} | {measured} |"));
        }
    }
}

/// Runs one variant under `contend doctor`.
fn examine(
    args: &Args,
    program: &Program,
    command: &[String],
    variant: &str,
    seed: u32,
) -> Result<DoctorRecord> {
    let file = tempfile::NamedTempFile::new().context("cannot create a file")?;
    let status = Command::new(built_program("contend")?)
        .args(["doctor", "--no-store", "--output", "/dev/null", "--json"])
        .arg(file.path())
        .arg("--")
        .args(command)
        .args([variant, &seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot run contend")?;
    ensure!(status.success(), "{} {variant} {seed}: {status}", program.file);
    let text = std::fs::read_to_string(file.path())?;
    if let Some(folder) = &args.records {
        let name = program.file.replace('/', "-");
        std::fs::write(folder.join(format!("{name}-{variant}-{seed}.json")), &text)?;
    }
    serde_json::from_str(&text).context("contend wrote a record that cannot be read")
}

/// Returns the share of the wall time by which `fixed` is faster than `sick`: medians of runs in turn.
fn gain(command: &[String], seed: u32, runs: u32) -> Result<f64> {
    let wall = |variant: &str| -> Result<f64> {
        let mut run = Command::new(&command[0]);
        run.args(&command[1..]).args([variant, &seed.to_string()]);
        Ok(time_with(&mut run, Stdio::null(), Stdio::null())?.wall.as_secs_f64())
    };
    let (mut fixed, mut sick) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        fixed.push(wall("fixed")?);
        sick.push(wall("sick")?);
    }
    Ok(1.0 - median(fixed) / median(sick))
}

/// Returns the median, the upper one of an even number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Makes the inputs of a real program. Returns the reason if it cannot run here.
fn prepare(program: &Program, command: &[String]) -> Result<Option<String>> {
    if program.real.is_none() {
        return Ok(None);
    }
    let mut run = Command::new(&command[0]);
    let output = run.args(&command[1..]).arg("prepare").stdin(Stdio::null()).output();
    let output = output.context("cannot start a program")?;
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.code() == Some(SKIPPED) {
        return Ok(Some(message));
    }
    ensure!(output.status.success(), "cannot prepare {}: {message}", program.file);
    Ok(None)
}

/// Builds a program in `folder`, and returns the words that start it. Returns `None` if its compiler
/// or interpreter is missing.
fn build(program: &Program, folder: &Path) -> Result<Option<Vec<String>>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("doctor").join(program.file);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let stem = source.file_stem().unwrap_or_default();
    let kind = source.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    let binary = folder.join(program.file.replace('/', "-")).with_extension("bin");
    let compile = |words: &[&str]| -> Result<bool> {
        let status = Command::new(words[0]).args(&words[1..]).current_dir(folder).status();
        match status {
            Ok(status) => {
                ensure!(status.success(), "cannot build {}", program.file);
                Ok(true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context("cannot start a compiler"),
        }
    };
    let (file, output) = (text(&source), text(&binary));
    let interpreted = |words: &[&str]| -> Result<Option<Vec<String>>> {
        let version = Command::new(words[0]).arg("--version").output();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(version.is_ok().then_some(words))
    };
    let is_built = match kind {
        "c" => compile(&["gcc", "-O2", "-std=gnu11", "-pthread", "-o", &output, &file])?,
        "rs" => compile(&["rustc", "-O", "--edition", "2024", "-o", &output, &file])?,
        "go" => compile(&["go", "build", "-o", &output, &file])?,
        "java" => {
            if !compile(&["javac", "-d", &text(folder), &file])? {
                return Ok(None);
            }
            let class = stem.to_string_lossy();
            let options = ["-XX:+UseSerialGC", "-Xmx256m"];
            return interpreted(&["java", "-cp", &text(folder), options[0], options[1], &class]);
        }
        "py" => return interpreted(&["python3", &file]),
        "mjs" | "cjs" => return interpreted(&["node", &file]),
        "sh" if program.real.is_some() => {
            return interpreted(&["env", &format!("REAL_FOLDER={}", text(folder)), "bash", &file]);
        }
        _ => return interpreted(&["bash", &file]),
    };
    Ok(is_built.then(|| vec![output]))
}

fn name(symptom: Symptom) -> String {
    let value = serde_json::to_value(symptom).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn found_name(found: Option<Symptom>) -> String {
    found.map_or("nothing".to_owned(), name)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Prints the confusion matrix as a table in Markdown.
fn print_confusion(totals: &Totals) {
    println!("\n| planted | programs | right | other first findings |");
    println!("|---|---|---|---|");
    let planted: BTreeSet<Symptom> = totals.confusion.keys().map(|(planted, _)| *planted).collect();
    for planted in planted {
        let of = |is_right: bool| {
            totals.confusion.iter().filter(move |((symptom, found), _)| {
                *symptom == planted && (*found == Some(planted)) == is_right
            })
        };
        let sum = |is_right: bool| of(is_right).map(|(_, count)| count).sum::<u32>();
        let others: Vec<String> = of(false)
            .map(|((_, found), count)| format!("{}: {count}", found_name(*found)))
            .collect();
        let (right, wrong) = (sum(true), sum(false));
        println!("| {} | {} | {right} | {} |", name(planted), right + wrong, others.join(", "));
    }
    println!();
}

fn print(totals: &Totals) {
    print_confusion(totals);
    if !totals.rows.is_empty() {
        println!("| program | first finding | estimated | remedy | measured |");
        println!("|---|---|---|---|---|");
        totals.rows.iter().for_each(|row| println!("{row}"));
        println!();
    }
    println!("first finding right: {} of {}", totals.right, totals.sick);
    println!("healthy programs without a finding: {} of {}", totals.silent, totals.twins);
    println!("gains within a factor of {MAX_FACTOR}: {} of {}", totals.within, totals.estimates);
    if !totals.skipped.is_empty() {
        println!("skipped: {}", totals.skipped.join(", "));
    }
    if !totals.failed.is_empty() {
        println!("failed: {}", totals.failed.join(", "));
    }
}
