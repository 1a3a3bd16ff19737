//! Memory use of units, measured as PSS: while they wait, and after they have ended.

use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Id, Receptor};

use super::{on_worker, print_row, runtime};

/// Returns the proportional set size (PSS) of this process in bytes.
fn pss() -> f64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    pss.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// Allocates a list of `units` ids and writes `None` to each, so that the list is resident before
/// the measurement.
fn allocate_ids(units: usize) -> Vec<Option<Id>> {
    vec![None; units]
}

/// Spawns a waiting unit, with a closure of `words` (1 or 2) words, for each element of `list`, and
/// returns the list filled with their ids.
fn wait_all(receptor: &Receptor, mut list: Vec<Option<Id>>, words: usize) -> Vec<Option<Id>> {
    fn spawn<const WORDS: usize>(context: &mut Context<'_>) -> Id {
        let words = [1_u64; WORDS];
        let callback = move |context: &mut Context<'_>| {
            std::hint::black_box(words);
            context.end()
        };
        context.spawn_after(Duration::from_hours(1), callback).unwrap()
    }
    on_worker(receptor, 0, move |context, sender| {
        let spawn = if words == 1 { spawn::<1> } else { spawn::<2> };
        for place in &mut list {
            *place = Some(spawn(context));
        }
        sender.send(list).unwrap();
        context.end()
    })
}

/// Sleeps long enough for an idle Worker to free unneeded memory.
fn wait_for_trim() {
    std::thread::sleep(Duration::from_millis(60));
}

pub fn waiting(rounds: usize) {
    for words in [1, 2] {
        for units in [10_000, 100_000, 1_000_000] {
            let mut samples = Vec::new();
            for _ in 0..rounds {
                let receptor = runtime(1, Duration::ZERO);
                let ids = allocate_ids(units);
                wait_for_trim();
                let before = pss();
                let ids = wait_all(&receptor, ids, words);
                wait_for_trim();
                samples.push((pss() - before) / units as f64);
                drop(ids);
                assert_eq!(receptor.alive(), units as u64);
            }
            let name = format!("waiting unit, {} B, {units} of them", words * 8);
            print_row(&name, "B", &mut samples);
        }
    }
}

pub fn remaining(rounds: usize) {
    let units = 1_000_000;
    let (mut all, mut most, mut live) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let receptor = runtime(1, Duration::ZERO);
        let ids = allocate_ids(units);
        wait_for_trim();
        let before = pss();
        let mut ids = wait_all(&receptor, ids, 2);
        fastrand::Rng::with_seed(1).shuffle(&mut ids);
        let waiting = pss() - before;
        let end = |range: std::ops::Range<usize>| {
            ids[range].iter().flatten().for_each(|&id| receptor.cancel(id));
            let begun = Instant::now();
            wait_for_trim();
            while receptor.alive() > 0 && begun.elapsed() < Duration::from_secs(1) {
                wait_for_trim();
            }
            (pss() - before) / units as f64
        };
        let after_most = end(0..units / 100 * 99);
        most.push(after_most);
        live.push(after_most * units as f64 / (waiting / 100.0));
        all.push(end(units / 100 * 99..units));
    }
    print_row("left a unit, 99 % ended in random order", "B", &mut most);
    print_row("  times what the others need", "×", &mut live);
    print_row("left a unit, all ended", "B", &mut all);
}

/// Spawns and ends 100,000 units in each of 100 cycles. Prints the median, minimum and maximum of
/// the PSS after a cycle, and its growth from the tenth to the last cycle.
pub fn cycles(_: usize) {
    let receptor = runtime(1, Duration::ZERO);
    let mut after = Vec::new();
    for _ in 0..100 {
        on_worker(&receptor, 0, |context, sender| {
            let mut ids: Vec<Address<u64>> = Vec::new();
            for _ in 0..100_000 {
                ids.push(context.spawn_handler(|context, _: u64| context.end()).unwrap());
            }
            for id in ids {
                context.send(id, 1).unwrap();
            }
            sender.send(()).unwrap();
            context.end()
        });
        receptor.wait();
        wait_for_trim();
        after.push(pss() / 1e3);
    }
    let (first, last) = (after[9], after[99]);
    print_row("PSS after each of 100 cycles of 100,000", "kB", &mut after);
    print_row("  from the tenth to the last one", "kB", &mut [last - first]);
}
