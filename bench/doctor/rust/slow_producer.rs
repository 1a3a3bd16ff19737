//! Fault: the main thread computes the input of every item by itself, one item after the other.
//! Three workers process an item in a fraction of that time and wait on their channels.
//! `fixed` lets the workers compute the input, too; an item needs nothing from another item.
//! `twin` is a program with one thread that computes one long chain.
//! It is healthy: each step of the chain needs the step before it, so there is nothing to share.

use std::sync::mpsc;
use std::thread;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The computing for the input of one item.
const INPUT_US: u64 = 300;
/// The computing for the processing of one item.
const PROCESS_US: u64 = 30;
const WORKERS: u64 = 3;
/// Items that wait for one worker at most.
const QUEUE: usize = 8;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

struct Plan {
    seed: u64,
    items: u64,
    input_rounds: u64,
    process_rounds: u64,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    let input_us = vary(&mut state, INPUT_US);
    Plan {
        seed,
        items: TOTAL_US / input_us,
        input_rounds: input_us * ROUNDS_PER_US,
        process_rounds: vary(&mut state, PROCESS_US) * ROUNDS_PER_US,
    }
}

fn input(plan: &Plan, item: u64) -> u64 {
    mix(plan.seed ^ (item << 16), plan.input_rounds)
}

fn process(plan: &Plan, input: u64) -> u64 {
    mix(!input, plan.process_rounds)
}

fn run_sick(plan: &Plan) -> u64 {
    thread::scope(|scope| {
        let mut queues = Vec::new();
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let (queue, inputs) = mpsc::sync_channel::<u64>(QUEUE);
            queues.push(queue);
            workers.push(scope.spawn(move || {
                inputs.iter().fold(0u64, |sum, input| sum.wrapping_add(process(plan, input)))
            }));
        }
        for item in 0..plan.items {
            let queue = &queues[(item % WORKERS) as usize];
            queue.send(input(plan, item)).expect("the worker lives");
        }
        drop(queues);
        let sums = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn run_fixed(plan: &Plan) -> u64 {
    thread::scope(|scope| {
        let work = |worker| {
            (worker..plan.items)
                .step_by(WORKERS as usize)
                .fold(0u64, |sum, item| sum.wrapping_add(process(plan, input(plan, item))))
        };
        let workers: Vec<_> =
            (0..WORKERS).map(|worker| scope.spawn(move || work(worker))).collect();
        let sums = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn run_twin(plan: &Plan) -> u64 {
    (0..plan.items).fold(plan.seed, |value, _| mix(value, plan.input_rounds))
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
    eprintln!("usage: slow_producer sick|fixed|twin SEED");
    std::process::exit(2);
}
