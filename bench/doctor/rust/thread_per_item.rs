//! Fault: the program starts a thread for each tiny item, some dozens at a time, and waits for
//! them. A thread costs more to start and to end than the item costs to compute.
//! `fixed` lets two workers take the items from a common atomic index.
//! `twin` starts two threads, which compute until the end of the run.
//! It is healthy: it starts as many threads as there are CPUs, and each of them lives long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The computing for one item.
const ITEM_US: u64 = 6;
/// What the start and the end of a thread add to an item.
const THREAD_US: u64 = 20;
/// Threads that live at the same time.
const AT_A_TIME: u64 = 32;
/// Threads of `fixed` and of `twin`.
const WORKERS: u64 = 2;
/// Items that a worker of `fixed` takes at once.
const GRAB: u64 = 64;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    items: u64,
    rounds: u64,
    at_a_time: u64,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    // In tenths of a microsecond, because the items are that short.
    let item_tenths = vary(&mut state, ITEM_US * 10);
    Plan {
        seed,
        items: TOTAL_US / (item_tenths / 10 + THREAD_US),
        rounds: item_tenths * ROUNDS_PER_US / 10,
        at_a_time: vary(&mut state, AT_A_TIME),
    }
}

fn process(plan: Plan, item: u64) -> u64 {
    mix(plan.seed ^ (item << 16), plan.rounds)
}

fn run_sick(plan: Plan) -> u64 {
    let mut sum = 0u64;
    let mut threads = Vec::new();
    for start in (0..plan.items).step_by(plan.at_a_time as usize) {
        let end = plan.items.min(start + plan.at_a_time);
        threads.extend((start..end).map(|item| thread::spawn(move || process(plan, item))));
        for thread in threads.drain(..) {
            sum = sum.wrapping_add(thread.join().expect("no thread panics"));
        }
    }
    sum
}

/// Takes groups of items from the common index until none is left.
fn take_items(plan: Plan, next: &AtomicU64) -> u64 {
    let mut sum = 0u64;
    loop {
        let start = next.fetch_add(GRAB, Ordering::Relaxed);
        if start >= plan.items {
            return sum;
        }
        let end = plan.items.min(start + GRAB);
        sum = (start..end).fold(sum, |sum, item| sum.wrapping_add(process(plan, item)));
    }
}

fn run_fixed(plan: Plan) -> u64 {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..WORKERS).map(|_| scope.spawn(|| take_items(plan, &next))).collect();
        let sums = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn run_twin(plan: Plan) -> u64 {
    let compute = move |worker| {
        let items = TOTAL_US * ROUNDS_PER_US / plan.rounds;
        (0..items).fold(plan.seed ^ worker, |value, _| mix(value, plan.rounds))
    };
    let threads: Vec<_> =
        (0..WORKERS).map(|worker| thread::spawn(move || compute(worker))).collect();
    let sums = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
    sums.fold(0, u64::wrapping_add)
}

fn main() {
    let (variant, seed) = arguments();
    let plan = plan(seed);
    let result = match variant.as_str() {
        "sick" => run_sick(plan),
        "fixed" => run_fixed(plan),
        _ => run_twin(plan),
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
    eprintln!("usage: thread_per_item sick|fixed|twin SEED");
    std::process::exit(2);
}
