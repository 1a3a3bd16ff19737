//! Fault: each thread gets a fixed chunk of the items, and the items of one chunk cost 6 times as
//! much as the others. One thread works long after the other threads have ended.
//! `fixed` lets each thread take the next item from a common atomic index.
//! `twin` divides items of equal cost into two fixed chunks, one per thread.
//! It is healthy: both threads compute from the start of the run to its end.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// Items per chunk.
const CHUNK: u64 = 200;
/// The cost of an item in the costly chunk, in units of the cost of another item.
const FACTOR: u64 = 6;
/// Threads of `twin`.
const TWIN_THREADS: u64 = 2;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

struct Plan {
    seed: u64,
    threads: u64,
    /// Items per chunk.
    chunk: u64,
    /// The number of the chunk that costs more.
    costly: Option<u64>,
    /// The cost of an item in the other chunks.
    rounds: u64,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    let chunk = vary(&mut state, CHUNK);
    // 2 to 4 threads.
    let threads = 2 + seed % 3;
    // Until the cheap chunks end, `threads` threads share two CPUs.
    let wall_in_half_chunks = threads + 2 * (FACTOR - 1);
    Plan {
        seed,
        threads,
        chunk,
        costly: Some(vary(&mut state, 100) % threads),
        rounds: TOTAL_US * ROUNDS_PER_US * 2 / (wall_in_half_chunks * chunk),
    }
}

/// The plan of `twin`: as many threads as CPUs and no costly chunk.
fn even_plan(seed: u64) -> Plan {
    let mut plan = plan(seed);
    plan.threads = TWIN_THREADS;
    plan.costly = None;
    plan.rounds = TOTAL_US * ROUNDS_PER_US / plan.chunk;
    plan
}

fn process(plan: &Plan, item: u64) -> u64 {
    let factor = if Some(item / plan.chunk) == plan.costly { FACTOR } else { 1 };
    mix(plan.seed ^ (item << 16), plan.rounds * factor)
}

fn process_chunk(plan: &Plan, items: Range<u64>) -> u64 {
    items.fold(0, |sum, item| sum.wrapping_add(process(plan, item)))
}

fn run_chunks(plan: &Plan) -> u64 {
    thread::scope(|scope| {
        let chunks = (0..plan.threads).map(|chunk| chunk * plan.chunk..(chunk + 1) * plan.chunk);
        let threads: Vec<_> =
            chunks.map(|items| scope.spawn(move || process_chunk(plan, items))).collect();
        let sums = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

/// Takes items from the common index until none is left.
fn take_items(plan: &Plan, next: &AtomicU64) -> u64 {
    let mut sum = 0u64;
    loop {
        let item = next.fetch_add(1, Ordering::Relaxed);
        if item >= plan.threads * plan.chunk {
            return sum;
        }
        sum = sum.wrapping_add(process(plan, item));
    }
}

fn run_index(plan: &Plan) -> u64 {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..plan.threads).map(|_| scope.spawn(|| take_items(plan, &next))).collect();
        let sums = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn main() {
    let (variant, seed) = arguments();
    let result = match variant.as_str() {
        "sick" => run_chunks(&plan(seed)),
        "fixed" => run_index(&plan(seed)),
        _ => run_chunks(&even_plan(seed)),
    };
    println!("{result:016x}");
}

/// Returns 60 % to 140 % of `base`; `state` decides.
fn vary(state: &mut u64, base: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    base * (60 + (*state >> 33) % 81) / 100
}

/// Does `rounds` steps of integer mixing, each of which needs the one before it.
fn mix(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    }
    x
}

unsafe extern "C" {
    fn alarm(seconds: u32) -> u32;
}

/// Reads the variant and the seed, and sets the alarm that ends a run that hangs.
fn arguments() -> (String, u64) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [variant, seed] = args.as_slice()
        && ["sick", "fixed", "twin"].contains(&variant.as_str())
        && let Ok(seed) = seed.parse()
    {
        // SAFETY: `alarm` takes a number and touches no memory of ours.
        unsafe { alarm(LIMIT_S) };
        return (variant.clone(), seed);
    }
    eprintln!("usage: uneven_chunks sick|fixed|twin SEED");
    std::process::exit(2);
}
