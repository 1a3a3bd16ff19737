//! Fault: two threads take turns. One computes a piece of about 2 ms while the other waits for
//! its turn in a busy loop, so both CPUs are busy and only one of them does something useful.
//! An odd seed spins only; an even seed calls `sched_yield` in the loop, too.
//! `fixed` lets each thread compute its half of the pieces; no piece needs another one.
//! `twin` has two threads that take pieces from a common atomic index and compute them.
//! It is healthy: both use atomics and both CPUs, but all of their time goes into pieces.

use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The computing for one piece.
const PIECE_US: u64 = 2_000;
const THREADS: u64 = 2;
/// Steps of the busy loop between two calls of `sched_yield`.
const SPINS: u32 = 100;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

struct Plan {
    seed: u64,
    pieces: u64,
    rounds: u64,
    yields: bool,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    let piece_us = vary(&mut state, PIECE_US);
    Plan {
        seed,
        // An even number, so that the halves are equal.
        pieces: TOTAL_US / piece_us / 2 * 2,
        rounds: piece_us * ROUNDS_PER_US,
        yields: seed.is_multiple_of(2),
    }
}

fn compute(plan: &Plan, piece: u64) -> u64 {
    mix(plan.seed ^ (piece << 16), plan.rounds)
}

/// Waits in a busy loop until it is the turn of `piece`.
fn wait_for_turn(plan: &Plan, turn: &AtomicU64, piece: u64) {
    let mut spins = 0;
    while turn.load(Ordering::Acquire) != piece {
        hint::spin_loop();
        spins += 1;
        if plan.yields && spins == SPINS {
            thread::yield_now();
            spins = 0;
        }
    }
}

/// Runs `work` in each thread and adds up the results.
fn run_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        let sums = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn run_sick(plan: &Plan) -> u64 {
    let turn = AtomicU64::new(0);
    run_threads(|thread| {
        let mut sum = 0u64;
        for piece in (thread..plan.pieces).step_by(THREADS as usize) {
            wait_for_turn(plan, &turn, piece);
            sum = sum.wrapping_add(compute(plan, piece));
            turn.store(piece + 1, Ordering::Release);
        }
        sum
    })
}

fn run_fixed(plan: &Plan) -> u64 {
    run_threads(|thread| {
        let pieces = (thread..plan.pieces).step_by(THREADS as usize);
        pieces.fold(0, |sum, piece| sum.wrapping_add(compute(plan, piece)))
    })
}

fn run_twin(plan: &Plan) -> u64 {
    let next = AtomicU64::new(0);
    run_threads(|_| {
        let mut sum = 0u64;
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= THREADS * plan.pieces {
                return sum;
            }
            sum = sum.wrapping_add(compute(plan, piece));
        }
    })
}

fn main() {
    let (variant, seed) = arguments();
    let plan = plan(seed);
    let result = match variant.as_str() {
        "sick" => run_sick(&plan),
        "fixed" => run_fixed(&plan),
        _ => run_twin(&plan),
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
    eprintln!("usage: spin_loop sick|fixed|twin SEED");
    std::process::exit(2);
}
