//! Measures many callback threads (by default a million) that wait at the same time: how long they
//! take to spawn, how late they run, their memory, and the memory in use afterwards.
//!
//! ```text
//! cargo run --release -p contend-callback --example million [UNITS]
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use contend_callback::{Context, Receptor, SpawnError};

/// Returns the delay of the first timer and the time from the first to the last one, in
/// nanoseconds, for a Worker with `units` callback threads. The first timer is due after all units
/// have been spawned, and timers are due no faster than callbacks can run.
fn plan(units: u64) -> (u64, u64) {
    (2_000_000_000 + 150 * units, 3_000_000_000 + 150 * units)
}

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Histogram of lateness: bucket 0 counts callbacks less than 1 µs late, and bucket `n` those at
/// least 2^(n - 1) and less than 2^n µs late. The last bucket also counts all later ones.
static LATE: [AtomicU64; 40] = [const { AtomicU64::new(0) }; 40];
static EARLY: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    u64::try_from(BEGUN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Records the lateness of a callback that was due at `due`, in nanoseconds since `BEGUN`, or
/// counts it as early.
fn note(due: u64) {
    match now().checked_sub(due) {
        Some(late) => {
            let bucket = 64 - (late / 1000).leading_zeros() as usize;
            LATE[bucket.min(LATE.len() - 1)].fetch_add(1, Ordering::Relaxed);
        }
        None => drop(EARLY.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Spawns `units` callback threads on this Worker and returns the time that this took. Their due
/// times are evenly spread, but not in the order of spawning.
fn spawn_all(context: &mut Context<'_>, units: u64) -> Result<Duration, SpawnError> {
    let begun = Instant::now();
    let (first, spread) = plan(units);
    let mut place = 0;
    for _ in 0..units {
        place = (place + 7_919) % units.max(1);
        let delay = first + spread / units.max(1) * place;
        let due = now() + delay;
        context.spawn_after(Duration::from_nanos(delay), move |context| {
            note(due);
            context.end()
        })?;
    }
    Ok(begun.elapsed())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("million: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let units: u64 = match std::env::args().nth(1) {
        Some(units) => units.parse().map_err(|_| format!("{units:?} is no number of units"))?,
        None => 1_000_000,
    };
    if units == 0 {
        return Err("the number of units must be at least 1".into());
    }
    let receptor = Receptor::start()?;
    let workers = receptor.workers() as u64;
    LazyLock::force(&BEGUN);
    std::thread::sleep(Duration::from_millis(50));

    let before = memory()?;
    let (sender, spawned) = mpsc::channel();
    for worker in 0..receptor.workers() {
        let sender = sender.clone();
        let share = units / workers + u64::from((worker as u64) < units % workers);
        receptor.spawn_on(worker, move |context: &mut Context<'_>| {
            let _ = sender.send(spawn_all(context, share));
            context.end()
        })?;
    }
    drop(sender);
    let mut took = Duration::ZERO;
    for each in spawned {
        took = took.max(each?);
    }
    while receptor.alive() < units && fired() == 0 {
        std::thread::sleep(Duration::from_millis(1)); // Workers publish the number of units
    }
    let (during, waiting, fired) = (memory()?, receptor.alive(), fired());
    receptor.wait();
    let (mut bytes, ended) = (u64::MAX, Instant::now());
    while receptor.bytes() < bytes || ended.elapsed() < Duration::from_millis(100) {
        bytes = receptor.bytes();
        std::thread::sleep(Duration::from_millis(20)); // idle Workers free memory
    }
    let after = memory()?;

    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / units as f64;
    println!("{units} callback threads on {workers} Workers");
    println!("PSS before   {:>12.1} kB", before as f64 / 1e3);
    println!(
        "    waiting  {:>12.1} kB  {:8.3} B each; {waiting} waited when {fired} had run",
        during as f64 / 1e3,
        each(during)
    );
    println!("    after    {:>12.1} kB  {:8.3} B each", after as f64 / 1e3, each(after));
    let nanoseconds = took.as_nanos() as f64 * workers as f64 / units as f64;
    println!("spawned in {took:.1?}, {nanoseconds:.1} ns each, including a read of the clock");
    println!(
        "{} ran, {} of them early; half of them at most {} µs late, 99 of 100 at most {} µs",
        self::fired(),
        EARLY.load(Ordering::Relaxed),
        late(0.5),
        late(0.99)
    );
    Ok(())
}

fn fired() -> u64 {
    LATE.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>()
        + EARLY.load(Ordering::Relaxed)
}

/// Returns the `part` quantile of the lateness, as the upper bound in microseconds of its histogram
/// bucket. `part` is from 0 to 1. Early callbacks do not count.
fn late(part: f64) -> u64 {
    let counts: Vec<u64> = LATE.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let all: u64 = counts.iter().sum();
    let mut sum = 0;
    let bucket = counts.iter().position(|count| {
        sum += count;
        sum as f64 >= part * all as f64
    });
    1 << bucket.unwrap_or(0)
}

/// Returns the proportional set size (PSS) of this process in bytes.
fn memory() -> Result<u64, Box<dyn Error>> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes: u64 = pss.ok_or("no PSS")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}
